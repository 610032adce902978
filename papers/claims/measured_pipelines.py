"""What claims measure: families at the claims' parameters, or on a pipeline of their own.

Parameters are those of the families (``p m v s f tF tB tI tW``) and ``r``, a rank. ``A`` is one
sample through all layers: with v chunks and s slices one action's activation is A/(vsp). For a
pipeline whose stages are on two ranks, as on any other, units are counted where they lie.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from math import prod
from typing import Generic, TypeVar

import numpy as np

from bubbleproof.papers.claims.domain import CaseValues, Params
from bubbleproof.papers.claims.reading import Number, NumberOf
from bubbleproof.papers.claims.retiming import Template, retimed, template
from bubbleproof.theory.families import FamilyMember, family, make_parameters
from bubbleproof.theory.families.base import Family
from bubbleproof.theory.families.parameters import COUNTS, NAMES, TICKS
from bubbleproof.theory.model.actions import Ints
from bubbleproof.theory.model.measures import Measures, measure
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.pipelines.pipeline import Pipeline

_SHAPES = frozenset("vsf")  # parameters that only some families take
GivenNumbers = tuple[tuple[str, int], ...]


def made(name: str, at: Params) -> FamilyMember:
    """The family's schedule; a chunk, slice or forward count that it does not take is left out."""
    chosen = family(name)
    known = [n for n in NAMES if n in at and (n not in _SHAPES or n in chosen.options)]
    return chosen.member(make_parameters({n: at[n] for n in known}))


@lru_cache(maxsize=8192)  # numbers only: the schedules themselves are not kept
def _measures(name: str, shape: GivenNumbers, ticks: GivenNumbers) -> Measures:
    return retimed(_template(name, shape), dict(ticks))


@lru_cache(maxsize=24)  # a sweep on p ranks and m microbatches meets up to 20 shapes in turn
def _template(name: str, shape: GivenNumbers) -> Template:
    return template(name, dict(shape))


def measures(name: str, at: Params) -> Measures:
    """The measures of the family's schedule; what it does not take is left out."""
    options = family(name).options
    shape = tuple((n, at[n]) for n in COUNTS if n in at and (n not in _SHAPES or n in options))
    return _measures(name, shape, tuple((n, at[n]) for n in TICKS if n in at))


MeasuredValue = TypeVar("MeasuredValue", bound=Number)


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyMeasure(Generic[MeasuredValue]):
    """A measure of a family's schedule; or, by ``least``, the least that any order of it has.

    ``read`` takes it from what was measured of a schedule at a case. ``goal`` is what an order
    minimises that has the least of it. ``room`` is the capacity of each rank in units that the
    least is meant within: without it memory is unlimited.
    """

    family: str
    goal: str
    read: Callable[[Measures, Params], MeasuredValue]
    least: Callable[[Params], MeasuredValue] | None = None
    room: Callable[[Params], int] | None = None

    def __call__(self, at: Params) -> MeasuredValue:
        """The value in a case."""
        if self.least is not None:
            return self.least(at)
        return self.read(measures(self.family, at), at)


def idle_ratio(name: str) -> FamilyMeasure[Fraction]:
    """Idle share of all ranks' time until the last one ends."""
    return FamilyMeasure(family=name, goal="makespan", read=lambda found, _: found.idle_ratio)


def idle_over_work(name: str) -> FamilyMeasure[Fraction]:
    """Idle time over working time."""
    return FamilyMeasure(family=name, goal="makespan", read=lambda found, _: found.idle_over_work)


def makespan(name: str) -> FamilyMeasure[int]:
    """Ticks from the first start to the last end."""
    return FamilyMeasure(family=name, goal="makespan", read=lambda found, _: found.makespan)


def span_idle(name: str) -> FamilyMeasure[int]:
    """The zero-bubble papers' bubble: idle ticks within a rank's own span, on the worst rank."""
    return FamilyMeasure(family=name, goal="span_idle", read=lambda found, _: found.span_idle)


def peak(name: str) -> FamilyMeasure[int]:
    """The most units that any rank holds."""
    return FamilyMeasure(
        family=name, goal="peak", read=lambda found, _: max(found.peak_activations)
    )


def peak_of_a(name: str) -> FamilyMeasure[Fraction]:
    """The most that any rank holds, as a fraction of A."""

    def read(found: Measures, at: Params) -> Fraction:
        options = family(name).options
        units = at["p"] * prod(at[n] for n in "vs" if n in at and n in options)
        return Fraction(max(found.peak_activations), units)

    return FamilyMeasure(family=name, goal="peak", read=read)


def idle_ticks(name: str) -> NumberOf:
    """Idle ticks of the worst rank until the last rank ends."""
    return lambda at: max(measures(name, at).idle_ticks)


def peak_of_rank(name: str) -> NumberOf:
    """The most units that rank r holds."""
    return lambda at: measures(name, at).peak_activations[at["r"]]


def on_pipeline(chosen: Family, pipeline: Pipeline) -> Measures:
    """The measures of the family's order on a pipeline."""
    problem = pipeline.problem()
    return measure(problem, chosen.schedule(pipeline, problem))


def last_end(chosen: Family, pipeline: Pipeline) -> int:
    """The end of everything in the family's order on a pipeline, hosts and NICs included."""
    problem = pipeline.problem()
    schedule = chosen.schedule(pipeline, problem)
    ticks = problem.duration[problem.locate(schedule.program.actions)]
    return int((schedule.start + ticks).max())


def messages(problem: Problem) -> int:
    """Forward and backward messages between ranks in one step."""
    return int(_message_table(problem).sum())


def messages_between(problem: Problem, rank: int, other: int) -> int:
    """Messages between two ranks in one step, both ways."""
    table = _message_table(problem)
    return int(table[rank, other] + table[other, rank])


def _message_table(problem: Problem) -> Ints:
    """How many messages each rank (row) sends to each other (column); tasks all on ranks."""
    edges, rank, stage = problem.edges, problem.rank_of_task, problem.actions.stage
    sender, receiver = rank[edges.before], rank[edges.after]
    crosses = (sender != receiver) & (stage[edges.before] != stage[edges.after])
    table = np.zeros((problem.num_ranks, problem.num_ranks), dtype=np.int64)
    np.add.at(table, (sender[crosses], receiver[crosses]), 1)
    return table


def peaks_of(member: FamilyMember, rows: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> CaseValues:
    """The peak of each rank where only these memory events count."""
    problem, events = member.problem, member.problem.events
    only = replace(
        events,
        task=events.task[rows],
        at_end=events.at_end[rows],
        store=events.store[rows],
        delta=events.delta[rows],
    )
    return measure(replace(problem, events=only), member.schedule).peak_activations
