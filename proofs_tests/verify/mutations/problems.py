"""The problem becomes harder than the schedule: more to wait for, longer tasks, less memory."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np

from bubbleproof.theory.model.problem import Edges
from proofs_tests.verify.mutations.operators import (
    operator,
)
from proofs_tests.verify.plain import plain_measures
from proofs_tests.verify.tables import Specimen


@operator("DEPENDENCIES", "MEMORY", "EXCLUSIVE", nature="either")
def extra_dependency(random: Random, specimen: Specimen) -> Specimen | None:
    """The problem gains one precedence between two of its tasks."""
    before, after = random.sample(range(specimen.problem.num_tasks), 2)
    return _with_edge(specimen, before, after, 0)


@operator("DEPENDENCIES", nature="either")
def slower_message(random: Random, specimen: Specimen) -> Specimen | None:
    """One precedence of the problem lags by a tick more."""
    edges = specimen.problem.edges
    i = random.randrange(len(edges))
    return _with_edge(specimen, int(edges.before[i]), int(edges.after[i]), int(edges.lag[i]) + 1)


def _with_edge(specimen: Specimen, before: int, after: int, lag: int) -> Specimen:
    edges = specimen.problem.edges
    more = Edges(
        before=np.append(edges.before, before),
        after=np.append(edges.after, after),
        lag=np.append(edges.lag, lag),
    )
    return replace(specimen, problem=replace(specimen.problem, edges=more))


@operator("DEPENDENCIES", "EXCLUSIVE", "MEMORY", nature="either")
def slower_task(random: Random, specimen: Specimen) -> Specimen | None:
    """One task of the problem takes a tick longer than the schedule thinks."""
    duration = specimen.problem.duration.copy()
    duration[random.randrange(len(duration))] += 1
    return replace(specimen, problem=replace(specimen.problem, duration=duration))


def _peak(specimen: Specimen, store: int) -> int:
    """The measured peak of a rank's store."""
    peaks = plain_measures(specimen.problem, specimen.schedule())["peak_memory"]
    assert isinstance(peaks, tuple)
    return peaks[store]


@operator("MEMORY")
def cap_minus_one(random: Random, specimen: Specimen) -> Specimen | None:
    at = random.randrange(specimen.problem.num_ranks)
    store = replace(specimen.problem.stores[at], capacity=_peak(specimen, at) - 1)
    return specimen.with_store(at, store)


@operator(nature="harmless")
def cap_at_the_peak(random: Random, specimen: Specimen) -> Specimen | None:
    at = random.randrange(specimen.problem.num_ranks)
    store = replace(specimen.problem.stores[at], capacity=_peak(specimen, at))
    return specimen.with_store(at, store)


@operator("MEMORY")
def base_above_cap(random: Random, specimen: Specimen) -> Specimen | None:
    at = random.randrange(len(specimen.problem.stores))
    capacity = random.randint(1, 5)
    store = replace(specimen.problem.stores[at], capacity=capacity, base=capacity + 1)
    return specimen.with_store(at, store)


@operator("MEMORY", nature="either")
def heavier_base(random: Random, specimen: Specimen) -> Specimen | None:
    at = random.randrange(len(specimen.problem.stores))
    store = specimen.problem.stores[at]
    return specimen.with_store(at, replace(store, base=store.base + 1))


@operator("MEMORY")
def released_twice(random: Random, specimen: Specimen) -> Specimen | None:
    """One task's release is larger by more than the store can hold."""
    events = specimen.problem.events
    releases = [i for i in range(len(events)) if events.delta[i] < 0]
    delta = events.delta.copy()
    delta[random.choice(releases)] -= 1000
    changed = replace(specimen.problem, events=replace(events, delta=delta))
    return replace(specimen, problem=changed)
