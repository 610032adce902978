"""What a paper's planner is given and what it answers.

The *choice* is what the paper's algorithm, as printed, would run: plain values for a report. It is
*executable* where the order that the paper prints for it runs as the paper says: no deadlock, no
more bubble than counted, within the memory of every rank. What is run in its place where it is not
is the planner's nearest repair, which ``note`` names. ``run`` is what runs, the choice or its
repair: its schedule has passed the checker.

Costs are those of the problem file. ``cost`` gives the ticks of one step of any pipeline and order
by them: the makespan, with what hosts and NICs do after it, and with what a paper's costs have
beyond the problem (the collectives of data parallelism), which its module tells. So ``value``, the
cost of ``run``, and the costs of the joint plan's schedules can be compared (``joint_plan``). Where
the choice is one of the space's candidates it enters the search as a start.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import repeat

from bubbleproof.papers.planning.unmet import lacking
from bubbleproof.planners.known_schedules import KnownSchedule
from bubbleproof.planners.looks import FoundSchedule
from bubbleproof.theory.model.measures import Measures, measure
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.programs.messages_in_programs import with_messages_in_order
from bubbleproof.theory.pipelines.programs.step_time import step_ticks
from bubbleproof.theory.pipelines.shapes.cut_lists import NamedCuts
from bubbleproof.theory.pipelines.shapes.plan_space import WHOLE, Candidate, PlanSpace
from bubbleproof.theory.pipelines.timing import UntimedProgram, left_shift
from bubbleproof.verify import check

LONGEST = 160  # characters of a reason
BETTER = ", as it should be"  # behind a paper's name: the best of its kind that our planner found
Cost = Callable[[Pipeline, Schedule], int | None]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PaperInput:
    """The space of a problem file, and the file's table of this paper (empty where it has none)."""

    space: PlanSpace
    table: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AcceptedSchedule:
    """A pipeline and its schedule, accepted by the checker.

    ``candidate`` is the one of the space that it is a schedule of; None where it is of none.
    """

    pipeline: Pipeline
    schedule: Schedule
    measured: Measures
    candidate: Candidate | None = None

    @property
    def ticks(self) -> int:
        """What it takes, hosts and NICs included."""
        return step_ticks(self.pipeline.problem(), self.schedule)


def iteration(pipeline: Pipeline, schedule: Schedule) -> int | None:
    """The cost where a paper's costs are the problem's own: ticks until everything has ended."""
    return step_ticks(pipeline.problem(), schedule)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PaperChoice:
    """What a paper's planner chooses, and what runs; see the module's text.

    ``improved`` is the best run of the paper's own kind that our planner found, where it looked for
    one beyond ``run``.
    """

    paper: str
    choice: Mapping[str, object]
    executable: bool
    note: str
    value: int | None
    run: AcceptedSchedule | None
    cost: Cost = iteration
    improved: AcceptedSchedule | None = None


def known_of(chosen: PaperChoice) -> KnownSchedule | None:
    """The choice as a start of the search, where it is a schedule of one of the candidates."""
    run = chosen.run
    if run is None or run.candidate is None:
        return None
    found = FoundSchedule(
        pipeline=run.pipeline, schedule=run.schedule, measured=run.measured, origin=chosen.paper
    )
    return KnownSchedule(candidate=run.candidate, found=found)


def verified_run(
    pipeline: Pipeline, program: Program, candidate: Candidate | None = None
) -> AcceptedSchedule | str:
    """The left-shifted order as a run, or what is wrong with it in a few words."""
    problem = pipeline.problem()
    try:
        schedule = left_shift(problem, with_messages_in_order(problem, program))
    except UntimedProgram as error:
        return _short(str(error))
    verdict = check(problem, schedule)
    if not verdict.ok or verdict.measured is None:
        first = verdict.violations[0].message if verdict.violations else "it has no times"
        return overfull(pipeline, schedule) or _short(first)
    return AcceptedSchedule(
        pipeline=pipeline, schedule=schedule, measured=verdict.measured, candidate=candidate
    )


def overfull(pipeline: Pipeline, schedule: Schedule) -> str:
    """The rank that lacks the most memory, and how much; empty where all have enough."""
    problem = pipeline.problem()
    peaks = measure(problem, schedule).peak_memory
    over = [
        (held - store.capacity, f"{store.name} holds {lacking(held, store.capacity, unit)}")
        for store, held, unit in zip(
            problem.stores, peaks, repeat(pipeline.memory_unit), strict=False
        )
        if store.capacity is not None and held > store.capacity
    ]
    return max(over, default=(0, ""))[1]


def no_choice(paper: str, why: str) -> PaperChoice:
    """That the paper's planner takes no such job, and why."""
    return PaperChoice(paper=paper, choice={}, executable=False, note=why, value=None, run=None)


def _short(text: str) -> str:
    line = text.splitlines()[0]
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}..."


def even_candidate(space: PlanSpace, chunks: int) -> Candidate:
    """The candidate of so many chunks in a loop, whole backwards, whole samples and an even cut."""
    layers = space.layers and replace(space.layers, rule=NamedCuts())
    plain = replace(
        space, chunks=(chunks,), placements=("loop",), backward=(WHOLE,), slices=(1,), layers=layers
    )
    return plain.candidates()[0]
