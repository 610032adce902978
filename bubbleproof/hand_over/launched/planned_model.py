"""A configuration of torchtitan 0.3 for the sizes of model.json, by torchtitan's own builders:

python -m torchtitan.train --module planned_model --config planned ...

A decoder without experts is built as torchtitan's Llama 3, one with experts, or with heads of
another width than hidden / heads, as its Qwen 3, whose queries and keys have norms.
"""

import json
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

Sizes = dict[str, Any]
POSITIONS = 131072  # that rotations are made for, at least


def _as_llama(common: Any, sizes: Sizes) -> Any:
    made = import_module("torchtitan.models.llama3")
    hidden, heads, words = sizes["hidden"], sizes["heads"], sizes["vocabulary"]
    turned = common.ComplexRoPE.Config(
        dim=hidden // heads,
        max_seq_len=max(POSITIONS, sizes["sequence"]),
        theta=sizes["rotary_base"],
    )
    return made.Llama3Model.Config(
        dim=hidden,
        vocab_size=words,
        tok_embeddings=common.Embedding.Config(
            num_embeddings=words, embedding_dim=hidden, param_init=made._EMBEDDING_INIT
        ),
        norm=common.RMSNorm.Config(normalized_shape=hidden, param_init=made._NORM_INIT),
        lm_head=common.Linear.Config(
            in_features=hidden, out_features=words, param_init=made._output_linear_init(hidden)
        ),
        layers=made._build_llama3_layers(
            n_layers=sizes["layers"],
            dim=hidden,
            n_heads=heads,
            n_kv_heads=sizes["kv_heads"],
            hidden_dim=sizes["feed_forward"],
            rope=turned,
            attn_backend="flex",
        ),
    )


def _as_qwen(common: Any, sizes: Sizes) -> Any:
    made = import_module("torchtitan.models.qwen3")
    hidden, words = sizes["hidden"], sizes["vocabulary"]
    shared = {
        "n_layers": sizes["layers"],
        "dim": hidden,
        "n_heads": sizes["heads"],
        "n_kv_heads": sizes["kv_heads"],
        "head_dim": sizes["head_width"],
        "attn_backend": "flex",
        "rope": common.CosSinRoPE.Config(
            dim=sizes["head_width"],
            max_seq_len=max(POSITIONS, sizes["sequence"]),
            theta=sizes["rotary_base"],
        ),
    }
    if sizes["experts"]:
        layers = made._build_qwen3_moe_layers(
            moe_hidden_dim=sizes["feed_forward"],
            num_experts=sizes["experts"],
            top_k=sizes["experts_per_token"],
            moe_comm_backend="standard",
            **shared,
        )
    else:
        layers = made._build_qwen3_layers(hidden_dim=sizes["feed_forward"], **shared)
    return made.Qwen3Model.Config(
        dim=hidden,
        vocab_size=words,
        norm=made._qwen3_norm(hidden),
        tok_embeddings=common.Embedding.Config(
            num_embeddings=words, embedding_dim=hidden, param_init=made._EMBEDDING_INIT
        ),
        lm_head=common.Linear.Config(
            in_features=hidden, out_features=words, param_init=made._LINEAR_INIT
        ),
        layers=layers,
    )


def planned() -> Any:
    """The configuration: a training of torchtitan's small model, with this one in its place."""
    sizes: Sizes = json.loads(Path(__file__).with_name("model.json").read_text())
    is_llama = not sizes["experts"] and sizes["head_width"] * sizes["heads"] == sizes["hidden"]
    name, small = ("llama3", "llama3_debugmodel") if is_llama else ("qwen3", "qwen3_moe_debug")
    config = getattr(import_module(f"torchtitan.models.{name}.config_registry"), small)()
    common = import_module("torchtitan.models.common")
    model = _as_llama(common, sizes) if is_llama else _as_qwen(common, sizes)
    config.model_spec = replace(config.model_spec, flavor="planned", model=model)
    config.loss.loss_fn.global_vocab_size = sizes["vocabulary"]
    return config
