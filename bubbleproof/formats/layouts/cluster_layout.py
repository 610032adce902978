"""The tables of a problem file that starts from a model: ``[model] [cluster] [batch] [plan]``.

::

    name = "llama-13b-64xA100"

    [model]                      # a published one by name, or a shape
    (formats/clusters/model_toml.py) name = "llama-2-13b"

    [cluster]
    card = "a100-80gb"           # one that is known (costs/cards), or all of the keys below
    cards = 64
    hardware = "fitted.toml"     # or what bubbleproof calibrate wrote: a card and its constants
    efficiency = 0.5             # the share of the dense rate that large products reach
    reserve = "2 GiB"            # of the memory of a card, for driver and libraries
    framework = "megatron-core"  # what runs on it: its times, and its orders alone are planned
    products = "fp8"             # what a layer's linears are computed in; default bf16
    hidden = 0.5                 # of the replicas' collectives, runs beside computation; default 0
    per_node = 8                 # from here on, in place of the card's own:
    flops = "312 TFLOP/s"        # of one card: dense products of 16-bit numbers
    memory = "80 GiB"
    memory_bandwidth = "2 TB/s"
    node_link = "300 GB/s"       # of one card, in one direction: within a node
    network = "100 GB/s"         # of a node, in one direction: between nodes

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
    context = [1, 2]             # cards that share the sequence of a sample; default 1
    expert = [1, 8]              # replicas over which experts are spread; default 1
    layers = "balanced"          # stages of as many layers ("even"), or the heaviest lightest;
                                 # default: both
    chunks = [1, 2]              # and the shapes of a pipeline, as in any plan
    framework = "megatron-core"  # what it runs, of all that is not listed here; "any": all of it

Without ``[plan]`` all is open that the framework of ``[cluster]`` runs.

The schema is ``docs/reference/schemas/cluster-1.json``.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from bubbleproof.formats.clusters.model_toml import ModelLayout
from bubbleproof.formats.layouts.plan_layout import Few, PlanLayout
from bubbleproof.formats.layouts.problem_file_layout import SolveLayout
from bubbleproof.formats.validation import Count, Layout
from bubbleproof.formats.values import NaturalSize, Rate, Speed

Cards = Annotated[int, Field(ge=1, le=1 << 17)]
Listed = Annotated[list[Few], Field(min_length=1)]
Finite = Annotated[float, Field(allow_inf_nan=False)]  # or a whole number


class ClusterLayout(Layout):
    """Cards and what joins them; see ``costs.cluster`` and ``costs.times.cards``."""

    cards: Cards
    card: str | None = None
    """A known one, by name; without it all of the numbers below are told."""
    hardware: str | None = None
    """A file that ``bubbleproof calibrate`` wrote: a card and its constants."""
    framework: str | None = None
    """The software, by name."""
    efficiency: Finite | None = None
    """The share of the dense rate that large products reach, above 0 and at most 1."""
    hidden: Finite | None = None
    """The share of the replicas' collectives that runs beside computation; absent: none does."""
    products: Literal["bf16", "fp8"] | None = None
    """What the products of a layer's linears are computed in; absent: bf16."""
    reserve: NaturalSize | None = None
    """Of the memory of a card, for driver and libraries."""
    per_node: Cards | None = None
    flops: Speed | None = None
    """Of one card: dense products of 16-bit numbers, per second or such as "312 TFLOP/s"."""
    memory: NaturalSize | None = None
    memory_bandwidth: Rate | None = None
    node_link: Rate | None = None
    """Of one card, in one direction, within a node."""
    network: Rate | None = None
    """Of a node, in one direction, to other nodes."""


class BatchLayout(Layout):
    """One training step."""

    samples: Count
    """Over all replicas."""
    sequence: Count | None = None
    """Tokens of a sample; absent: the model's longest."""


class ClusterPlanLayout(PlanLayout):
    """The deployments to try, and the shapes of each pipeline."""

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
    context: Listed = Field(default_factory=lambda: [1])
    """Cards that share the sequence of a sample, with all of the model on each."""
    expert: Listed = Field(default_factory=lambda: [1])
    """Replicas over which the experts of a layer are spread."""
    layers: Literal["even", "balanced"] | None = None
    """How layers are cut into stages; absent: both are tried."""
    accounting: str | None = None
    """How kept bytes are counted, by name (``costs.accounting``); absent: the framework's."""
    precision: str | Annotated[list[str], Field(min_length=1)] | None = None
    """Bytes of a parameter, by name, or several to try; absent: the framework's."""
    framework: str | None = None
    """What is planned for, by name, or "any": what is not listed is open as far as it runs it."""


class ClusterFileLayout(Layout):
    """A problem file that starts from a model."""

    name: str = ""
    """Default: the file's name."""
    description: str = ""
    model: ModelLayout
    cluster: ClusterLayout
    batch: BatchLayout
    plan: ClusterPlanLayout = ClusterPlanLayout()
    solve: SolveLayout = SolveLayout()
