"""Where the STEPs and exchanges of a training stand in the programs of ranks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bubbleproof.reference_exec.plans.stepping import with_steps, without_steps
from bubbleproof.reference_exec.plans.training import Training
from bubbleproof.theory.model.schedule import Program
from proofs_tests.reference_exec.cases import TINY, family_case
from proofs_tests.reference_exec.meshes import mesh, run
from proofs_tests.reference_exec.training_cases import trained, training_orders, training_plan

ONE, WAITING = Training(), Training(has_barrier=True)
TIED = replace(TINY, vocabulary=5, tied=True)


def test_a_stage_steps_after_its_last_contribution() -> None:
    # GPipe: rank 1 sends the gradient that rank 0 waits for before it steps
    first, second = training_orders(family_case("gpipe", p=2, m=2), ONE)
    assert first[-2:] == ["0B1", "0STEP"]
    assert second[-3:] == ["1B1", "1SEND_B1", "1STEP"]
    # ZB-H1: the last W is the last contribution
    first, second = training_orders(family_case("zb-h1", p=2, m=3), ONE)
    assert [order[-2:] for order in (first, second)] == [["0W2", "0STEP"], ["1W2", "1STEP"]]


def test_a_stage_whose_last_backward_comes_early_steps_early() -> None:
    # two chunks: the rank's deep stage ends its backwards before the shallow one
    for order in training_orders(family_case("interleaved", p=2, m=4, v=2), ONE):
        steps = [i for i, action in enumerate(order) if "STEP" in action]
        stages = [int(order[i][0]) for i in steps]
        assert stages[0] > stages[1]
        assert steps[0] < len(order) - 2
        for at, stage in zip(steps, stages, strict=True):
            assert not any(a.startswith(f"{stage}B") for a in order[at:])
            assert order[at - 1] in (f"{stage}B3", f"{stage}SEND_B3")


def test_with_a_barrier_all_steps_come_last() -> None:
    for order in training_orders(family_case("interleaved", p=2, m=4, v=2), WAITING):
        assert [a for a in order if "STEP" in a] == order[-2:] == sorted(order[-2:])


def test_ranks_that_share_a_stage_exchange_before_they_step() -> None:
    orders = training_orders(family_case("chimera", p=4, m=4), ONE)
    outer = ["0REDUCE_GRAD", "3REDUCE_GRAD", "0STEP", "3STEP"]
    inner = ["1REDUCE_GRAD", "2REDUCE_GRAD", "1STEP", "2STEP"]
    assert [order[-4:] for order in orders] == [outer, inner, inner, outer]
    assert all(sum("REDUCE_GRAD" in a or "STEP" in a for a in order) == 4 for order in orders)


def test_the_ends_of_a_tie_exchange_too() -> None:
    first, middle, last = training_orders(family_case("1f1b", p=3, m=3), ONE, TIED)
    assert first[-2:] == ["0REDUCE_GRAD.1", "0STEP"]
    assert last[-2:] == ["0REDUCE_GRAD.1", "2STEP"]
    assert [a for a in middle if "STEP" in a or "REDUCE" in a] == ["1STEP"]
    first, last = training_orders(family_case("chimera", p=2, m=2), ONE, TIED)
    ends = ["0REDUCE_GRAD", "1REDUCE_GRAD", "0REDUCE_GRAD.1", "0STEP", "1STEP"]
    assert first[-5:] == last[-5:] == ends


def test_hosts_keep_their_own_steps() -> None:
    # T-Offload: the host of each rank updates the deep chunk, the rank itself the shallow one
    case = family_case("toffload", p=2, m=3)
    plan = training_plan(case, WAITING)
    assert plan.hosted == {2, 3}
    for rank in range(2):
        steps = [str(a) for a in plan.order(rank) if str(a).endswith("STEP")]
        hosted = next(a for a in steps if int(a[0]) in plan.hosted)
        assert sorted(steps) == sorted([hosted, hosted, steps[-1]])
        assert int(steps[-1][0]) == rank


def test_sharded_stages_step_after_their_last_reduction() -> None:
    training = Training(optimizer="momentum", steps=2)
    report = run(mesh(3), training=training, data_parallel=2)
    assert report.ok, str(report)
    for trace in report.traces:
        texts = [str(action) for action in trace.actions]
        for text in {t for t in texts if t.endswith("STEP")}:
            stage = text.removesuffix("STEP")
            reductions = [i for i, t in enumerate(texts) if t.startswith(f"{stage}REDUCE_GRAD")]
            assert texts.index(text) == max(reductions) + 1
            assert texts.count(text) == 1


def test_a_program_with_steps_of_its_own_is_kept() -> None:
    case = family_case("zb-h1", p=2, m=2)
    plan = training_plan(case, ONE)
    assert with_steps(plan) is plan
    bare = without_steps(plan.program)
    assert [*bare.actions] == [*case.lowered.actions]
    orders = plan.program.orders(2)
    assert orders[0][-1] == orders[0].pop()
    step = with_steps(plan).order(0)[-1]
    late = Program.from_orders([[*case.lowered.orders(2)[0], step], orders[1]])
    assert trained(case, ONE, program=late).ok


@pytest.mark.parametrize("has_barrier", [False, True])
def test_steps_stand_in_the_trace(has_barrier: bool) -> None:
    case = family_case("chimera", p=2, m=4)
    training = Training(optimizer="adam", steps=2, has_barrier=has_barrier)
    report = trained(case, training)
    assert report.ok, str(report)
    orders = training_orders(case, training)
    assert [[str(a) for a in trace.actions] for trace in report.traces] == orders
    for trace in report.traces:
        assert trace.predicted
        rows = zip(trace.actions, trace.begin, trace.end, trace.live_bytes, strict=True)
        for action, begin, end, held in rows:
            assert end > begin
            if "STEP" in str(action) or "REDUCE_GRAD" in str(action):
                assert held == (0,)  # no activation is left, and what is exchanged is none
