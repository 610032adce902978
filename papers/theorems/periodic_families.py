"""Theorems on published families at fixed shapes, for all numbers of microbatches from some on.

Each names a family, its ticks and its shapes. The numbers of the closed form are read off the
family's schedule (``periodic_fit``) when the theorem is asked for, and proved by ``periodic``.
Where the family's order is published as a formula (*keys*: tasks run in the order of
base + period * place; T-Recomp gives them as the starts of its rounds, Chimera's full units as
starts at unit ticks), the closed form's order is proved to be that order. Otherwise that the
family orders longer steps in the same way is no part of the proof; tests compare many sizes. What
a task waits for is read off with the rest: the class and, but for T-Offload and DualPipe, the place
are the same for all tasks of a class.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import cast

from bubbleproof.papers.formula import Formula
from bubbleproof.papers.theorems.periodic import equal, obligations
from bubbleproof.papers.theorems.periodic_fit import fitted
from bubbleproof.papers.theorems.periodic_schedule import Keys, LinearForm, PeriodicSchedule
from bubbleproof.papers.theorems.theorem import Obligation, Theorem
from bubbleproof.theory.families import FamilyMember, member
from bubbleproof.theory.families.rounds import round_starts
from bubbleproof.theory.families.trecomp import recomputed_chunks
from bubbleproof.theory.model.actions import Kind
from bubbleproof.theory.pipelines.pipeline import Pipeline


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodicShape:
    """A family's parameters without m, and at which m the schedule is read off.

    The schedule repeats every ``repeats`` microbatches of a direction; ``size`` decides which
    remainder is meant.
    """

    family: str
    params: tuple[tuple[str, int], ...]
    size: int
    repeats: int = 1

    @property
    def title(self) -> str:
        return " ".join(f"{name}={value}" for name, value in self.params)

    def member(self, m: int) -> FamilyMember:
        """The family's schedule of m microbatches."""
        return member(self.family, m=m, **dict(self.params))

    def schedule(self) -> PeriodicSchedule:
        """The closed form, not proved, read off once a process.

        Raises ``ValueError`` where it does not repeat.
        """
        return _read_off(self)


@cache
def _read_off(about: PeriodicShape) -> PeriodicSchedule:
    size, repeats = about.size, about.repeats
    step = repeats * (2 if about.member(size).pipeline.is_bidirectional else 1)
    rest = size % step
    title = f"{about.title} m%{step}={rest}" if step > 1 else about.title
    keys = keys_of(about.family, dict(about.params), repeats, rest)
    return fitted(about.member, shape=title, size=size, repeats=repeats, keys=keys)


def keys_of(family: str, params: Mapping[str, int], repeats: int, rest: int) -> Keys | None:
    """The keys of a family at its parameters, or None where its order is no such formula.

    ``rest`` is the remainder of m by the microbatches of a period.
    """
    p = params["p"]
    if family == "trecomp":
        return _rounds(member(family, **{**params, "m": 1}).pipeline)
    if family == "chimera" and 2 * repeats == p and not rest:
        return _waves(2 * p)
    return None


def _require_first(remainder: int) -> None:
    if remainder:
        raise ValueError(f"a round is one microbatch, got number {remainder} of it")


def _rounds(pipeline: Pipeline) -> Keys:
    p, v, again = pipeline.num_ranks, pipeline.num_chunks, recomputed_chunks(pipeline)

    def key(kind: Kind, stage: int, remainder: int) -> LinearForm:
        _require_first(remainder)
        starts = round_starts(p, stage % p, chunks=v, recomputed=again)
        return LinearForm(starts[kind, stage // p], 3 * v + again)

    return key


def _waves(lifespan: int) -> Keys:
    """Units one lifespan apart, their microbatches 2 ticks apart; stage g runs g ticks in."""

    def key(kind: Kind, stage: int, remainder: int) -> LinearForm:
        turn = stage if kind is Kind.F else lifespan - 1 - stage
        return LinearForm(2 * remainder + turn, lifespan)

    return key


@dataclass(frozen=True, slots=True)
class PeriodicTheorem:
    """A theorem to be: a family at some ticks and shapes.

    ``formula`` is what our families' documentation says of a shape's costs, where it is known:
    ``makespan`` in ticks, linear in m, and the ``peak`` of rank r, of the shape's parameters.
    """

    id: str
    heading: str
    ticks: str
    shapes: tuple[PeriodicShape, ...]
    formula: str | None = None
    makespan: str | None = None
    peak: str | None = None

    def theorem(self) -> Theorem:
        """The theorem, its closed forms read off the family now."""
        return periodic_theorem(self, tuple(shape.schedule() for shape in self.shapes))


def periodic_theorem(about: PeriodicTheorem, schedules: tuple[PeriodicSchedule, ...]) -> Theorem:
    """The theorem that these schedules are the left-shifted ones, with their costs."""
    found = [o for schedule in schedules for o in obligations(schedule)]
    for shape, schedule in zip(about.shapes, schedules, strict=True):
        found += _agreements(about, dict(shape.params), schedule)
    keyed = all(task.key is not None for schedule in schedules for task in schedule.classes)
    order = (
        "the order on each rank is the family's, proved from its keys"
        if keyed
        else "the family orders every size as the two it was read off (compared by tests at many m)"
    )
    formula = f" {about.formula};" if about.formula is not None else ""
    return Theorem(
        id=about.id,
        statement=(
            f"{about.heading}, at {about.ticks} and for every n >= 0:{formula} its left-shifted "
            f"starts are lines in pieces, with {'; '.join(_told(one) for one in schedules)}"
        ),
        assumptions=(
            f"{about.ticks} (or any common multiple: all starts scale)",
            "the shapes listed, and m from the least on, in the steps told",
            order,
            "tasks wait, by place, for what they wait for at the sizes read off",
            "links take 0 ticks",
        ),
        symbols="m microbatches, n periods beyond the least m, j place of a task in its class",
        argument=(
            "Starts that respect all waiting edges and are tight are the longest paths, by "
            "induction along the edges; n and j are symbols, the shape is numbers"
        ),
        obligations=tuple(found),
    )


def _told(schedule: PeriodicSchedule) -> str:
    """A schedule's costs in words."""
    m = LinearForm(schedule.least, 0, schedule.step)
    peaks = " ".join(map(str, schedule.peaks))
    return f"[{schedule.shape}: m = {m}, makespan {schedule.makespan}, peaks {peaks}]"


def _agreements(
    about: PeriodicTheorem, params: Mapping[str, int], schedule: PeriodicSchedule
) -> Iterator[Obligation]:
    """The costs are those of the formula."""
    if about.makespan is not None:
        least, step = schedule.least, schedule.step
        first, then = (_told_at(about.makespan, {**params, "m": m}) for m in (least, least + step))
        name = f"{schedule.shape}: the formula's makespan"
        goal = equal(schedule.makespan, LinearForm(first, 0, then - first))
        yield Obligation(name=name, premises=(), goal=goal)
    if about.peak is not None:
        for rank, peak in enumerate(schedule.peaks):
            name = f"{schedule.shape}, rank {rank}: the formula's peak"
            goal = equal(LinearForm(peak), _told_at(about.peak, {**params, "r": rank}))
            yield Obligation(name=name, premises=(), goal=goal)


def _told_at(text: str, params: Mapping[str, int]) -> int:
    return cast("int", Formula(text)(params))
