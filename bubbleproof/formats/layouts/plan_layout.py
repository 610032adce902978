"""The tables ``[plan]`` and ``[layers]`` of a problem file: which shapes a plan goes through."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from bubbleproof.formats.validation import Count, Layout, Natural
from bubbleproof.formats.values import NaturalSize, Time
from bubbleproof.theory.pipelines.programs.spread import Spread

Few = Annotated[int, Field(ge=1, le=4096)]
MOST_LAYERS = 10_000


class JitterLayout(Layout):
    """How durations spread in life, for the makespans beside the nominal one."""

    MAKES = Spread

    action_percent: Natural = 5
    """Standard deviation of an action's duration, in percent; drawn anew for each."""
    rank_percent: Natural = 2
    """Standard deviation of a rank's speed, in percent; drawn once for each step."""
    straggler: Annotated[tuple[Natural, Natural], Field(strict=False)] | None = None
    """A rank, and by how many percent all that it does takes longer."""
    slow_link: Annotated[tuple[Natural, Natural, Natural], Field(strict=False)] | None = None
    """Two ranks, and by how many percent their messages take longer."""
    samples: Count = 1000
    """Training steps to draw."""
    seed: Natural = 1


class PlanLayout(Layout):
    """The shapes to try; the file's numbers are those of one chunk and one slice."""

    chunks: list[Few] = Field(default_factory=lambda: [1])
    """Chunks per rank; each takes its share of the rank's ticks and activation."""
    placements: list[Literal["loop", "wave", "bidirectional"] | list[Natural]] = Field(
        default_factory=lambda: ["loop"]  # type: ignore[arg-type]  # one of the names
    )
    """By name, or the rank of each stage."""
    backward: list[Literal["whole", "split", "mixed"] | list[bool]] | None = None
    """Whole, split, whether each rank splits, or "mixed", every set of ranks; default: as above."""
    slices: list[Few] = Field(default_factory=lambda: [1])
    """Pieces of a sample along the sequence."""
    rank_by: Literal["nominal", "expected", "p95"] = "nominal"
    """The makespan by which the candidates are listed."""
    jitter: JitterLayout = JitterLayout()


class PartLayout(Layout):
    """What one layer, the embedding or the head takes and holds."""

    forward: Time = 0
    """Ticks of one microbatch."""
    backward: Time | None = None
    """The full backward; input + weight where those are given."""
    input: Time | None = None
    weight: Time | None = None
    activation: NaturalSize = 0
    """Held from forward to backward."""
    released_at_input: NaturalSize = 0
    """The part of it that a split backward gives back after its input part."""
    static: NaturalSize = 0
    """Weights and optimizer state."""


class LayersLayout(PartLayout):
    """A model of layers, in place of [durations] and of the memory of each stage."""

    number: Annotated[int, Field(ge=1, le=MOST_LAYERS)] | None = None
    """How many there are, all alike."""
    pattern: Annotated[list[str], Field(min_length=1)] | None = None
    """Layers of ``kinds`` in its place, the first first: "dense*3" or "(window*5 full)*8"."""
    kinds: dict[str, PartLayout] = Field(default_factory=dict)
    """What a layer of each kind takes and holds."""
    spread: Annotated[int, Field(ge=0, le=MOST_LAYERS)] | None = None
    """How many layers a stage may be off the even share; absent: the cuts of ``cuts``."""
    cuts: Annotated[list[Literal["even", "balanced", "any"]], Field(min_length=1)] | None = None
    """As many layers for each stage, the heaviest rank as light as can be, or any; absent: even."""
    embedding: PartLayout = PartLayout()
    head: PartLayout = PartLayout()
