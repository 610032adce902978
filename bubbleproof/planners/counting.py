"""The numbers of deployments, as many as there is time for."""

from __future__ import annotations

import time
from dataclasses import dataclass
from math import inf

from bubbleproof.costs.combinations import AnyCount, Combination, CombinationCosts
from bubbleproof.costs.order_estimates import OrderEstimate, order_estimate
from bubbleproof.formats.clusters.cluster_toml import ClusterFile
from bubbleproof.formats.clusters.deployed_space import all_listed
from bubbleproof.planners.planned import Told

MIXED = 61  # every so many of a list are counted in a turn: no list of sizes is as long
SILENCE = 1.0  # seconds until the best estimate is told again


@dataclass(frozen=True, slots=True, kw_only=True)
class UncountedCombination:
    """A combination whose numbers were not computed: there was no time."""

    combination: Combination


AnyListed = AnyCount | UncountedCombination


def counted_within(
    file: ClusterFile, seconds: float = inf, tell: Told | None = None
) -> list[AnyListed]:
    """Every combination of the file with its numbers, as far as the seconds suffice.

    Where they do not, those with numbers are from all over the lists, and its own is among them.
    ``tell`` is called with the best estimate so far. Raises as ``all_listed`` does.

    Parameters
    ----------
    seconds
        After which no other is counted.
    """
    began = time.perf_counter()
    listed = all_listed(file)
    found: dict[Combination, AnyListed] = {}
    best: tuple[OrderEstimate, Combination] | None = None
    told = began
    if file.own is not None:
        found[file.own.combination] = file.counted(file.own.combination)
    for first in range(MIXED):
        for each in listed[first::MIXED]:
            if each in found:
                continue
            now = time.perf_counter()
            if now - began > seconds and found:
                found[each] = UncountedCombination(combination=each)
                continue
            found[each] = one = file.counted(each)
            if tell is None or not isinstance(one, CombinationCosts):
                continue
            seen = order_estimate(one.numbers, microbatches=one.microbatches), each
            best = seen if best is None else min(best, seen)
            if now - told > SILENCE:
                told = now
                tell(_line(best, len(found), len(listed), now - began))
    return [found[each] for each in listed]


def _line(best: tuple[OrderEstimate, Combination], number: int, listed: int, seconds: float) -> str:
    estimate, combination = best
    name = (
        "none fits yet" if estimate.is_large else f"{combination}: about {estimate.iteration:,} us"
    )
    return f"{seconds:7.2f} s  {number:,} of {listed:,} deployments estimated; best {name}"
