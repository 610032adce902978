"""What differs between two schedules, and what it is worth: measures, causes, verdicts, actions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import ClassVar

from bubbleproof.facts import Fact, FactCells, FactSource, fields_of, valued
from bubbleproof.formats.schedule_file import ScheduleFile
from bubbleproof.theory.idle import idle_stretches
from bubbleproof.theory.orders.difference import ScheduleDifference, difference
from bubbleproof.verify import Verdict
from bubbleproof.verify.every_rule import check_every_rule

KEYS = (
    "makespan",
    "idle_ratio",
    "span_idle",
    "idle_ticks",
    "peak_memory",
    "peak_activations",
)
BothValues = tuple[object, object]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ComparedSchedules(FactSource):
    """Two schedules by name: ``measures`` and idle ticks by ``causes`` of both, None where there
    are none, the rules that each breaks, and the actions that differ. ``units`` and
    ``memory_units`` are what each is measured in.
    """

    names: tuple[str, str]
    units: tuple[str, str]
    memory_units: tuple[str, str]
    measures: Mapping[str, BothValues]
    causes: Mapping[str, BothValues]
    broken: tuple[tuple[str, ...], tuple[str, ...]]
    actions: ScheduleDifference
    columns: ClassVar[FactCells] = ("of", "a", "b", "change")

    @property
    def same(self) -> bool:
        """Whether each action stands at the same place and tick in both."""
        return self.actions.is_none

    @property
    def ok(self) -> bool:
        """Whether they are the same and every rule holds for both."""
        return self.same and not any(self.broken)

    def facts(self) -> list[Fact]:
        """The values of both beside each other; the actions are in JSON alone."""
        rules = [", ".join(rules) or "every rule holds" for rules in self.broken]
        values = {**self.measures, **self.causes}
        return [
            *valued("", **_side(*self.names), same=self.same),
            *valued("", measures=_sides(self.measures), causes=_sides(self.causes)),
            Fact(
                key="broken",
                label="verdict",
                value=_side(*self.broken),
                wanted=rules[0],
                told=rules[1],
            ),
            *(
                Fact(
                    label=name, value=(a, b), wanted=_text(a), told=_text(b), verdict=_change(a, b)
                )
                for name, (a, b) in values.items()
            ),
            *valued("", **asdict(self.actions)),
        ]


def compared_schedules(a: ScheduleFile, b: ScheduleFile) -> ComparedSchedules:
    """What differs between two schedules."""
    verdicts = [check_every_rule(each.to_judge) for each in (a, b)]
    one, other = ((each.problem, each.timed_roughly()) for each in (a, b))
    broken = [tuple(rule.name.lower() for rule in verdict.broken) for verdict in verdicts]
    return ComparedSchedules(
        names=(a.name, b.name),
        units=(a.problem.unit, b.problem.unit),
        memory_units=(a.problem.memory_unit, b.problem.memory_unit),
        measures=_measures(verdicts),
        causes=_causes((a, b), verdicts),
        broken=(broken[0], broken[1]),
        actions=difference(one, other),
    )


def _measures(verdicts: Sequence[Verdict]) -> dict[str, BothValues]:
    """Both values of every measure that is compared; None where a schedule has none."""
    found = [None if v.measured is None else fields_of(v.measured) for v in verdicts]
    one, other = ([None if each is None else each[key] for key in KEYS] for each in found)
    return dict(zip(KEYS, zip(one, other, strict=True), strict=True))


def _causes(given: Sequence[ScheduleFile], verdicts: Sequence[Verdict]) -> dict[str, BothValues]:
    """The idle ticks of each cause in both; None where a rank does two things at once."""
    one, other = (dict(_ticks_by_cause(*each)) for each in zip(given, verdicts, strict=True))
    words = [word for word in {**one, **other} if one.get(word) or other.get(word)]
    return {word: (one.get(word), other.get(word)) for word in words}


def _ticks_by_cause(given: ScheduleFile, verdict: Verdict) -> Iterator[tuple[str, int]]:
    try:
        idle = idle_stretches(given.problem, given.timed_roughly()).ticks_by_cause()
    except ValueError:
        return
    yield from ((cause.value, t) for cause, t in idle.items() if verdict.measured is not None)


def _sides(pairs: Mapping[str, BothValues]) -> dict[str, object]:
    return {key: _side(*pair) for key, pair in pairs.items()}


def _side(a: object, b: object) -> dict[str, object]:
    return {"a": a, "b": b}


def _text(value: object) -> str:
    if value is None:
        return "none"
    return " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _change(a: object, b: object) -> str:
    if isinstance(a, int) and isinstance(b, int):
        return f"{b - a:+}" if b != a else "0"
    return "same" if a == b else "differs"
