"""A configuration of one's own, estimated as a plan's deployments are: what it takes and needs.

It is told as ``key=value`` words: tensor, pipeline, context, expert, chunks, micro_batch, zero,
scope; what is not told is 1, ZeRO 1 and no recomputation. Its replicas are what the cards leave.
It runs 1F1B, of several chunks interleaved 1F1B, in the better of the even and the balanced cut.
Where it has no room on the card it is timed on one that has, and the bytes that it needs are told.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from bubbleproof.costs.cluster_layers import ClusterLayers
from bubbleproof.costs.combinations import Combination, CombinationCosts, counted
from bubbleproof.costs.time_parts import TimeParts, time_parts
from bubbleproof.formats.clusters.cluster_toml import ClusterFile
from bubbleproof.formats.clusters.deployed_space import space_of_layers
from bubbleproof.planners.looks import FirstSearch, FoundSchedule, first_look
from bubbleproof.theory.pipelines.shapes.plan_space import Candidate
from bubbleproof.theory.pipelines.shapes.shaping import NotLegalError, shaped

SIZES = ("tensor", "pipeline", "context", "expert", "chunks", "micro_batch", "zero")
SCOPES = ("none", "attention", "full")
KEYS = (*SIZES, "scope", "data")
ORDERS = ("1f1b", "interleaved")
ROOMY = 64  # times the card's memory


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnRun:
    """What a configuration of one's own takes: microseconds, and bytes of the fullest card.

    ``parts`` tell where the time goes; it ``fits`` the card or is timed on a larger one.
    """

    combination: Combination
    candidate: Candidate
    iteration: int
    on_card: int
    fits: bool
    parts: TimeParts

    def to_json(self) -> dict[str, object]:
        """For programs."""
        return {
            **self.combination.to_json(),
            "chunks": self.candidate.chunks,
            "layers": list(self.candidate.layers or ()),
            "value": self.iteration,
            "on_card": self.on_card,
            "fits": self.fits,
            "parts": dict(self.parts.named),
        }


def own_run(file: ClusterFile, words: Sequence[str]) -> OwnRun:
    """The configuration of these words. Raises ``ValueError`` where a number forbids it."""
    told = _told(words)
    chunks, at = int(told.pop("chunks", 1)), _combination(file, told)
    one = counted(file.training, at)
    if not isinstance(one, CombinationCosts):
        raise ValueError(f"yours {at}: {one.reason}")
    has_room = one.numbers.capacity >= 0  # beside weights and their state
    found = list(_found(file, one, one.numbers, chunks)) if has_room else []
    fits = bool(found)
    if not fits:
        numbers = replace(one.numbers, capacity=ROOMY * file.training.cluster.memory)
        found = list(_found(file, one, numbers, chunks))
    if not found:
        order = ORDERS[chunks > 1]
        raise ValueError(
            f"yours {at} chunks={chunks}: {order} takes no such pipeline of {at.pipeline} ranks "
            f"and {one.microbatches} microbatches; use chunks = 1"
        )
    candidate, schedule = min(found, key=lambda each: each[1].value)
    return OwnRun(
        combination=at,
        candidate=candidate,
        iteration=schedule.value + one.numbers.step_end,
        on_card=max(schedule.measured.peak_memory) + one.numbers.beside,
        fits=fits,
        parts=time_parts(
            file.training, one, schedule.pipeline, candidate.layers or (), schedule.value
        ),
    )


def _found(
    file: ClusterFile, one: CombinationCosts, numbers: ClusterLayers, chunks: int
) -> Iterator[tuple[Candidate, FoundSchedule]]:
    """Its cuts with the schedule of each that fits."""
    shapes = file.shapes.model_copy(
        update={"chunks": [chunks], "placements": ["loop"], "backward": ["whole"], "slices": [1]}
    )
    space = space_of_layers(
        numbers, shapes, ranks=one.combination.pipeline, microbatches=one.microbatches
    )
    order = ORDERS[chunks > 1 and one.combination.pipeline > 1]
    for candidate in space.candidates():
        try:
            asked = FirstSearch(shaped=shaped(space, candidate), orders=(order,))
        except NotLegalError:
            continue
        if (found := first_look(asked).found) is not None:
            yield candidate, found


def _told(words: Sequence[str]) -> dict[str, str]:
    """The values by key. Raises ``ValueError`` for a word that is none."""
    found = {}
    for word in words:
        key, sign, value = word.partition("=")
        is_known = key in KEYS and bool(sign)
        if not is_known or not (value in SCOPES if key == "scope" else value.isdecimal()):
            raise ValueError(
                f"--yours takes key=value with {', '.join(KEYS)}, got {word[:40]!r}; use such as "
                "tensor=4 pipeline=4 chunks=5"
            )
        found[key] = value
    return found


def _combination(file: ClusterFile, told: Mapping[str, str]) -> Combination:
    """The deployment of the values. Raises ``ValueError`` where they are not the cards."""
    sizes = {key: int(told.get(key, 1)) for key in SIZES if key != "chunks"}
    cards = file.training.cluster.cards
    each = sizes["tensor"] * sizes["pipeline"] * sizes["context"]
    data = int(told.get("data", cards // each if each else 0))
    if each * data != cards or not data:
        raise ValueError(
            f"--yours must use the {cards} cards, got tensor x context x pipeline x data = "
            f"{each} x {data}; use sizes that divide them"
        )
    return Combination(**sizes, data=data, scope=told.get("scope", "none"))


def changed(own: OwnRun, combination: Combination, candidate: Candidate) -> list[str]:
    """What to change for the plan: ``key old -> new``."""
    here = {**own.combination.to_json(), "chunks": own.candidate.chunks}
    there = {**combination.to_json(), "chunks": candidate.chunks}
    found = [f"{key} {here[key]} -> {there[key]}" for key in here if here[key] != there[key]]
    if own.candidate.layers != candidate.layers:
        cut = "+".join(map(str, candidate.layers or ()))
        found.append(f"layers {cut}" if len(cut) < 40 else "the cut of the layers")
    return found
