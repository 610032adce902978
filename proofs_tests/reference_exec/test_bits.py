"""Bits: signs of zeros and patterns of NaNs count, and what differs is told in words."""

from __future__ import annotations

import struct

import pytest
import torch

from bubbleproof.reference_exec.bits import are_equal, difference, same_bits
from bubbleproof.reference_exec.evidence.compare import (
    member_difference,
    weight_difference,
    whole_results,
)
from bubbleproof.reference_exec.evidence.oracle import max_relative_error, order_matched
from bubbleproof.reference_exec.runtime.rank import RankResult
from proofs_tests.reference_exec.cases import family_case, own, run
from proofs_tests.reference_exec.fault_cases import CASES
from proofs_tests.reference_exec.patching import after
from proofs_tests.reference_exec.replica_cases import of_family, placed
from proofs_tests.reference_exec.replica_cases import run as run_replicas
from proofs_tests.sized import sampled


def _nan(pattern: int) -> torch.Tensor:
    (value,) = struct.unpack("<d", struct.pack("<Q", pattern))
    return torch.tensor([value], dtype=torch.float64)


QUIET, PAYLOAD = 0x7FF8000000000000, 0x7FF8000000000001


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.complex64])
def test_a_zero_has_a_sign(dtype: torch.dtype) -> None:
    plus, minus = torch.zeros(2, dtype=dtype), -torch.zeros(2, dtype=dtype)
    assert torch.equal(plus, minus)
    assert not same_bits(plus, minus)
    assert same_bits(minus, minus.clone())


def test_a_nan_is_the_nan_of_its_pattern() -> None:
    assert same_bits(_nan(QUIET), _nan(QUIET))
    assert not same_bits(_nan(QUIET), _nan(PAYLOAD))


def test_shape_and_type_count() -> None:
    x = torch.arange(6.0)
    assert not same_bits(x, x.view(2, 3))
    assert not same_bits(torch.zeros(2), torch.zeros(2, dtype=torch.int32))
    assert same_bits(x.view(2, 3).t(), x.view(2, 3).t().contiguous())  # strides do not
    assert same_bits(torch.tensor(1.5), torch.tensor(1.5))


@pytest.mark.parametrize(
    ("found", "told"),
    [
        ({}, "the 3rd is missing"),
        ({3: torch.ones(4)}, "the 3rd has the shape (4,) for (2, 2)"),
        ({3: torch.ones(2, 2).double()}, "the 3rd is float64 for float32"),
        (
            {3: torch.tensor([[1.0, 1.0], [-1.0, 2.0]])},
            "the 3rd differs in 2 of 4 elements, first -1.0 for 1.0",
        ),
        ({3: torch.ones(2, 2), 4: torch.ones(1)}, "the 4rd was not expected"),
        ({3: torch.ones(2, 2)}, ""),
    ],
)
def test_what_differs_is_told(found: dict[int, torch.Tensor], told: str) -> None:
    expected = {3: torch.ones(2, 2)}
    assert difference(found, expected, "the {}rd".format) == told
    assert are_equal(found, expected) == (not told)


def _result(**gradients: torch.Tensor) -> RankResult:
    named = {(0, name): value for name, value in gradients.items()}
    return RankResult(gradients=named, updated=named, losses={}, live_bytes=())


def test_missing_and_misshapen_gradients_are_told_and_not_raised() -> None:
    expected = {(0, "a"): torch.ones(2, 3).double()}
    assert max_relative_error({}, expected) == float("inf")
    assert max_relative_error({(0, "a"): torch.ones(1).double()}, expected) == float("inf")
    _, plan = placed(of_family("1f1b"), None)
    apart = [_result(a=torch.ones(1))] * plan.num_ranks + [_result()] * plan.num_ranks
    assert member_difference(plan, apart) == "on rank 0 of replica 1 stage 0 a is missing"
    told = weight_difference(plan, [_result()], expected)
    assert told == "stage 0 a is missing"
    told = weight_difference(plan, [_result(a=torch.zeros(2, 3).double())], expected)
    first = "stage 0 a differs in 6 of 6 elements, first 0.0 for 1.0"
    assert told == f"rank 0 of replica 0: {first}"


def test_rows_of_shards_that_are_missing_or_too_short_are_told() -> None:
    _, plan = placed(of_family("1f1b"), "3")
    like = {(0, "a"): torch.ones(2, 3), (0, "b"): torch.ones(2)}
    results = [_result(a=torch.ones(3), b=torch.ones(1))] * plan.num_processes
    whole = whole_results(plan, results, like)[0].gradients
    assert difference(whole, like) == ""
    results = [_result(a=torch.ones(2), b=torch.ones(1))] * plan.num_processes
    whole = whole_results(plan, results, like)[0].gradients
    assert difference(whole, like) == "(0, 'a') has the shape (4,) for (2, 3)"
    results = [_result(b=torch.ones(1)), *[_result(a=torch.ones(3), b=torch.ones(1))] * 7]
    whole = whole_results(plan, results[: plan.num_processes], like)[0].gradients
    assert difference(whole, like) == "(0, 'a') is missing"


SHIFT = "layers.0.module.shift"
NEGATIVE = own("negative_zeros")


def test_gradients_of_negative_zeros_keep_their_sign() -> None:
    case = family_case("zb-h1", p=2, m=3)
    gradients, _ = order_matched(case.plan(NEGATIVE))
    assert gradients[1, SHIFT].signbit().all()
    assert (gradients[1, SHIFT] == 0).all()
    assert run(case, NEGATIVE).ok


def test_gradients_that_come_down_from_a_host_began_at_zero() -> None:
    case, spec = family_case("toffload", p=2, m=2), own("four_stages")
    gradients, _ = order_matched(case.plan(spec))
    assert (gradients[3, SHIFT] == 0).all()
    assert not gradients[3, SHIFT].signbit().any()
    assert run(case, spec).ok


@pytest.mark.parametrize("levels", sampled([None, "1", "2", "3"], every=3))
def test_sums_that_begin_at_zero_have_none(levels: str | None) -> None:
    case = of_family("1f1b")
    report = run_replicas(case, levels, spec=NEGATIVE)
    assert report.ok, str(report)
    gradients, _ = order_matched(placed(case, levels, NEGATIVE)[1])
    assert gradients[1, SHIFT].signbit().all() == (levels is None)


def test_a_report_names_what_differs_first(monkeypatch: pytest.MonkeyPatch) -> None:

    def lost(self: RankResult) -> None:
        self.gradients.pop((1, "layers.0.up.weight"), None)

    after(monkeypatch, RankResult, "__init__", lost)
    report = CASES["1f1b"]()
    assert not report.gradients_equal
    assert report.gradient_difference == "stage 1 layers.0.up.weight is missing"
    assert report.failures[0].endswith("summed in order: stage 1 layers.0.up.weight is missing")
