"""A tower in front of a decoder: its layers, and the weights before and behind them.

``COMPOSITES`` has for each type of a whole model the type of its decoder and what its tower is,
where the tower's weights are counted here; the decoder of another type is that of its
``text_config``, and its tower is told as not counted.
"""

from __future__ import annotations

from collections.abc import Callable

from bubbleproof.costs.configurations.configuration import Configuration
from bubbleproof.costs.transformer import LayerRun, Tower, Transformer

Made = Callable[[Configuration, int], Tower]


def siglip(keys: Configuration, hidden: int) -> Tower:
    """Gemma 3's: patches of an image of one size, learned positions; a linear and a norm behind.

    Parameters
    ----------
    hidden
        Numbers of a token in the decoder: what the projection makes.
    """
    width, patch = keys.size("hidden_size", 1152), keys.size("patch_size", 14)
    patches = (keys.size("image_size", 896) // patch) ** 2
    layers = Transformer(
        layers=keys.size("num_hidden_layers", 27),
        hidden=width,
        heads=keys.size("num_attention_heads", 16),
        feed_forward=keys.size("intermediate_size", 4304),
        vocabulary=1,
        attention_biases="all",
        feed_forward_bias=True,
    )
    channels = keys.size("num_channels", 3)
    before = (channels * patch**2 + 1 + patches) * width
    behind = 2 * width + width * hidden + width  # the last norm; the projection and its norm
    return Tower(layers=layers, weights=before + behind, tokens=patches)


def qwen_2(keys: Configuration, hidden: int) -> Tower:
    """Qwen2-VL's: layer norms, a plain block; a norm and two linears over merged patches.

    Parameters
    ----------
    hidden
        Numbers of a token in the decoder: what the projection makes.
    """
    width = keys.size("embed_dim", 1280)
    ratio = keys.size("mlp_ratio", 4)
    layers = Transformer(
        layers=keys.size("depth", 32),
        hidden=width,
        heads=keys.size("num_heads", 16),
        feed_forward=ratio * width,
        vocabulary=1,
        attention_biases="all",
        feed_forward_bias=True,
    )
    out = keys.size("hidden_size", hidden)
    return Tower(layers=layers, weights=_patches(keys, width) + _merger(keys, width, out, 2))


def qwen_2_5(keys: Configuration, hidden: int) -> Tower:
    """Qwen2.5-VL's: RMS norms, a gated block; attention in windows but for some layers.

    Parameters
    ----------
    hidden
        Numbers of a token in the decoder: what the projection makes.
    """
    width, count = keys.size("hidden_size", 1280), keys.size("depth", 32)
    window = keys.size("window_size", 112) // keys.size("patch_size", 14)
    full = keys.numbers("fullatt_block_indexes") or (7, 15, 23, 31)
    plain = Transformer(
        layers=count,
        hidden=width,
        heads=keys.size("num_heads", 16),
        feed_forward=keys.size("intermediate_size", 3420),
        vocabulary=1,
        gated=True,
        norm="rms",
        attention_biases="all",
        feed_forward_bias=True,
        chunk=window**2,
    )
    runs: list[LayerRun] = []
    for n in range(count):
        kind, changes = ("attention", (("chunk", 0),)) if n in full else ("window", ())
        if runs and runs[-1].kind == kind:
            runs[-1] = LayerRun(count=runs[-1].count + 1, kind=kind, changes=changes)
        else:
            runs.append(LayerRun(count=1, kind=kind, changes=changes))
    layers = plain.with_changes(runs=tuple(runs)) if len(runs) > 1 else plain
    out = keys.size("out_hidden_size", hidden)
    return Tower(layers=layers, weights=_patches(keys, width) + _merger(keys, width, out, 1))


def _patches(keys: Configuration, width: int) -> int:
    """A convolution over patches of some frames, without bias."""
    channels = keys.size("in_channels" if keys.has("in_channels") else "in_chans", 3)
    return width * channels * keys.size("temporal_patch_size", 2) * keys.size("patch_size", 14) ** 2


def _merger(keys: Configuration, width: int, out: int, norm: int) -> int:
    """A norm of so many vectors, and two linears with biases over squares of patches."""
    merged = width * keys.size("spatial_merge_size", 2) ** 2
    return norm * width + merged * merged + merged + merged * out + out


COMPOSITES: dict[str, tuple[str, Made | None]] = {
    "gemma3": ("gemma3_text", siglip),
    "qwen2_vl": ("qwen2", qwen_2),
    "qwen2_5_vl": ("qwen2", qwen_2_5),
    "qwen3_vl": ("qwen3", None),
    "qwen3_vl_moe": ("qwen3_moe", None),
    "qwen3_5": ("qwen3_5_text", None),
    "qwen3_5_moe": ("qwen3_5_moe_text", None),
    "llama4": ("llama4_text", None),
    "glm4v": ("glm4", None),
    "glm4v_moe": ("glm4_moe", None),
    "mistral3": ("mistral", None),
    "llava": ("llama", None),
    "kimi_k2": ("deepseek_v3", None),
}
