"""What a store must hold at least, at a moment when some changes are over and others may be.

Each chain of a store (``verify.certificates.chains``) has passed some changes for sure and others
perhaps, so it holds at least the least level in between.
"""

from __future__ import annotations

from collections.abc import Callable

from bubbleproof.theory.model.problem import Problem
from bubbleproof.verify.certificates.chains import Chain, Moment

IMPOSSIBLE = 1 << 64  # units; all loads of a problem add up to less than 2**60
Passed = Callable[[Moment], tuple[bool, bool]]  # whether it is over for sure, whether it may be


def is_too_full(problem: Problem, chains: dict[int, list[Chain]], passed: Passed) -> bool:
    """Whether some store with a capacity must hold more than it."""
    for number, owners in chains.items():
        store = problem.stores[number]
        held = sum(_least_level(chain, passed) for chain in owners)
        if store.capacity is not None and store.base + held > store.capacity:
            return True
    return False


def _least_level(chain: Chain, passed: Passed) -> int:
    """The least level after a prefix of the chain that holds all that is over and may be over.

    ``IMPOSSIBLE`` where something is over that cannot be.
    """
    levels, is_blocked = [0], False
    for moment, level in chain:
        is_over, may_be_over = passed(moment)
        is_blocked = is_blocked or not may_be_over
        if is_over:
            if is_blocked:
                return IMPOSSIBLE
            levels = [level]
        elif not is_blocked:
            levels.append(level)
    return min(levels)
