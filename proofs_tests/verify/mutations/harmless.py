"""Changes that no rule may mind."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np

from bubbleproof.theory.model.problem import Edges
from proofs_tests.verify.mutations.operators import (
    operator,
)
from proofs_tests.verify.tables import Specimen


@operator(nature="harmless")
def shift_all_later(random: Random, specimen: Specimen) -> Specimen | None:
    shift = random.randint(1, 9)
    later = {action: start + shift for action, start in specimen.starts().items()}
    return specimen.with_rows(specimen.retimed(later))


@operator(nature="harmless")
def insert_idle(random: Random, specimen: Specimen) -> Specimen | None:
    """Everything that starts at some moment or later waits a while."""
    starts = specimen.starts()
    moment, wait = random.choice(list(starts.values())), random.randint(1, 4)
    later = {action: start + wait * (start >= moment) for action, start in starts.items()}
    return specimen.with_rows(specimen.retimed(later))


@operator(nature="harmless")
def rows_listed_last_first(random: Random, specimen: Specimen) -> Specimen | None:
    """The problem lists its precedences and memory events in another order."""
    edges, events = specimen.problem.edges, specimen.problem.events
    mixed = random.sample(range(len(edges)), len(edges))
    turned = np.arange(len(events))[::-1]
    problem = replace(
        specimen.problem,
        edges=Edges(before=edges.before[mixed], after=edges.after[mixed], lag=edges.lag[mixed]),
        events=replace(
            events,
            task=events.task[turned],
            at_end=events.at_end[turned],
            store=events.store[turned],
            delta=events.delta[turned],
        ),
    )
    return replace(specimen, problem=problem)
