"""Decisions: what becomes of a claim when every case of every reading is measured.

``outcome_of`` is the only place where a reading holds or fails, and ``ClaimDecision.verdict`` the
only one where readings become a verdict; nothing of either is typed in.

A claim is proved, or holds, where a reading does. It is refuted only where all of them fail, each
by its smallest counterexample; where the claim is that two places of the paper agree, it then
contradicts itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from itertools import islice

from bubbleproof.papers.claims.claim import PaperClaim
from bubbleproof.papers.claims.domain import Domain, Params, Points
from bubbleproof.papers.claims.reading import Reading


class ClaimVerdict(Enum):
    """What became of a claim; the values are the sentences shown to the reader."""

    HOLDS = "holds in every case of the domain of a reading"
    REFUTED = "refuted: every reading has a counterexample"
    CONTRADICTS_ITSELF = "contradicts itself: two places of the paper exclude each other"
    PROVED = "proved for all parameters"


@dataclass(frozen=True, slots=True, kw_only=True)
class Counterexample:
    """A case in which a reading fails, with both values."""

    params: Params
    predicted: Fraction
    measured: Fraction

    def __str__(self) -> str:
        where = " ".join(f"{name}={value}" for name, value in self.params.items())
        return f"{where}: claimed {self.predicted}, measured {self.measured}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingFinding:
    """What became of a reading: ``checked`` of ``total`` cases of ``domain``, smallest first.

    ``surviving`` holds the mutants of a reading that holds which no checked case refutes.
    ``is_proved`` is whether a theorem that implies it was proved anew.
    """

    reading: Reading
    domain: Domain
    checked: int
    total: int
    counterexample: Counterexample | None = None
    surviving: frozenset[int] = frozenset()
    is_proved: bool = False

    @property
    def holds(self) -> bool:
        """Whether no case that was looked at contradicts it."""
        return self.counterexample is None

    @property
    def is_complete(self) -> bool:
        """Whether the whole domain was looked at, or a counterexample made that needless."""
        return self.checked == self.total or not self.holds


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimDecision:
    """What became of a claim: a finding for each of its readings, in their order."""

    claim: PaperClaim
    findings: tuple[ReadingFinding, ...]

    @property
    def verdict(self) -> ClaimVerdict:
        """What the findings make of the claim."""
        if self.deciding.holds:
            return ClaimVerdict.PROVED if self.deciding.is_proved else ClaimVerdict.HOLDS
        is_of_two_places = self.claim.against is not None
        return ClaimVerdict.CONTRADICTS_ITSELF if is_of_two_places else ClaimVerdict.REFUTED

    @property
    def deciding(self) -> ReadingFinding:
        """The first reading that is proved, else that holds, else the first at all."""
        holding = [each for each in self.findings if each.holds]
        proved = [each for each in holding if each.is_proved]
        return (proved or holding or self.findings)[0]

    @property
    def counterexample(self) -> Counterexample | None:
        """That of the deciding reading, where the claim does not hold."""
        return self.deciding.counterexample

    @property
    def checked(self) -> int:
        """How many cases were looked at, in all readings."""
        return sum(each.checked for each in self.findings)

    @property
    def is_complete(self) -> bool:
        """Whether every reading is decided on its whole domain, or by a counterexample."""
        return all(each.is_complete for each in self.findings)


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseOutcome:
    """What came of some cases of a reading, each at its place in the domain, smallest first.

    ``failing`` is the first that fails, with its place; ``refuted`` are the mutants that cases
    refute.
    """

    failing: tuple[int, Counterexample] | None = None
    refuted: frozenset[int] = frozenset()

    def joined(self, other: CaseOutcome) -> CaseOutcome:
        """What came of both: the smallest failure, whoever was first."""
        failing = [each.failing for each in (self, other) if each.failing is not None]
        return CaseOutcome(
            failing=min(failing, key=lambda each: each[0], default=None),
            refuted=self.refuted | other.refuted,
        )


def outcome_of(claim: str, reading: Reading, cases: Iterable[tuple[int, Params]]) -> CaseOutcome:
    """What comes of cases with their places, in any order; an error names claim and case.

    What comes after a failing case in the domain is not looked at.
    """
    first: tuple[int, Counterexample] | None = None
    refuted: frozenset[int] = frozenset()
    for place, params in cases:
        if first is not None and first[0] < place:
            continue
        try:
            predicted, measured = reading.values(params)
        except Exception as error:
            error.add_note(f"while measuring {claim} ({reading.name}) at {params}")
            raise
        if reading.accepts(predicted, measured):
            refuted |= reading.refuted_mutants(predicted, measured)
        else:
            first = place, Counterexample(params=params, predicted=predicted, measured=measured)
    return CaseOutcome(failing=first, refuted=refuted)


def finding_of(
    reading: Reading, domain: Domain, limit: int | None, outcome: CaseOutcome
) -> ReadingFinding:
    """What became of a reading by what came of the cases up to the limit."""
    total, failing = len(domain.points), outcome.failing
    return ReadingFinding(
        reading=reading,
        domain=domain,
        checked=min(total, limit or total) if failing is None else failing[0] + 1,
        total=total,
        counterexample=None if failing is None else failing[1],
        surviving=frozenset() if failing else reading.mutants - outcome.refuted,
    )


def cases_of(domain: Domain, claim: str) -> Points:
    """The cases of a domain. Raises ``ValueError``, naming the claim, where there is none."""
    if not len(domain.points):
        raise ValueError(f"{claim}: the domain ({domain.text}) has no case")
    return domain.points


def decide(claim: PaperClaim, *, limit: int | None = None, is_wide: bool = False) -> ClaimDecision:
    """Decide each reading of a claim, looking at the ``limit`` smallest cases at most.

    Raises ``ValueError`` when the domain of a reading has no case.
    """
    findings = (
        decide_reading(each, limit=limit, is_wide=is_wide, claim=claim.id)
        for each in claim.readings
    )
    return ClaimDecision(claim=claim, findings=tuple(findings))


def decide_reading(
    reading: Reading, *, limit: int | None = None, is_wide: bool = False, claim: str = ""
) -> ReadingFinding:
    """Measure the cases of a reading, at most ``limit``, smallest first, up to one that fails."""
    domain = reading.domain_for(is_wide=is_wide)
    cases = islice(enumerate(cases_of(domain, claim or reading.name)), limit)
    return finding_of(reading, domain, limit, outcome_of(claim, reading, cases))
