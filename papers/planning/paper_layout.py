"""The tables ``[paper.NAME]`` of a problem file: numbers that only a paper's planner asks for.

What each is for is told in the planners' modules. Without ``plan --paper`` they are read and not
used.
"""

from __future__ import annotations

from pydantic import Field

from bubbleproof.formats.layouts.plan_layout import Few
from bubbleproof.formats.validation import Count, Layout
from bubbleproof.formats.values import LongTime, NaturalSize, Time


class OperationLayout(Layout):
    """An operation of a rank's layers that may be recomputed."""

    name: str
    activation: NaturalSize
    """What one of them stores for one microbatch."""
    ticks: Time
    """Its forward, and its recomputation."""
    count: Count = 1
    """How many of them a rank has; its chunks share them."""


class PipeMeshLayout(Layout):
    """What PipeMesh's planner needs to know of a rank."""

    parameters: Count
    """Parameters of a rank; memory.static has their ZeRO-1 state, (12/replicas + 4) each."""
    replicas: Count
    """Data parallel size."""
    communication: Time
    """Ticks to gather or to reduce all parameters of a rank."""
    own_shard: bool = True
    """Whether gathered parameters take room for a device's own shard again, as section IV-A has it;
    Table IV's M_p are those without."""
    operations: list[OperationLayout] = Field(default_factory=list)


class TPipeLayout(Layout):
    """What T-Offload needs to know of a rank."""

    state: NaturalSize | None = None
    """Optimizer state of a rank, part of its static memory; absent: nothing can be off-loaded."""
    offload: Time = 0
    """Ticks to bring a rank's gradients to the host."""
    step: Time = 0
    """Ticks of the host's update of a rank's weights."""
    upload: Time = 0
    """Ticks to bring a rank's weights back."""


class BPipeLayout(Layout):
    """Where BPipe's stages stand."""

    tensor: Few = 1
    """GPUs that share the work of a stage; they stay on one node."""
    replicas: Few = 1
    """Pipelines that share the nodes."""
    node: Few = 8
    """GPUs of a node."""
    transfer_between_nodes: LongTime | None = None
    """Ticks of a transfer of a pair on two nodes; absent: such a pair moves nothing."""


class MEPipeLayout(Layout):
    """What MEPipe's memory model needs beside."""

    temporary: NaturalSize = 0
    """Temporary memory of a rank, which section 4.5 counts as static."""


class PaperLayout(Layout):
    """A table for each paper's planner that needs one."""

    bpipe: BPipeLayout | None = None
    mepipe: MEPipeLayout | None = None
    pipemesh: PipeMeshLayout | None = None
    tpipe: TPipeLayout | None = None
