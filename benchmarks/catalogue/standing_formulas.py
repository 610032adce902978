"""Which claims of ``bubbleproof.papers`` say a family's peak, bubble or makespan.

No formula is written here: a claim has its sentence, its reading's prediction and its measurement.
One whose measured value breaks its relation at a shown size is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from bubbleproof.papers.claims import PaperClaim, Reading
from bubbleproof.papers.claims.domain import Params
from bubbleproof.papers.registry import claims
from bubbleproof.theory.families import families

SHOWN = 3  # sizes of a formula
FORMAL = Path(__file__).parents[2] / "docs" / "measured" / "proofs.md"
CLAIMS: dict[str, tuple[str, ...]] = {
    "gpipe": ("field.gpipe.makespan", "field.gpipe.idle-ratio", "field.gpipe.peak"),
    "1f1b": (
        "field.1f1b.makespan",
        "field.1f1b.idle-ratio",
        "field.1f1b.span-idle",
        "field.1f1b.peak-of-rank",
    ),
    "1f1b-recompute": ("tpipe.appC.1f1b", "tpipe.appC.standard"),
    "interleaved": (
        "field.interleaved.bubble-filled",
        "field.interleaved.peak",
        "field.interleaved.makespan-few",
    ),
    "bfs": ("field.bfs.bubble", "field.bfs.peak", "field.bfs.makespan-few"),
    "terapipe": ("mepipe.table3.terapipe.bubble-many", "mepipe.table3.terapipe.memory-many"),
    "seq1f1b": ("field.seq1f1b.makespan", "field.seq1f1b.peak-of-rank", "field.seq1f1b.peak"),
    "slimpipe": ("field.slimpipe.makespan", "field.slimpipe.peak-of-rank", "field.slimpipe.peak"),
    "hanayo": ("mepipe.table3.hanayo.memory-many", "mepipe.table3.hanayo.memory-few"),
    "zb-h1": ("field.zb-h1.bubble", "field.zb-h1.peak"),
    "zb-h2": ("field.zb-h2.bubble", "field.zb-h2.peak"),
    "zb-v": ("field.zb-v.bubble", "field.zb-v.peak"),
    "v-half": ("field.v-half.peak-rounded",),
    "v-min": ("field.v-min.peak-rounded",),
    "chimera": ("field.chimera.double-gaps", "field.chimera.peak"),
    "dualpipe": ("field.dualpipe.bubble-general", "field.dualpipe.peak"),
    "dualpipev": ("field.dualpipev.bubble-general", "field.dualpipev.peak"),
    "bpipe": ("bpipe.sec3.3.objective", "bpipe.appB.longest"),
    "bpipe-interleaved": ("bpipe.appA.objective",),
    "svpp": ("mepipe.table3.svpp.memory-many", "mepipe.table3.svpp.memory-few"),
    "tpipe": ("tpipe.appA.total", "tpipe.appA.ratio", "tpipe.appA.joint-exact"),
    "trecomp": ("tpipe.appC.time", "tpipe.appC.total"),
    "trecomp-interleaved": ("tpipe.sec4.2.interleaved-peak",),
    "toffload": ("tpipe.appD.eq6", "tpipe.appD.eq8"),
    "pipemesh": ("pipemesh.sec4A.bubble-repaired",),
    "vocabulary": (
        "field.vocabulary.makespan-2",
        "field.vocabulary.makespan-1",
        "field.vocabulary.peak-2",
        "field.vocabulary.peak-1",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluated:
    """A claim at one size: both values, which stand in its relation."""

    at: str
    predicted: Fraction
    measured: Fraction


def formulas(family: str) -> list[tuple[PaperClaim, Reading, list[Evaluated]]]:
    """The claims about a family that stand, each with a few sizes of its domain.

    Raises ``ValueError`` where a shown size breaks one.
    """
    known = claims(None)
    found = []
    for name in CLAIMS.get(family, ()):
        claim = known[name]
        reading = claim.readings[0]
        found.append((claim, reading, [_evaluated(name, reading, at) for at in _few(reading)]))
    return found


def _few(reading: Reading) -> Sequence[Params]:
    """The last size of each of a few equal parts of the domain."""
    count = len(reading.domain.points)
    shown = min(SHOWN, count)
    return [reading.domain.points[count * (i + 1) // shown - 1] for i in range(shown)]


def _evaluated(name: str, reading: Reading, at: Params) -> Evaluated:
    predicted, measured = reading.values(at)
    size = " ".join(f"{key}={value}" for key, value in at.items())
    if not reading.accepts(predicted, measured):
        raise ValueError(f"{name} does not stand at {size}: {measured} is not {predicted}")
    return Evaluated(at=size, predicted=predicted, measured=measured)


def theorem_rows(family: str) -> list[tuple[str, str]]:
    """(theorem, sizes) about the family's schedules, as the guide's index has them.

    Those are the theorems of its name, or of it and a suffix.
    """
    rows = []
    for line in FORMAL.read_text("utf-8").splitlines():
        cells = [each.strip() for each in line.strip("|").split(" | ")]
        name = cells[0].strip("` ")
        if line.startswith("| `") and len(cells) > SHOWN and _family_of(name) == family:
            rows.append((name, cells[1]))
    return rows


def _family_of(theorem: str) -> str | None:
    about = [each for each in families() if theorem == each or theorem.startswith(f"{each}-")]
    return max(about, key=len, default=None)
