"""A configuration of one's own, as ``key=value`` words: a deployment, and chunks per rank.

Keys are tensor, pipeline, context, expert, chunks, micro_batch, zero and scope; what is not said is
1, ZeRO 1 and no recomputation. Its replicas are what the cards leave. A file that has one
(``ClusterFile.with_own``) plans it beside what the file lists: its deployment is one of the file's,
and of that deployment its shape is one of those to try.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bubbleproof.costs.combinations import Combination
from bubbleproof.theory.pipelines.shapes.plan_space import WHOLE

if TYPE_CHECKING:
    from bubbleproof.formats.layouts.cluster_layout import ClusterPlanLayout

SIZES = ("tensor", "pipeline", "context", "expert", "chunks", "micro_batch", "zero")
SCOPES = ("none", "attention", "full")
KEYS = (*SIZES, "scope", "data")
LOOP = "loop"


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnConfiguration:
    """A deployment whose ranks have so many chunks each, in a loop, with whole backwards."""

    combination: Combination
    chunks: int

    def __str__(self) -> str:
        told = {**self.combination.to_json(), "chunks": self.chunks}
        return " ".join(f"{key}={value}" for key, value in told.items())

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


def own_configuration(text: str, cards: int) -> OwnConfiguration:
    """That of these words. Raises ``ValueError`` for a word that is none, and for other cards."""
    told = _told(text)
    sizes = {key: int(told.get(key, 1)) for key in SIZES if key != "chunks"}
    each = sizes["tensor"] * sizes["pipeline"] * sizes["context"]
    data = int(told.get("data", cards // each if each else 0))
    if each * data != cards or not data:
        raise ValueError(
            f"--yours must use the {cards} cards, got tensor x context x pipeline x data = "
            f"{each} x {data}; use sizes that divide them"
        )
    for key in ("chunks", "expert", "micro_batch"):
        if told.get(key, "1").strip("0") == "":
            raise ValueError(f"--yours takes {key} of 1 or more, got {told[key]}; leave it out")
    at = Combination(**sizes, data=data, scope=told.get("scope", "none"))
    return OwnConfiguration(combination=at, chunks=int(told.get("chunks", 1)))


def _told(text: str) -> Mapping[str, str]:
    """The values by key. Raises ``ValueError`` for a word that is none."""
    found: dict[str, str] = {}
    for word in text.split():
        key, sign, value = word.partition("=")
        is_known = key in KEYS and bool(sign)
        is_number = value.isascii() and value.isdecimal() and len(value) < 10
        if not is_known or not (value in SCOPES if key == "scope" else is_number):
            raise ValueError(
                f"--yours takes key=value with {', '.join(KEYS)}, got {word[:40]!r}; use such as "
                "tensor=4 pipeline=4 chunks=5"
            )
        found[key] = value
    return found
