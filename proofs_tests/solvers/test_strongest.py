"""What is written is the most that the proof shows: its checker refuses one tick more.

The checker is the judge of what a proof shows, and exhaustive search of what is true. Certificates
of every kind are drawn, weakened by a few ticks, and given to a search.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from random import Random
from typing import get_args

import numpy as np
import pytest

from bubbleproof.solvers import SolveOptions, Status, solve
from bubbleproof.solvers.gate import greatest, strongest
from bubbleproof.solvers.search import Search
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify.certificates.certificate_rule import (
    Certificate,
    DirectCertificate,
    refusal,
)
from bubbleproof.verify.certificates.microbatch_windows import MicrobatchWindows
from bubbleproof.verify.certificates.one_machine import OneMachine
from bubbleproof.verify.certificates.tick_prices import TickPrices
from proofs_tests.patience import PATIENCE
from proofs_tests.sized import sized
from proofs_tests.solvers.random_problems import random_problem
from proofs_tests.solvers.test_price_search import found, tight_loop
from proofs_tests.verify.tampered import _certificates, _optimum

KINDS = {*get_args(DirectCertificate), MicrobatchWindows}
# What crosses is told of ranks that work alike, which a drawn problem's do not.
LOOP = Pipeline(num_ranks=2, num_microbatches=3, backward=2, latency=1, capacity=2).problem()


def test_every_kind_is_kept_with_the_most_that_it_shows() -> None:
    rng, seen = Random(32), set[type[Certificate]]()
    drawn = (random_problem(rng) for _ in range(sized(100, full=1_000)))
    for problem in chain([LOOP], drawn):
        if (optimum := _optimum(problem)) is None:
            continue
        for _kind, claim in _certificates(rng, problem, optimum):
            search = Search(problem, SolveOptions())
            weak = replace(claim, bound=max(1, claim.bound - rng.randint(0, 4)))
            if refusal(problem, weak) is not None:  # so short a horizon may need other prices
                weak = claim
            search.admit(weak, "a proof", problem)
            kept = search.certificate
            assert kept is not None
            assert weak.bound <= kept.bound <= optimum
            assert refusal(problem, kept) is None
            assert refusal(problem, replace(kept, bound=kept.bound + 1)) is not None
            seen.add(type(kept))
    assert seen == KINDS


def test_prices_show_more_than_the_horizon_that_they_were_made_for() -> None:
    """Four ranks of two chunks, room for 6, 6 microbatches: 126 ticks, by CP-SAT on its own model.

    The prices of a horizon refute it; that they refute the next ones too is asked of the checker.
    """
    problem = tight_loop(6, 6).problem()
    for claim in found(problem, 118):
        search = Search(problem, SolveOptions())
        search.admit(claim, "prices", problem)
        assert search.lower_bound >= claim.bound
        assert search.lower_bound <= 126
        more = replace(claim, bound=search.lower_bound + 1)
        assert refusal(problem, more) is not None


@pytest.mark.parametrize("objective", ["makespan", "span_idle"])
def test_what_solve_returns_is_refused_one_tick_higher(objective: str) -> None:
    rng = Random(7)
    for _ in range(sized(20, full=200)):
        problem = random_problem(rng)
        options = SolveOptions(time_limit=PATIENCE, objective=objective)  # type: ignore[arg-type]  # drawn
        result = solve(problem, options)
        proof = result.certificate
        if proof is not None and proof.bound > 0:
            assert refusal(problem, proof) is None
            more = replace(proof, bound=proof.bound + 1)
            # Where there is no schedule, any bound is true.
            assert result.status is Status.INFEASIBLE or refusal(problem, more) is not None


def test_no_more_is_asked_of_a_proof_than_a_schedule_leaves_open() -> None:
    """Not beyond a known schedule, or else beyond one task after the other."""
    problem = tight_loop(2, 6, num_ranks=1).problem()
    work = int(problem.duration.sum())
    tasks = tuple(range(problem.num_tasks))
    weak = OneMachine(resource=0, tasks=tasks, bound=1)
    assert strongest(weak, problem, 5).bound == 5
    assert strongest(weak, problem, None).bound == work


def test_the_greatest_is_found_wherever_it_is() -> None:
    for truth in range(1, 40):
        for most in range(1, 40):
            asked: list[int] = []

            def proves(bound: int, truth: int = truth, asked: list[int] = asked) -> bool:
                asked.append(bound)
                return bound <= truth

            assert greatest(1, most, proves) == min(truth, most)
            assert max(asked, default=1) <= most


def least_paid(prices: TickPrices, horizon: int) -> tuple[int, int]:
    """What 16 microbatches of four looped ranks pay rank 0 at least, and what it has for sale.

    Of one microbatch the stages 0 to 7 do F, then 7 to 0 do B; 0 and 4 are rank 0's. Each start is
    tried, with the least that what follows pays from there on. F of stage 0 or 4 takes one of the
    6 places, which the B of that stage gives back at its end.
    """
    ticks = np.zeros((2, horizon), dtype=np.int64)
    for row, tariff in zip(ticks, (*prices.resources, *prices.stores), strict=True):
        for begin, price in tariff.steps:
            row[begin:] = price
    busy, held = (np.concatenate(([0], np.cumsum(row))) for row in ticks)
    chain = [(stage, 2) for stage in range(8)] + [(stage, 4) for stage in range(7, -1, -1)]
    ahead = np.zeros(horizon + 2 * len(chain), dtype=np.int64)  # by the tick it may begin
    never = 1 << 60
    ahead[horizon + 1 :] = never
    for number, (stage, length) in reversed([*enumerate(chain)]):
        lag = 0 if number in (7, 15) else 1  # F to B of stage 7 stay on rank 3; the last ends it
        pays = np.full(len(ahead), never)
        for start in range(horizon - length + 1):
            end, own = start + length, 0
            if stage % 4 == 0:
                own = int(busy[end] - busy[start])
                own += int(-held[start] if length == 2 else held[end])
            pays[start] = min(never, own + int(ahead[end + lag]))
        ahead = np.minimum.accumulate(pays[::-1])[::-1]
    return 16 * int(ahead[0]), int(busy[-1] + 6 * held[-1])


def test_prices_of_sixteen_microbatches_show_282_and_no_more() -> None:
    """Four ranks of two chunks, room for 6, 16 microbatches: the prices are summed up once more.

    They refute every schedule of 281 ticks, and leave one of 282 open.
    """
    problem = tight_loop(16, 6).problem()
    best = [*found(problem, 281)][-1]
    search = Search(problem, SolveOptions())
    search.admit(best, "prices", problem)
    kept = search.certificate
    assert isinstance(kept, TickPrices)
    for horizon in range(kept.bound - 3, kept.bound + 3):
        paid, for_sale = least_paid(kept, horizon)
        is_refuted = refusal(problem, replace(kept, bound=horizon + 1)) is None
        assert is_refuted == (paid > for_sale) == (horizon < kept.bound)
    assert kept.bound == 282
