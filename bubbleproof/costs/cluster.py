"""A cluster as numbers: cards, nodes, and what joins them.

FLOPS are of dense matrix products in the type of the weights, bandwidths those of one card in one
direction, in bytes per second; ``efficiency`` is the share of the FLOPS that large products reach.
Replicas lie side by side: of the cards of a node the tensor-parallel ones come first, then those of
the data-parallel ones, then the stages of the pipeline (Megatron-LM's order).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from bubbleproof.costs.deployment import Deployment

POSITIVE = ("cards", "per_node", "flops", "memory", "node_link", "network", "memory_bandwidth")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """``memory`` in bytes of one card, ``reserve`` of it for libraries; ``latency`` in seconds.

    Raises ``ValueError`` for numbers that are none.
    """

    cards: int
    per_node: int
    flops: float
    memory: int
    node_link: float
    network: float
    memory_bandwidth: float
    efficiency: float = 0.5
    reserve: int = 2 << 30
    latency: float = 10e-6
    name: str = ""

    def __post_init__(self) -> None:
        for field in POSITIVE:
            if not getattr(self, field) > 0:
                raise ValueError(f"cluster {field} must be above 0, got {getattr(self, field)}")
        if not 0 < self.efficiency <= 1:
            raise ValueError(
                f"cluster efficiency must be above 0 and at most 1, got {self.efficiency}; "
                "use such as 0.5"
            )
        if not 0 <= self.reserve < self.memory:
            raise ValueError(
                f"cluster reserve must be less than memory {self.memory}, got {self.reserve}"
            )

    def with_changes(self, **changes: Any) -> Cluster:
        """The same but for some fields."""
        return replace(self, **changes)

    def link(self, span: int) -> float:
        """Bytes per second between cards that stand within ``span`` consecutive ones."""
        return self.node_link if span <= self.per_node else self.network

    def require(self, at: Deployment) -> None:
        """Raise ``ValueError`` where the parallel sizes are not those of the cards."""
        if at.devices != self.cards:
            raise ValueError(
                f"tensor x data x pipeline must be the {self.cards} cards, got "
                f"{at.tensor} x {at.replicas} x {at.pipeline} = {at.devices}"
            )
