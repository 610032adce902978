"""The verdict on a plan with its proofs as a result: each rule, and how good the plan is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

from bubbleproof.facts import Fact, FactCells, FactSource
from bubbleproof.report.schedule_verdict import COLUMNS, ScheduleVerdict
from bubbleproof.verify.candidates.plan_verdict import DeploymentsScope, PlanDistance, PlanVerdict


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CertifiedPlan(FactSource, PlanVerdict):
    """A plan's verdict that states its facts."""

    columns: ClassVar[FactCells] = COLUMNS
    __repr__ = PlanVerdict.__repr__

    @classmethod
    def of(cls, judged: PlanVerdict) -> Self:
        """The same as a result."""
        return cls(verdict=judged.verdict, distance=judged.distance)

    def facts(self) -> Iterator[Fact]:
        """What is decided of each rule, and how near the plan is to what its proofs show."""
        yield from ScheduleVerdict.of(self.verdict).facts()
        yield Fact(
            key="certificate",
            label="how good",
            value=distance_to_json(self.distance),
            told=self.statement,
        )


def distance_to_json(found: PlanDistance) -> dict[str, object]:
    """How a plan's value stands to the bound that was proved, for programs."""
    scope, proved = found.scope, found.proved
    more = {}
    if isinstance(scope, DeploymentsScope):
        more = {
            "deployments": len(scope.deployed),
            "deployments_not_legal": scope.num_not_legal,
            "without_room": proved.num_without_room,
        }
    return {
        "kind": "bundle",
        "objective": scope.objective,
        "bound": proved.bound,
        "ok": not proved.refusals,
        "believed": list(proved.believed),
        "proved": proved.num_proved,
        "not_legal": proved.num_not_legal,
        **more,
        "value": found.value,
        "gap": found.gap,
        "statement": found.statement,
    }
