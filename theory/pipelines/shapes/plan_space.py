"""The candidates of a plan: the shapes that one training step may take on a cluster.

A problem with a plan is stated for one chunk and one slice: what a *rank* takes and holds
(``theory.pipelines.shapes.shaping`` tells what a candidate makes of that). A candidate that asks
for a share that is not whole, or for a pipeline that has no meaning, is *not legal*. What is open
within a candidate (recomputation, eviction, off-load) is ``allowed``.

With ``backward = "mixed"`` every set of ranks that split their backwards is a candidate. Where the
input and weight parts take together what the whole backward takes, and a split one leaves nothing
behind that the whole one does not, each mixed schedule is one of the split candidate as well: W
runs right after its I.

Pipelines may stand *beside* the shapes, whole, with all that is chosen in them (what a paper's
planner would run): candidates in which nothing is open.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, product

from bubbleproof.theory.pipelines.allowed import AllowedChoices
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.placement import BIDIRECTIONAL, stage_ranks
from bubbleproof.theory.pipelines.shapes.layer_cuts import Cut, Layers

WHOLE, SPLIT, MIXED = "whole", "split", "mixed"
SHORT = 8  # stages whose layers are told one by one

Placement = str | tuple[int, ...]
Backward = str | tuple[bool, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One shape.

    ``backward`` is ``whole``, ``split``, or whether each rank splits; ``layers`` the cut: None
    where the problem tells no layers, empty where they cannot be cut so. ``beside`` names a
    pipeline that is none of the shapes; the other fields then describe it.
    """

    chunks: int
    placement: Placement
    backward: Backward
    slices: int
    layers: Cut | None = None
    beside: str = ""

    def __str__(self) -> str:
        words = [f"{self.beside}:"] if self.beside else []
        words += [f"v={self.chunks}", _text(self.placement), self._backward_text()]
        words += [f"s={self.slices}"] if self.slices > 1 else []
        cut = self.layers or ()
        words += [f"layers {cut_text(cut)}"] if len(set(cut)) > 1 else []
        return " ".join(words)

    def _backward_text(self) -> str:
        if isinstance(self.backward, str):
            return self.backward
        ranks = [str(rank) for rank, is_split in enumerate(self.backward) if is_split]
        return f"split on {','.join(ranks)}"


def cut_text(cut: Cut) -> str:
    """``7+8+7``; of many stages ``7+14x8+7``, a number of stages before what each has."""
    if len(cut) <= SHORT:
        return "+".join(map(str, cut))
    runs = [(len(list(run)), layers) for layers, run in groupby(cut)]
    return "+".join(f"{number}x{layers}" if number > 1 else str(layers) for number, layers in runs)


def _beside(name: str, pipeline: Pipeline) -> Candidate:
    """A pipeline that stands beside the shapes, as a candidate."""
    return Candidate(
        chunks=pipeline.num_chunks,
        placement=pipeline.placement,
        backward=WHOLE if pipeline.split_backward is False else SPLIT,
        slices=pipeline.num_slices,
        beside=name,
    )


def _text(placement: Placement) -> str:
    return placement if isinstance(placement, str) else ",".join(map(str, placement))


def require_listed(name: str, values: Sequence[object]) -> None:
    """Raise ``ValueError`` for a list that is empty or names a value twice.

    Parameters
    ----------
    name
        What the list is called in a message.
    values
        Values of one list; lists of ranks are tuples.
    """
    texts = [_text(value) if isinstance(value, tuple) else str(value) for value in values]
    twice = next((text for text in texts if texts.count(text) > 1), None)
    if not values or twice is not None:
        found = "none" if twice is None else f"{twice} twice"
        raise ValueError(f"{name} must list one value or more, each once, got {found}")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSpace:
    """``pipeline`` states a rank's work as one chunk and one slice; the rest lists what to try.

    ``others`` stand beside the shapes, by name.
    Raises ``ValueError`` for an empty or repeated list, and for a pipeline of another shape. How
    many candidates that may be is ``few_candidates``' word.
    """

    pipeline: Pipeline
    allowed: AllowedChoices | None = None
    chunks: tuple[int, ...] = (1,)
    placements: tuple[Placement, ...] = ("loop",)
    backward: tuple[Backward, ...] = (WHOLE,)
    slices: tuple[int, ...] = (1,)
    layers: Layers | None = None
    others: tuple[tuple[str, Pipeline], ...] = ()

    def __post_init__(self) -> None:
        given = self.pipeline
        if self.others:
            require_listed("others", [name for name, _ in self.others])
        for name in ("chunks", "placements", "backward", "slices"):
            require_listed(name, getattr(self, name))
        if (given.num_chunks, given.num_slices, given.placement) != (1, 1, "loop"):
            raise ValueError(
                "a plan's problem states a rank's work as one chunk and one slice in a loop, got "
                f"{given.num_chunks} chunks, {given.num_slices} slices, {given.placement}"
            )
        for flags in self.backward:
            if not isinstance(flags, str) and len(flags) != given.num_ranks:
                raise ValueError(
                    f"backward must be {WHOLE}, {SPLIT}, {MIXED} or one flag per rank "
                    f"({given.num_ranks}), got {len(flags)} flags"
                )

    def candidates(self) -> tuple[Candidate, ...]:
        """All of them, legal or not, in the order of the lists."""
        shapes = product(self.chunks, self.placements, self._flags(), self.slices)
        found = [
            Candidate(
                chunks=chunks, placement=placement, backward=backward, slices=slices, layers=cut
            )
            for chunks, placement, backward, slices in shapes
            for cut in self.cuts_of(chunks, placement)
        ]
        return (*found, *(_beside(name, pipeline) for name, pipeline in self.others))

    def _flags(self) -> Iterator[Backward]:
        for flags in self.backward:
            if flags != MIXED:
                yield flags
                continue
            for mixed in product((False, True), repeat=self.pipeline.num_ranks):
                if 0 < sum(mixed) < len(mixed):
                    yield mixed

    def cuts_of(self, chunks: int, placement: Placement) -> tuple[Cut | None, ...]:
        """The cuts that a shape is tried with: None without layers, empty where there is none.

        Parameters
        ----------
        chunks
            Chunks of each rank.
        placement
            By name, or the rank of each stage.
        """
        if self.layers is None:
            return (None,)
        ranks, m = self.ranks_of(chunks, placement), self.pipeline.num_microbatches
        room = None if self.allowed else self.pipeline.least_capacity
        return self.layers.rule.cuts(self.layers, ranks, m, room) or ((),)

    def ranks_of(self, chunks: int, placement: Placement) -> tuple[int, ...]:
        """The rank of each stage; of a placement that is none of this shape, each its own.

        Parameters
        ----------
        chunks
            Stages on each rank.
        """
        ranks = self.pipeline.num_ranks
        if placement == BIDIRECTIONAL:  # each stage on two ranks, each rank of two stages
            return tuple(range(ranks * chunks))
        if isinstance(placement, str):
            return stage_ranks(placement, num_ranks=ranks, num_chunks=chunks)
        return placement if len(placement) == ranks * chunks else tuple(range(ranks * chunks))
