"""Weight gradients cut into single GEMMs, and slices of unequal cost (MEPipe section 5)."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from bubbleproof.formats import UnusableInput, infer_pipeline, write_table
from bubbleproof.report.text import grid
from bubbleproof.solvers import SolveOptions, Status, solve
from bubbleproof.solvers.memory_rules import exact_stores
from bubbleproof.theory.families import families, family
from bubbleproof.theory.families.svpp import SVPPWeights, most_forwards
from bubbleproof.theory.model.actions import Kind
from bubbleproof.theory.model.measures import Measures, measure
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.programs.lowering import lower
from bubbleproof.verify.certificates.index_order import index_order
from bubbleproof.verify.check import check
from bubbleproof.verify.communication.matching import check_communication
from proofs_tests.patience import PATIENCE
from proofs_tests.sized import sized

PARTS = (2, 5, 4, 1)


def pipeline(p: int, m: int, v: int, s: int, *, dearer: int) -> Pipeline:
    """W takes 12 ticks, F and I 12 for slice 0 and ``dearer`` more for each slice after it."""
    ticks = tuple(12 + dearer * k for k in range(s))
    return Pipeline(
        num_ranks=p,
        num_microbatches=m,
        num_chunks=v,
        num_slices=s,
        split_backward=True,
        forward=[ticks],
        input_backward=[ticks],
        weight_backward=12,
    )


def run(pipeline: Pipeline, limit: int) -> Measures:
    """The schedule's measures, once every rule has passed with ``limit`` units of memory."""
    capped = pipeline.with_changes(capacity=limit)
    problem = capped.problem()
    schedule = SVPPWeights(forwards=limit).schedule(capped, problem)
    verdict = check(problem, schedule)
    assert verdict.ok, str(verdict)
    assert check_communication(problem, lower(problem, schedule)).ok
    return measure(problem, schedule)


SHAPES = [
    (p, m, v, s, extra, dearer)
    for p, m, v, s, extra, dearer in product(
        (1, 2, 3, 4), (1, 3, 4), (1, 2), (1, 2, 4), (0, 2), (0, 5)
    )
    if s > 1 or not dearer
]


def test_cut_weights_do_the_same_work_and_are_never_longer() -> None:
    shorter = 0
    for p, m, v, s, extra, dearer in sized(SHAPES[::11], full=SHAPES[::3]):
        whole = pipeline(p, m, v, s, dearer=dearer)
        limit = min(most_forwards(whole) + extra, m * v * s)
        one, many = (run(w, limit) for w in (whole, whole.with_changes(weight_parts=PARTS)))
        # Each of the v stages of a rank does m*s slices: F and I at their ticks, W at 12.
        slices = sum(12 + 2 * (12 + dearer * k) for k in range(s))
        assert one.work == many.work == p * v * m * slices
        assert many.makespan <= one.makespan
        shorter += many.makespan < one.makespan
    assert shorter >= sized(2, full=5)  # the comparison would not see a cut that never helps


def test_single_gemms_fill_waits_that_no_schedule_of_whole_weights_fills() -> None:
    # p = 3, m = 3, tF = tI = 1, tW = 4 and room for 2 units: the exact solver decides both.
    whole = Pipeline(
        num_ranks=3, num_microbatches=3, split_backward=True, weight_backward=4, capacity=2
    )
    cut = whole.with_changes(weight_parts=(1, 1, 1, 1))
    found = {}
    for name, made in (("whole", whole), ("cut", cut)):
        result = solve(made.problem(), SolveOptions(time_limit=PATIENCE))
        assert result.status is Status.OPTIMAL
        assert result.schedule is not None
        found[name] = measure(made.problem(), result.schedule).makespan
    assert found["cut"] < found["whole"]
    assert run(cut, 2).makespan == found["cut"]


def test_uneven_slices_alone_are_filled_at_their_own_ticks() -> None:
    # Figure 7's shape and ticks: more memory never makes it longer, and 7(b) beats 7(a).
    base = Pipeline(
        num_ranks=4,
        num_microbatches=4,
        num_slices=2,
        split_backward=True,
        forward=[[3, 4]],
        input_backward=[[3, 4]],
        weight_backward=3,
    )
    spans = [run(base, limit).makespan for limit in (5, 6, 7, 8)]
    assert spans == sorted(spans, reverse=True)
    assert spans[-1] < spans[0]
    # 8 slices of 3.5 + 3.5 + 3 ticks on average on each rank; rank 3 starts after 3 forwards of 3.
    assert min(spans) >= 80 + 9


def test_the_order_of_forwards_and_input_gradients_is_that_of_the_uncut_schedule() -> None:
    whole = pipeline(3, 3, 1, 2, dearer=5)
    cut = whole.with_changes(weight_parts=PARTS)
    orders = []
    for made in (pipeline(3, 3, 1, 2, dearer=0), cut):
        program = SVPPWeights(forwards=4).program(made)
        rows = program.orders(3)
        orders.append([[str(a) for a in row if a.kind is not Kind.W] for row in rows])
    assert orders[0] == orders[1]


def test_other_families_run_each_weight_gradient_whole() -> None:
    takers = {name for name, found in families().items() if found.cuts_weights}
    assert takers == {"svpp-w"}
    cut = Pipeline(num_ranks=2, num_microbatches=2, split_backward=True, weight_parts=(1, 0))
    with pytest.raises(ValueError, match="zb-h1 runs each W whole, got weight_parts"):
        family("zb-h1").schedule(cut)
    assert family("zb-h1").fitted(cut).weight_parts == ()
    assert family("svpp-w").fitted(cut) == cut


def test_identical_microbatches_stay_identical_when_cut() -> None:
    cut = Pipeline(
        num_ranks=2,
        num_microbatches=3,
        split_backward=True,
        weight_backward=3,
        weight_parts=(1, 2),
        capacity=2,
    )
    order = index_order(cut.problem())
    # Per stage F, I and two parts; F of microbatch 2 waits for the last part of microbatch 0.
    assert order.groups[0].shape == (2 * 4, 3)
    problem, edges = cut.problem(), order.memory_edges
    pairs = {
        (problem.label(a), problem.label(b))
        for a, b in zip(edges.before.tolist(), edges.after.tolist(), strict=True)
    }
    assert pairs == {(f"{g}W0#1", f"{g}F2") for g in (0, 1)}
    assert exact_stores(order) == {0, 1}


def test_readers_and_writers_know_parts_or_say_that_they_do_not(tmp_path: Path) -> None:
    cut = Pipeline(
        num_ranks=1, num_microbatches=1, split_backward=True, weight_backward=3, weight_parts=(1, 2)
    )
    problem = cut.problem()
    schedule = SVPPWeights().schedule(cut, problem)
    assert infer_pipeline(schedule.program).weight_parts == ((1, 1),)
    assert "W0#1" in grid(problem, schedule)
    with pytest.raises(UnusableInput, match=r"whole weight gradients .* found '0W0#0'"):
        write_table(tmp_path / "cut.csv", schedule.program)
