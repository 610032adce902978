"""Everything ``pytorch_tables`` finds: counts, the smallest counterexample of each kind, runs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from benchmarks.torch_mutations import Judgement
from benchmarks.torch_tables import Size
from bubbleproof.verify import Violation


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A counterexample: the size it was found at and what ``verify`` printed."""

    size: Size
    message: str
    picture: str

    def __str__(self) -> str:
        return f"{self.message}\n{self.picture}" if self.picture else self.message


@dataclass(slots=True, kw_only=True)
class Tally:
    """How many tables were judged, how many violate what, and the smallest example of each."""

    judged: int = 0
    violated: Counter[str] = field(default_factory=Counter)
    undecided: Counter[str] = field(default_factory=Counter)
    smallest: dict[str, Example] = field(default_factory=dict)

    def note(self, column: str, size: Size, violation: Violation) -> None:
        """Count a violation; sizes come in ascending order, so the first example is smallest."""
        self.violated[column] += 1
        example = Example(size=size, message=violation.message, picture=violation.picture)
        self.smallest.setdefault(column, example)


@dataclass(slots=True, kw_only=True)
class ScheduleSurvey:
    """Everything found about one schedule.

    ``refused`` maps PyTorch's message at the smallest refused size to (that size, how many sizes);
    ``overlaps`` counts the OVERLAP_F_B actions judged; ``validator_accepts`` the tables that
    ``_validate_schedule`` lets pass; ``simulator_accepts`` the lowered tables per placement that
    ``_simulate_comms_compute`` lets pass, of these ``accepted_crossed`` the crossed.
    """

    schedule: str
    actions: int = 0
    overlaps: int = 0
    has_table: bool = True
    compute: Tally = field(default_factory=Tally)
    communication: dict[str, Tally] = field(default_factory=dict)
    refused: dict[str, tuple[Size, int]] = field(default_factory=dict)
    not_lowered: int = 0
    validator_accepts: int = 0
    simulator_accepts: Counter[str] = field(default_factory=Counter)
    accepted_crossed: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Largest relative gradient error of PyTorch's runtime on gloo; None where it had no end."""

    schedule: str
    size: str
    default_error: float | None
    deferred_error: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """Everything the page tells."""

    max_ranks: int
    versions: dict[str, str]
    surveys: list[ScheduleSurvey]
    mutations: list[Judgement]
    runs: list[Run]
