"""PyTorch's own runtime on our programs: the same bits, or a refusal, or the reason why not."""

from __future__ import annotations

import multiprocessing
from dataclasses import replace

import pytest

pytest.importorskip("torch.distributed.pipelining.schedules", reason="torch is not installed")

import torch

from bubbleproof.formats.pytorch_writer import write_table
from bubbleproof.reference_exec.bits import are_equal
from bubbleproof.reference_exec.drivers.gloo import RankFailed
from bubbleproof.reference_exec.evidence.oracle import order_matched, single_threaded
from bubbleproof.reference_exec.plans.verification import NotVerified
from bubbleproof.reference_exec.pytorch.runtime import compare_with_torch_runtime, run_torch_runtime
from bubbleproof.reference_exec.pytorch.table import (
    reordered_stages,
    require_sayable,
    table_text,
    this_version,
)
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.programs.lowering import lower
from bubbleproof.theory.pipelines.timing import left_shift
from proofs_tests.reference_exec.cases import (
    RECEIVER,
    SWAPPED_SENDS,
    TINY,
    Case,
    edited,
    family_case,
    gradients_of,
)
from proofs_tests.sized import sampled

TRANSFORMER = replace(TINY, kind="transformer", dtype="float32")

SHOWN = [
    ("1f1b", {"p": 2, "m": 4}),
    ("1f1b", {"p": 4, "m": 4}),
    ("interleaved", {"p": 2, "m": 4, "v": 2}),
    ("zb-h1", {"p": 4, "m": 4}),
    ("zb-v", {"p": 2, "m": 4}),
    ("dualpipev", {"p": 2, "m": 6}),
]


@pytest.mark.parametrize(("name", "params"), sampled(SHOWN, every=2))
def test_published_schedules_give_the_same_bits(name: str, params: dict[str, int]) -> None:
    case = family_case(name, **params)
    report = compare_with_torch_runtime(case.pipeline, case.schedule, TINY)
    assert report.ok
    assert (report.gradients_equal, report.losses_equal, report.differing) == (True, True, ())
    assert "the same bits" in str(report)
    assert not multiprocessing.active_children()


@pytest.mark.parametrize(("name", "params"), [SHOWN[2], SHOWN[4], SHOWN[5]])
def test_messages_that_pytorch_places_give_the_same_bits(name: str, params: dict[str, int]) -> None:
    case = family_case(name, **params)
    report = compare_with_torch_runtime(
        case.pipeline, case.schedule, TRANSFORMER, is_lowered_by_torch=True
    )
    assert report.ok
    assert report.gradients_equal
    assert report.placed_by == "PyTorch"


def test_dualpipev_has_overlapped_pairs_in_its_table() -> None:
    name, params = SHOWN[-1]
    assert "OVERLAP_F_B" in table_text(family_case(name, **params).plan())


@pytest.mark.parametrize(("name", "params"), SHOWN)
def test_the_table_is_the_one_that_formats_writes(
    name: str, params: dict[str, int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    case = family_case(name, **params)
    path = tmp_path_factory.mktemp("tables") / "table.csv"
    write_table(path, case.lowered, problem=case.problem, torch=this_version())
    assert path.read_text() == table_text(case.plan())


def late_weights() -> Case:
    """Two ranks, three microbatches; W in the opposite order of I."""
    pipeline = Pipeline(num_ranks=2, num_microbatches=3, split_backward=True)
    problem = pipeline.problem()
    kinds = [("F", (0, 1, 2)), ("I", (0, 1, 2)), ("W", (2, 1, 0))]
    orders = [[f"{g}{kind}{j}" for kind, ids in kinds for j in ids] for g in range(2)]
    schedule = left_shift(problem, Program.from_orders(orders))
    return Case(
        pipeline=pipeline, problem=problem, schedule=schedule, lowered=lower(problem, schedule)
    )


def test_sums_in_another_order_are_told_apart_from_wrong_ones() -> None:
    # PyTorch adds the gradients of norms and biases in W, our ranks in I
    case = late_weights()
    plan = case.plan()
    assert reordered_stages(plan) == (0, 1)
    report = compare_with_torch_runtime(case.pipeline, case.schedule, TINY)
    assert report.ok
    assert (report.gradients_as_added, report.gradients_equal) == (True, False)
    assert report.differing
    assert all("norm" in name or "bias" in name for name in report.differing)
    assert "another order" in str(report)


def test_crossed_messages_give_wrong_bits_without_an_error_and_are_refused() -> None:
    case = family_case("gpipe", p=2, m=2)
    program = Program.from_orders([SWAPPED_SENDS, RECEIVER])
    plan = case.plan(program=program)
    found = gradients_of(run_torch_runtime(plan))
    with single_threaded():
        expected, _ = order_matched(plan)
    assert not are_equal(found, expected)
    assert all(torch.isfinite(value).all() for value in found.values())
    with pytest.raises(NotVerified):
        compare_with_torch_runtime(case.pipeline, case.schedule, TINY, program=program)


def test_a_message_that_never_comes_ends_the_run() -> None:
    case = family_case("1f1b", p=2, m=2)
    plan = case.plan(program=edited(case, 1, {"1SEND_B1": []}))
    with pytest.raises(RankFailed) as caught:
        run_torch_runtime(plan, timeout=2.0)
    assert "rank 0 failed at 0B1: RuntimeError" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not multiprocessing.active_children()


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        ("terapipe", {"p": 2, "m": 2, "s": 2}, "2 slices"),
        ("trecomp", {"p": 2, "m": 3}, "got 0R0"),
        ("bpipe", {"p": 4, "m": 5}, "got 0EVICT1"),
        ("toffload", {"p": 2, "m": 3}, "RELOAD"),
        ("chimera", {"p": 2, "m": 4}, "bidirectional"),
    ],
)
def test_what_a_table_cannot_say_is_refused(
    name: str, params: dict[str, int], message: str
) -> None:
    case = family_case(name, **params)
    with pytest.raises(ValueError, match=message) as caught:
        compare_with_torch_runtime(case.pipeline, case.schedule, TINY)
    assert "\n" not in str(caught.value)


def test_losses_out_of_order_are_refused() -> None:
    case = family_case("1f1b", p=2, m=2)
    orders = [["0F1", "0F0", "0B0", "0B1"], ["1F1", "1F0", "1B0", "1B1"]]
    plan = case.plan(program=Program.from_orders(orders))
    with pytest.raises(ValueError, match=r"must ascend; got microbatches \[1, 0\]"):
        require_sayable(plan)
