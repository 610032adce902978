"""On which node each stage of each replica stands.

Symbols: p stages, d replicas (data parallelism), t GPUs that share the work of one stage (tensor
parallelism), g GPUs of a node. A *group* is the t GPUs of one stage of one replica; it never leaves
its node, so a node takes c = floor(g/t) groups. Places are numbered through the nodes: place i is
on node floor(i/c).

An *order* has the stages of one replica by their places: the pair-adjacent one of BPipe 0, p-1, 1,
p-2, ..., in which stage s and stage p-1-s are neighbours.

Source: Kim et al., "BPipe" (ICML 2023) section 3.5, Figures 5 and 6.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

Group = tuple[int, int]  # (replica, stage)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceMesh:
    """p stages of t GPUs each, d times, on nodes of g GPUs; ``nodes`` None: as few as will do.

    Raises ``ValueError`` where a group does not fit on a node, or the nodes do not take all groups.
    """

    stages: int
    tensor: int = 1
    replicas: int = 1
    node: int = 8
    nodes: int | None = None

    def __post_init__(self) -> None:
        for name in ("stages", "tensor", "replicas", "node"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be 1 or more, got {getattr(self, name)}")
        if self.tensor > self.node:
            raise ValueError(
                f"tensor must be at most the GPUs of a node ({self.node}), got {self.tensor}; use "
                f"{self.node}"
            )
        if self.num_nodes * self.places < self.stages * self.replicas:
            raise ValueError(
                f"{self.stages * self.replicas} groups of {self.tensor} GPUs need {self.fewest} "
                f"nodes of {self.node}, got {self.nodes}"
            )

    @property
    def places(self) -> int:
        """c, the groups that a node takes."""
        return self.node // self.tensor

    @property
    def fewest(self) -> int:
        """The fewest nodes that take all groups."""
        return -(-self.stages * self.replicas // self.places)

    @property
    def num_nodes(self) -> int:
        return self.fewest if self.nodes is None else self.nodes


def pair_adjacent(stages: int) -> list[int]:
    """Each stage beside the one that it exchanges activations with: 0, p-1, 1, p-2, ...

    Parameters
    ----------
    stages
        p, how many there are.

    Examples
    --------
    >>> pair_adjacent(5)
    [0, 4, 1, 3, 2]
    """
    return [s // 2 if s % 2 == 0 else stages - 1 - s // 2 for s in range(stages)]


def in_order(mesh: DeviceMesh, order: Iterable[int]) -> dict[Group, int]:
    """The node of each group where the replicas follow one another, each in the order given.

    Parameters
    ----------
    order
        The stages in the order in which a replica's devices hold them.
    """
    groups = ((replica, stage) for replica in range(mesh.replicas) for stage in order)
    return {group: place // mesh.places for place, group in enumerate(list(groups))}
