"""A tower in front of a decoder, as layers of its own sizes: patches, blocks, and a projection.

``COMPOSITES`` has for each type of a whole model the type of its decoder and what its tower is,
where that is counted here; the decoder of another type is that of its ``text_config``, and its
tower is told as not counted. Tokens of a sample are those of one image, or of a clip of sound, of
the size that the file tells, else ``PATCHES``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from bubbleproof.costs.configurations.configuration import Configuration
from bubbleproof.costs.configurations.decoder_types import TABLES
from bubbleproof.costs.further_layers import PROJECTION
from bubbleproof.costs.layer_operation import LayerOperation
from bubbleproof.costs.transformer import Transformer

_made = partial(LayerOperation, block="attention", split="sequence")
Front = list[tuple[Transformer, int, str]]
Made = Callable[[Configuration, Configuration, int], Front]
PATCHES = 4096  # as of an image of 896 by 896 in patches of 14, Gemma's


def siglip(keys: Configuration, whole: Configuration, hidden: int) -> Front:
    """Gemma 3's: patches of an image of one size, learned positions; a norm, squares of patches
    averaged, a norm and a linear.

    Parameters
    ----------
    whole
        The keys of the whole model.
    hidden
        Numbers of a token in the decoder: what the projection makes.
    """
    width, patch = keys.size("hidden_size", 1152), keys.size("patch_size", 14)
    patches = (keys.size("image_size", 896) // patch) ** 2
    channels = keys.size("num_channels", 3)
    averaged = whole.size("mm_tokens_per_image", 256)
    block = _block(
        keys.size("num_attention_heads", 16),
        width,
        keys.size("intermediate_size", 4304),
        tokens=patches,
        chunk=patches,
    )
    pixels = channels * patch**2
    square = patches // averaged
    behind = (
        _made(name="last norm", kept=square * width, vectors=2 * width),
        _made(name="patches norm", kept=width, vectors=width),
        _linear("projection", width, hidden),
    )
    return [
        (
            _ends(width, patches, _linear("patches", pixels, width, (1 + patches) * width)),
            1,
            "patches",
        ),
        (block, keys.size("num_hidden_layers", 27), "tower"),
        (_ends(square * width, averaged, *behind), 1, PROJECTION),
    ]


def qwen_2(keys: Configuration, _: Configuration, hidden: int) -> Front:
    """Qwen2-VL's: layer norms, a plain block; a norm and two linears over merged patches.

    Parameters
    ----------
    hidden
        Numbers of a token in the decoder: what the projection makes.
    """
    width = keys.size("embed_dim", 1280)
    block = _block(keys.size("num_heads", 16), width, keys.size("mlp_ratio", 4) * width)
    out = keys.size("hidden_size", hidden)
    layers = [(block, keys.size("depth", 32), "tower")]
    return [_patches(keys, width), *layers, _merger(keys, width, out, 2)]


def qwen_2_5(keys: Configuration, _: Configuration, hidden: int) -> Front:
    """Qwen2.5-VL's: RMS norms, a gated block; attention in windows but for some layers.

    Parameters
    ----------
    hidden
        Numbers of a token in the decoder: what the projection makes.
    """
    width, count = keys.size("hidden_size", 1280), keys.size("depth", 32)
    window = keys.size("window_size", 112) // keys.size("patch_size", 14)
    full = keys.numbers("fullatt_block_indexes") or (7, 15, 23, 31)
    heads, inner = keys.size("num_heads", 16), keys.size("intermediate_size", 3420)
    block = _block(heads, width, inner, gated=True, norm="rms")
    windowed = block.with_changes(chunk=window**2)
    layers: Front = []
    for n in range(count):
        kind, name = (block, "tower") if n in full else (windowed, "tower, windows")
        before = layers.pop()[1] if layers and layers[-1][2] == name else 0
        layers.append((kind, before + 1, name))
    out = keys.size("out_hidden_size", hidden)
    return [_patches(keys, width), *layers, _merger(keys, width, out, 1)]


def whisper(keys: Configuration, _: Configuration, hidden: int) -> Front:
    """Qwen2-Audio's: two convolutions, Whisper's encoder with positions that are not trained,
    frames averaged by two, a norm and a linear.

    Parameters
    ----------
    hidden
        Numbers of a token in the decoder: what the projection makes.
    """
    width, frames = keys.size("d_model", 1280), keys.size("max_source_positions", 1500)
    mel = keys.size("num_mel_bins", 128)
    heads, inner = keys.size("encoder_attention_heads", 20), keys.size("encoder_ffn_dim", 5120)
    biases = _made(name="query and value biases", vectors=2 * width)  # a key has none
    block = _block(heads, width, inner, tokens=frames).with_changes(
        attention_biases="output", extras=(biases,)
    )
    first = (
        _linear("first convolution", 3 * mel, width, width, passes=2),
        _made(name="first gelu", kept=2 * width),
        _linear("second convolution", 3 * width, width, (1 + frames) * width),
        _made(name="second gelu", kept=width),
    )
    last = (
        _made(name="last norm", kept=width, vectors=2 * width),
        _linear("projection", width, hidden, hidden),
    )
    return [
        (_ends(width, frames, *first), 1, "convolutions"),
        (block, keys.size("encoder_layers", 32), "tower"),
        (_ends(width, frames // 2, *last), 1, PROJECTION),
    ]


def _block(heads: int, width: int, inner: int, tokens: int = PATCHES, **others: Any) -> Transformer:
    """A layer of a tower, with all biases."""
    return Transformer(
        layers=1,
        hidden=width,
        heads=heads,
        feed_forward=inner,
        vocabulary=1,
        attention_biases="all",
        feed_forward_bias=True,
        tokens=tokens,
        **others,
    )


def _ends(width: int, tokens: int, *operations: LayerOperation) -> Transformer:
    """What stands before the blocks, or behind them, as a layer of these operations alone."""
    return Transformer(
        layers=1,
        hidden=width,
        heads=1,
        feed_forward=0,
        vocabulary=1,
        norms=0,
        tokens=tokens,
        mixer=operations,
    )


def _linear(name: str, inner: int, outer: int, vectors: int = 0, passes: int = 1) -> LayerOperation:
    return LayerOperation(
        name=name,
        block="attention",
        weights=(inner, outer),
        vectors=vectors,
        passes=passes,
        kept=passes * outer,
    )


def _patches(keys: Configuration, width: int) -> tuple[Transformer, int, str]:
    """A convolution over patches of some frames, without bias."""
    channels = keys.size("in_channels" if keys.has("in_channels") else "in_chans", 3)
    pixels = channels * keys.size("temporal_patch_size", 2) * keys.size("patch_size", 14) ** 2
    return _ends(width, PATCHES, _linear("patches", pixels, width)), 1, "patches"


def _merger(keys: Configuration, width: int, out: int, norm: int) -> tuple[Transformer, int, str]:
    """A norm of so many vectors, and two linears with biases over squares of patches."""
    square = keys.size("spatial_merge_size", 2) ** 2
    merged = square * width
    made = (
        _made(name="last norm", kept=merged, vectors=norm * width),
        _linear("merged", merged, merged, merged),
        _made(name="merged gelu", kept=merged),
        _linear("projection", merged, out, out),
    )
    return _ends(merged, PATCHES // square, *made), 1, PROJECTION


TOWERS: dict[str, Made] = {
    "siglip": siglip, "qwen_2": qwen_2, "qwen_2_5": qwen_2_5, "whisper": whisper,
}  # fmt: skip
COMPOSITES: dict[str, tuple[str, Made | None]] = {
    name: (kind, TOWERS[tower[0]] if tower else None)
    for name, (kind, *tower) in TABLES["composites"].items()
}
