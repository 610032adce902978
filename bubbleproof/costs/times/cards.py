"""Cards: what the data sheet of a kind of accelerator says (``card_files``).

Rates are in GB/s (10^9 bytes) and TFLOP/s (10^12, dense), memory in GiB. ``link_gbs`` is what a
card sends to others of its node, ``network_gbs`` what a node sends to other nodes, each way.
``reached`` is no data sheet's: the part of the 16-bit rate that large products keep up, which falls
from card to card as power limits them; where a fit starts, and what holds where there is none.
``switch_reduces``: switches between the cards of a node add up what passes them (NVLink SHARP, from
the third generation of NVSwitch on), so that a small group moves as much as a large one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

HALF = ("bf16", "fp16")


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A kind of accelerator; ``tflops`` by type of number."""

    name: str
    title: str
    memory_gib: float
    memory_gbs: float
    link_gbs: float
    network_gbs: float
    cards_per_node: int
    reached: float
    tflops: Mapping[str, float]
    switch_reduces: bool = False

    def __post_init__(self) -> None:
        numbers = [name for name, kind in self.__annotations__.items() if kind in ("int", "float")]
        named = {name: getattr(self, name) for name in numbers}
        named |= {f"tflops.{kind}": rate for kind, rate in self.tflops.items()}
        for name, value in named.items():
            if not value > 0:
                raise ValueError(f"card {self.name}: {name} must be above 0, got {value}")
        if not any(kind in self.tflops for kind in HALF):
            raise ValueError(f"card {self.name}: tflops needs bf16 or fp16")

    @property
    def half_tflops(self) -> float:
        """The dense rate of 16-bit products."""
        return max(self.tflops.get(kind, 0.0) for kind in HALF)

    @property
    def memory_bytes(self) -> int:
        """All of its memory."""
        return int(self.memory_gib * 2**30)
