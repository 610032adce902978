"""The numbers of deployments, as many as there is time for."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from bubbleproof.costs.combinations import AnyCount, Combination, CombinationCosts
from bubbleproof.costs.order_estimates import order_estimate
from bubbleproof.costs.state import stage_weights, state_bytes
from bubbleproof.formats.clusters.cluster_toml import ClusterFile
from bubbleproof.formats.clusters.deployed_space import all_listed
from bubbleproof.planners.planned import Told
from bubbleproof.report.amounts import Scale

COUNTED = 0.3  # of the time, at most, until all deployments have their numbers
LONGER = 3
SIZES = ("tensor", "data", "pipeline", "context")
OTHERS = ("zero", "micro_batch", "scope", "expert", "precision")
MIXED = 61  # every so many of a list are counted in a turn: no list of sizes is as long
SILENCE = 1.0  # seconds until the best estimate is told again


@dataclass(frozen=True, slots=True, kw_only=True)
class UncountedCombination:
    """A combination whose numbers were not computed: there was no time.

    The ``reason`` tells where even so it is known that it does not fit.
    """

    combination: Combination
    reason: str = ""


AnyListed = AnyCount | UncountedCombination


def with_numbers(counts: Sequence[AnyListed]) -> list[AnyCount]:
    """Those that were counted."""
    return [one for one in counts if not isinstance(one, UncountedCombination)]


def counted_within(
    file: ClusterFile, seconds: float = inf, tell: Told | None = None
) -> list[AnyListed]:
    """Every combination of the file with its numbers, as far as the seconds suffice.

    Where they do not, those with numbers are from all over the lists, its own is among them, and
    those that differ little from the best estimates. ``tell`` is called with the best so far.
    Raises as ``all_listed`` does.

    Parameters
    ----------
    seconds
        After which no other is counted; as long as none has room for a microbatch, ``LONGER``
        times as many: then there is little else to do, and all of them show why nothing fits.
    """
    began = told = time.perf_counter()
    listed = all_listed(file)
    found: dict[int, AnyCount] = {}
    own = [] if file.own is None else [listed.index(file.own.combination)]
    waiting = [*reversed([*own, *(n for k in range(MIXED) for n in range(k, len(listed), MIXED))])]
    near = _neighbours(listed)
    best: CombinationCosts | None = None
    has_room = False
    while waiting:
        if (number := waiting.pop()) in found:
            continue
        most = seconds if has_room else LONGER * seconds
        if found and time.perf_counter() - began > most:
            break
        found[number] = one = file.counted(listed[number])
        if not isinstance(one, CombinationCosts):
            continue
        has_room |= not one.reason
        if best is None or _place(one) < _place(best):
            best = one
            waiting += near(number)
        if tell is not None and (now := time.perf_counter()) - told > SILENCE:
            told = now
            tell(_line(best, len(found), len(listed), now - began))
    every, why = enumerate(listed), _state_alone(file) if len(found) < len(listed) else ""
    return [found.get(n) or UncountedCombination(combination=one, reason=why) for n, one in every]


def _state_alone(file: ClusterFile) -> str:
    """Why no deployment fits whose state is shared by all cards, each part on one; else nothing.

    Every weight, its gradient and its optimizer state are on some card: of all of them one card
    holds the mean at least.
    """
    job, kinds = file.training, set(file.lists.precision)
    kinds |= set() if file.own is None else {file.own.combination.precision}
    alone = dict.fromkeys(("tensor", "pipeline", "data", "context", "expert"), 1)
    alone |= {"expert_tensor": 0, "shard": 0, "zero": 0}
    usual, every = job.deployment.with_changes(**alone), {"is_first": True, "is_last": True}
    whole = [usual.with_changes(precision=kind or usual.precision) for kind in kinds]
    weights = stage_weights(job.model, usual, layers=job.model.layers, **every)
    least = min(state_bytes(weights, one) for one in whole)
    needed, memory = -(-least // job.cluster.cards) + job.cluster.reserve, job.cluster.memory
    if needed <= memory:
        return ""
    least_card, card = (Scale.of("bytes", memory).amount(each) for each in (needed, memory))
    return (
        f"does not fit: the state of the model is {least_card} on each of {job.cluster.cards:,} "
        f"cards where it is there once, and a card has {card}"
    )


def _place(one: CombinationCosts) -> tuple[bool, int]:
    """The shortest first, of those that do not fit that of the least need."""
    estimate = order_estimate(one.numbers, microbatches=one.microbatches)
    return estimate.is_large, estimate.needed if estimate.is_large else estimate.iteration


def _neighbours(listed: Sequence[Combination]) -> Callable[[int], list[int]]:
    """Which combinations have two sizes other than one of them, or one other thing."""
    sizes = np.array([[getattr(one, name) for name in SIZES] for one in listed])
    others = np.array([[hash(getattr(one, name)) for name in OTHERS] for one in listed])

    def near(number: int) -> list[int]:
        moved = (sizes != sizes[number]).sum(axis=1)
        is_near = moved + 2 * (others != others[number]).sum(axis=1) <= 2
        return [int(each) for each in np.flatnonzero(is_near)]

    return near


def _line(best: CombinationCosts, number: int, listed: int, seconds: float) -> str:
    estimate = order_estimate(best.numbers, microbatches=best.microbatches)
    name = (
        "none fits yet"
        if estimate.is_large
        else f"{best.combination}: about {estimate.iteration:,} us"
    )
    return f"{seconds:7.2f} s  {number:,} of {listed:,} deployments estimated; best {name}"
