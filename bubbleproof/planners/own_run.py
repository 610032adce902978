"""A configuration of one's own (``own_configuration``): what it takes and needs, as a candidate.

It runs 1F1B, of several chunks interleaved 1F1B, in the better of the even and the balanced cut. A
search that begins with it has no plan that is longer. It is no candidate where it has no room (it
is then timed on a card that has), or where the framework that is planned for does not run it: the
answer says why, and that its iteration is outside of what is bounded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from bubbleproof.costs.cluster_layers import ClusterLayers
from bubbleproof.costs.combinations import Combination, CombinationCosts, counted
from bubbleproof.costs.time_parts import TimeParts, time_parts
from bubbleproof.error_base import Error
from bubbleproof.formats.clusters.cluster_toml import ClusterFile
from bubbleproof.formats.clusters.deployed_space import space_of_layers
from bubbleproof.formats.clusters.own_configuration import OwnConfiguration
from bubbleproof.planners.known_schedules import KnownSchedule
from bubbleproof.planners.looks import FirstSearch, FoundSchedule, first_look
from bubbleproof.theory.pipelines.shapes.plan_space import Candidate
from bubbleproof.theory.pipelines.shapes.shaping import NotLegalError, shaped

ORDERS = ("1f1b", "interleaved")
ROOMY = 64  # times the card's memory


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnRun:
    """What a configuration of one's own takes: microseconds, and bytes of the fullest card.

    ``parts`` tell where the time goes; it ``fits`` the card or is timed on a larger one. ``reason``
    says why it is no candidate, and is empty where it is one, with the ``known`` schedule.
    """

    own: OwnConfiguration
    candidate: Candidate
    iteration: int
    on_card: int
    fits: bool
    parts: TimeParts
    reason: str
    known: KnownSchedule = field(compare=False, repr=False)

    @property
    def combination(self) -> Combination:
        """Its deployment."""
        return self.own.combination

    def beside(self, file: ClusterFile) -> ClusterFile:
        """The file with it, where it is a candidate."""
        return file if self.reason else file.with_own(self.own)

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
        }


class NotLegalRun(Error, ValueError):  # noqa: N818 - the name says what is wrong
    """A configuration that a number forbids; the text is one line."""


def own_run(file: ClusterFile, own: OwnConfiguration) -> OwnRun:
    """What the configuration takes. Raises ``NotLegalRun`` where a number forbids it."""
    at, chunks = own.combination, own.chunks
    one = counted(file.training, at)
    if not isinstance(one, CombinationCosts):
        raise NotLegalRun(f"yours {at}: {one.reason}")
    if chunks * at.pipeline > (layers := file.training.model.layers):
        raise NotLegalRun(
            f"yours {at} chunks={chunks}: {layers} layers are no {chunks * at.pipeline} stages; "
            f"use chunks = {max(1, layers // at.pipeline)} at most"
        )
    has_room = one.numbers.capacity >= 0  # beside weights and their state
    found = list(_found(file, own, one, one.numbers)) if has_room else []
    fits = bool(found)
    if not fits:
        numbers = replace(one.numbers, capacity=ROOMY * file.training.cluster.memory)
        found = list(_found(file, own, one, numbers))
    if not found:
        order = ORDERS[chunks > 1]
        raise NotLegalRun(
            f"yours {at} chunks={chunks}: {order} takes no such pipeline of {at.pipeline} ranks "
            f"and {one.microbatches} microbatches; use chunks = 1"
        )
    candidate, schedule = min(found, key=lambda each: each[1].value)
    known = KnownSchedule(candidate=candidate, found=schedule, step_end=one.numbers.step_end)
    on_card = max(schedule.measured.peak_memory) + one.numbers.beside
    room = "" if fits else f"it needs {on_card / 2**30:.1f} GiB of a card and has no room"
    refused = "" if file.opened is None else file.opened.refusal(one, chunks)
    return OwnRun(
        own=own,
        candidate=candidate,
        iteration=known.value,
        on_card=on_card,
        fits=fits,
        parts=time_parts(
            file.training, one, schedule.pipeline, candidate.layers or (), schedule.value
        ),
        reason=refused or room,
        known=known,
    )


def _found(
    file: ClusterFile, own: OwnConfiguration, one: CombinationCosts, numbers: ClusterLayers
) -> Iterator[tuple[Candidate, FoundSchedule]]:
    """Its cuts with the schedule of each that fits."""
    shapes, ranks = file.shapes.model_copy(update=own.shape), one.combination.pipeline
    space = space_of_layers(numbers, shapes, ranks=ranks, microbatches=one.microbatches)
    order = ORDERS[own.chunks > 1 and ranks > 1]
    if f"{order} G" in file.orders and file.opened and not file.opened.refusal(one, own.chunks):
        order = f"{order} G"
    for candidate in space.candidates():
        try:
            asked = FirstSearch(shaped=shaped(space, candidate), orders=(order,))
        except NotLegalError:
            continue
        if (found := first_look(asked).found) is not None:
            yield candidate, found


def changed(own: OwnRun, combination: Combination, candidate: Candidate) -> list[str]:
    """What to change for the plan: ``key old -> new``."""
    here = {**own.combination.to_json(), "chunks": own.candidate.chunks}
    there = {**combination.to_json(), "chunks": candidate.chunks}
    found = [f"{key} {here[key]} -> {there[key]}" for key in here if here[key] != there[key]]
    if own.candidate.layers != candidate.layers:
        cut = "+".join(map(str, candidate.layers or ()))
        found.append(f"layers {cut}" if len(cut) < 40 else "the cut of the layers")
    return found
