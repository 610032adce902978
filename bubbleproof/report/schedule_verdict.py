"""Verdicts as results: what is decided of each rule, and how good a plan is proved to be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import ClassVar, Self

from bubbleproof.facts import Fact, FactCells, FactSource, fields_of
from bubbleproof.verify.candidates.plan_verdict import DeploymentsScope, PlanDistance, PlanVerdict
from bubbleproof.verify.verdict import Verdict, Violation

COLUMNS = ("rule", "expected", "statement", "verdict")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScheduleVerdict(FactSource, Verdict):
    """A verdict that states its facts."""

    columns: ClassVar[FactCells] = COLUMNS
    __repr__ = Verdict.__repr__

    @classmethod
    def of(cls, verdict: Verdict) -> Self:
        """The same as a result."""
        return cls(**{each.name: getattr(verdict, each.name) for each in fields(verdict)})

    def facts(self) -> Iterator[Fact]:
        """What is decided of each rule with its counterexamples, and the measures."""
        yield Fact(key="ok", value=self.ok)
        kinds = {"rules": (), "undecided": self.undecided, "inapplicable": self.inapplicable}
        yield from (Fact(key=key, value=()) for key in kinds)
        for decision in self.decisions:
            name, of = decision.rule.name.lower(), decision.rule.value
            yield Fact(
                key="rules[]",
                label=f"{name} ({decision.detail})" if decision.detail else name,
                value={
                    "rule": name,
                    "detail": decision.detail,
                    "statement": of,
                    "ok": decision.ok,
                    "count": decision.count,
                },
                told=of,
                verdict="holds" if decision.ok else f"violated {decision.count}x",
                detail=tuple(map(str, decision.violations)),
            )
        for key, skipped in kinds.items():
            for rule, why in skipped:
                row = {"rule": rule.name.lower(), "reason": why}
                yield Fact(key=f"{key}[]", label=row["rule"], value=row, told=why, verdict=key)
        yield Fact(key="violations", value=tuple(map(_violation_to_json, self.violations)))
        measured = None if self.measured is None else fields_of(self.measured)
        yield Fact(key="measured", value=measured)


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


def _violation_to_json(found: Violation) -> dict[str, object]:
    told = {name: getattr(found, name) for name in ("tasks", "at", "message", "picture")}
    return {"rule": found.rule.name.lower(), **told}
