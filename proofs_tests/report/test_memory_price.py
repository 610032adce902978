"""What a limit on activations costs: never above the optimum, and the optimum where it says so."""

from __future__ import annotations

from random import Random

import pytest

import bubbleproof as bp
from bubbleproof.report.memory_price import memory_price
from bubbleproof.solvers import Status
from bubbleproof.solvers.bounds import lower_bounds
from bubbleproof.theory.pipelines.links import Link
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.recompute import Recompute
from proofs_tests.sized import sized

FOUR = Pipeline(num_ranks=4, num_microbatches=8, capacity=2)


def test_the_price_of_memory_in_words() -> None:
    """P = 3: 11 P = 33 without a limit; for K = 2 and 3 also 3 (4-2) P = 18 and 2 (4-3) P = 6."""
    price = memory_price(FOUR)
    assert str(price) == (
        "with room for 2 on a rank no order is below 51 ticks; 1 more would save 12 ticks, 2 more "
        "would save 18 ticks"
    )


def test_of_unlike_stages_a_bound_is_said() -> None:
    """The trip is 4 + 3 + 3 + 3 = 13, and rank 3 is 4 + 3 + 3 = 10 away, there and back.

    K = 2: 3 trips, and then 2 microbatches of 3 ticks on rank 3: 39 + 6 + 10 = 55. Without a limit
    rank 3 takes 8 * 3 + 10 = 34; K = 4 has 13 + 4 * 3 + 10 = 35, and K = 5 13 + 3 * 3 + 10 = 32.
    """
    uneven = FOUR.with_changes(forward=(2, 1, 1, 1))
    assert str(memory_price(uneven)) == (
        "with room for 2 on a rank no order is below 55 ticks; with 3 more on each the bound is "
        "21 ticks lower"
    )


@pytest.mark.parametrize(
    "pipeline",
    [
        FOUR.with_changes(capacity=None),
        FOUR.with_changes(capacity=4),
        FOUR.with_changes(capacity=0),
        Pipeline(num_ranks=4, num_microbatches=8, capacity=2, num_chunks=2),
        FOUR.with_changes(split_backward=True),
        FOUR.with_changes(recompute=Recompute(stages=(0,))),
        FOUR.with_changes(activation=0),
    ],
    ids=("no limit", "enough", "no room", "chunks", "split", "recompute", "holds nothing"),
)
def test_it_is_silent_where_nothing_is_known_or_nothing_is_lost(pipeline: Pipeline) -> None:
    assert memory_price(pipeline) is None


def drawn(random: Random) -> Pipeline:
    """A capped pipeline of one chunk; every other one has stages alike."""
    ranks, alike = random.randint(1, 4), random.random() < 0.5

    def numbers(least: int, most: int) -> tuple[int, ...]:
        if alike:
            return (random.randint(least, most),) * ranks
        return tuple(random.randint(least, most) for _ in range(ranks))

    named = tuple(Link(ranks=(0, 1), latency=2) for _ in range(ranks > 1 and not alike))
    return Pipeline(
        num_ranks=ranks,
        num_microbatches=random.randint(1, 6),
        forward=numbers(1, 3),  # of 0 ticks solve takes no use of a store for a lifecycle
        backward=numbers(0, 3),
        activation=numbers(1, 2),
        static=numbers(0, 1),
        capacity=tuple(random.randint(3, 7) for _ in range(ranks)),
        latency=random.choice([0, 1, 2]),
        links=named,
    )


def test_no_order_is_below_it_and_solve_knows_it() -> None:
    """A certificate by one resource shows as much, as its edges of index order and memory tell of
    the round trips; so there is no certificate of a kind of its own."""
    random, exact, priced = Random(39), 0, 0
    for number in range(sized(120, full=3000)):
        pipeline = drawn(random)
        price = memory_price(pipeline)
        if price is None:
            continue
        priced += 1
        assert price.least() <= lower_bounds(pipeline.problem()).best.bound, number
        if not price.is_exact():
            continue
        found = bp.solve(pipeline)
        assert found.status is Status.OPTIMAL, number
        assert found.value == price.least(), number
        exact += 1
    assert priced > 20
    assert exact > 5
