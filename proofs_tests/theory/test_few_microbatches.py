"""Orders for few microbatches: never longer than the published one, and no more memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from bubbleproof.solvers import SolveOptions, Status, solve
from bubbleproof.theory.families import family
from bubbleproof.theory.families.chimera import closed_form_order as chimera_units
from bubbleproof.theory.families.hanayo import closed_form_order
from bubbleproof.theory.families.zero_bubble.v_shape import RepeatedBlock, squeezed_order
from bubbleproof.theory.families.zero_bubble.zb_h import counted_order
from bubbleproof.theory.families.zero_bubble.zb_v import phase_order
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline
from proofs_tests.patience import PATIENCE
from proofs_tests.sized import sized
from proofs_tests.theory.members import measured_order

Order = Callable[[Pipeline], Program]


def squeezed(name: str) -> Order:
    block = family(name)
    assert isinstance(block, RepeatedBlock)
    return lambda pipeline: squeezed_order(pipeline, block.block(pipeline.num_ranks))


PUBLISHED: dict[str, Order] = {
    "hanayo": closed_form_order,
    "zb-v": lambda pipeline: phase_order(pipeline.num_ranks, pipeline.num_microbatches),
    "v-half": squeezed("v-half"),
    "v-min": squeezed("v-min"),
    "zb-h2": partial(counted_order, ahead=2),
    "chimera": chimera_units,
}
TICKS = [(1, 1, 1), (2, 3, 1), (3, 2, 2), (1, 0, 4), (0, 1, 1)]


def pipeline(name: str, p: int, m: int, **changes: object) -> Pipeline:
    plain = Pipeline(num_ranks=p, num_microbatches=m, num_chunks=2)
    return family(name).fitted(plain).with_changes(**changes)


@pytest.mark.parametrize("name", ["hanayo", "zb-v", "v-half", "v-min"])
def test_neither_longer_nor_fuller_nor_idler_than_the_published_order(name: str) -> None:
    shorter = 0
    for p in range(1, sized(4, full=6)):
        for m in range(1, 2 * p + 1):
            for backward in (2,) if family(name).is_split else (1, 2):
                made = pipeline(name, p, m, backward=backward)
                before = measured_order(made, PUBLISHED[name](made))
                after = measured_order(made, family(name).program(made))
                assert after.makespan <= before.makespan, (p, m, backward)
                assert after.span_idle <= before.span_idle
                assert max(after.peak_activations) <= max(before.peak_activations)
                shorter += after.makespan < before.makespan
    assert shorter > sized(1, full=8)


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_order_depends_on_the_shape_alone_and_is_valid_at_any_ticks(name: str) -> None:
    for p in (2, 4):
        for m in range(1, 2 * p, sized(2, full=1)):
            chunks = 1 if name in ("chimera", "zb-h2") else 2
            shape = Pipeline(num_ranks=p, num_microbatches=m, num_chunks=chunks)
            made = family(name).fitted(shape)
            f, i, w = TICKS[(p + m) % len(TICKS)]
            uneven = made.with_changes(
                forward=tuple(f + g % 2 for g in range(made.num_stages)),
                backward=i + w,
                input_backward=i,
                weight_backward=w,
                latency=m % 2,
                activation=3,
                capacity=1000,
            )
            order = family(name).program(uneven)
            assert list(order.actions) == list(family(name).program(made).actions)
            measured_order(uneven, order)  # passes every rule


@pytest.mark.parametrize(
    ("name", "p", "m"),
    [("zb-v", 2, 2), ("zb-v", 3, 2), ("v-half", 2, 2), ("v-min", 2, 3), ("hanayo", 2, 3)],
)
def test_small_cases_are_optimal_within_their_memory(name: str, p: int, m: int) -> None:
    made = pipeline(name, p, m)
    order = family(name).program(made)
    got = measured_order(made, order)
    capped = made.with_changes(capacity=max(got.peak_activations)).problem()
    result = solve(capped, SolveOptions(time_limit=PATIENCE), starts=[(name, order)])
    assert result.status is Status.OPTIMAL
    assert result.measured is not None
    assert result.measured.makespan == got.makespan


def test_what_a_paper_fixes_keeps_the_published_order() -> None:
    for name, p, m in (("zb-v", 3, 6), ("zb-h2", 3, 5), ("chimera", 4, 8), ("chimera", 4, 24)):
        chunks = 2 if name == "zb-v" else 1
        plain = Pipeline(num_ranks=p, num_microbatches=m, num_chunks=chunks)
        made = family(name).fitted(plain)
        found, published = family(name).program(made), PUBLISHED[name](made)
        assert list(found.actions) == list(published.actions)


@pytest.mark.parametrize(("name", "p", "m"), [("hanayo", 4, 45), ("hanayo", 4, 52),
                                              ("chimera", 4, 45), ("chimera", 2, 39),
                                              ("v-half", 4, 41), ("v-min", 3, 50)])  # fmt: skip
def test_many_microbatches_repeat_a_shorter_order(name: str, p: int, m: int) -> None:
    chunks = 1 if name == "chimera" else 2
    plain = Pipeline(num_ranks=p, num_microbatches=m, num_chunks=chunks)
    made = family(name).fitted(plain)
    before, after = (
        measured_order(made, order(made)) for order in (PUBLISHED[name], family(name).program)
    )
    assert after.makespan < before.makespan
    assert max(after.peak_activations) <= max(before.peak_activations)
    # One period more, as many ticks more as the period before.
    spans = [
        measured_order(longer, family(name).program(longer)).makespan
        for longer in (made.with_changes(num_microbatches=m + k * p) for k in (0, 1, 2))
    ]
    assert spans[2] - spans[1] == spans[1] - spans[0]


def test_chimera_and_hanayo_where_groups_are_not_full() -> None:
    # The optimum of CP-SAT under the same memory: 19 ticks for chimera p=4, m=5 (23 for the closed
    # form), 46 for hanayo p=2, m=7, v=2 (53).
    for name, p, m, most in (("chimera", 4, 5, 19), ("hanayo", 2, 7, 46)):
        chunks = 1 if name == "chimera" else 2
        made = family(name).fitted(Pipeline(num_ranks=p, num_microbatches=m, num_chunks=chunks))
        assert measured_order(made, family(name).program(made)).makespan == most


def test_zb_h2_with_few_microbatches_waits_for_the_start_alone() -> None:
    # 3m + p-1: p-1 ticks until the last rank starts, then its 3m ticks of work.
    for p in range(2, 9):
        for m in range(p, 2 * p - 1):
            made = family("zb-h2").fitted(Pipeline(num_ranks=p, num_microbatches=m))
            got = measured_order(made, family("zb-h2").program(made))
            assert got.makespan == 3 * m + p - 1
            assert max(got.peak_activations) == m
