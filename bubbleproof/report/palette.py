"""Colours: one hue per kind of action, one shade per chunk, and the words of the legend.

The colours of compute differ in lightness as well as in hue, so that readers of every common
colour vision can tell them apart (a test simulates three). Several chunks are shaded as in
Megatron-LM's figures: the first chunk is dark, the last one light. Contrast is the WCAG 2 ratio of
relative luminances.

>>> fill(Kind.F), fill(Kind.F, chunk=1, num_chunks=2)
('#2f62b8', '#97b0dc')
>>> text_on(fill(Kind.F, chunk=1, num_chunks=2))
'#000000'
"""

from __future__ import annotations

from bubbleproof.theory.model.actions import Kind

_HUES: dict[Kind, str] = {
    Kind.F: "#2f62b8",
    Kind.B: "#27b07c",
    Kind.I: "#f0a830",
    Kind.W: "#6b3a62",
    Kind.R: "#bd3312",
    Kind.EVICT: "#6b6b6b",
    Kind.LOAD: "#a3a3a3",
    Kind.OFFLOAD: "#7d6140",
    Kind.RELOAD: "#bda27e",
    Kind.UNSHARD: "#56b4e9",
    Kind.RESHARD: "#a9d8f2",
    Kind.REDUCE_GRAD: "#cf8a8a",
    Kind.STEP: "#2b2b2b",
    Kind.SEND_F: "#8fb3d9",
    Kind.RECV_F: "#c3d6ea",
    Kind.SEND_B: "#7fc4ae",
    Kind.RECV_B: "#bfe1d7",
    Kind.OVERLAP_F_B: "#f0e442",
}

WORDS: dict[Kind, str] = {
    Kind.F: "F forward",
    Kind.B: "B full backward",
    Kind.I: "I input gradient",
    Kind.W: "W weight gradient",
    Kind.R: "R recompute",
    Kind.EVICT: "EVICT to peer",
    Kind.LOAD: "LOAD from peer",
    Kind.OFFLOAD: "OFFLOAD to host",
    Kind.RELOAD: "RELOAD from host",
    Kind.UNSHARD: "UNSHARD gather",
    Kind.RESHARD: "RESHARD free",
    Kind.REDUCE_GRAD: "REDUCE_GRAD scatter",
    Kind.STEP: "STEP optimizer",
    Kind.SEND_F: "SEND_F",
    Kind.RECV_F: "RECV_F",
    Kind.SEND_B: "SEND_B",
    Kind.RECV_B: "RECV_B",
    Kind.OVERLAP_F_B: "F and B overlapped",
}

IDLE = "#f1f1ee"
CAPACITY = "#c0392b"
CLASH = "#d0021b"
_LIGHTEST = 0.5  # how much white the last chunk's shade holds


def fill(kind: Kind, *, chunk: int = 0, num_chunks: int = 1) -> str:
    """The colour of a bar as ``#rrggbb``; chunk 0 has the full hue, the last chunk is lightest."""
    share = _LIGHTEST * min(chunk, num_chunks - 1) / (num_chunks - 1) if num_chunks > 1 else 0.0
    return _mix(_HUES[kind], share)


def shade(chunk: int, num_chunks: int) -> str:
    """The grey that stands for a chunk in the legend."""
    return _mix("#5a5a5a", _LIGHTEST * chunk / max(num_chunks - 1, 1))


def text_on(background: str) -> str:
    """Black or white, whichever reads better; the contrast is 4.58 or more on every colour."""
    light = luminance(background)
    return "#000000" if (light + 0.05) ** 2 > 1.05 * 0.05 else "#ffffff"


def luminance(colour: str) -> float:
    """WCAG relative luminance of ``#rrggbb``, 0 (black) to 1 (white)."""
    red, green, blue = (_linear(channel / 255) for channel in _channels(colour))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(channel: float) -> float:
    return channel / 12.92 if channel <= 0.04045 else float(((channel + 0.055) / 1.055) ** 2.4)


def _channels(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def _mix(colour: str, white: float) -> str:
    return "#" + "".join(f"{round(c + (255 - c) * white):02x}" for c in _channels(colour))
