"""What Algorithm 1 of BPipe gives, to the letter, measured on a schedule that is built of it.

Every slot takes one tick. Computations and transfers start with their slots: T_i beside C_i. The
schedule is an ordinary one with evictions, so the checker says whether it breaks a rule (a
backward without its activation, a transfer of what is not there) and ``measure`` what each rank
holds, activations on the move on both ends.

Source: Kim et al., "BPipe" (ICML 2023) section 3.4, Algorithm 1 and Figure 4.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from bubbleproof.papers.bpipe.bpipe_literal import TransferDecision, literal, paired
from bubbleproof.papers.claims.domain import CaseValues, Params
from bubbleproof.theory.families.evicting.bpipe_plan import Slots, computation_slots
from bubbleproof.theory.families.one_f_one_b import OneForwardOneBackward
from bubbleproof.theory.model.actions import Action, Kind
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.transfers import Eviction
from bubbleproof.verify import check

Moves = dict[int, tuple[TransferDecision, ...]]  # by evictor
BASE = OneForwardOneBackward()


class PrintedOutcome(NamedTuple):
    """How many rules the schedule breaks, and the most activations that each rank holds."""

    violations: int
    peaks: CaseValues


def eager(p: int, m: int) -> tuple[Slots, ...]:
    """C of each rank, every forward as early as it can."""
    return computation_slots(BASE, p, m)


def pairs(p: int, m: int) -> tuple[Slots, ...]:
    """C of each rank, drawn in pairs."""
    return paired(eager(p, m))


@lru_cache(maxsize=4096)  # numbers only
def printed(p: int, m: int) -> PrintedOutcome:
    """The schedule of all ranks by Algorithm 1 on C drawn in pairs.

    Raises ``ValueError`` where a decision names the microbatch of a bubble: that is no transfer.
    """
    drawn = pairs(p, m)
    moves = {s: literal(drawn[s], p, s, m) for s in range(p // 2)}
    if any(each.microbatch is None for decisions in moves.values() for each in decisions):
        raise ValueError(f"at p={p} m={m} Algorithm 1 names the microbatch of a bubble")
    evictions = tuple(
        Eviction(stage=s, microbatch=each.microbatch, source=s, target=p - 1 - s, duration=1)
        for s, decisions in moves.items()
        for each in decisions
        if each.kind is Kind.EVICT and each.microbatch is not None
    )
    plain = Pipeline(num_ranks=p, num_microbatches=m, forward=1, backward=1)
    pipeline = plain.with_changes(evictions=evictions)
    problem = pipeline.problem()
    names = [resource.name for resource in problem.resources]
    orders: list[list[tuple[int, Action]]] = [[] for _ in names]
    for s, slots in enumerate(drawn):
        orders[s] += [(i, action) for i, action in enumerate(slots) if action is not None]
        for way, slot, action in _transfers(s, p - 1 - s, moves.get(s, ())):
            orders[names.index(pipeline.all_links.name(*way))].append((slot, action))
    program = Program.from_orders([[action for _, action in order] for order in orders])
    start = np.array([slot for order in orders for slot, _ in order], dtype=np.int64)
    verdict = check(problem, Schedule(program=program, start=start))
    if verdict.measured is None:
        raise ValueError(f"the printed algorithm's decisions leave tasks out: {verdict}")
    return PrintedOutcome(len(verdict.violations), verdict.measured.peak_activations)


def _transfers(
    source: int, target: int, decisions: tuple[TransferDecision, ...]
) -> Iterator[tuple[tuple[int, int], int, Action]]:
    """The ranks between which each decision moves, in order, its slot and its action."""
    for each in decisions:
        if (moved := each.microbatch) is not None:
            way = (source, target) if each.kind is Kind.EVICT else (target, source)
            yield way, each.slot, Action(stage=source, kind=each.kind, microbatch=moved)


def pair_peak(at: Params) -> int:
    """The most activations that stage s or its acceptor holds."""
    peaks = printed(at["p"], at["m"]).peaks
    return max(peaks[at["s"]], peaks[at["p"] - 1 - at["s"]])


def violations(at: Params) -> int:
    """How many violations the checker finds."""
    return printed(at["p"], at["m"]).violations


def evicted(slots: Slots, *, p: int, m: int) -> int:
    """The microbatches that stage 0 evicts on C as given, one digit each; 0 for a bubble's."""
    found = literal(slots, p, 0, m)
    digits = [each.microbatch or 0 for each in found if each.kind is Kind.EVICT]
    return int("".join(map(str, digits)))


def cooldown_without_bubble(slots: Slots) -> int:
    """How many backwards after the last forward follow no bubble, the first of them excepted."""
    last = max(i for i, action in enumerate(slots) if action and action.kind is Kind.F)
    after = [i for i, action in enumerate(slots) if action is not None and i > last]
    return sum(slots[i - 1] is not None for i in after[1:])
