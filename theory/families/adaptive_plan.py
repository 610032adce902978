"""Adaptive recomputation and partitioning: which rank holds which layers, and makes which again.

Symbols: p ranks, m microbatches, n_s = min(p-s, m) microbatches in flight on rank s in 1F1B; f_s
and b_s the ticks of a forward and a backward of rank s with its recomputations, c_s = f_s + b_s.

*Recomputation.* Given its layers, a rank recomputes those that cost the least ticks in all while
what it holds (``block_orders``), beside its static memory, stays within the capacity: a knapsack,
solved exactly by the states (kept, most needed, ticks) none of which another dominates. f_s does
not depend on it, so that the least b_s is best whatever the other ranks do.

*Partition.* Layers go to ranks in order, one or more to each. With

    W_s = f_s + max(W_{s+1} + b_{s+1}, (n_s - 1) f_s)      until rank s begins its first backward
    E_s = b_s + max(E_{s+1} + f_{s+1}, (n_s - 1) b_s)      from the end of its last forward
    T_s = max(W_s + (m - n_s) c_s + E_s, c_s + T_{s+1})    of ranks s to p-1 alone, m > n_s
    T_s = max(W_s + n_s b_s, n_s f_s + E_s, c_s + T_{s+1})                          m = n_s

T_0 is at most the time of 1F1B in which rank s takes f_s and b_s: rank s waits for its warm-up and
its cool-down, runs the other microbatches in between, and all of it lies within what the ranks
before it do to the first and the last microbatch. T_0 is the time itself where all ranks take as
long. All three grow with those of the ranks behind, so the partition of the least T_0 is found from
the last rank on, keeping the states (W, E, T) of a rank and its first layer that no other
dominates.

The scheme is that of Sun et al., "AdaPipe: Optimizing Pipeline Parallelism with Adaptive
Recomputation and Partitioning" (ASPLOS 2024, doi 10.1145/3620666.3651359): recomputation per stage
"to maximize memory utilization and reduce the computation cost", then a partition "to balance the
computation between different stages". We had its abstract and what T-Pipe (sections 2.4, 6.3) says
of it, not its text: the recurrences above are ours, and so is that a layer is kept or recomputed as
a whole. Parts of layers may be given as layers.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """Ticks of a layer's forward, backward and recomputation; memory units of one microbatch.

    ``static`` is what the rank that holds it keeps for good.
    """

    forward: int
    backward: int
    again: int
    activation: int = 1
    static: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptivePlan:
    """How many layers each rank holds, which layers are recomputed, and T_0 in ticks."""

    sizes: tuple[int, ...]
    recomputed: frozenset[int]
    ticks: int

    @property
    def placement(self) -> tuple[int, ...]:
        """The rank of each layer."""
        return tuple(rank for rank, size in enumerate(self.sizes) for _ in range(size))


@dataclass(frozen=True, slots=True)
class _Block:
    """A rank's layers: f_s, b_s and what of them is recomputed."""

    forward: int
    backward: int
    recomputed: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Suffix:
    """A partition from a rank on: its first block, W, E, T, and the suffix behind it."""

    block: _Block
    size: int
    warm_up: int
    cool_down: int
    ticks: int
    behind: _Suffix | None

    @property
    def costs(self) -> tuple[int, ...]:
        return (
            self.ticks,
            self.warm_up + self.block.backward,
            self.cool_down + self.block.forward,
        )


def adaptive_plan(
    layers: Sequence[Layer], *, ranks: int, microbatches: int, capacity: int | None
) -> AdaptivePlan | None:
    """The plan of the least T_0 within ``capacity`` units on every rank (None: no limit).

    None where no partition fits. Preconditions: as many layers as ranks, or more.

    Parameters
    ----------
    ranks
        p; as many layers or more.
    microbatches
        m.
    capacity
        Units of memory of every rank; None for no limit.
    """
    search = _Search(tuple(layers), ranks, microbatches, capacity)
    even = [len(layers) * rank // ranks for rank in range(ranks + 1)]
    limit = search.best({rank: even[rank : rank + 2] for rank in range(ranks)}, None)
    every = {rank: range(rank, len(layers) - (ranks - 1 - rank) + 1) for rank in range(ranks)}
    best = search.best(every, None if limit is None else limit.ticks)
    return None if best is None else _plan_of(best)


@dataclass(frozen=True, slots=True)
class _Search:
    layers: tuple[Layer, ...]
    ranks: int
    microbatches: int
    capacity: int | None

    def best(self, marks: Mapping[int, Sequence[int]], limit: int | None) -> _Suffix | None:
        """The suffix of all ranks that takes least, ``limit`` ticks at most.

        A rank begins and ends at its ``marks``, the first at the first layer, the last at the last.
        """
        behind: dict[int, list[_Suffix]] = {}
        for rank in reversed(range(self.ranks)):
            found = {
                first: _undominated(list(self._longer(rank, first, marks[rank], behind, limit)))
                for first in (marks[rank] if rank else (0,))
            }
            behind = {first: states for first, states in found.items() if states}
        return min(behind.get(0, ()), key=lambda suffix: suffix.ticks, default=None)

    def _longer(
        self,
        rank: int,
        first: int,
        ends: Sequence[int],
        behind: Mapping[int, Sequence[_Suffix]],
        limit: int | None,
    ) -> Iterator[_Suffix]:
        """The suffixes of a rank that begins with a layer; none that is beyond the limit."""
        flying = min(self.ranks - rank, self.microbatches)
        before = sum(layer.forward + layer.backward for layer in self.layers[:first])
        own, is_last = 0, rank == self.ranks - 1
        for end in range(first + 1, len(self.layers) + 1):
            own += self.layers[end - 1].forward + self.layers[end - 1].backward
            if limit is not None and self.microbatches * own > limit:
                return
            if (end != len(self.layers)) if is_last else (end not in ends or end not in behind):
                continue
            block = _least_recomputed(self.layers[first:end], flying, self.capacity)
            if block is None:
                continue
            for suffix in (None,) if is_last else behind[end]:
                longer = _preceded(suffix, block, end - first, flying, self.microbatches)
                if limit is None or before + longer.ticks <= limit:
                    yield longer


def _plan_of(best: _Suffix) -> AdaptivePlan:
    sizes: list[int] = []
    recomputed: set[int] = set()
    rest: _Suffix | None = best
    while rest is not None:
        recomputed |= {sum(sizes) + layer for layer in rest.block.recomputed}
        sizes.append(rest.size)
        rest = rest.behind
    return AdaptivePlan(sizes=tuple(sizes), recomputed=frozenset(recomputed), ticks=best.ticks)


def _preceded(
    behind: _Suffix | None, block: _Block, size: int, flying: int, microbatches: int
) -> _Suffix:
    """The suffix with a block before it."""
    forward, backward = block.forward, block.backward
    later, warm, cool = (0, 0, 0) if behind is None else behind.costs
    warm = forward + max(warm, (flying - 1) * forward)
    cool = backward + max(cool, (flying - 1) * backward)
    each = forward + backward
    own = warm + (microbatches - flying) * each + cool
    if microbatches == flying:
        own = max(warm + flying * backward, flying * forward + cool)
    return _Suffix(
        block=block,
        size=size,
        warm_up=warm,
        cool_down=cool,
        ticks=max(own, each + later),
        behind=behind,
    )


@lru_cache(maxsize=65536)
def _least_recomputed(
    layers: tuple[Layer, ...], flying: int, capacity: int | None
) -> _Block | None:
    """A block that recomputes least of its layers' ticks within the capacity; None: it never fits.

    A state (kept, needed, ticks) of the first layers: their activations that stay, the most that
    stays before a recomputed one with that one itself, and the ticks of recomputations.
    """
    forward = sum(layer.forward for layer in layers)
    backward = sum(layer.backward for layer in layers)
    if capacity is None:
        return _Block(forward, backward, ())
    room = capacity - sum(layer.static for layer in layers)
    states: dict[tuple[int, ...], tuple[int, ...]] = {(0, 0, 0): ()}
    for number, layer in enumerate(layers):
        longer: dict[tuple[int, ...], tuple[int, ...]] = {}
        for (kept, needed, ticks), chosen in states.items():
            held = layer.activation + kept
            longer.setdefault((held, needed, ticks), chosen)
            again = (kept, max(needed, held), ticks + layer.again)
            longer.setdefault(again, (*chosen, number))
        fitting = [one for one in longer if _held(one, flying) <= room]
        states = {costs: longer[costs] for costs in _minimal(fitting)}
    if not states:
        return None
    best = min(states, key=lambda costs: costs[2])
    return _Block(forward, backward + best[2], states[best])


def _held(costs: tuple[int, ...], flying: int) -> int:
    """The most that a rank holds beside its static memory."""
    kept, needed, _ = costs
    return (flying - 1) * kept + max(kept, needed)


def _undominated(states: list[_Suffix]) -> list[_Suffix]:
    by_costs: dict[tuple[int, ...], _Suffix] = {}
    for state in states:
        by_costs.setdefault(state.costs, state)
    return [by_costs[costs] for costs in _minimal(by_costs)]


def _minimal(every: Iterable[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """The triples that no other is nowhere above; each is given once.

    In lexicographic order one is dominated if it is by an earlier one in its last two numbers.
    Of those the least thirds by rising seconds are kept: a staircase that falls.
    """
    found: list[tuple[int, ...]] = []
    seconds: list[int] = []
    thirds: list[int] = []
    for one in sorted(every):
        _, second, third = one
        at = bisect_right(seconds, second)
        if at and thirds[at - 1] <= third:
            continue
        found.append(one)
        at -= at > 0 and seconds[at - 1] == second
        end = at
        while end < len(thirds) and thirds[end] >= third:
            end += 1
        seconds[at:end], thirds[at:end] = [second], [third]
    return found
