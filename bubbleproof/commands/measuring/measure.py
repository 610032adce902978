"""``bubbleproof measure FAMILY p=4 m=8 ...``: build a published schedule, check it, measure it.

A schedule's file in place of the family is measured as it is; ``--json`` then gives its name as
``schedule``, and null for ``family`` and, of a schedule without a pipeline, ``peak_fraction``.
``--why`` adds a cause for every idle tick, the critical path and the best bound (``why_idle``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

from bubbleproof.commands.options.option_groups import require_meaning
from bubbleproof.commands.options.shared_options import WITH_JSON
from bubbleproof.commands.output import (
    MOST_RANKS,
    Answer,
    AnswerLine,
    amounts_text,
    print_answer,
    status_of,
)
from bubbleproof.commands.verdicts import state_of
from bubbleproof.facts import Fact, FactCells
from bubbleproof.faults import FaultError
from bubbleproof.formats import ScheduleFile
from bubbleproof.formats.format_table import Holds, format_of
from bubbleproof.formats.inputs import is_schedule_file, read_schedule_input
from bubbleproof.report.amounts import each_load, each_time, percent, time
from bubbleproof.report.memory_price import memory_price
from bubbleproof.report.schedule_measures import measure_facts
from bubbleproof.report.schedule_verdict import ScheduleVerdict
from bubbleproof.theory import families
from bubbleproof.verify import Verdict, check

KEYS = (
    "makespan",
    "work",
    "idle_ratio",
    "idle_over_work",
    "idle_ticks",
    "rank_spans",
    "span_idle",
    "peak_activations",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredAnswer(Answer):
    """What was measured of ``given``: ``named`` says of which schedule, with a ``note`` on it.

    ``has_why``: the causes of idle time are asked for as well.
    """

    columns: ClassVar[FactCells] = ("measure", "", "value", "verdict")
    more: ClassVar[str] = "every measure"
    title: str
    named: dict[str, object]
    verdict: Verdict
    given: ScheduleFile
    has_why: bool

    def facts(self) -> Iterator[Fact]:
        """The schedule's name, each measure, and the rules where one is broken."""
        yield from (Fact(key=key, value=value) for key, value in self.named.items())
        measured, pipeline, problem = self.verdict.measured, self.given.pipeline, self.given.problem
        found: dict[str, Fact] = {}
        if measured is not None:
            units = problem.unit, problem.memory_unit
            found = {fact.key: fact for fact in measure_facts(measured, *units)}
        yield from (found.get(key, Fact(key=key)) for key in KEYS)
        peaks = None
        if measured is not None and pipeline is not None:
            parts = pipeline.num_stages * pipeline.num_slices  # actions of a sample's pass
            peaks = tuple(Fraction(peak, parts) for peak in measured.peak_activations)
        told = " | ".join(map(str, peaks or ()))
        yield Fact(key="peak_fraction", label=told and "peak_fraction", value=peaks, told=told)
        if not self.verdict.ok:
            broken = ScheduleVerdict.of(self.verdict).facts()
            yield from (replace(fact, key="") for fact in broken)
        if self.has_why:
            from bubbleproof.commands.measuring.why_idle import why_to_json  # asks the solvers

            yield Fact(key="why", value=why_to_json(problem, self.given.timed()))

    def lines(self) -> Iterator[AnswerLine]:
        """Makespan, idle time and memory, by rank as well."""
        verdict, problem = self.verdict, self.given.problem
        state = [] if verdict.ok else [state_of(verdict)]
        if (measured := verdict.measured) is None:
            yield "", f"{self.title}: {', '.join(state)}"
            return
        amounts = amounts_text(measured, problem)
        told = " \N{MIDDLE DOT} ".join([*state, amounts])
        yield "", f"{self.title}: {told}"
        over, span = percent(measured.idle_over_work), time(measured.span_idle, problem.unit)
        yield "bubble", f"{over} of the work; {span} within the span of a rank"
        loads = each_load(measured.peak_activations, problem.memory_unit, MOST_RANKS)
        yield "idle", each_time(measured.idle_ticks, problem.unit, MOST_RANKS)
        yield "memory", f"{loads} above the base"
        pipeline = None if self.given.allowed else self.given.pipeline
        if (price := memory_price(pipeline)) is not None:
            yield "limit", str(price)
        if "note" in self.named:
            yield "note", str(self.named["note"])


def run_measure(
    family: str, parameters: Sequence[str] | None, why: bool, verbose: bool, json: bool
) -> int:
    """Print the measures of one schedule, measured by the checker's own code."""
    require_meaning("--verbose", WITH_JSON, is_given=json and verbose)
    known = None if family in families.families() else format_of(family)
    if known is not None and known.holds is Holds.LAYOUT and not parameters:
        from bubbleproof.commands.measuring.megatron_layout import measure_layout

        require_meaning("--why", known.name, is_given=why)
        return measure_layout(family, json=json)
    found = _measured(family, parameters or (), why)
    print_answer(found, json=json, verbose=verbose)
    if why and not json:
        from bubbleproof.commands.measuring.why_idle import print_why

        print_why(found.given.problem, found.given.timed())
    return status_of(found.verdict)


def _measured(family: str, parameters: Sequence[str], why: bool) -> MeasuredAnswer:
    """Of a family's member; or of a schedule from elsewhere, which may break any rule."""
    if is_schedule_file(family) and family not in families.families():
        given = read_schedule_input([family, *parameters])
        verdict = check(given.problem, given.timed())
        named: dict[str, object] = {"family": None, "schedule": given.name, "params": {}}
        return MeasuredAnswer(
            title=given.name, named=named, verdict=verdict, given=given, has_why=why
        )
    member = families.family(family).member(families.parse_parameters(parameters))
    verdict = check(member.problem, member.schedule)
    if verdict.measured is None:
        broken = ", ".join(rule.name.lower() for rule in verdict.broken)
        raise FaultError(f"family {family}", "an order", f"it cannot be measured (rules: {broken})")
    params = " ".join(f"{key}={_text(value)}" for key, value in member.params.items())
    named = {"family": family, "params": member.params}
    if (ours := families.family(family).ours(member.pipeline)) is not None:
        named["note"] = ours
    given = ScheduleFile.of(member.problem, member.schedule, pipeline=member.pipeline)
    title = f"{family} {params}"
    return MeasuredAnswer(title=title, named=named, verdict=verdict, given=given, has_why=why)


def _text(value: object) -> str:
    return " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
