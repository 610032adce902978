"""The papers' claims with what was decided of them: the registry's data joined with the record.

The record is ``docs/measured/claims.md``, made of what ``bubbleproof claims --audit`` decides in a
quarter of an hour; nobody edits it. Each row is joined with its claim by id, each reading by its
place. A counterexample in the record is evaluated anew: one that gives other numbers is an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from benchmarks.claims_page import state
from bubbleproof.papers.claims.claim import PaperClaim
from bubbleproof.papers.claims.domain import Params
from bubbleproof.papers.claims.reading import Reading
from bubbleproof.papers.registry import claims

RECORD = Path(__file__).resolve().parents[1] / "docs" / "measured" / "claims.md"
_CELLS = re.compile(r"(?<!\\) \| ")
_REJECTED = re.compile(
    r"rejected at (?P<at>[^:;]*): claimed (?P<claimed>[-\d/]+), "
    r"(?P<how>measured|computed|counted) (?P<measured>[-\d/]+)"
)


class StaleRecordError(ValueError):
    """The record and the claims that there are do not fit together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCase:
    """A counterexample as it was recorded; ``how`` the value came about: measured, computed."""

    params: Params
    claimed: Fraction
    measured: Fraction
    how: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DecidedReading:
    """A reading, what the record says became of it, and its counterexample where it has one."""

    reading: Reading
    told: str
    case: RecordedCase | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DecidedClaim:
    """A claim, its verdict in the record's words, and its readings."""

    claim: PaperClaim
    verdict: str
    readings: tuple[DecidedReading, ...]

    @property
    def state(self) -> str:
        """The verdict's first words."""
        return state(self.verdict)


def decided_claims(record: str | None = None) -> dict[str, list[DecidedClaim]]:
    """Each paper's claims, in the registry's order.

    Raises ``StaleRecordError`` where a claim has no row, or another number of readings.
    """
    rows = dict(_rows(RECORD.read_text("utf-8") if record is None else record))
    found: dict[str, list[DecidedClaim]] = {}
    for claim in claims().values():
        if claim.id not in rows:
            raise StaleRecordError(f"{claim.id} has no row in the record: decide the claims anew")
        found.setdefault(claim.paper, []).append(_joined(claim, rows))
    return found


def _rows(text: str) -> Iterator[tuple[str, tuple[str, str]]]:
    """By id: the cells of the readings and of the verdict."""
    for line in text.splitlines():
        cells = _CELLS.split(line.removeprefix("| ").removesuffix(" |"))
        if line.startswith("| ") and len(cells) == 5 and "." in cells[0]:
            yield cells[0], (cells[3], cells[4])


def _joined(claim: PaperClaim, rows: Mapping[str, tuple[str, str]]) -> DecidedClaim:
    read, verdict = rows[claim.id]
    told = read.split("<br>") if claim.readings else []
    if len(told) != len(claim.readings):
        raise StaleRecordError(f"{claim.id} has {len(claim.readings)} readings, recorded {told}")
    readings = (
        DecidedReading(reading=reading, told=each, case=_case(each))
        for reading, each in zip(claim.readings, told, strict=True)
    )
    return DecidedClaim(claim=claim, verdict=verdict, readings=tuple(readings))


def _case(told: str) -> RecordedCase | None:
    if (found := _REJECTED.search(told)) is None:
        return None
    given = (word.partition("=") for word in found["at"].split())
    return RecordedCase(
        params={name: int(value) for name, _, value in given},
        claimed=Fraction(found["claimed"]),
        measured=Fraction(found["measured"]),
        how=found["how"],
    )


def confirmed(read: DecidedReading) -> RecordedCase | None:
    """Its counterexample, evaluated anew. Raises ``StaleRecordError`` where it is none."""
    case = read.case
    if case is None:
        return None
    predicted, measured = read.reading.values(case.params)
    if (predicted, measured) != (case.claimed, case.measured):
        now = f"{predicted} and {measured}"
        raise StaleRecordError(
            f"{read.reading.name} at {dict(case.params)}: {now} now; {read.told}"
        )
    if read.reading.accepts(predicted, measured):
        raise StaleRecordError(f"{read.reading.name} at {dict(case.params)} is no counterexample")
    return case
