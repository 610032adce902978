"""BPipe's pairs by exhaustive search: every assignment of groups to nodes."""

from __future__ import annotations

from itertools import product

from bubbleproof.papers.bpipe.node_places import DeviceMesh


def fewest_by_search(mesh: DeviceMesh, pairs: tuple[int, ...]) -> int:
    """The fewest crossing pairs of any assignment of groups to nodes, all of them tried.

    Pair by pair: each node's free places are all that matters, so single groups come last and only
    need to find room.
    """
    singles = mesh.replicas * (mesh.stages - 2 * len(pairs))
    states = {(mesh.places,) * mesh.num_nodes: 0}
    for _ in range(len(pairs) * mesh.replicas):
        following: dict[tuple[int, ...], int] = {}
        for free, cost in states.items():
            for one, other in product(range(mesh.num_nodes), repeat=2):
                left = list(free)
                left[one] -= 1
                left[other] -= 1
                if min(left) >= 0:
                    key = tuple(sorted(left))
                    worst = following.get(key, cost + 9)
                    following[key] = min(worst, cost + (one != other))
        states = following
    return min(cost for free, cost in states.items() if sum(free) >= singles)
