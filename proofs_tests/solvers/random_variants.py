"""Small problems with random options: the tasks of one class of a random problem may be left out.

One option per microbatch or one for all; its tasks bring their precedences and changes with them,
and perhaps a change of tasks that are always there belongs to it too.
"""

from __future__ import annotations

from random import Random

import numpy as np

from bubbleproof.solvers.choices.variants import Option, Variants
from bubbleproof.theory.model.actions import NONE, Ints
from bubbleproof.theory.model.problem import Problem
from proofs_tests.solvers.derived_floor import with_floor
from proofs_tests.solvers.random_problems import random_problem

MOST_TASKS = 9
Class = tuple[int, int, int, int]


def random_variants(rng: Random) -> Variants:
    """Variants of at most ``MOST_TASKS`` tasks, of which some computation is always there."""
    while True:
        whole = random_problem(rng)
        classes = sorted({_class(whole, task) for task in range(whole.num_tasks)})
        chosen = rng.choice(classes)
        variants = _variants(rng, whole, chosen)
        if whole.num_tasks <= MOST_TASKS and (variants.plain.rank_of_task != NONE).any():
            return variants


def _class(problem: Problem, task: int) -> Class:
    actions = problem.actions
    columns = (actions.kind, actions.stage, actions.slice, actions.part)
    kind, stage, piece, part = (int(column[task]) for column in columns)
    return kind, stage, piece, part


def _variants(rng: Random, whole: Problem, chosen: Class) -> Variants:
    microbatch = whole.actions.microbatch
    is_per_microbatch = rng.random() < 0.6
    rows = range(int(microbatch.max()) + 1) if is_per_microbatch else (NONE,)
    owner = microbatch if is_per_microbatch else np.zeros_like(microbatch)
    is_chosen = [_class(whole, task) == chosen for task in range(whole.num_tasks)]
    of_task: Ints = np.where(is_chosen, owner, NONE)
    edges, events = whole.edges, whole.events
    of_event = of_task[events.task]
    if rng.random() < 0.4 and len(events):
        one = rng.randrange(len(events))
        alike = np.array([_class(whole, task) for task in events.task.tolist()])
        alike = np.column_stack([alike, events.at_end, events.store, events.delta])
        moved = (alike == alike[one]).all(axis=1) & (of_event == NONE)
        of_event = np.where(moved, owner[events.task], of_event)
    return with_floor(
        whole=whole,
        options=tuple(Option(what="do", stage=chosen[1], microbatch=row) for row in rows),
        task_option=of_task,
        edge_option=np.maximum(of_task[edges.before], of_task[edges.after]),
        event_option=of_event,
    )
