"""A verdict as a result: what is decided of each rule."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import ClassVar, Self

from bubbleproof.facts import Fact, FactCells, FactSource, fields_of
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


def _violation_to_json(found: Violation) -> dict[str, object]:
    told = {name: getattr(found, name) for name in ("tasks", "at", "message", "picture")}
    return {"rule": found.rule.name.lower(), **told}
