"""Single GEMMs in the waits: the order of W where its parts or its slices differ in cost.

MEPipe section 5 puts the weight GEMMs of a slice in a queue and takes them out while a rank waits
for a tensor; it stops between two of them as soon as the next F or I can go on. That happens at run
time, so it depends on the ticks. Here the run is played through once (``orders.weight_filling``,
with F and I in the order of the uncut schedule) and its order kept. An *eager* part can delay the F
or I that comes during it by less than one GEMM.

Neither is always best (starting early can end late in any list schedule), and single parts need not
beat whole W's. So the order is that of the shortest run: the uncut schedule with the parts of each
W side by side, or a run, eager or patient, with parts or with whole W's. It is therefore never
longer than what the same rule makes of the uncut pipeline. No run gets stuck: an F that lacks room
waits for W's whose I came before it, and the uncut schedule found room after some of those.
"""

from __future__ import annotations

import numpy as np

from bubbleproof.theory.families.base import program_of_tasks, with_whole_weights
from bubbleproof.theory.model.actions import NONE, Ints, Kind
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.orders.weight_filling import (
    WeightFilling,
    main_lists,
    parts_of_inputs,
)
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.programs.messages_in_programs import without_messages
from bubbleproof.theory.pipelines.timing import left_shift


def shortest_filling(pipeline: Pipeline, uncut: Program, limit: int) -> Program:
    """The order for a pipeline with cut W or uneven slices.

    ``uncut`` is an order of its F, I and whole W that holds at most ``limit`` units per rank.

    Parameters
    ----------
    limit
        Units that a rank may hold.
    """
    problem = without_messages(pipeline.problem())
    found = [uncut]
    for source in dict.fromkeys([with_whole_weights(pipeline), pipeline]):
        found += _runs(without_messages(source.problem()), uncut, limit)
    programs = [program_of_tasks(problem, _expanded(problem, program)) for program in found]
    return min(programs, key=lambda program: _makespan(problem, program))


def _runs(problem: Problem, uncut: Program, limit: int) -> list[Program]:
    is_weight = (problem.actions.kind == Kind.W).tolist()
    orders = _expanded(problem, uncut)
    mains = [[task for task in order if not is_weight[task]] for order in orders]
    tasks, parts = main_lists(problem), parts_of_inputs(problem)
    found = []
    for is_patient in (False, True):
        run = WeightFilling(tasks, mains, parts, limit, is_patient=is_patient)
        if not run.run():
            raise ValueError("an order with weights put off came to a stop before its end")
        found.append(program_of_tasks(problem, run.orders))
    return found


def _expanded(problem: Problem, program: Program) -> list[list[int]]:
    """The tasks of each rank in the order of ``program``, parts side by side where it has none."""
    place: dict[tuple[int, ...], int] = {}
    for row, action in enumerate(program.actions):
        place[action.kind, action.stage, action.microbatch, action.slice, action.part] = row
    actions = problem.actions
    columns = (actions.kind, actions.stage, actions.microbatch, actions.slice, actions.part)
    position = [
        place[name] if name in place else place[(*name[:-1], NONE)]
        for name in zip(*(column.tolist() for column in columns), strict=True)
    ]
    order = np.lexsort([actions.part, np.array(position), problem.rank_of_task])
    rank = problem.rank_of_task[order]
    return [order[rank == r].tolist() for r in range(problem.num_ranks)]


def _makespan(problem: Problem, program: Program) -> int:
    ticks: Ints = problem.duration[problem.locate(program.actions)]
    return int((left_shift(problem, program).start + ticks).max())
