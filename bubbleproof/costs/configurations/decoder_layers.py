"""Which kind each layer of a configuration is: its attention or what takes its place, its block.

Each function gives, layer by layer, the fields of a model that the layer has other than the rest.
What a file says itself (``layer_types``, ``mlp_layer_types``) decides; else the rule of its type.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from bubbleproof.costs.configurations.configuration import Configuration

Fields = dict[str, Any]
LETTERS = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}  # of hybrid_override_pattern
FULL = ("full_attention", "attention", "hybrid", "dense")
SLIDING, CHUNKED = ("sliding_attention", "local_attention"), ("chunked_attention",)
LINEAR = ("linear_attention", "mamba")
Rule = Callable[[Configuration, int], Sequence[str]]


def alike(kind: str) -> Rule:
    """All layers are of the kind.

    Parameters
    ----------
    kind
        The name of a kind of layer, as in ``layer_types``.
    """
    return lambda _keys, layers: [kind] * layers


all_full, all_sliding = alike("full_attention"), alike("sliding_attention")


def every(nth: int, key: str = "", kind: str = "sliding_attention") -> Rule:
    """Every nth layer sees all, as the key says or by default; the others are of the kind.

    Parameters
    ----------
    nth
        The step where no key says another.
    key
        The key of the step; empty: none.
    kind
        The name of the others, as in ``layer_types``.
    """

    def rule(keys: Configuration, layers: int) -> Sequence[str]:
        step = keys.size(key, nth) if key else nth
        return ["full_attention" if (n + 1) % step == 0 else kind for n in range(layers)]

    return rule


def lettered(keys: Configuration, layers: int) -> Sequence[str]:
    """As EXAONE 4 says it: L and G, or every so many layers.

    Parameters
    ----------
    layers
        How many the model has.
    """
    pattern = keys.values.get("sliding_window_pattern")
    if isinstance(pattern, str) and pattern and set(pattern) <= set("LG"):
        keys.used["sliding_window_pattern"] = pattern
        kinds = {"L": "sliding_attention", "G": "full_attention"}
        return [kinds[pattern[n % len(pattern)]] for n in range(layers)]
    if not keys.has("sliding_window"):
        return all_full(keys, layers)
    return every(4, "sliding_window_pattern")(keys, layers)


def after_some(keys: Configuration, layers: int) -> Sequence[str]:
    """Qwen: windows only where ``use_sliding_window`` says so, from ``max_window_layers`` on.

    Parameters
    ----------
    layers
        How many the model has.
    """
    if not keys.flag("use_sliding_window"):
        keys.skip("sliding_window", "max_window_layers")
        return all_full(keys, layers)
    first = keys.number("max_window_layers", 28)
    return ["full_attention" if n < first else "sliding_attention" for n in range(layers)]


def without_rope(keys: Configuration, layers: int) -> Sequence[str]:
    """Llama 4: layers with rotary positions see their chunk, those without see all.

    Parameters
    ----------
    layers
        How many the model has.
    """
    rope = (
        keys.each("no_rope_layers", layers, int, "0 and 1")
        if keys.values.get("no_rope_layers")
        else ()
    )
    step = keys.size("no_rope_layer_interval", 4)
    rope = rope or tuple(int((n + 1) % step != 0) for n in range(layers))
    return ["chunked_attention" if each else "full_attention" for each in rope]


def by_period(keys: Configuration, layers: int) -> Sequence[str]:
    """Jamba: attention once in a period, Mamba else.

    Parameters
    ----------
    layers
        How many the model has.
    """
    period, offset = keys.size("attn_layer_period", 8), keys.number("attn_layer_offset", 4)
    return ["full_attention" if n % period == offset else "mamba" for n in range(layers)]


def by_indices(keys: Configuration, layers: int) -> Sequence[str]:
    """Bamba: attention in the layers of ``attn_layer_indices``, Mamba-2 else.

    Parameters
    ----------
    layers
        How many the model has.
    """
    attention = keys.numbers("attn_layer_indices")
    return ["full_attention" if n in attention else "mamba" for n in range(layers)]


def layer_types(keys: Configuration, layers: int, rule: Rule) -> tuple[str, ...]:
    """A name for each layer.

    Parameters
    ----------
    layers
        How many the model has.
    """
    for name in ("layer_types", "layers_block_type", "block_types"):
        if found := keys.words(name, layers):
            return found
    if pattern := keys.word("hybrid_override_pattern"):
        if len(pattern) != layers or not set(pattern) <= set(LETTERS):
            letters = f"a letter of {' '.join(LETTERS)} for each of {layers} layers"
            raise keys.wrong("hybrid_override_pattern", letters, f"{len(pattern)} in {pattern!r}")
        return tuple(LETTERS[each] for each in pattern)
    return tuple(rule(keys, layers))


def attention_of(keys: Configuration, kind: str, mixer: Callable[[], object]) -> Fields:
    """The fields of a layer whose name this is. Raises ``ValueError`` for another name.

    Parameters
    ----------
    kind
        The name, as in ``layer_types``.
    """
    if kind in FULL:
        return {}
    if kind in SLIDING:
        return {"window": keys.number("sliding_window")}
    if kind in CHUNKED:
        return {"chunk": keys.number("attention_chunk_size")}
    if kind in LINEAR:
        return {"mixer": mixer()}
    names = ", ".join((*FULL[:1], *SLIDING[:1], *CHUNKED, *LINEAR))
    raise keys.wrong("layer_types", f"names of {names}", kind)


def mixture_layers(keys: Configuration, layers: int) -> list[bool]:
    """Which layers have experts, by whichever rule the file has; all where it has none.

    Parameters
    ----------
    layers
        How many the model has.
    """
    if kinds := keys.words("mlp_layer_types", layers):
        return [each in ("sparse", "moe") for each in kinds]
    if keys.values.get("moe_layers") is not None:  # the layers themselves
        mixed = keys.numbers("moe_layers")
        return [n in mixed for n in range(layers)]
    found = [True] * layers
    first = keys.number("first_k_dense_replace") or keys.number("moe_layer_start_index")
    last = keys.values.get("moe_layer_end_index")
    keys.used["moe_layer_end_index"] = last
    dense = keys.numbers("mlp_only_layers")
    step = keys.size("interleave_moe_layer_step", 1)
    sparse = keys.size("decoder_sparse_step", 1)
    period, offset = keys.size("expert_layer_period", 1), keys.number("expert_layer_offset", 0)
    frequency = keys.size("moe_layer_freq", 1)
    interval = keys.size("moe_layer_interval", 1)
    for n in range(layers):
        found[n] = (
            n >= first
            and (not isinstance(last, int) or last < 0 or n <= last)
            and n not in dense
            and (n + 1) % step == 0
            and (n + 1) % sparse == 0
            and n % period == offset
            and n % frequency == 0
            and (n - first) % interval == 0
        )
    return found
