"""More freedom is never worse: what the search without choices finds is found with choices too.

Work is counted, so that each search does the same in every run. The same work is granted to both:
the search over choices has the plain problem searched with as much as it has alone.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from bubbleproof.solvers import SolveOptions, solve, solve_choices
from bubbleproof.solvers.choices.choices_search import ChoicesSearch
from bubbleproof.solvers.choices.pipeline_variants import PipelineVariants
from bubbleproof.solvers.engines.engine import OutOfTimeError
from bubbleproof.solvers.shortening.known_orders import known_orders
from bubbleproof.theory.pipelines.allowed import AllowedChoices, AllowedEvictions, AllowedRecompute
from bubbleproof.theory.pipelines.pipeline import Pipeline
from proofs_tests.patience import PATIENCE
from proofs_tests.sized import sized
from proofs_tests.zeros import zero_or, zeros_or


def uneven(random: Random) -> tuple[Pipeline, AllowedChoices]:
    """Uneven stages, less memory than ranks, and something to choose."""
    p = random.randint(3, 6)
    pipeline = Pipeline(
        num_ranks=p,
        num_microbatches=random.choice([4, 8]),
        forward=zeros_or(random, 4, 9, p),
        backward=zeros_or(random, 8, 18, p),
        latency=random.choice([0, 1, 3]),
        activation=2,
        capacity=2 * random.randint(1, p - 1) + random.randint(0, 1),
    )
    recompute = AllowedRecompute(stages=tuple(range(p)), kept=1)
    evict = AllowedEvictions(pairs=((0, p - 1), (p - 1, 0)), duration=zero_or(random, 1, 4))
    kind = random.choice(["recompute", "evict", "both"])
    return pipeline, AllowedChoices(
        recompute=None if kind == "evict" else recompute,
        evict=None if kind == "recompute" else evict,
    )


@pytest.mark.parametrize("number", range(sized(1, full=60)))
def test_choices_find_what_is_found_without_them(number: int) -> None:
    pipeline, allowed = uneven(Random(number))
    starts = known_orders(pipeline)
    for work in sized((0.1,), full=(0.05, 0.25)):
        options = SolveOptions(threads=1, work=work, time_limit=PATIENCE)
        alone = solve(pipeline.problem(), options, starts)
        free = solve_choices(pipeline, allowed, options, starts).result
        assert alone.value is not None
        assert free.value is not None
        assert free.value <= alone.value
        assert free.work >= alone.work


def test_the_plain_problem_has_all_the_work_and_the_choices_as_much_again() -> None:
    given = PipelineVariants(*uneven(Random(1)))
    options = SolveOptions(threads=1, work=0.05, time_limit=PATIENCE)

    def searched(options: SolveOptions) -> ChoicesSearch:
        return ChoicesSearch(given.variants, options, lambda taken: given.chosen(taken).problem())

    search = searched(options)
    assert search.plain.whole.work == search.whole.work == 0.05
    search.whole.meter.spend(0.05)
    with pytest.raises(OutOfTimeError):
        search.whole.require()
    search.plain.whole.require()  # and yet the plain problem has all of its own
    # Negative control: where only time is limited both have one budget.
    timed = searched(replace(options, work=None))
    assert timed.plain.whole is timed.whole
