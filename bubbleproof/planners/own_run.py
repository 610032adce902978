"""A configuration of one's own (``own_configuration``): what it takes and needs, as a candidate.

It runs 1F1B, of several chunks interleaved 1F1B, in the better of the even and the balanced cut. A
search that begins with it has no plan that is longer. It is no candidate where it has no room (it
is then timed on a card that has), or where the framework that is planned for does not run it: the
answer says why, and that its iteration is outside of what is bounded.

Where it tells an order, groups, a cut, collectives that wait or other numbers, its iteration is
that of exactly this; the candidate is the same deployment as the file plans it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from operator import attrgetter

from bubbleproof.costs.combinations import Combination, CombinationCosts, TrainingJob, counted
from bubbleproof.costs.time_parts import TimeParts, time_parts
from bubbleproof.error_base import Error
from bubbleproof.formats.clusters.cluster_toml import ClusterFile
from bubbleproof.formats.clusters.deployed_space import space_of_layers
from bubbleproof.formats.clusters.own_configuration import OwnConfiguration
from bubbleproof.planners.known_schedules import KnownSchedule
from bubbleproof.planners.looks import FirstSearch, FoundSchedule, first_look
from bubbleproof.planners.memory_parts import MemoryParts, memory_parts
from bubbleproof.theory.families import Family, family
from bubbleproof.theory.families.interleaved import (
    InterleavedOneForwardOneBackward,
    group_choices,
)
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.programs.messages_in_programs import with_messages_in_order
from bubbleproof.theory.pipelines.shapes.plan_space import Candidate
from bubbleproof.theory.pipelines.shapes.shaping import NotLegalError, shaped
from bubbleproof.theory.pipelines.timing import UntimedProgram, left_shift
from bubbleproof.verify import check

ORDERS = ("1f1b", "interleaved")
USUAL = "the file's"  # of a key that one of two deployments leaves to the file
NO_ROOM = "it has no room on a card"
ROOMY = 64  # times the card's memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Saving:
    """One thing of one's own that is changed, and the microseconds that it saves.

    ``fits`` says whether there is room for it, where there is for one's own.
    """

    change: str
    saves: int
    fits: bool = True

    def to_json(self) -> dict[str, object]:
        """For programs."""
        return {"change": self.change, "value": self.saves, "fits": self.fits}


@dataclass(frozen=True, slots=True, kw_only=True)
class FittingChange:
    """A deployment that fits, in words what it has otherwise, and its iteration in microseconds."""

    combination: Combination
    change: str
    iteration: int

    def to_json(self) -> dict[str, object]:
        """For programs."""
        return {**self.combination.to_json(), "change": self.change, "iteration": self.iteration}


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnRun:
    """What a configuration of one's own takes: microseconds, and bytes of the fullest card.

    ``parts`` tell where the time goes, ``memory`` what the fullest card holds; it ``fits`` the
    card or is timed on a larger one. ``reason``
    says why it is no candidate, and is empty where it is one, with the ``known`` schedule.
    ``savings`` are the changes towards a plan that matter most (``own_savings``), ``fits_as`` those
    by which it fits, where it does not (``fitting_changes``).
    """

    own: OwnConfiguration
    candidate: Candidate
    iteration: int
    on_card: int
    fits: bool
    parts: TimeParts
    memory: MemoryParts
    reason: str
    known: KnownSchedule = field(compare=False, repr=False)
    savings: tuple[Saving, ...] = ()
    fits_as: tuple[FittingChange, ...] = ()

    @property
    def combination(self) -> Combination:
        """Its deployment."""
        return self.own.combination

    def beside(self, file: ClusterFile) -> ClusterFile:
        """The file with it, where it is a candidate."""
        return file if self.reason else file.with_own(self.own.plain)

    @property
    def begins(self) -> Mapping[Combination, KnownSchedule]:
        """What a search begins with, by deployment."""
        return {} if self.reason else {self.combination: self.known}

    def to_json(self) -> dict[str, object]:
        """For programs."""
        return {
            **self.combination.to_json(),
            "chunks": self.candidate.chunks,
            "layers": list(self.candidate.layers or ()),
            "value": self.iteration,
            "on_card": self.on_card,
            "fits": self.fits,
            "reason": self.reason,
            "parts": dict(self.parts.named),
            "memory": dict(self.memory.named),
            "fits_as": [each.to_json() for each in self.fits_as],
            "savings": [each.to_json() for each in self.savings],
            "remarks": list(self.own.remarks),
        }


class NotLegalRun(Error, ValueError):  # noqa: N818 - the name says what is wrong
    """A configuration that a number forbids; the text is one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Timed:
    """A configuration as a job runs it: the better of its cuts."""

    job: TrainingJob
    one: CombinationCosts
    candidate: Candidate
    found: FoundSchedule
    fits: bool

    @property
    def known(self) -> KnownSchedule:
        """What a search may begin with."""
        return KnownSchedule(
            candidate=self.candidate, found=self.found, step_end=self.one.numbers.step_end
        )

    @property
    def on_card(self) -> int:
        """Bytes of the fullest card."""
        return max(self.found.measured.peak_memory) + self.one.numbers.beside

    @property
    def parts(self) -> TimeParts:
        """Where the time goes."""
        cut = self.candidate.layers or ()
        return time_parts(self.job, self.one, self.found.pipeline, cut, self.found.value)

    @property
    def memory(self) -> MemoryParts:
        """What the fullest card holds."""
        cut, peaks = self.candidate.layers or (), self.found.measured.peak_memory
        ranks = memory_parts(self.job, self.one, self.found.pipeline, cut, peaks)
        return max(ranks, key=lambda each: each.total)


def own_run(file: ClusterFile, own: OwnConfiguration) -> OwnRun:
    """What the configuration takes. Raises ``NotLegalRun`` where a number forbids it."""
    plain = _timed(file, own.plain, file.training)
    exact = plain if own == own.plain else _timed(file, own, own.trained_by(file.training))
    room = "" if plain.fits else NO_ROOM
    refused = "" if file.opened is None else file.opened.refusal(plain.one, own.chunks)
    return OwnRun(
        own=own,
        candidate=exact.candidate,
        iteration=exact.known.value,
        on_card=exact.on_card,
        fits=exact.fits,
        parts=exact.parts,
        memory=exact.memory,
        reason=refused or room,
        known=plain.known,
    )


def _timed(file: ClusterFile, own: OwnConfiguration, job: TrainingJob) -> _Timed:
    """The configuration on a card, or on a larger one where it has no room.

    Raises ``NotLegalRun`` where a number forbids it.
    """
    at, chunks = own.combination, own.chunks
    one = counted(job, at)
    if not isinstance(one, CombinationCosts):
        raise NotLegalRun(f"yours {at}: {one.reason}")
    if chunks * at.pipeline > (layers := job.model.layers) and own.layers is None:
        raise NotLegalRun(
            f"yours {at} chunks={chunks}: {layers} layers are no {chunks * at.pipeline} stages; "
            f"use chunks = {max(1, layers // at.pipeline)} at most"
        )
    has_room = one.numbers.capacity >= 0  # beside weights and their state
    found = list(_found(file, own, one)) if has_room else []
    if not (fits := bool(found)):
        roomy = replace(one, numbers=replace(one.numbers, capacity=ROOMY * job.cluster.memory))
        found = list(_found(file, own, roomy, is_least=True))
    if not found:
        order, repair = own.order or ORDERS[chunks > 1], "chunks = 1"
        if own.group and (known := group_choices(at.pipeline, one.microbatches)):
            order, repair = f"{order} in groups of {own.group}", f"groups of {known[0]}"
        raise NotLegalRun(
            f"yours {at} chunks={chunks}: {order} takes no such pipeline of {at.pipeline} ranks "
            f"and {one.microbatches} microbatches; use {repair}"
        )
    place = attrgetter(*([] if fits else ["peak_memory"]), "value")
    candidate, schedule = min(found, key=lambda each: place(each[1]))
    return _Timed(job=job, one=one, candidate=candidate, found=schedule, fits=fits)


def _found(
    file: ClusterFile, own: OwnConfiguration, one: CombinationCosts, *, is_least: bool = False
) -> Iterator[tuple[Candidate, FoundSchedule]]:
    """Its cuts with the schedule of each that fits: the shortest, or that of least memory."""
    shapes, ranks = file.shapes.model_copy(update=own.shape), one.combination.pipeline
    space = space_of_layers(one.numbers, shapes, ranks=ranks, microbatches=one.microbatches)
    candidates = space.candidates()
    if own.layers is not None:
        candidates = (replace(candidates[0], layers=own.layers),)
    for candidate in candidates:
        try:
            pipeline = shaped(space, candidate)
        except NotLegalError:
            continue
        if own.order or own.group:
            found = _exact(pipeline.pipeline, own)
        else:
            order = _order(file, own, one)
            asked = FirstSearch(shaped=pipeline, orders=(order,), is_least=is_least)
            found = first_look(asked).found
        if found is not None:
            yield candidate, found


def _order(file: ClusterFile, own: OwnConfiguration, one: CombinationCosts) -> str:
    """The order of its chunks, as the framework that is planned for has it."""
    order = ORDERS[own.chunks > 1 and one.combination.pipeline > 1]
    runs = file.opened is not None and not file.opened.refusal(one, own.chunks)
    return f"{order} G" if runs and f"{order} G" in file.orders else order


def _exact(pipeline: Pipeline, own: OwnConfiguration) -> FoundSchedule | None:
    """The order that it tells, where that takes the pipeline and fits."""
    named: Family = family(own.order or ORDERS[own.chunks > 1])
    if own.group and own.chunks > 1:
        named = InterleavedOneForwardOneBackward(own.group)
    if named.refusal(pipeline) is not None:
        return None
    problem = pipeline.problem()
    try:
        program = with_messages_in_order(problem, named.program(pipeline))
        schedule = left_shift(problem, program)
    except UntimedProgram:
        return None
    verdict = check(problem, schedule)
    if not verdict.ok or verdict.measured is None:
        return None
    return FoundSchedule(
        pipeline=pipeline, schedule=schedule, measured=verdict.measured, origin=named.name
    )


def changed(own: OwnRun, combination: Combination, candidate: Candidate) -> list[str]:
    """What to change for the plan: ``key old -> new``."""
    here = {**own.combination.to_json(), "chunks": own.candidate.chunks}
    there = {**combination.to_json(), "chunks": candidate.chunks}
    pairs = {key: (here.get(key, USUAL), there.get(key, USUAL)) for key in here | there}
    found = [f"{key} {old} -> {new}" for key, (old, new) in pairs.items() if old != new]
    if own.candidate.layers != candidate.layers:
        cut = "+".join(map(str, candidate.layers or ()))
        found.append(f"layers {cut}" if len(cut) < 40 else "the cut of the layers")
    return found
