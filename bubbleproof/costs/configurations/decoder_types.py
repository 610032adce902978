"""What each type of configuration is, beyond its sizes: norms, biases, kinds of layers.

``decoders.toml`` has for each ``model_type`` what it has other than a Llama (or than its ``base``,
``like`` another type): fields of a model, as they are for every file of the type, or as a table
says that the file's keys tell them:

- ``flag``: true or false, or ``then`` and ``else`` in their place; true where one of several is;
- ``size`` or ``number``: a whole number, from 1 or 0, ``times`` another; ``auto``, where the file
  leaves it to the reader, so many numbers of the stream for each;

with a ``default`` where the file has no such key. Keys in ``skip`` decide nothing. Keys beginning
with an underscore are no fields: ``_rule`` names layers where the file does not (a function of
``decoder_layers``, or a table with the first argument of one that makes it), ``_mixer`` is what
takes the attention's place in some (of ``mixers``), ``_dense_width`` is the key of the width of
blocks without experts, ``_expert_width`` of those of experts, ``_shared`` the width of the shared
ones, ``_longest`` the tokens of a sample where the file tells none.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from bubbleproof.costs import state_space
from bubbleproof.costs.configurations import decoder_layers as rules
from bubbleproof.costs.configurations.configuration import Configuration
from bubbleproof.costs.configurations.decoder_layers import Fields
from bubbleproof.costs.layer_operation import LayerOperation

Row = Mapping[str, Any]
TABLES = tomllib.loads(Path(__file__).with_name("decoders.toml").read_text(encoding="utf-8"))
OF_LAYERS = ("_rule", "_mixer")
MIXERS: Mapping[str, Row] = TABLES["mixers"]


def traits_of(kind: str, keys: Configuration) -> Fields:
    """What the type has, as the file's keys tell it.

    Parameters
    ----------
    kind
        A key of ``DECODERS``.
    """
    row = dict(DECODERS[kind])
    keys.skip(*row.pop("skip", ()))
    found = BASES[row.pop("base", "llama")](keys)
    for name, told in row.items():
        found[name] = _of_layers(told) if name in OF_LAYERS else _value(told, keys)
    return found


def _value(told: Any, keys: Configuration) -> Any:
    """A field, or what the file's keys tell of it."""
    if not isinstance(told, Mapping):
        return told
    if "flag" in told:
        names = [told["flag"]] if isinstance(told["flag"], str) else told["flag"]
        is_so = any(keys.flag(name, told.get("default", False)) for name in names)
        return told.get("then", True) if is_so else told.get("else", False)
    if "auto" in told and keys.is_auto(told["size"]):
        return -(-keys.size("hidden_size") // told["auto"])
    if "size" in told:
        found = keys.size(told["size"], _value(told.get("default"), keys))
    else:
        found = keys.number(told["number"], told.get("default", 0))
    return found * _value(told["times"], keys) if "times" in told else found


def _of_layers(told: Any) -> Any:
    """A rule of ``decoder_layers``, or what one of them makes; or the maker of a mixer."""
    if isinstance(told, str):
        return partial(_mixer, told) if told in MIXERS else getattr(rules, told)
    (name, first), *others = told.items()
    return getattr(rules, name)(first, **dict(others))


def _mixer(name: str, keys: Configuration) -> tuple[LayerOperation, ...]:
    """The operations of a mixer whose sizes are told by keys."""
    sizes = {each: _value(told, keys) for each, told in MIXERS[name].items()}
    made: tuple[LayerOperation, ...] = getattr(state_space, sizes.pop("make"))(
        keys.size("hidden_size"), **sizes
    )
    return made


def _llama(keys: Configuration) -> Fields:
    """RMS norms, a gated block, no biases but those that the file tells."""
    return {
        "norm": "rms",
        "gated": True,
        "attention_biases": "all" if keys.flag("attention_bias") else "none",
        "feed_forward_bias": keys.flag("mlp_bias"),
    }


def _gpt(keys: Configuration) -> Fields:
    """Layer norms with shifts, a plain block, biases everywhere, a tied head."""
    own = {"norm": "layer", "gated": False, "attention_biases": "all"}
    return {**_llama(keys), **own, "feed_forward_bias": True, "tied": True}


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


def _opt(keys: Configuration) -> Fields:
    hidden = keys.size("hidden_size")
    if keys.size("word_embed_proj_dim", hidden) != hidden:
        raise keys.wrong("word_embed_proj_dim", f"hidden_size {hidden}, as counted here", "another")
    for key in ("do_layer_norm_before", "enable_bias", "layer_norm_elementwise_affine"):
        if not keys.flag(key, True):
            raise keys.wrong(key, "true, as counted here", False)
    keys.flag("_remove_final_layer_norm")
    relu = keys.word("activation_function", "relu") == "relu"
    found = _gpt(keys)
    return {**found, "positions": keys.size("max_position_embeddings", 2048) + 2, "relu": relu}


BASES: dict[str, Callable[[Configuration], Fields]] = {
    "llama": _llama, "gpt": _gpt, "falcon": _falcon, "opt": _opt,
}  # fmt: skip


def _decoders() -> dict[str, Row]:
    """The rows of the file, each with those of the type that it is like."""
    found: dict[str, Row] = {}
    for kind, row in TABLES["decoders"].items():
        like = found[row["like"]] if "like" in row else {}
        found[kind] = {**like, **{name: told for name, told in row.items() if name != "like"}}
    return found


DECODERS = _decoders()
