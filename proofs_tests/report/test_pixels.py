"""The area of a colour is its share of time: pictures are painted and pixels counted.

The expected shares are sums of durations over ranks times makespan (``shares``).
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from bubbleproof.report.gantt import draw
from bubbleproof.report.palette import IDLE, darker, fill
from bubbleproof.theory.families import member
from bubbleproof.theory.model.actions import Kind
from proofs_tests.report.shares import shares
from proofs_tests.sized import sized

pytest.importorskip("matplotlib", reason="pictures need the report extra")
image = pytest.importorskip("PIL.Image", reason="which reads them too")
Pixels = npt.NDArray[np.int32]
TOLERANCE = Fraction(1, 200)  # of the chart's area
SHAPES = [
    ("1f1b", {"p": 4, "m": 8}),
    ("interleaved", {"p": 64, "v": 2, "m": 128}),  # 32,768 actions: cells
    ("1f1b", {"p": 64, "m": 128}),
    ("zb-h1", {"p": 16, "m": 256}),
    ("dualpipe", {"p": 8, "m": 80, "tF": 1, "tB": 2}),  # overlapped pairs: half a row each
    ("1f1b", {"p": 2, "m": 3000}),  # 9,003 ticks: several to a pixel, in a steady beat
]
FEW_RANKS = ("interleaved", {"p": 16, "v": 2, "m": 128})  # 768 ticks or more: cells as well
SHAPES = sized([SHAPES[0], FEW_RANKS, *SHAPES[4:]], full=SHAPES)
NAMES = [" ".join([name, *(f"{k}={v}" for k, v in at.items())]) for name, at in SHAPES]


def pixels(path: Path) -> Pixels:
    """Each pixel of a PNG as one number, 0xRRGGBB; shape (height, width)."""
    with image.open(path) as picture:
        red, green, blue = np.moveaxis(np.asarray(picture.convert("RGB"), dtype=np.int32), 2, 0)
    whole: Pixels = (red << 16) + (green << 8) + blue
    return whole


def code(colour: str) -> int:
    return int(colour[1:], 16)


def counted(found: Pixels, colours: list[str], *, with_idle: bool) -> dict[str, Fraction]:
    """The share of each colour among the lines of pixels that cross bars and hold no text.

    The darker line at which a bar begins belongs to it. Without idle time the shares are of what
    runs: a page's ground shows idle time, and has no edge.
    """
    known = {code(c): c for c in colours} | {code(darker(c)): c for c in colours}
    if with_idle:
        known[code(IDLE)] = IDLE
    busy = np.isin(found, [number for number in known if number != code(IDLE)]).sum(axis=1)
    width = np.isin(found, list(known)).sum(axis=1)
    lines = (busy > 0.4 * busy.max()) & (width >= (0.99 if with_idle else 0) * width.max())
    total = int(width[lines].sum())
    shown = dict.fromkeys([*colours, IDLE], Fraction(0))
    for number, colour in known.items():
        shown[colour] += Fraction(int((found[lines] == number).sum()), total)
    return shown


@pytest.mark.sweep
@pytest.mark.parametrize(("name", "at"), SHAPES, ids=NAMES)
def test_a_pictures_colours_have_the_area_of_their_time(
    name: str, at: dict[str, int], tmp_path: Path
) -> None:
    drawn = member(name, **at)
    wanted = shares(drawn)
    path = draw(drawn.problem, drawn.schedule, tmp_path / "a.png")
    colours = [colour for colour in wanted if colour != IDLE]
    shown = counted(pixels(path), colours, with_idle=True)
    for colour, share in wanted.items():
        assert abs(shown[colour] - share) <= TOLERANCE, (colour, float(share))


def test_a_drain_is_striped_as_it_runs(tmp_path: Path) -> None:
    """1F1B drains by B and F's length of waiting in turn: a third of the last ticks is idle."""
    drawn = member("1f1b", p=64, m=128)
    makespan = 191 * 3
    first = makespan - 63 * 3  # rank 0's last forward ends before its 65th last backward
    path = draw(drawn.problem, drawn.schedule, tmp_path / "a.png", window=(first, makespan))
    wanted = shares(drawn, (first, makespan))
    backward = fill(Kind.B)
    shown = counted(pixels(path), [fill(Kind.F), backward], with_idle=True)
    assert abs(shown[backward] - wanted[backward]) <= TOLERANCE
