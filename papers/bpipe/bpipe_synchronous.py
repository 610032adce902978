"""What BPipe would cost with synchronous transfers, by Table 4's times (section 4.4, Figure 9).

A synchronous transfer stops the rank that asks for it: EVICT and LOAD run on the evictor's compute
stream, between its computations, and not on a link beside them. How an evict and a load that meet
go the paper does not say. Both ways at once, they take the time of one; one after the other, twice
that. Links carry both directions, so both are measured.

Figure 9 has batches of 32 to 1024 of GPT-3 13B on 8 stages, without recomputation, as many
microbatches as samples: Table 4's first row, in microseconds.

Source: Kim et al., "BPipe" (ICML 2023) section 4.4, Table 4 and Figure 9.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

import numpy as np

from bubbleproof.papers.bpipe.bpipe_schedules import BPIPE
from bubbleproof.papers.claims.claim import PaperClaim, missing, read_as, reading
from bubbleproof.papers.claims.domain import Params, domain
from bubbleproof.theory.families.evicting.bpipe_plan import computation_slots
from bubbleproof.theory.model.actions import Action, Kind
from bubbleproof.theory.model.measures import measure
from bubbleproof.theory.model.problem import Occupancy, Problem
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.timing import left_shift

STAGES, FORWARD, BACKWARD, TRANSFER = 8, 36320, 74120, 22480
BATCHES = (32, 64, 128, 256, 512, 1024)
FIGURE_9 = domain(
    "GPT-3 13B on 8 stages, Table 4's times without recomputation, batches of 32 to 1024",
    percent=(11,),
)


def _synchronous(problem: Problem, *, is_both_ways: bool) -> Problem:
    """The problem with transfers on their evictor's compute stream."""
    kinds, rank = problem.actions, problem.actions.stage  # one chunk: stage s is on rank s
    evicts, moves = kinds.is_kind(Kind.EVICT), kinds.is_kind(Kind.EVICT, Kind.LOAD)
    task, resource = problem.occupancy.task, problem.occupancy.resource
    duration = np.where(evicts & is_both_ways, 0, problem.duration)
    home = np.where(moves[task], rank[task], resource)
    return replace(problem, duration=duration, occupancy=Occupancy(task=task, resource=home))


@lru_cache(maxsize=64)
def overhead(m: int, *, is_both_ways: bool) -> Fraction:
    """How much longer a step of m microbatches takes than 1F1B's."""
    plain = Pipeline(num_ranks=STAGES, num_microbatches=m, forward=FORWARD, backward=BACKWARD)
    balanced = BPIPE.balanced(plain, transfer=TRANSFER)
    problem = _synchronous(balanced.problem(), is_both_ways=is_both_ways)
    moves = BPIPE.transfers(STAGES, m)
    orders: list[list[Action]] = []
    for rank, slots in enumerate(computation_slots(BPIPE.base, STAGES, m)):
        beside = {each.slot: each.action for each in moves.get(rank, ())}
        both = ((action, beside.get(slot)) for slot, action in enumerate(slots))
        orders.append([action for pair in both for action in pair if action is not None])
    took = measure(problem, left_shift(problem, Program.from_orders(orders))).makespan
    problem = plain.problem()
    usual = measure(problem, BPIPE.base.schedule(plain, problem)).makespan
    return Fraction(took, usual) - 1


def _is_between(*, is_both_ways: bool) -> Callable[[Params], int]:
    """1 where the per cent lie between the least and the most overhead of Figure 9's batches."""

    def value(at: Params) -> int:
        costs = [overhead(m, is_both_ways=is_both_ways) for m in BATCHES]
        return int(min(costs) <= Fraction(at["percent"], 100) <= max(costs))

    return value


CLAIMS: tuple[PaperClaim, ...] = (
    read_as("bpipe.sec4.4.synchronous", "section 4.4, Figure 9, by Table 4",
            "Synchronous transfers cost 11 % of the time, at some of Figure 9's batches.",
            "1 where 11 % lie between the costs of those batches", (
                reading("an evict and a load both ways at once", "Appendix B: a consecutive evict "
                        "and load are performed together", _is_between(is_both_ways=True), "==", 1,
                        FIGURE_9),
                reading("one after the other", "§4.4: transfers are synchronous",
                        _is_between(is_both_ways=False), "==", 1, FIGURE_9),
            )),
    missing("bpipe.sec4.4.cost", "section 4.4, Figure 9",
            "Asynchronous transfers cost 1.1 % of the time.",
            "what launching a transfer and sharing a GPU's memory with it takes on the authors' "
            "cluster", estimated="nothing: with the printed times every transfer hides behind "
            "computation (bpipe.table4.overlap)"),
)  # fmt: skip
