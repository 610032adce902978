"""BPipe's pair-adjacent placement where there is one, and the best there is where there is none.

Symbols are those of ``node_places``: p stages, t, d, g, a node of c =
floor(g/t) places; m microbatches. Stage s < (p-1)/2 moves activations to stage p-1-s, its pair,
where it would hold more than mu_opt = ceil((p+2)/2) of them: min(p-s, m) > mu_opt (BPipe section
3.3). With m >= p that are the stages s <= floor((p-4)/2); the innermost pair of an even p moves
nothing.

*How many pairs can share a node.* A pair takes two places of one node, so n nodes take at most
n floor(c/2) pairs, and no placement of P pairs has fewer than max(0, P - n floor(c/2)) of them on
two nodes. That many suffice: put as many pairs on nodes as go, then fill every place left with
single groups; all groups find one, since n c >= p d. So a pair-adjacent placement exists if and
only if P <= n floor(c/2), and ``pair_placement`` always reaches the least number. Of an even c with
nodes as few as will do that is so for all t <= g/2: P <= d (p-2)/2 <= n c/2.

BPipe's own order, replica after replica, misses it where a replica does not begin at an even place
of its node (an odd p, or an odd c). Where pairs must cross, those that move least cross: the inner
ones. Among placements with equally many crossing pairs the one with fewer crossings between
consecutive stages is taken; that it has the fewest of all is not claimed.

Source: Kim et al., "BPipe" (ICML 2023) sections 3.3 and 3.5.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from bubbleproof.papers.bpipe.node_places import (
    DeviceMesh,
    Group,
    in_order,
    pair_adjacent,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairPlacement:
    """The node of each (replica, stage), and which pairs stand on two nodes.

    ``crossing`` names each by (replica, s) with s < p-1-s; ``how`` the rule that made it.
    """

    mesh: DeviceMesh
    node: Mapping[Group, int]
    pairs: tuple[int, ...]
    how: str

    @property
    def crossing(self) -> tuple[Group, ...]:
        last = self.mesh.stages - 1
        return tuple(
            (replica, s)
            for replica in range(self.mesh.replicas)
            for s in self.pairs
            if self.node[replica, s] != self.node[replica, last - s]
        )

    @property
    def consecutive(self) -> int:
        """How many pairs of consecutive stages stand on two nodes, all replicas counted."""
        node, stages = self.node, range(self.mesh.stages - 1)
        return sum(
            node[replica, s] != node[replica, s + 1]
            for replica in range(self.mesh.replicas)
            for s in stages
        )

    @property
    def statement(self) -> str:
        """Whether every pair shares a node, or why not."""
        mesh, crossing = self.mesh, len(self.crossing)
        number = len(self.pairs) * mesh.replicas
        if not crossing:
            return f"all {number} pairs share a node"
        return (
            f"{crossing} of {number} pairs stand on two nodes: {mesh.num_nodes} nodes of "
            f"{mesh.places} places of {mesh.tensor} GPUs take {least_whole(mesh)} pairs"
        )


def moving_pairs(stages: int, microbatches: int) -> tuple[int, ...]:
    """The stages that move activations to their pairs.

    >>> moving_pairs(8, 32), moving_pairs(4, 8), moving_pairs(3, 8)
    ((0, 1, 2), (0,), ())
    """
    most = -(-(stages + 2) // 2)
    return tuple(s for s in range(stages // 2) if min(stages - s, microbatches) > most)


def least_whole(mesh: DeviceMesh) -> int:
    """n floor(c/2): the most pairs that nodes take whole."""
    return mesh.num_nodes * (mesh.places // 2)


def least_crossing(mesh: DeviceMesh, pairs: int) -> int:
    """max(0, P - n floor(c/2)), for ``pairs`` of each replica."""
    return max(0, pairs * mesh.replicas - least_whole(mesh))


def pair_placement(mesh: DeviceMesh, microbatches: int) -> PairPlacement:
    """A placement with the fewest pairs on two nodes; BPipe's own order where it is one."""
    pairs = moving_pairs(mesh.stages, microbatches)
    printed = in_order(mesh, pair_adjacent(mesh.stages))
    found = [PairPlacement(mesh=mesh, node=printed, pairs=pairs, how="pair-adjacent")]
    for how, is_eager in (("replica by replica", False), ("pairs first", True)):
        node = _filled(mesh, pairs, is_eager=is_eager)
        found.append(PairPlacement(mesh=mesh, node=node, pairs=pairs, how=how))
    return min(found, key=lambda one: (len(one.crossing), one.consecutive))


def _filled(mesh: DeviceMesh, pairs: tuple[int, ...], *, is_eager: bool) -> dict[Group, int]:
    """Node after node: pairs in the places by two, single groups in what is left.

    An eager filling takes pairs as long as there are any; the other one takes each replica's groups
    in BPipe's order, and single groups out of turn only where one place is left.
    """
    whole, singles = _queues(mesh, pairs)
    node: dict[Group, int] = {}
    for number in range(mesh.num_nodes):
        left = mesh.places
        while left and (whole or singles):
            is_turn = is_eager or not singles or (whole and whole[0] <= singles[0])
            if left > 1 and whole and is_turn:
                replica, s = whole.popleft()
                node[replica, s] = node[replica, mesh.stages - 1 - s] = number
                left -= 2
                continue
            if not singles:  # one place is left, and pairs alone
                if len(whole) <= (mesh.num_nodes - number - 1) * (mesh.places // 2):
                    break
                replica, s = whole.pop()
                singles.extend([(replica, s), (replica, mesh.stages - 1 - s)])
            node[singles.popleft()] = number
            left -= 1
    return node


def _queues(mesh: DeviceMesh, pairs: tuple[int, ...]) -> tuple[deque[Group], deque[Group]]:
    """The pairs to place whole, outer ones last to be cut, and the groups that stand alone."""
    last, replicas = mesh.stages - 1, range(mesh.replicas)
    every = sorted(((r, s) for r in replicas for s in pairs), key=lambda one: (-one[1], one[0]))
    whole = deque(sorted(every[least_crossing(mesh, len(pairs)) :]))
    paired = {group for r, s in whole for group in ((r, s), (r, last - s))}
    everything = ((r, s) for r in replicas for s in range(mesh.stages))
    return whole, deque(group for group in everything if group not in paired)
