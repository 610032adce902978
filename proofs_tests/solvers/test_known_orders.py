"""Improved orders: no longer and no fuller than the published one, under their own name."""

from __future__ import annotations

import pytest

from bubbleproof.solvers import SolveOptions, Status, solve
from bubbleproof.solvers.shortening.known_orders import (
    IMPROVED,
    improved,
    known_in_turn,
    known_orders,
)
from bubbleproof.theory.families import families, family
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline
from proofs_tests.patience import PATIENCE
from proofs_tests.sized import sized
from proofs_tests.theory.members import measured_order

TICKS = [(1, 1, 1), (2, 3, 1), (3, 2, 2), (1, 0, 4), (0, 1, 1)]


def pipeline(name: str, p: int, m: int, **changes: object) -> Pipeline:
    chunks = 1 if name in ("chimera", "zb-h2") else 2
    plain = Pipeline(num_ranks=p, num_microbatches=m, num_chunks=chunks)
    return family(name).fitted(plain).with_changes(**changes)


def shorter(name: str, made: Pipeline) -> Program:
    """The improved order, the published one where there is none."""
    return improved(name, made) or family(name).program(made)


def test_what_is_improved_is_called_so_and_no_family_runs_it() -> None:
    # p=4, m=6: Chimera's units of p microbatches, the second not full, take 25 ticks; slid, 22.
    made = pipeline("chimera", 4, 6)
    names = [name for name, _ in known_orders(made)]
    assert names == ["chimera", "chimera, improved"]
    spans = [measured_order(made, order).makespan for _, order in known_orders(made)]
    assert spans == [25, 22]
    assert [name for name, _ in known_in_turn(made, ("chimera",))] == ["chimera"]
    assert not any("improved" in name for name in families())
    assert set(IMPROVED) < set(families())


def test_orders_made_anew_are_listed_at_once() -> None:
    # p=4, m=6 within the 8 units that the rounds two ticks apart hold: 48 ticks for their 52. With
    # room for one unit no run gets through, and two are all that is tried.
    made = pipeline("hanayo", 4, 6, capacity=8)
    spans = {name: measured_order(made, order).makespan for name, order in known_in_turn(made)}
    assert spans == {"hanayo": 52, "hanayo, listed": 48}
    names = [name for name, _ in known_in_turn(pipeline("hanayo", 4, 6, capacity=1))]
    assert names == ["hanayo"]


@pytest.mark.parametrize("name", IMPROVED)
def test_neither_longer_nor_fuller_nor_idler_than_the_published_order(name: str) -> None:
    found = 0
    for p in range(2, sized(5, full=7), 1 + (name == "chimera")):
        for m in range(1, 2 * p + 1):
            for backward in (2,) if family(name).is_split else (1, 2):
                made = pipeline(name, p, m, backward=backward)
                before = measured_order(made, family(name).program(made))
                after = measured_order(made, shorter(name, made))
                assert after.makespan <= before.makespan, (p, m, backward)
                assert after.span_idle <= before.span_idle
                assert max(after.peak_activations) <= max(before.peak_activations)
                found += after.makespan < before.makespan
    assert found


@pytest.mark.parametrize("name", IMPROVED)
def test_the_order_depends_on_the_shape_alone_and_is_valid_at_any_ticks(name: str) -> None:
    for p in (2, 4):
        for m in range(1, 2 * p, sized(2, full=1)):
            made = pipeline(name, p, m)
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
            order = shorter(name, uneven)
            assert list(order.actions) == list(shorter(name, made).actions)
            measured_order(uneven, order)  # passes every rule


@pytest.mark.parametrize(
    ("name", "p", "m"),
    [("v-half", 2, 2), ("v-min", 2, 3)],
)
def test_small_cases_are_optimal_within_their_memory(name: str, p: int, m: int) -> None:
    made = pipeline(name, p, m)
    order = shorter(name, made)
    got = measured_order(made, order)
    capped = made.with_changes(capacity=max(got.peak_activations)).problem()
    result = solve(capped, SolveOptions(time_limit=PATIENCE), starts=[(name, order)])
    assert result.status is Status.OPTIMAL
    assert result.measured is not None
    assert result.measured.makespan == got.makespan


def test_what_leaves_no_gap_is_not_improved() -> None:
    assert improved("zb-v", pipeline("zb-v", 3, 6)) is None
    assert improved("zb-h2", pipeline("zb-h2", 3, 5)) is None
    assert improved("1f1b", Pipeline(num_ranks=3, num_microbatches=6)) is None


@pytest.mark.parametrize(("name", "p", "m"), [("chimera", 4, 45), ("chimera", 2, 39),
                                              ("v-min", 5, 41)])  # fmt: skip
def test_many_microbatches_repeat_a_shorter_order(name: str, p: int, m: int) -> None:
    made = pipeline(name, p, m)
    before = measured_order(made, family(name).program(made))
    after = measured_order(made, shorter(name, made))
    assert after.makespan < before.makespan
    assert max(after.peak_activations) <= max(before.peak_activations)
    # One period more, as many ticks more as the period before.
    spans = [
        measured_order(longer, shorter(name, longer)).makespan
        for longer in (made.with_changes(num_microbatches=m + k * p) for k in (0, 1, 2))
    ]
    assert spans[2] - spans[1] == spans[1] - spans[0]


def solved(name: str, p: int, m: int) -> int | None:
    """What a moment's search makes of a family's shape within the memory of its published order."""
    made = pipeline(name, p, m)
    peak = max(measured_order(made, family(name).program(made)).peak_activations)
    capped = made.with_changes(capacity=peak)
    options = SolveOptions(time_limit=PATIENCE, work=p / 10, threads=1)
    return solve(capped.problem(), options, starts=known_orders(capped)).value


def test_a_search_fills_groups_that_are_not_full() -> None:
    # The optimum of CP-SAT under the same memory: 19 ticks for chimera p=4, m=5 (23 for the closed
    # form), 46 for hanayo p=2, m=7, v=2 (53).
    for name, p, m, most in (("chimera", 4, 5, 19), ("hanayo", 2, 7, 46)):
        assert solved(name, p, m) == most


def test_a_search_brings_hanayo_p_minus_1_ticks_above_the_least_at_long_backwards() -> None:
    # The least is (2m + p-1) * 3: work of a rank behind p-1 forwards and before p-1 backwards.
    for p in sized((2, 3, 4, 6), full=(2, 3, 4, 6, 8)):
        for m in (2 * p, 2 * p + 1, 3 * p):
            found = solved("hanayo", p, m)
            assert found is not None
            assert found <= 3 * (2 * m + p - 1) + p - 1


def test_zb_h2_with_few_microbatches_waits_for_the_start_alone() -> None:
    # 3m + p-1: p-1 ticks until the last rank starts, then its 3m ticks of work.
    for p in range(2, 9):
        for m in range(p, 2 * p - 1):
            made = pipeline("zb-h2", p, m)
            got = measured_order(made, shorter("zb-h2", made))
            assert got.makespan == 3 * m + p - 1
            assert max(got.peak_activations) == m
