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

_KINDS: dict[Kind, tuple[str, str]] = {  # colour, and words of the legend
    Kind.F: ("#2f62b8", "F forward"),
    Kind.B: ("#27b07c", "B full backward"),
    Kind.I: ("#f0a830", "I input gradient"),
    Kind.W: ("#6b3a62", "W weight gradient"),
    Kind.R: ("#bd3312", "R recompute"),
    Kind.EVICT: ("#6b6b6b", "EVICT to peer"),
    Kind.LOAD: ("#a3a3a3", "LOAD from peer"),
    Kind.OFFLOAD: ("#7d6140", "OFFLOAD to host"),
    Kind.RELOAD: ("#bda27e", "RELOAD from host"),
    Kind.UNSHARD: ("#56b4e9", "UNSHARD gather"),
    Kind.RESHARD: ("#a9d8f2", "RESHARD free"),
    Kind.REDUCE_GRAD: ("#cf8a8a", "REDUCE_GRAD scatter"),
    Kind.STEP: ("#2b2b2b", "STEP optimizer"),
    Kind.SEND_F: ("#8fb3d9", "SEND_F"),
    Kind.RECV_F: ("#c3d6ea", "RECV_F"),
    Kind.SEND_B: ("#7fc4ae", "SEND_B"),
    Kind.RECV_B: ("#bfe1d7", "RECV_B"),
    Kind.OVERLAP_F_B: ("#f0e442", "F and B overlapped"),
    Kind.WAIT_SEND_F: ("#5d87b5", "WAIT_SEND_F"),
    Kind.WAIT_SEND_B: ("#4d9c84", "WAIT_SEND_B"),
    Kind.WAIT_REDUCE_GRAD: ("#e3bcbc", "WAIT_REDUCE_GRAD"),
}
WORDS = {kind: words for kind, (_, words) in _KINDS.items()}
IDLE = "#f1f1ee"
CAUSES = {  # of idle time: pale, so that what runs stands out
    "warm-up": "#dcd6ef",
    "drain": "#cfe3ea",
    "finished": "#e4e4e4",
    "order": "#f3b6c2",
    "memory": "#f7d28c",
    "link": "#bcd9a4",
    "input": "#d8cbb8",
}
CAPACITY = "#c0392b"
CLASH = "#d0021b"
_SEAM = 0.62
_LIGHTEST = 0.5  # how much white the last chunk's shade holds


def fill(kind: Kind, *, chunk: int = 0, num_chunks: int = 1) -> str:
    """The colour of a bar as ``#rrggbb``; chunk 0 has the full hue, the last chunk is lightest."""
    share = _LIGHTEST * min(chunk, num_chunks - 1) / (num_chunks - 1) if num_chunks > 1 else 0.0
    return _mix(_KINDS[kind][0], share)


def darker(colour: str) -> str:
    """The colour of the line at which a bar of ``colour`` begins."""
    return "#" + "".join(f"{round(c * _SEAM):02x}" for c in _channels(colour))


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
