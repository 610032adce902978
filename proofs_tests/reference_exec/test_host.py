"""Stages that the host updates: weights come up, gradients go down, and the step is torch's own."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
import torch

from bubbleproof.reference_exec.broken import BrokenProgram
from bubbleproof.reference_exec.drivers.virtual import run_virtual
from bubbleproof.reference_exec.models.footprint import weight_bytes
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.models.reference import Stage
from bubbleproof.reference_exec.plans.run_options import ReplayOptions
from bubbleproof.reference_exec.replaying import replay
from bubbleproof.theory.families.toffload import TOffload
from bubbleproof.theory.families.tpipe import TPipe
from bubbleproof.theory.families.trecomp import TRecomp
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.activation_offload import ActivationOffload
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.timing import left_shift
from proofs_tests.reference_exec.cases import TINY, Case, family_case, random_case
from proofs_tests.sized import sampled


@pytest.mark.parametrize("kind", ["mlp", "transformer", "llama"])
@pytest.mark.parametrize("hidden", [4, 8])
@pytest.mark.parametrize("layers", [1, 3])
def test_weight_bytes_are_those_of_the_parameters(kind: str, hidden: int, layers: int) -> None:
    spec = ModelSpec(kind=kind, hidden=hidden, layers=layers, dtype="float32")
    total = sum(parameter.untyped_storage().nbytes() for parameter in Stage(spec, 0).parameters())
    assert weight_bytes(spec, 0) == total


def test_live_bytes_on_the_rank_and_on_its_host() -> None:
    # one rank; stage 1 is updated by the host. TINY: 8 * 16 + 7 * 4 = 156 weights, w = 1248 bytes;
    # stage 0 holds 720 bytes from F to B, stage 1 728. The host begins with master and copy: 2 w.
    case = family_case("toffload", p=1, m=1)
    order = case.orders()[0]
    (result,) = run_virtual(case.plan())
    w = 1248
    moves = {
        ("1RELOAD0", 0): (2 * w, 2 * w),  # (change on the rank, load of the host after it)
        ("1RELOAD0", 1): (0, w),
        ("1OFFLOAD0", 0): (-w, 2 * w),
        ("1OFFLOAD0", 1): (-w, 2 * w),
        ("1STEP", 0): (0, 3 * w),
        ("1STEP", 1): (0, 2 * w),
    }
    level = 2 * w
    assert result.born_bytes[1] == level
    live = 0
    seen: list[str] = []
    for action, after, on_host in zip(
        order, result.live_bytes, result.host_live_bytes, strict=True
    ):
        key = (action, seen.count(action))
        seen.append(action)
        if key in moves:
            change, level = moves[key]
            assert after - live == change, key
        assert on_host == level, key
        live = after
    assert set(moves) <= {(a, n) for a in seen for n in range(seen.count(a))}


@pytest.mark.parametrize("seed", sampled(range(3), every=2))
def test_recomputation_and_off_load_together(seed: int) -> None:
    # what T-Pipe calls TPipe ALL
    recomputed = TRecomp().recomputing(Pipeline(num_ranks=3, num_microbatches=4, num_chunks=2))
    pipeline = TOffload().offloading(recomputed, offload=1 + seed, step=2, reload=3)
    spec = replace(TINY, kind="transformer", layers=2, seed=seed)
    report = replay(pipeline, TOffload().schedule(pipeline), spec, ReplayOptions(seed=seed))
    assert report.ok, str(report)
    assert report.num_updated_stages == 3


def test_stages_of_different_size_are_refused() -> None:
    case = family_case("toffload", p=2, m=2)
    with pytest.raises(
        ValueError, match=r"stages of one size; layers of stages \(2, 3\) are \[1, 2"
    ):
        replay(case.pipeline, case.schedule, replace(TINY, layers=(1, 1, 1, 2)))
    assert replay(case.pipeline, case.schedule, replace(TINY, layers=(3, 2, 1, 1))).ok


@pytest.mark.parametrize(
    ("drop", "message"),
    [
        ("1RELOAD0", "stage 1 is on the host"),
        ("1OFFLOAD1", "1STEP without its gradient"),
    ],
)
def test_a_dropped_task_of_the_host_is_noticed(drop: str, message: str) -> None:
    case = family_case("toffload", p=1, m=2)
    order = [action for action in case.orders()[0] if action != drop]
    assert len(order) == len(case.orders()[0]) - 2
    with pytest.raises(BrokenProgram, match=message):
        run_virtual(case.plan(program=Program.from_orders([order])))


def test_a_step_that_nobody_waits_for_is_noticed() -> None:
    case = family_case("toffload", p=1, m=2)
    order = case.orders()[0]
    assert order.pop() == "1STEP"
    with pytest.raises(BrokenProgram, match="left over: 1STEP not waited for"):
        run_virtual(case.plan(program=Program.from_orders([order])))


def test_a_forward_before_its_weights_have_come_is_noticed() -> None:
    case = family_case("toffload", p=1, m=1)
    order = [a for a in case.orders()[0] if a != "1RELOAD0"]
    early = [
        "1RELOAD0",
        *order[: order.index("1F0") + 1],
        "1RELOAD0",
        *order[order.index("1F0") + 1 :],
    ]
    with pytest.raises(BrokenProgram, match="stage 1 is on the host"):
        run_virtual(case.plan(program=Program.from_orders([early])))


def test_the_order_of_computations_and_their_peaks_are_tpipes() -> None:
    pipeline = Pipeline(num_ranks=2, num_microbatches=4, num_chunks=2)
    plain = replay(pipeline, left_shift(pipeline.problem(), TPipe().program(pipeline)), TINY)
    case = family_case("toffload", p=2, m=4)
    report = replay(case.pipeline, case.schedule, TINY)
    gap = [
        a - b for a, b in zip(report.peak_bytes.measured, plain.peak_bytes.measured, strict=True)
    ]
    assert gap == [2 * 1248] * 2  # the weights and gradients of one stage
    assert plain.loss == report.loss
    assert torch.isfinite(torch.tensor(report.loss))


# Activations that the host keeps


def with_offload(offload: int = 1, reload: int = 1) -> Case:
    """One rank, two microbatches; the first one's activation goes to the host and comes back."""
    pipeline = Pipeline(
        num_ranks=1,
        num_microbatches=2,
        offloads=(ActivationOffload(stage=0, microbatch=0, offload=offload, reload=reload),),
    )
    return random_case(pipeline, 0)


def test_an_activation_is_on_both_sides_while_it_moves() -> None:
    # TINY: 728 bytes on the one stage
    case = with_offload()
    (result,) = run_virtual(case.plan())
    order = case.orders()[0]
    deltas = [after - before for before, after in pairwise((0, *result.live_bytes))]
    first = {
        action: (deltas[i], deltas[order.index(action, i + 1)])
        for i, action in enumerate(order)
        if action in order[i + 1 :]
    }
    assert first == {"0OFFLOAD0": (0, -728), "0RELOAD0": (728, 0)}
    begins, ends = order.index("0OFFLOAD0"), len(order) - order[::-1].index("0RELOAD0") - 1
    kept = [728 if begins <= place < ends else 0 for place in range(len(order))]
    assert list(result.host_live_bytes) == kept


@pytest.mark.parametrize("ticks", sampled([(0, 1), (1, 1), (3, 0), (2, 5)], every=2))
def test_off_loaded_activations_replay(ticks: tuple[int, int]) -> None:
    case = with_offload(*ticks)
    for kind in ("mlp", "transformer"):
        report = replay(case.pipeline, case.schedule, replace(TINY, kind=kind))
        assert report.ok, str(report)
        assert report.host_peak_bytes.measured == report.host_peak_bytes.predicted
        assert report.host_peak_bytes.measured[0] > 0
        assert report.num_updated_stages == 0


def test_a_dropped_reload_is_noticed() -> None:
    case = with_offload()
    order = [action for action in case.orders()[0] if action != "0RELOAD0"]
    with pytest.raises(BrokenProgram, match="0B0 while its activation is away"):
        run_virtual(case.plan(program=Program.from_orders([order])))
