"""Saved activations, and the key/value states of slices: where they are.

F leaves its activations on its rank. Each kind of action finds them in one place and leaves them in
another:

    R        dropped after F                  ->  on the rank
    EVICT    on the rank                      ->  evicted over its link
    LOAD     evicted over the same link        ->  on the rank
    OFFLOAD  on the rank                      ->  on the host
    RELOAD   on the host                      ->  on the rank
    B        on the rank where it runs itself ->  released
    I        on the rank where it runs itself ->  left for W
    W        left for W, its piece not done   ->  released, after the last piece

and while it runs nobody else finds them. What the problem moves away comes back before B or I. A
forward of slice k reads the key/value states of slices 0..k-1 of its sample on its own rank, and a
backward of slice k takes the gradients that the backwards of slices k+1.. add to its own. Key/value
states stay on the rank from F to the backward: what is dropped, evicted or off-loaded is the rest.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from bubbleproof.theory.model.actions import NONE, Kind
from bubbleproof.verify.dataflow.mistakes import Fault, SymbolicAction, Thing, said
from bubbleproof.verify.dataflow.training_step import SamplePart, TrainingStep


class ActivationPlace(Enum):
    """Where activations are; a place's value is the sentence that says so, {} being who did it."""

    RANK = "they are on rank {rank} since {{}}"
    DROPPED = "they were dropped after {{}} and not recomputed since"
    MOVING = "{{}} is still at work on them"
    EVICTED = "{{}} has evicted them"
    HOST = "{{}} has off-loaded them"
    LEFT = "{{}} has left only what W needs"
    RELEASED = "{{}} has released them"


MOVES: dict[Kind, tuple[ActivationPlace, ActivationPlace]] = {
    Kind.R: (ActivationPlace.DROPPED, ActivationPlace.RANK),
    Kind.EVICT: (ActivationPlace.RANK, ActivationPlace.EVICTED),
    Kind.LOAD: (ActivationPlace.EVICTED, ActivationPlace.RANK),
    Kind.OFFLOAD: (ActivationPlace.RANK, ActivationPlace.HOST),
    Kind.RELOAD: (ActivationPlace.HOST, ActivationPlace.RANK),
    Kind.B: (ActivationPlace.RANK, ActivationPlace.RELEASED),
    Kind.I: (ActivationPlace.RANK, ActivationPlace.LEFT),
    Kind.W: (ActivationPlace.LEFT, ActivationPlace.RELEASED),
}
_PHRASES = {
    ActivationPlace.DROPPED: ", dropped",
    ActivationPlace.EVICTED: ", evicted over the same link",
    ActivationPlace.HOST: " on the host",
    ActivationPlace.LEFT: ", as left for W",
}
_ON_OWN_RANK = (Kind.R, Kind.B, Kind.I, Kind.W)
_SUPPLIER = {
    ActivationPlace.DROPPED: Kind.R,
    ActivationPlace.EVICTED: Kind.LOAD,
    ActivationPlace.HOST: Kind.RELOAD,
}


@dataclass(frozen=True, slots=True)
class ActivationSite:
    """A place, the rank of the forward, the link where evicted, and the work that put it there."""

    place: ActivationPlace
    rank: int
    link: int
    by: SymbolicAction


class Activations:
    """The places of all activations and key/value states during a run."""

    def __init__(self, step: TrainingStep) -> None:
        self._step = step
        self.where: dict[SamplePart, ActivationSite] = {}
        self._pieces_done: dict[SamplePart, set[int]] = {}
        self._states: dict[
            SamplePart, SymbolicAction
        ] = {}  # key/value states, by the forward that made them
        self._backward_done: set[SamplePart] = set()
        self._returned: dict[SamplePart, set[Kind]] = defaultdict(set)

    def of_forward(self, work: SymbolicAction) -> Iterator[Fault]:
        """A forward runs once, after the forwards of earlier slices and before their backwards."""
        if (known := self.where.get(work.part)) is not None:
            needed = said("to run for the first time")
            yield Fault(needed=needed, found=self._is(known), origin=known.by.row)
        stage, microbatch, slice_ = work.part
        for earlier in range(slice_):
            part = (stage, microbatch, earlier)
            state = self._states.get(part)
            if state is None or state.resource != work.resource:
                needed = ("the key/value states of {}", Kind.F, part)
                yield self._absent(needed, part, (Kind.F, *part))

    def of_backward(self, work: SymbolicAction) -> Iterator[Fault]:
        """A backward takes the key/value gradients of all later slices of its sample."""
        stage, microbatch, slice_ = work.part
        for later in range(slice_ + 1, self._step.last_slice.get(microbatch, 0) + 1):
            part = (stage, microbatch, later)
            if part not in self._backward_done:
                kind = self._step.backward[part]
                yield Fault(
                    needed=("the key/value gradients that {} adds", kind, part),
                    found=said("it has not added them yet"),
                    origin=self.where[part].by.row if part in self.where else NONE,
                    awaited=(Kind.B, *part),
                )

    def of_move(self, work: SymbolicAction) -> Iterator[Fault]:
        """The activations must be where the kind of work finds them."""
        wanted = MOVES[work.kind][0]
        needed: Thing = ("the activations of {}" + _phrase(work, wanted), Kind.F, work.part)
        known = self.where.get(work.part)
        if known is None or known.place is not wanted or self._is_elsewhere(work, known):
            yield self._absent(needed, work.part, self._supply(work, known))
        elif work.kind is Kind.W and work.piece in self._pieces_done.get(work.part, ()):
            yield Fault(needed=needed, found=said("this piece of W has run"), origin=known.by.row)
        elif work.kind in (Kind.B, Kind.I):
            for kind in self._step.returns.get(work.part, frozenset()) - self._returned[work.part]:
                found: Thing = ("{} is still to bring them back", kind, work.part)
                supply = (kind, *work.part)
                yield Fault(needed=needed, found=found, origin=known.by.row, awaited=supply)

    def _is_elsewhere(self, work: SymbolicAction, known: ActivationSite) -> bool:
        if work.kind in _ON_OWN_RANK:
            return known.rank != work.resource
        link = self._step.links.get
        ends = known.link, work.resource
        return work.kind is Kind.LOAD and len({link(end, end) for end in ends}) > 1

    def _absent(self, needed: Thing, part: SamplePart, supply: tuple[int, ...] | None) -> Fault:
        known = self.where.get(part)
        if known is None:
            found: Thing = ("{} has not run", Kind.F, part)
            return Fault(needed=needed, found=found, awaited=supply)
        return Fault(needed=needed, found=self._is(known), origin=known.by.row, awaited=supply)

    def _supply(self, work: SymbolicAction, known: ActivationSite | None) -> tuple[int, ...] | None:
        """Which action would bring the activations to where they are wanted."""
        if known is None:
            return (Kind.F, *work.part)
        if MOVES[work.kind][0] is not ActivationPlace.RANK:
            before = {Kind.LOAD: Kind.EVICT, Kind.RELOAD: Kind.OFFLOAD, Kind.W: Kind.B}
            return (before.get(work.kind, Kind.F), *work.part)
        return (_SUPPLIER[known.place], *work.part) if known.place in _SUPPLIER else None

    def _is(self, known: ActivationSite) -> Thing:
        return known.place.value.format(rank=known.rank), known.by.kind, known.by.part

    def begin(self, work: SymbolicAction) -> None:
        """Nobody else finds activations that are being moved or used."""
        known = self.where.get(work.part)
        rank = work.resource if known is None else known.rank
        if work.kind is not Kind.W:
            self.where[work.part] = ActivationSite(ActivationPlace.MOVING, rank, NONE, work)
        if work.kind in (Kind.B, Kind.I):
            self._states.pop(work.part, None)

    def end(self, work: SymbolicAction) -> None:
        """What the work leaves behind."""
        part, rank = work.part, self.where[work.part].rank if work.part in self.where else NONE
        if work.kind is Kind.F:
            self._states[part] = work
            dropped = part in self._step.recomputed
            place = ActivationPlace.DROPPED if dropped else ActivationPlace.RANK
            self.where[part] = ActivationSite(place, work.resource, NONE, work)
            return
        if work.kind in (Kind.B, Kind.I):
            self._backward_done.add(part)
        if work.kind in (Kind.LOAD, Kind.RELOAD):
            self._returned[part].add(work.kind)
        if work.kind is Kind.W and not self._is_last_piece(work):
            return
        self.where[part] = ActivationSite(MOVES[work.kind][1], rank, work.resource, work)

    def _is_last_piece(self, work: SymbolicAction) -> bool:
        done = self._pieces_done.setdefault(work.part, set())
        done.add(work.piece)
        return done >= self._step.pieces.get(work.part, done)


def _phrase(work: SymbolicAction, wanted: ActivationPlace) -> str:
    if wanted is not ActivationPlace.RANK:
        return _PHRASES[wanted]
    return f" on rank {work.resource}" if work.kind in _ON_OWN_RANK else " on their rank"
