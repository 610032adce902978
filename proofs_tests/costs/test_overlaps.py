"""Overlap by kind, products in 8 bits, and interleaved rows in a fit."""

from __future__ import annotations

import csv
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bubbleproof.costs.times.along_paths import paths, predicted, prepared
from bubbleproof.costs.times.calibration import calibrate, uncalibrated
from bubbleproof.costs.times.card_files import card
from bubbleproof.costs.times.constants import NAMES, PUBLISHED, starts
from bubbleproof.costs.times.estimation import estimated_ms
from bubbleproof.costs.times.job_rows import JobRow, model_tflops, rows_of
from bubbleproof.costs.times.kernels import left
from bubbleproof.costs.times.software import software
from bubbleproof.costs.times.work import work
from proofs_tests.costs.measured_cases import B200

ROWS = Path(__file__).parents[2] / "benchmarks" / "h100_rows.csv"
PAGE = Path(__file__).parents[2] / "docs" / "measured" / "times.md"
H100 = uncalibrated(card("h100"))


def published() -> list[JobRow]:
    """NVIDIA's rows of DGX Cloud."""
    return rows_of(ROWS.read_text(), measured=True)


def one(model: str, products: str) -> JobRow:
    """The row of a model with the fewest cards."""
    rows = (row for row in published() if row.runs.products == products)
    return next(row for row in rows if row.model.name == model)


def took(row: JobRow, **changes: float) -> float:
    """Its estimate with constants changed."""
    begun = starts(H100.card, row.runs)
    by = replace(H100, constants={**begun, **changes}, software=(row.runs.name,))
    return estimated_ms([row], by)[0]


def test_of_a_collective_no_more_is_hidden_than_there_is_to_run_beside() -> None:
    """10 ms, of which 4 / 10 are exposed: 4 left beside 8 ms; 10 - 3 beside 3; 10 without."""
    c = starts(card("h100")) | {"exposed_tensor": 0.4}
    ten, on, off = np.asarray(10.0), np.asarray(1.0), np.asarray(0.0)
    name = "exposed_tensor"
    assert left(ten, np.asarray(8.0), on, c, name) == pytest.approx(4)
    assert left(ten, np.asarray(3.0), on, c, name) == pytest.approx(7)
    assert left(ten, np.asarray(8.0), off, c, name) == 10
    assert left(ten, np.asarray(8.0), on, c | {name: 3.0}, name) == 10  # never longer


@pytest.mark.parametrize("kind", ["tensor", "context", "gradient", "message"])
def test_each_kind_is_exposed_by_itself(kind: str) -> None:
    """Nothing exposed is shorter than all, and software that overlaps nothing does not ask; but a
    ring of keys and values is one in any software."""
    row = one("llama-3-70b", "bf16")
    name = f"exposed_{kind}"
    assert took(row, **{name: 0.01}) < took(row, **{name: 1.0})
    plain = replace(row, runs=software("megatron-core"))
    same = took(plain, **{name: 0.01}) == took(plain)
    assert same is (kind != "context")


def test_products_in_8_bits_are_the_linears_of_a_layer() -> None:
    """Llama 3 8B, 4,096 tokens on a card: h (h + 2 h / 4 + h) + 3 h f numbers, twice a token.

    Casts read each linear's input (h, h, h, f) and write it twice in 8 bits: 4 bytes a number.
    """
    row = one("llama-3-8b", "fp8")
    found = work(row.model, row.at, row.runs, 8)
    operands = float(work(row.model, row.at, row.runs.computing_in("bf16"), 8).operands)
    h, f, tokens = 4096, 14336, 4096
    flops = 2 * tokens * (h * (h + h // 2 + h) + 3 * h * f)
    assert (float(found.eighth), float(found.half)) == (flops, 0.0)
    assert float(found.attention) > 0  # in 16 bits
    assert float(found.operands) == operands
    assert float(found.cast) == 4 * tokens * (h + h + h + f)
    assert float(found.cast_back) == 4 * tokens * (h + h // 2 + h + 2 * f + h)
    half = work(row.model, row.at, row.runs.computing_in("bf16"), 8)
    assert (float(half.eighth), float(half.half), float(half.cast)) == (0.0, flops, 0.0)
    assert took(row) < took(one("llama-3-8b", "bf16"))
    assert took(row, fp8=3.0) < took(row, fp8=1.5)
    assert took(row, attention=800.0) < took(row, attention=400.0)


def test_a_fit_of_interleaved_rows_sees_what_estimates_tell() -> None:
    rows = [one(name, kind) for name in ("llama-3-70b", "gpt3-175b") for kind in ("bf16", "fp8")]
    of = prepared(rows, H100.card)
    ones = {name: np.ones(len(rows)) for name in NAMES}
    fast = predicted(of, paths(of, ones), ones)
    assert fast == pytest.approx(np.array(estimated_ms(rows, H100)), rel=1e-4)


def test_products_that_cannot_run_are_refused() -> None:
    row = one("llama-3-8b", "fp8")
    with pytest.raises(ValueError, match=r"row \d+: products must be of a type that a100-80gb"):
        estimated_ms([row], uncalibrated(card("a100-80gb")))
    with pytest.raises(ValueError, match="products fp8 need Transformer Engine"):
        software("megatron-deepspeed").computing_in("fp8")
    with pytest.raises(ValueError, match="products must be one of bf16, fp8, got 'fp4'"):
        software("megatron-core").computing_in("fp4")


def test_rows_of_one_model_do_not_tell_the_attention() -> None:
    assert "attention" not in calibrate(rows_of(B200, measured=True), card("b200")).fitted


def test_utilization_is_the_publishers_where_the_square_counts_whole() -> None:
    """NVIDIA prints 59.37 %, 54.10 % and, of 175 B, 53.54 % of 989 TFLOP/s."""
    for name, printed in (("llama-3-8b", 59.37), ("llama-3-70b", 54.10), ("gpt3-175b", 53.54)):
        row = one(name, "bf16")
        whole = model_tflops(row, row.measured_ms, whole=True)
        assert 100 * whole / 989 == pytest.approx(printed, abs=0.3)
        assert model_tflops(row, row.measured_ms, whole=False) < whole


def test_the_page_states_what_was_asked() -> None:
    """By leaving out the source: dense models 6 % in the mean, mixtures 10 %, a bias of 3 %; no
    card with a kind of model beyond 15 %."""
    page = PAGE.read_text()
    for kind, most in (("dense", 6.0), ("mixture", 10.0)):
        row = re.search(rf"^\| {kind} \|.*", page, flags=re.MULTILINE)
        assert row is not None
        mean, bias = (float(cell.strip(" %")) for cell in row.group().split("|")[7:9])
        assert mean <= most
        assert abs(bias) <= 3.0
    groups = page.partition("## By card and kind")[2].partition("\nDense")[0]
    means = re.findall(r"^\| \w+, \w+ \|(?:[^|]*\|){5} ([0-9.]+) %", groups, flags=re.MULTILINE)
    assert len(means) >= 6
    assert max(map(float, means)) <= 15.0


def test_the_factors_of_the_package_are_those_of_the_page() -> None:
    section = PAGE.read_text().partition("## The constants that are fitted")[2]
    told = re.findall(r"^\| (\w+) \| ([\w-]+) \| ([0-9.]+) \|", section, flags=re.MULTILINE)
    with PUBLISHED.open(newline="") as file:
        kept = [(row["constant"], row["of"], row["factor"]) for row in csv.DictReader(file)]
    assert len(kept) == len(told)
    for (name, of, factor), (one, whose, value) in zip(kept, told, strict=True):
        assert (name, of) == (one, whose)
        assert float(factor) == pytest.approx(float(value), abs=6e-4)
