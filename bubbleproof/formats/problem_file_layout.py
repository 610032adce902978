"""The keys of a problem file, their types and ranges; ``problem_toml`` tells their meaning."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from bubbleproof.formats.choices_layout import ChoicesLayout
from bubbleproof.formats.validation import Count, Layout, Natural, Whole

Rows = list[list[Natural]]
Ticks = Natural | list[Natural] | Rows
Size = Whole | str
NaturalSize = Natural | str
RankPair = Annotated[tuple[Natural, Natural], Field(strict=False)]


class DurationsLayout(Layout):
    """Ticks of one action: a number, a list with one per stage, or rows with one per slice."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    forward: Ticks
    backward: Ticks | None = None
    """The full backward; input + weight where those are given."""
    input: Ticks | None = None
    """The backward for the input only."""
    weight: Ticks | None = None
    """The backward for the weights only; the sum of weight_parts where those are given."""
    weight_parts: list[Natural] | Rows | None = None
    """The GEMMs that each backward for the weights is cut into: one row, or one per stage."""


class MemoryLayout(Layout):
    """Memory in memory_unit, or with a unit such as "80 GiB" where memory_unit is "bytes"."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    capacity: NaturalSize | list[NaturalSize] | None = None
    """What each rank has: one size, or a list with one per rank; absent: unlimited."""
    activation: NaturalSize | list[NaturalSize] = 1
    """What an action holds from its forward to its backward."""
    released_at_input: Size | list[Size] = 0
    """The part of it that a split backward gives back after its input part."""
    weight_workspace: NaturalSize | list[NaturalSize] | list[list[NaturalSize]] = 0
    """What each GEMM of W holds while it runs: one size, or rows like durations.weight_parts."""
    static: NaturalSize | list[NaturalSize] = 0
    """Weights and optimizer state of each stage."""
    message: NaturalSize | list[NaturalSize] = 0
    """What a stage sends to the next for one action; its gradient that comes back is as large."""


class LinksLayout(Layout):
    """Messages between any two ranks that [[link]] does not name."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    latency: Natural = 0
    """Ticks from the end of a message to its consumer."""
    bandwidth: NaturalSize | None = None
    """Memory units per tick, or a rate such as "300 GB/s"; absent: messages occupy no link."""
    duplex: Literal["half", "full"] = "half"
    """Whether a link carries one message at a time, or one in each direction."""


class LinkLayout(Layout):
    """Messages between two ranks, in both directions; absent keys are those of [links]."""

    ranks: RankPair
    latency: Natural | None = None
    bandwidth: NaturalSize | None = None
    duplex: Literal["half", "full"] | None = None


class CompareLayout(Layout):
    """Published schedules to show beside the solved one, such as "1f1b" or "interleaved v=2"."""

    families: list[str] = Field(default_factory=list)


class SolveLayout(Layout):
    """What to look for, and for how long."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    objective: Literal["makespan", "span_idle", "makespan-then-peak", "peak"] = "makespan"
    within: Count | None = None
    """Largest value wanted, in ticks; for the objective "peak", the largest makespan."""
    time_limit: Count | None = None
    """Seconds."""


class ProblemFileLayout(Layout):
    """A problem file."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    name: str = ""
    """Default: the file's name."""
    description: str = ""
    unit: str = "tick"
    """What one tick is, such as "us"."""
    memory_unit: str = "activation"
    """What memory is counted in, such as "bytes"."""
    ranks: Count
    microbatches: Count
    chunks: Count = 1
    """Stages per rank."""
    slices: Count = 1
    """Pieces of a sample along the sequence."""
    placement: Literal["loop", "wave", "bidirectional"] | list[Natural] = "loop"
    """The rank of each stage, by name or as a list."""
    split_backward: bool = False
    """Whether every backward runs as an input and a weight part."""
    durations: DurationsLayout
    memory: MemoryLayout = MemoryLayout()
    links: LinksLayout = LinksLayout()
    link: list[LinkLayout] = Field(default_factory=list)
    choices: ChoicesLayout = ChoicesLayout()
    compare: CompareLayout = CompareLayout()
    solve: SolveLayout = SolveLayout()


def problem_schema() -> dict[str, object]:
    """The JSON schema of a problem file."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **ProblemFileLayout.model_json_schema(),
    }
