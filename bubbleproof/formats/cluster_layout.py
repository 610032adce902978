"""The tables of a problem file that starts from a model: ``[model] [cluster] [batch] [plan]``.

::

    name = "llama-13b-64xA100"

    [model]                      # a published one by name, or a shape (formats/model_toml.py)
    name = "llama-2-13b"

    [cluster]
    cards = 64
    per_node = 8
    flops = 312e12               # of one card: dense products of 16-bit numbers per second
    efficiency = 0.5             # the share of them that large products reach
    memory = "80 GiB"
    memory_bandwidth = "2 TB/s"
    node_link = "300 GB/s"       # of one card, in one direction: within a node
    network = "25 GB/s"          # and between nodes
    reserve = "2 GiB"            # of the memory, for libraries; latency = 10: microseconds

    [batch]
    samples = 512                # of one training step, over all replicas
    sequence = 4096              # tokens of a sample; default: the model's longest

    [plan]                       # what to try; a size that is not listed: all that divide
    tensor = [1, 2, 4, 8]
    data = [8, 16]
    pipeline = [1, 2, 4, 8]
    micro_batch = [1, 2, 4]
    zero = [0, 1]
    scope = ["none", "full"]
    chunks = [1, 2]              # and the shapes of a pipeline, as in any plan
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from bubbleproof.formats.model_toml import ModelLayout
from bubbleproof.formats.plan_layout import Few, PlanLayout
from bubbleproof.formats.problem_file_layout import SolveLayout
from bubbleproof.formats.sizes_and_rates import NaturalSize, Rate
from bubbleproof.formats.validation import Count, Layout

Cards = Annotated[int, Field(ge=1, le=1 << 17)]
Listed = Annotated[list[Few], Field(min_length=1)]


class ClusterLayout(Layout):
    """Cards and what joins them; see ``costs.cluster``."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    cards: Cards
    per_node: Cards = 8
    flops: float | int
    """Of one card per second: dense products of 16-bit numbers."""
    efficiency: float | int | None = None
    """The share of them that large products reach, above 0 and at most 1."""
    memory: NaturalSize
    memory_bandwidth: Rate
    node_link: Rate
    """Of one card, in one direction, within a node."""
    network: Rate
    """Of one card, in one direction, between nodes."""
    reserve: NaturalSize | None = None
    """Of the memory of a card, for libraries."""
    latency: Count | None = None
    """Microseconds of a message or collective beside its bytes."""


class BatchLayout(Layout):
    """One training step."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    samples: Count
    """Over all replicas."""
    sequence: Count | None = None
    """Tokens of a sample; absent: the model's longest."""


class ClusterPlanLayout(PlanLayout):
    """The deployments to try, and the shapes of each pipeline."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    tensor: Listed | None = None
    """Absent: what divides the cards, within a node."""
    data: Listed | None = None
    pipeline: Listed | None = None
    micro_batch: Listed = Field(default_factory=lambda: [1, 2, 4, 8])
    """Samples of a microbatch."""
    zero: Annotated[list[Annotated[int, Field(ge=0, le=3)]], Field(min_length=1)] = Field(
        default_factory=lambda: [0, 1, 2, 3]
    )
    scope: Annotated[list[Literal["none", "attention", "full"]], Field(min_length=1)] = Field(
        default_factory=lambda: ["none", "attention", "full"]  # type: ignore[arg-type]  # the names
    )
    """What of a layer is recomputed."""
    accounting: str = "fused"
    """How kept bytes are counted, by name (``costs.accounting``)."""
    precision: str = ""
    """Bytes of a parameter, by name; absent: the accounting's."""


class ClusterFileLayout(Layout):
    """A problem file that starts from a model."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    name: str = ""
    """Default: the file's name."""
    description: str = ""
    model: ModelLayout
    cluster: ClusterLayout
    batch: BatchLayout
    plan: ClusterPlanLayout = ClusterPlanLayout()
    solve: SolveLayout = SolveLayout()
