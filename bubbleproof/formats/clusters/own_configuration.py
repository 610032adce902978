"""A configuration of one's own: a deployment, chunks per rank, and what a file tells beyond.

As ``key=value`` words its keys are tensor, pipeline, context, expert, chunks, micro_batch, zero,
scope and precision; what is not said is 1, ZeRO 1, no recomputation, and the precision that the
file has first. Its replicas are what the cards leave.
``formats.clusters.own_files`` reads one from what a framework is started with, which may tell an
order, a cut of the layers, and overlaps that are not switched on.

A file that has one (``ClusterFile.with_own``) plans it beside what the file lists: its deployment
is one of the file's, and of that deployment its shape is one of those to try.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from bubbleproof.costs.accounting import PRECISIONS
from bubbleproof.costs.combinations import Combination, TrainingJob
from bubbleproof.theory.pipelines.shapes.layer_cuts import Cut
from bubbleproof.theory.pipelines.shapes.plan_space import WHOLE

if TYPE_CHECKING:
    from bubbleproof.formats.layouts.cluster_layout import ClusterPlanLayout

SIZES = ("tensor", "pipeline", "context", "expert", "chunks", "micro_batch", "zero")
SCOPES = ("none", "attention", "full")
KEYS = (*SIZES, "scope", "data", "precision")
NAMES = {"scope": SCOPES, "precision": tuple(PRECISIONS)}
LOOP = "loop"


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnConfiguration:
    """A deployment whose ranks have so many chunks each, in a loop, with whole backwards.

    ``order`` names a family, ``group`` the microbatches of its groups, ``layers`` are those of each
    stage; without them the order is 1F1B or interleaved 1F1B, in the better of the even and the
    balanced cut. ``waits`` are the constants (``costs.times.constants``) of collectives that run
    beside no computation, ``products`` as in ``costs.cluster``; else they are the file's.
    ``remarks`` say what is estimated otherwise than it runs.
    """

    combination: Combination
    chunks: int
    order: str = ""
    group: int = 0
    layers: Cut | None = None
    waits: tuple[str, ...] = ()
    products: str = ""
    remarks: tuple[str, ...] = ()

    def __str__(self) -> str:
        told = {**self.combination.to_json(), "chunks": self.chunks}
        return " ".join(f"{key}={value}" for key, value in told.items())

    @property
    def plain(self) -> OwnConfiguration:
        """Its deployment and chunks alone."""
        return OwnConfiguration(combination=self.combination, chunks=self.chunks)

    @property
    def shape(self) -> dict[str, list[object]]:
        """Its one shape, as the lists of a plan."""
        chunks: list[object] = [self.chunks]
        return {"chunks": chunks, "placements": [LOOP], "backward": [WHOLE], "slices": [1]}

    def among(self, shapes: ClusterPlanLayout) -> ClusterPlanLayout:
        """The shapes with its own, where they lack it."""
        update = {}
        for key, (value,) in self.shape.items():
            listed = getattr(shapes, key) or [WHOLE]  # no list of backwards: whole ones
            update[key] = listed if value in listed else [*listed, value]
        return shapes.model_copy(update=update)

    def trained_by(self, job: TrainingJob) -> TrainingJob:
        """The job as this runs it: with collectives that wait, and its numbers."""
        cluster = job.cluster
        if self.waits:
            alone = dict.fromkeys(self.waits, 1.0)
            cluster = cluster.with_changes(constants={**cluster.constants, **alone})
        if "exposed_gradient" in self.waits:
            cluster = cluster.with_changes(hidden=0.0)
        if self.products:
            cluster = cluster.with_changes(runs=cluster.runs.computing_in(self.products))
        return replace(job, cluster=cluster)


def own_configuration(text: str, cards: int) -> OwnConfiguration:
    """That of these words. Raises ``ValueError`` for a word that is none, and for other cards."""
    told = _told(text)
    sizes = {key: int(value) for key, value in told.items() if key not in NAMES}
    for key in ("chunks", "expert", "micro_batch"):
        if sizes.get(key, 1) == 0:
            raise ValueError(f"--yours takes {key} of 1 or more, got {told[key]}; leave it out")
    names = {"scope": "none", "precision": ""} | {key: told[key] for key in NAMES if key in told}
    return sized_configuration(sizes, cards, **names)


def sized_configuration(sizes: Mapping[str, int], cards: int, **names: Any) -> OwnConfiguration:
    """That of these sizes, a scope and a precision; the replicas are what they leave of the cards.

    Raises ``ValueError`` for sizes that are not those of the cards.
    """
    told: dict[str, Any] = {key: sizes.get(key, 1) for key in SIZES if key != "chunks"}
    each = told["tensor"] * told["pipeline"] * told["context"]
    data = sizes.get("data", cards // each if each else 0)
    if each * data != cards or not data:
        raise ValueError(
            f"--yours must use the {cards} cards, got tensor x context x pipeline x data = "
            f"{each} x {data}; use sizes that divide them"
        )
    at = Combination(**told, data=data, **names)
    return OwnConfiguration(combination=at, chunks=sizes.get("chunks", 1))


def _told(text: str) -> Mapping[str, str]:
    """The values by key. Raises ``ValueError`` for a word that is none."""
    found: dict[str, str] = {}
    for word in text.split():
        key, sign, value = word.partition("=")
        is_known = key in KEYS and bool(sign)
        is_number = value.isascii() and value.isdecimal() and len(value) < 10
        if not is_known or not (value in NAMES[key] if key in NAMES else is_number):
            keys = ", ".join((*KEYS, "layout"))
            raise ValueError(
                f"--yours takes key=value with {keys}, or a file, got {word[:40]!r}; use such as "
                "tensor=4 pipeline=4 chunks=5"
            )
        found[key] = value
    return found
