"""What each type of configuration is, beyond its sizes: norms, biases, kinds of layers.

``DECODERS`` has for each ``model_type`` what it has other than a Llama: fields of a model, where
they are the same for every file of the type, and functions of the file where they are not. Keys
beginning with an underscore are no fields: ``_rule`` names layers where the file does not
(``decoder_layers``), ``_mixer`` is what takes the attention's place in some, ``_dense_width`` is
the key of the width of blocks without experts, ``_expert_width`` of those of experts, ``_shared``
the width of the shared ones, ``_longest`` the tokens of a sample where the file tells none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bubbleproof.costs.configurations import decoder_layers as rules
from bubbleproof.costs.configurations.configuration import Configuration
from bubbleproof.costs.configurations.decoder_layers import Fields

Traits = Callable[[Configuration], Fields]
Value = Callable[[Configuration], Any]


def llama(**other: Any) -> Traits:
    """RMS norms, a gated block, no biases but those that the file tells."""

    def traits(keys: Configuration) -> Fields:
        has_bias = keys.flag("attention_bias")
        made = {
            "norm": "rms",
            "gated": True,
            "attention_biases": "all" if has_bias else "none",
            "feed_forward_bias": keys.flag("mlp_bias"),
        }
        told = {
            name: value(keys) if callable(value) and name != "_rule" and name != "_mixer" else value
            for name, value in other.items()
        }
        return {**made, **told}

    return traits


def gpt(**other: Any) -> Traits:
    """Layer norms with shifts, a plain block, biases everywhere, a tied head."""
    base = {
        "norm": "layer", "gated": False, "attention_biases": "all", "feed_forward_bias": True,
        "tied": True,
    }  # fmt: skip
    return llama(**{**base, **other})


def _biased(key: str, *, inputs: bool = False, default: bool = False) -> Value:
    return lambda keys: ("inputs" if inputs else "all") if keys.flag(key, default) else "none"


def _flag(key: str, default: bool = False) -> Value:
    return lambda keys: keys.flag(key, default)


def _learned(extra: int = 0, default: int = 1024) -> Value:
    return lambda keys: keys.size("max_position_embeddings", default) + extra


def _shared(count_key: str) -> Value:
    """So many shared experts, each as wide as the others."""
    return lambda keys: keys.number(count_key) * keys.number("moe_intermediate_size")


def _falcon(keys: Configuration) -> Fields:
    is_new = keys.flag("new_decoder_architecture")
    parallel = keys.flag("parallel_attn", True) or is_new
    told = keys.number("num_ln_in_parallel_attn")
    heads = keys.size("num_attention_heads")
    shared = keys.number("num_kv_heads", heads)
    multi = keys.flag("multi_query", True)
    has_bias = keys.flag("bias")
    keys.flag("alibi")
    return {
        "norm": "layer",
        "gated": False,
        "parallel": parallel,
        "norms": told or (2 if is_new or not parallel else 1),
        "kv_heads": shared if is_new else 1 if multi else heads,
        "attention_biases": "all" if has_bias else "none",
        "feed_forward_bias": has_bias,
        "tied": True,
    }


def _latent(**other: Any) -> Traits:
    """Keys and values from few numbers (DeepSeek)."""

    def traits(keys: Configuration) -> Fields:
        keys.skip("num_key_value_heads", "head_dim", "qk_head_dim")
        return {
            **llama()(keys),
            "kv_heads": 0,
            "head_width": keys.size("qk_nope_head_dim", 128),
            "rope_width": keys.number("qk_rope_head_dim", 64),
            "value_head_width": keys.size("v_head_dim", 128),
            "kv_rank": keys.size("kv_lora_rank", 512),
            "query_rank": keys.number("q_lora_rank"),
            "_shared": _shared("n_shared_experts")(keys),
            **other,
        }

    return traits


def _opt(keys: Configuration) -> Fields:
    hidden = keys.size("hidden_size")
    if keys.size("word_embed_proj_dim", hidden) != hidden:
        raise keys.wrong("word_embed_proj_dim", f"hidden_size {hidden}, as counted here", "another")
    for key in ("do_layer_norm_before", "enable_bias", "layer_norm_elementwise_affine"):
        if not keys.flag(key, True):
            raise keys.wrong(key, "true, as counted here", False)
    keys.flag("_remove_final_layer_norm")
    relu = keys.word("activation_function", "relu") == "relu"
    return gpt(positions=_learned(2, 2048), relu=relu)(keys)


def _gpt_neox(keys: Configuration) -> Fields:
    found = gpt(tied=None)(keys)
    has_bias = keys.flag("attention_bias", True)
    parallel = keys.flag("use_parallel_residual", True)
    return {**found, "attention_biases": "all" if has_bias else "none", "parallel": parallel}


def _qk_norm(key: str, found: str = "head") -> Value:
    return lambda keys: found if keys.flag(key) else "none"


QWEN = {"attention_biases": "inputs", "_rule": rules.after_some}
QWEN3 = {"qk_norm": "head", "_rule": rules.after_some}
SHARED_EXPERT = {
    "_shared": lambda keys: keys.number("shared_expert_intermediate_size"), "shared_gate": True,
}  # fmt: skip
NEXT = {
    "qk_norm": "head", "output_gate": True, "_mixer": rules.delta_net_of,
    "_rule": rules.every(4, "full_attention_interval", "linear_attention"),
}  # fmt: skip
GEMMA = {"norm": "rms", "tied": True}
OLMO2 = {"qk_norm": "whole"}
COHERE = {"norm": "scale", "norms": 1, "parallel": True, "tied": True}
HYBRID = {"_rule": rules.by_indices, "_mixer": rules.mamba_2_of}

DECODERS: dict[str, Traits] = {
    "llama": llama(),
    "mistral": llama(_rule=rules.all_sliding),
    "ministral": llama(_rule=rules.all_sliding),
    "ministral3": llama(_rule=rules.all_sliding),
    "mixtral": llama(_rule=rules.all_sliding),
    "qwen2": llama(**QWEN),
    "qwen2_moe": llama(**QWEN, **SHARED_EXPERT),
    "qwen3": llama(**QWEN3),
    "qwen3_moe": llama(**QWEN3),
    "qwen3_next": llama(**NEXT, **SHARED_EXPERT),
    "qwen3_5_text": llama(**NEXT),
    "qwen3_5_moe_text": llama(**NEXT, **SHARED_EXPERT),
    "gemma": llama(**GEMMA),
    "gemma2": llama(**GEMMA, norms=4, _rule=rules.every(2)),
    "gemma3_text": llama(
        **GEMMA,
        norms=4,
        qk_norm="head",
        _longest=131_072,
        _rule=rules.every(6, "sliding_window_pattern"),
    ),
    "phi3": llama(_rule=rules.all_sliding),
    "phi": gpt(parallel=True, norms=1, head_bias=True, tied=None),
    "phimoe": llama(norm="layer", _rule=rules.all_sliding, head_bias=_flag("lm_head_bias")),
    "gpt2": gpt(positions=_learned(), dropout=True),
    "gpt_bigcode": gpt(
        positions=_learned(),
        dropout=True,
        kv_heads=lambda k: 1 if k.flag("multi_query", True) else 0,
    ),
    "gpt_neo": gpt(positions=_learned(default=2048), attention_biases="output"),
    "gptj": gpt(parallel=True, norms=1, attention_biases="none", head_bias=True, tied=None),
    "codegen": gpt(parallel=True, norms=1, attention_biases="none", head_bias=True, tied=None),
    "gpt_neox": _gpt_neox,
    "bloom": gpt(embedding_norm=True),
    "opt": _opt,
    "xglm": gpt(),
    "falcon": _falcon,
    "mpt": gpt(norm="scale", attention_biases="none", feed_forward_bias=False),
    "starcoder2": gpt(
        attention_biases=_biased("use_bias", default=True),
        feed_forward_bias=_flag("use_bias", True),
        _rule=rules.all_sliding,
    ),
    "stablelm": llama(
        norm="layer", attention_biases=_biased("use_qkv_bias", inputs=True),
        parallel=_flag("use_parallel_residual"),
        norms=lambda k: 1 if k.flag("use_parallel_residual") else 2,
    ),
    "nemotron": llama(norm="layer", gated=False),
    "arcee": llama(gated=False),
    "olmo": llama(norm="bare"),
    "olmo2": llama(**OLMO2),
    "olmo3": llama(**OLMO2, _rule=rules.every(4)),
    "olmoe": llama(**OLMO2),
    "flex_olmo": llama(**OLMO2),
    "minimax_m2": llama(**OLMO2),
    "cohere": llama(**COHERE, qk_norm=_qk_norm("use_qk_norm", "each")),
    "cohere2": llama(**COHERE, _rule=rules.every(4, "sliding_window_pattern")),
    "granite": llama(),
    "granitemoe": llama(),
    "granitemoeshared": llama(_shared=lambda k: k.number("shared_intermediate_size")),
    "granitemoehybrid": llama(
        **{**HYBRID, "_rule": rules.alike("mamba")},
        _shared=lambda k: k.number("shared_intermediate_size", 1024),
    ),
    "bamba": llama(**HYBRID),
    "jamba": llama(_rule=rules.by_period, _mixer=rules.mamba_1_of),
    "mamba": llama(tied=True, norms=1, _mixer=rules.mamba_1_alone, _alone=True),
    "falcon_mamba": llama(tied=True, norms=1, _mixer=rules.mamba_1_alone, _alone=True),
    "mamba2": llama(norms=1, _mixer=rules.mamba_2_alone, _alone=True),
    "nemotron_h": llama(
        gated=False, norms=1, _mixer=rules.mamba_2_alone, _single=True,
        _shared=lambda k: k.number("n_shared_experts", 1)
        * k.number("moe_shared_expert_intermediate_size"),
    ),
    "smollm3": llama(tied=True),
    "exaone4": llama(qk_norm="head", _rule=rules.lettered),
    "exaone_moe": llama(
        qk_norm="head", _rule=rules.lettered, _shared=_shared("num_shared_experts")
    ),
    "glm": llama(attention_biases=_biased("attention_bias", inputs=True)),
    "glm4": llama(attention_biases=_biased("attention_bias", inputs=True), norms=4),
    "glm4_moe": llama(
        attention_biases=_biased("attention_bias", inputs=True),
        qk_norm=_qk_norm("use_qk_norm"),
        _shared=_shared("n_shared_experts"),
    ),
    "solar_open": llama(_shared=_shared("n_shared_experts")),
    "deepseek_v2": _latent(),
    "deepseek_v3": _latent(),
    "ernie4_5": llama(
        attention_biases=_biased("use_bias"), feed_forward_bias=_flag("use_bias"), tied=True
    ),
    "ernie4_5_moe": llama(
        attention_biases=_biased("use_bias"), feed_forward_bias=_flag("use_bias"), tied=True,
        _shared=_shared("moe_num_shared_experts"), _counted_rates=True,
    ),
    "gpt_oss": llama(
        sinks=True, router_bias=True, feed_forward_bias=True, _rule=rules.every(2),
        attention_biases=_biased("attention_bias", default=True),
    ),
    "llama4_text": llama(
        qk_norm=_qk_norm("use_qk_norm", "plain"), _rule=rules.without_rope,
        _shared=lambda k: k.size("intermediate_size"), _dense_width="intermediate_size_mlp",
        _expert_width="intermediate_size",
    ),
    "seed_oss": llama(attention_biases=_biased("attention_bias", inputs=True)),
    "helium": llama(),
    "hunyuan_v1_dense": llama(qk_norm="head"),
    "hyperclovax": llama(norms=lambda k: 4 if k.flag("use_post_norm", False) else 2),
    "persimmon": gpt(tied=None),
    "vaultgemma": llama(**GEMMA, _rule=rules.every(2)),
}  # fmt: skip
