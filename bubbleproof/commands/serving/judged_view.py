"""A request of the page of ``serve``, answered: the schedule, every rule's verdict, its picture.

The orders are a family's, the given schedule's, or those that somebody dragged; each action starts
as early as its order lets it, and where the orders come to a standstill, what runs until then is
judged and drawn. The judge is ``check_every_rule``, as for a file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from bubbleproof.commands.output import rule_rows, status_of
from bubbleproof.commands.serving.offered_schedules import OfferedSchedule, retimed
from bubbleproof.commands.serving.pipeline_changes import ChangesLayout, require_shown
from bubbleproof.commands.serving.view_request import CapacityLayout, ViewRequest
from bubbleproof.commands.show import page_of, standstill_of
from bubbleproof.formats import ScheduleFile, write_table
from bubbleproof.formats.format_table import written
from bubbleproof.formats.held_orders import orders_file
from bubbleproof.report.amounts import Scale, ticks
from bubbleproof.report.headline import headline
from bubbleproof.report.page import ComparisonRow, render
from bubbleproof.report.viewer.schedule_data import Json
from bubbleproof.report.viewer.viewer_parts import ViewedSchedule
from bubbleproof.theory.families import family, parse_parameters
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.theory.pipelines.limits import require_size
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.programs.standstill import Standstill
from bubbleproof.verify.every_rule import check_every_rule
from bubbleproof.verify.verdict import Verdict

MOST_CHIPS = 600  # actions that are offered one by one
FILES = ("schedule.json", "schedule.csv", "schedule.html", "schedule.perfetto.json")
_MEASURES = ("makespan", "idle_ratio", "idle_over_work", "span_idle", "peaks")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JudgedView:
    """The answer: the schedule, how far it runs, its verdict, and what a page says (``told``)."""

    given: ScheduleFile
    drawn: Schedule
    stopped: Standstill | None
    verdict: Verdict
    told: dict[str, object]

    def file(self, name: str) -> bytes:
        """The schedule as one of ``FILES``.

        Raises ``ValueError`` in one line where the format cannot say it.
        """
        if name == "schedule.html":
            report = page_of(self.given, self.drawn, self.stopped, self.verdict)
            return render(report).encode()
        with TemporaryDirectory() as folder:
            path = Path(folder) / name
            known = written()[name.removeprefix("schedule")]
            if known.dialects:
                program = self.given.compute
                write_table(path, program, problem=self.given.problem, communication=False)
            else:
                known.write(path, self.given)
            return path.read_bytes()


def judged_view(request: ViewRequest, offered: Sequence[OfferedSchedule]) -> JudgedView:
    """Judge what is asked for, of the schedules that are ``offered``.

    Raises ``ValueError`` in one line for what cannot be judged: parameters that a family does not
    take, orders of no actions, a shape of too many actions.
    """
    given = asked_schedule(request, offered)
    stopped, why = standstill_of(given)
    drawn = given.timed() if stopped is None else stopped.schedule
    verdict = check_every_rule(given.to_judge)
    before = [] if not request.beside else [_as_given(request, offered)]
    told: dict[str, object] = {
        "name": given.name,
        "status": status_of(verdict),
        "headline": headline(given.problem, drawn, pipeline=given.pipeline, stopped=stopped),
        "standstill": why,
        "measures": _measures(given, drawn) if stopped is None else [],
        "rules": rule_rows(verdict),
        "violations": [str(each) for each in verdict.violations[:3]],
        "capacity": _capacity(given.pipeline),
        "has_pipeline": given.pipeline is not None,
        "resources": [each.name for each in given.problem.resources],
        "num_actions": len(given.program),
        "orders": order_texts(given) if len(given.program) <= MOST_CHIPS else None,
        "files": [name for name in FILES if stopped is None or "perfetto" not in name],
        "schedules": [_content(given, drawn, stopped), *before],
    }
    return JudgedView(given=given, drawn=drawn, stopped=stopped, verdict=verdict, told=told)


def _as_given(request: ViewRequest, offered: Sequence[OfferedSchedule]) -> dict[str, Json]:
    """The picture of the same schedule before anything was dragged."""
    plain = asked_schedule(request.model_copy(update={"orders": None}), offered)
    stopped, _ = standstill_of(plain)
    return _content(plain, plain.timed() if stopped is None else stopped.schedule, stopped)


def _content(given: ScheduleFile, drawn: Schedule, stopped: Standstill | None) -> dict[str, Json]:
    shown = ViewedSchedule(name=given.name, problem=given.problem, schedule=drawn, stopped=stopped)
    return shown.content


def _measures(given: ScheduleFile, drawn: Schedule) -> list[tuple[str, str]]:
    row = ComparisonRow.of(given.name, given.problem, drawn)
    return [*((name, getattr(row, name)) for name in _MEASURES), *_of_pipeline(given.pipeline)]


def _of_pipeline(pipeline: Pipeline | None) -> list[tuple[str, str]]:
    """Its caps and the latency of its links, for people; what it has none of is left out."""
    if pipeline is None:
        return []
    told, caps = [], [*dict.fromkeys(pipeline.capacities)]
    if caps != [None]:
        shown = pipeline.capacities if len(caps) > 1 else caps
        scale = Scale.of(pipeline.memory_unit, max(cap or 0 for cap in caps))
        words = ("-" if cap is None else scale.number(cap) for cap in shown)
        told.append(("caps", f"{', '.join(words)} {scale.name}"))
    if pipeline.latency:
        told.append(("latency", ticks(pipeline.latency, pipeline.unit)))
    for link in pipeline.links:
        name = "latency of link {}-{}".format(*link.ranks)
        told.append((name, ticks(link.latency, pipeline.unit)))
    return told


def asked_schedule(request: ViewRequest, offered: Sequence[OfferedSchedule]) -> ScheduleFile:
    """The schedule of the numbers and caps, with the orders of the request where it has any.

    Raises ``ValueError`` in one line for what there is no schedule of.
    """
    if request.family is None and request.given >= len(offered):
        raise ValueError(f"given must be below {len(offered)}, got {request.given}")
    if request.family is None:
        made = offered[request.given].made(request.changes)
    else:
        made = _member(request.family, request.words, request.changes)
    if request.capacity is not None:
        made = _capped(made, request.capacity)
    if request.orders is None:
        return made
    count, asked = len(made.problem.resources), len(request.orders)
    if asked != count:
        raise ValueError(f"orders must be {count} lists, one for each resource, got {asked}")
    name = f"{made.name}, reordered"
    return orders_file(request.orders, problem=made.problem, pipeline=made.pipeline, name=name)


def _member(name: str, words: Sequence[str], changes: ChangesLayout | None) -> ScheduleFile:
    asked = family(name)
    params = parse_parameters(words)
    shape = {"ranks": params.p, "microbatches": params.m}
    require_size(**shape, chunks=params.v or 1, slices=params.s or 1)
    require_shown(2 * params.p * params.m * (params.v or 1) * (params.s or 1))
    found = asked.member(params)
    told = " ".join([name, *words])
    made = ScheduleFile.of(found.problem, found.schedule, pipeline=found.pipeline, name=told)
    return made if changes is None else retimed(made, changes)


def _capped(made: ScheduleFile, capacity: CapacityLayout) -> ScheduleFile:
    """The same orders where each rank holds so much."""
    if made.pipeline is None:
        raise ValueError("a capacity is that of a pipeline, and this problem was built by hand")
    units = capacity.units
    caps = tuple(units) if isinstance(units, list) else units
    pipeline = made.pipeline.with_changes(capacity=caps)
    return replace(made, problem=pipeline.problem(), pipeline=pipeline)


def _capacity(pipeline: Pipeline | None) -> int | list[int | None] | None:
    """What each rank holds: one number, None for no limit, or a list where they differ."""
    held = [] if pipeline is None else [*pipeline.capacities]
    if len(set(held)) > 1:
        return held
    return held[0] if held else None


def order_texts(given: ScheduleFile) -> list[list[str]]:
    """The actions of each resource as text."""
    rows = given.program.orders(len(given.problem.resources))
    return [[str(action) for action in row] for row in rows]
