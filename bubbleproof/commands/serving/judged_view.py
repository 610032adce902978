"""A request of the page of ``serve``, answered: the schedule, every rule's verdict, its page.

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
from bubbleproof.commands.serving.view_request import MOST_ACTIONS, ViewRequest
from bubbleproof.commands.show import page_of, standstill_of
from bubbleproof.formats import ScheduleFile, write_schedule, write_table, write_trace
from bubbleproof.formats.held.held_orders import orders_file
from bubbleproof.report.page import render
from bubbleproof.theory.families import family, parse_parameters
from bubbleproof.theory.pipelines.limits import require_size
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify.every_rule import check_every_rule

MOST_CHIPS = 600  # actions that are offered one by one
FILES = ("schedule.json", "schedule.csv", "schedule.perfetto.json")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JudgedView:
    """The answer: a page, what the script is told of it (``told``), and the schedule."""

    given: ScheduleFile
    page: str
    told: dict[str, object]

    def file(self, name: str) -> bytes:
        """The schedule as one of ``FILES``.

        Raises ``ValueError`` in one line where the format cannot say it.
        """
        with TemporaryDirectory() as folder:
            path = Path(folder) / name
            if name == "schedule.json":
                write_schedule(path, self.given)
            elif name == "schedule.csv":
                program = self.given.compute
                write_table(path, program, problem=self.given.problem, communication=False)
            else:
                write_trace(path, self.given.problem, self.given.timed())
            return path.read_bytes()


def judged_view(request: ViewRequest, offered: Sequence[ScheduleFile]) -> JudgedView:
    """Judge what is asked for; ``offered`` are the schedules that the command was given.

    Raises ``ValueError`` in one line for what cannot be judged: parameters that a family does not
    take, orders of no actions, a shape of too many actions.
    """
    given = _asked(request, offered)
    stopped, why = standstill_of(given)
    drawn = given.timed() if stopped is None else stopped.schedule
    verdict = check_every_rule(given.to_judge)
    report = page_of(given, drawn, stopped, verdict)
    told: dict[str, object] = {
        "name": given.name,
        "status": status_of(verdict),
        "headline": report.headline,
        "standstill": why,
        "rules": rule_rows(verdict),
        "violations": [str(each) for each in verdict.violations[:3]],
        "capacity": _capacity(given.pipeline),
        "has_pipeline": given.pipeline is not None,
        "resources": [each.name for each in given.problem.resources],
        "num_actions": len(given.program),
        "orders": _orders(given) if len(given.program) <= MOST_CHIPS else None,
        "files": [name for name in FILES if stopped is None or "perfetto" not in name],
    }
    return JudgedView(given=given, page=render(report), told=told)


def _asked(request: ViewRequest, offered: Sequence[ScheduleFile]) -> ScheduleFile:
    """The schedule of the shape and caps, with the orders of the request where it has any."""
    if request.family is None and request.given >= len(offered):
        raise ValueError(f"given must be below {len(offered)}, got {request.given}")
    made = (
        offered[request.given] if request.family is None else _member(request.family, request.words)
    )
    if request.capacity is not None:
        made = _capped(made, request.capacity.units)
    if request.orders is None:
        return made
    count, asked = len(made.problem.resources), len(request.orders)
    if asked != count:
        raise ValueError(f"orders must be {count} lists, one for each resource, got {asked}")
    name = f"{made.name}, reordered"
    return orders_file(request.orders, problem=made.problem, pipeline=made.pipeline, name=name)


def _member(name: str, words: Sequence[str]) -> ScheduleFile:
    asked = family(name)
    params = parse_parameters(words)
    shape = {"ranks": params.p, "microbatches": params.m}
    require_size(**shape, chunks=params.v or 1, slices=params.s or 1)
    actions = 2 * params.p * params.m * (params.v or 1) * (params.s or 1)
    if actions > MOST_ACTIONS:
        raise ValueError(
            f"a page that answers at once takes {MOST_ACTIONS:,} actions at most, got "
            f"{actions:,}; show draws larger ones"
        )
    found = asked.member(params)
    told = " ".join([name, *words])
    return ScheduleFile.of(found.problem, found.schedule, pipeline=found.pipeline, name=told)


def _capped(made: ScheduleFile, units: int | None) -> ScheduleFile:
    """The same orders where each rank holds so much."""
    if made.pipeline is None:
        raise ValueError("a capacity is that of a pipeline, and this problem was built by hand")
    pipeline = made.pipeline.with_changes(capacity=units)
    return replace(made, problem=pipeline.problem(), pipeline=pipeline)


def _capacity(pipeline: Pipeline | None) -> int | None:
    """What each rank holds, where that is one number."""
    held = set() if pipeline is None else {*pipeline.capacities}
    return next(iter(held)) if len(held) == 1 else None


def _orders(given: ScheduleFile) -> list[list[str]]:
    rows = given.program.orders(len(given.problem.resources))
    return [[str(action) for action in row] for row in rows]
