"""A cluster: so many cards of one kind, what they reach, and the software that runs on them.

``constants`` are those of the model of times (``costs.times.constants``): fitted to measured rows,
or where the fit starts from the card's data sheet. Cards are numbered along the tensor group first,
then along the replicas, then along the stages (Megatron-LM's order); a node has
``card.cards_per_node`` of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from bubbleproof.costs.deployment import Deployment
from bubbleproof.costs.times.cards import Card
from bubbleproof.costs.times.constants import require_constants, starts
from bubbleproof.costs.times.software import Software, software


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """``reserve`` are bytes of each card's memory that are left to the driver and to libraries.

    ``hidden`` is the share of the replicas' collectives that runs beside computation, where there
    is as much of that (``cluster_times``); 0: the computation waits for each. None: what the
    constants ``exposed_gradient`` and ``exposed_shard`` leave, where the software overlaps them,
    else 0. ``hides_experts`` as in ``times.software``.

    ``products`` are those of the software's linears: "bf16", or "fp8".
    Raises ``ValueError`` for numbers that are none.
    """

    card: Card
    cards: int
    constants: Mapping[str, float] = field(default_factory=dict)
    reserve: int = 2 << 30
    framework: str = "megatron-core"
    hidden: float | None = None
    products: str = "bf16"
    hides_experts: bool = False

    def __post_init__(self) -> None:
        if self.cards < 1:
            raise ValueError(f"cluster cards must be 1 or more, got {self.cards}")
        if not 0 <= self.reserve < self.memory:
            raise ValueError(
                f"cluster memory must be more than the reserve for driver and libraries, "
                f"{self.reserve} bytes, got {self.memory}; use more memory, or a reserve such as "
                f"{max(self.memory // 16, 0)}"
            )
        if self.hidden is not None and not 0 <= self.hidden <= 1:
            raise ValueError(
                f"cluster hidden must be 0 to 1, the share of collectives beside computation, got "
                f"{self.hidden}; use such as 0.5"
            )
        software(self.framework).computing_in(self.products)
        if not self.constants:
            object.__setattr__(self, "constants", starts(self.card, self.runs))
        require_constants(dict(self.constants))

    @property
    def memory(self) -> int:
        """Bytes of one card."""
        return self.card.memory_bytes

    @property
    def runs(self) -> Software:
        """The software."""
        runs = software(self.framework).computing_in(self.products)
        return replace(runs, hides_experts=self.hides_experts)

    @property
    def hides(self) -> float:
        """The share of the replicas' collectives at a step's end that runs beside computation."""
        overlaps = 1 - min(1.0, self.constants["exposed_gradient"]) if self.runs.overlaps else 0.0
        return overlaps if self.hidden is None else self.hidden

    def with_changes(self, **changes: Any) -> Cluster:
        """The same but for some fields."""
        return replace(self, **changes)

    def require(self, at: Deployment) -> None:
        """Raise ``ValueError`` where the parallel sizes are not those of the cards."""
        if at.devices != self.cards:
            raise ValueError(
                f"tensor x data x pipeline must be the {self.cards} cards, got "
                f"{at.tensor} x {at.replicas} x {at.pipeline} = {at.devices}"
            )
