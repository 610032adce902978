"""A decoder's configuration as the shape of a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from itertools import groupby
from typing import Any

from bubbleproof.costs.configurations.configuration import Configuration
from bubbleproof.costs.configurations.decoder_layers import (
    Fields,
    all_full,
    attention_of,
    layer_types,
    mixture_layers,
)
from bubbleproof.costs.configurations.decoder_types import traits_of
from bubbleproof.costs.further_layers import kind_name, layered
from bubbleproof.costs.layer_extras import layer_extras
from bubbleproof.costs.layer_operation import LayerOperation
from bubbleproof.costs.transformer import Transformer

MOST_LAYERS = 10_000
PLAIN: Fields = {"experts": 0, "experts_per_token": 0, "shared_feed_forward": 0}
EXTRAS = ("qk_norm", "sinks", "output_gate", "shared_gate", "router_bias")
DENSE = ("dense_layers", "dense_feed_forward")
_DEFAULTS = {field.name: field.default for field in fields(Transformer)}


def decoder(keys: Configuration, kind: str, name: str = "") -> tuple[Transformer, int]:
    """The model of these keys, and its longest sequence.

    Raises ``ValueError`` with the file, the key and what is expected.

    Parameters
    ----------
    kind
        The model type, a key of ``DECODERS`` (``decoder_types``).
    name
        That of the model.
    """
    traits = traits_of(kind, keys)
    special = {key: traits.pop(key) for key in list(traits) if key.startswith("_")}
    base = {
        **_sizes(keys, special, is_gated=traits["gated"]),
        **traits,
    }
    base["tied"] = keys.flag("tie_word_embeddings", bool(base.get("tied", False)))
    layers, more = base["layers"], {key: base.pop(key) for key in EXTRAS if key in base}
    kinds = layer_types(keys, layers, special.get("_rule", all_full))
    blocks = _blocks(keys, base, special, kinds)
    each = [_layer(keys, one, special) | block for one, block in zip(kinds, blocks, strict=True)]
    if special.get("_single"):
        each = [_one_block(kind, one) for kind, one in zip(kinds, each, strict=True)]
    each = [{**one, "extras": _extras({**base, **one}, more)} for one in each]
    sequence = keys.number("max_position_embeddings") or special.get("_longest", 2048)
    try:
        return _model(base, each, name), sequence
    except ValueError as error:
        raise ValueError(f"{keys.path}: {str(error).removeprefix('model ')}") from None


def _sizes(keys: Configuration, special: Fields, *, is_gated: bool) -> Fields:
    hidden, layers = keys.size("hidden_size"), keys.size("num_hidden_layers")
    if layers > MOST_LAYERS:
        raise keys.wrong("num_hidden_layers", f"a whole number from 1 to {MOST_LAYERS}", layers)
    found = {"hidden": hidden, "layers": layers, "vocabulary": keys.size("vocab_size")}
    if special.get("_alone"):  # no layer has attention, or a block
        return {**found, "heads": 1, "feed_forward": 0}
    heads = keys.size("num_attention_heads")
    width = keys.number("head_dim")
    if not width and hidden % heads:
        raise keys.wrong(
            "num_attention_heads", f"a divisor of hidden_size {hidden} (or tell head_dim)", heads
        )
    shared = keys.number("num_key_value_heads") or heads
    if heads % shared:
        raise keys.wrong("num_key_value_heads", f"a divisor of the {heads} heads", shared)
    found |= {"heads": heads, "kv_heads": shared, "head_width": width}
    default = None if is_gated else 4 * hidden
    return {**found, "feed_forward": keys.size("intermediate_size", default)}


def _blocks(
    keys: Configuration, base: Fields, special: Fields, kinds: Sequence[str]
) -> list[Fields]:
    """The feed-forward block of each layer."""
    wide = special.get("_dense_width", "intermediate_size")
    dense = {**PLAIN, "feed_forward": keys.size(wide, base["feed_forward"])}
    experts = keys.number("num_experts")
    if experts == 0 or special.get("_alone"):
        return [{"feed_forward": base["feed_forward"]}] * len(kinds)
    narrow = special.get("_expert_width", "moe_intermediate_size")
    mixed = {
        "feed_forward": keys.size(narrow, base["feed_forward"]),
        "experts": experts,
        "experts_per_token": keys.size("num_experts_per_tok"),
        "shared_feed_forward": special.get("_shared", 0),
    }
    if experts == 1:
        return [dense] * len(kinds)
    if special.get("_single"):
        return [mixed if each == "moe" else dense for each in kinds]
    return [mixed if each else dense for each in mixture_layers(keys, len(kinds))]


def _layer(keys: Configuration, kind: str, special: Fields) -> Fields:
    if special.get("_single") and kind in ("mlp", "moe"):
        return {"mixer": ()}
    if special.get("_alone"):
        return {"mixer": special["_mixer"](keys)}
    mixer = special.get("_mixer")
    if mixer is None:
        return attention_of(keys, kind, lambda: _no_mixer(keys, kind))
    return attention_of(keys, kind, lambda: mixer(keys))


def _no_mixer(keys: Configuration, kind: str) -> Any:
    raise keys.wrong("layer_types", "names of attentions of this type", kind)


def _extras(layer: Fields, told: Fields) -> tuple[LayerOperation, ...]:
    """What the layer has more: of an attention where it has one, of experts where it has them."""
    attends = layer.get("mixer") is None
    if not told or not (attends or layer.get("experts")):
        return ()
    heads = layer["heads"]
    shape = {
        "hidden": layer["hidden"],
        "heads": heads,
        "kv_heads": layer.get("kv_heads") or heads,
        "width": layer.get("head_width") or layer["hidden"] // heads,
        "experts": layer.get("experts", 0),
        "statistics": 1 if layer["norm"] == "rms" else 2,
    }
    of_attention = {key: told[key] for key in EXTRAS[:3] if key in told and attends}
    if told.get("qk_norm") == "plain" and not layer.get("chunk"):  # Llama 4's without positions
        of_attention.pop("qk_norm", None)
    of_experts = {key: told[key] for key in EXTRAS[3:] if key in told and layer.get("experts")}
    if not layer.get("shared_feed_forward"):
        of_experts.pop("shared_gate", None)
    return layer_extras(shape, **of_attention, **of_experts)


def _one_block(kind: str, one: Fields) -> Fields:
    """A layer that has either a mixer or a block (Nemotron-H)."""
    if kind == "moe":
        return one
    return {**one, **PLAIN, "feed_forward": one["feed_forward"] if kind == "mlp" else 0}


def _model(base: Fields, each: Sequence[Fields], name: str) -> Transformer:
    """The model of the most frequent kind of layer, the others as what they have other."""
    names = dict.fromkeys(name for one in each for name in one)
    absent = {name: base.get(name, _DEFAULTS.get(name)) for name in names}
    whole = (_fixed({**absent, **one}) for one in each)
    runs = [(key, sum(1 for _ in group)) for key, group in groupby(whole)]
    counts: dict[Any, int] = {}
    for key, count in runs:
        counts[key] = counts.get(key, 0) + count
    common = dict(max(counts, key=lambda key: (dict(key).get("experts", 0) > 0, counts[key])))
    shape = {**base, **common, "name": name}
    if len(counts) == 1:
        return Transformer(**shape)
    if (dense := _dense_first(runs, common)) is not None:
        return Transformer(**shape, **dense)
    plain = Transformer(**shape)
    kinds = {key: plain.with_changes(**dict(key)) for key in counts}
    return layered(plain, [(kinds[key], count, kind_name(kinds[key])) for key, count in runs])


def _fixed(one: Fields) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted(one.items(), key=lambda item: item[0]))


def _dense_first(runs: Sequence[tuple[Any, int]], common: Fields) -> Fields | None:
    """The first layers without experts, all others alike, as a mixture has them."""
    if len(runs) != 2 or not common.get("experts") or dict(runs[1][0]) != common:
        return None
    first, count = dict(runs[0][0]), runs[0][1]
    block = {key: common[key] for key in ("feed_forward", *PLAIN)}
    if {**first, **block} != common:
        return None
    return dict(zip(DENSE, (count, first["feed_forward"]), strict=True))
