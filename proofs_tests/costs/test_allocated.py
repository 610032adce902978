"""Bytes of the fullest card against sums written out, and against measured peaks."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import pytest

from bubbleproof.costs import Deployment, known_model, layer_saved
from bubbleproof.costs.order_estimates import in_flight_passes
from bubbleproof.costs.times.allocated import allocated
from bubbleproof.costs.times.job_rows import rows_of
from bubbleproof.costs.times.profiles import software
from bubbleproof.theory.families import family
from bubbleproof.theory.model.measures import measure
from bubbleproof.theory.pipelines.pipeline import Pipeline
from proofs_tests.costs.measured_cases import B200

GIB = 2**30
CORE = software("megatron-core")


def test_measured_peaks_of_a_model_that_nothing_was_fitted_to() -> None:
    peaks = [float(row["allocated_gib"]) for row in csv.DictReader(io.StringIO(B200))]
    for row, peak in zip(rows_of(B200, measured=False), peaks, strict=True):
        stages = allocated(row.model, row.at, row.runs, row.microbatches)
        found = max(stage.total for stage in stages) / GIB
        assert found == pytest.approx(peak, rel=0.002)


def test_the_sums_written_out() -> None:
    """Llama 3 70B of 12 layers over t = 8: h 8192, k and v 1024 wide, f 28672, V 128256."""
    model = known_model("llama-3-70b").model.with_changes(layers=12)
    at = Deployment(tensor=8, sequence=4096, zero=1, accounting="engine")
    (stage,) = allocated(model, at, CORE, 4)
    h, kv, f, v, t, n = 8192, 1024, 28672, 128256, 8, 4096
    linears = 2 * h * h + 2 * h * kv + 3 * h * f
    weights = 12 * (linears // t + 2 * h) + 2 * v * h // t + h
    assert stage.state == 18 * weights  # 2 + 4 + 12 bytes
    # Of a token: outputs of norms, attention and residual additions: 5 h; q, k, v; gate,
    # up and their product; 32-bit statistics of two norms and of the attention's heads.
    kept = 2 * (5 * h + h + 2 * kv + 3 * f) + 4 * (2 + 64)
    assert stage.saved == 12 * n * kept // t
    assert stage.software == 2 * linears // t + 2 * 32 * 2**20
    ends = n * (2 * h + 4) // t + 2 * n * h // t  # the last norm's output, statistics and input
    logits = n * v // t
    head = 2 * logits + 2 * v * h // t + 4 * n * h
    assert stage.moment == ends + max(6 * logits, head)


def test_more_microbatches_than_stages_add_nothing() -> None:
    model = known_model("llama-2-7b").model
    at = Deployment(pipeline=4, sequence=4096, zero=1, accounting="engine")
    few, many = (allocated(model, at, CORE, count) for count in (4, 64))
    assert few == many
    assert few[0].saved == 4 * few[3].saved  # min(p - g, m) microbatches
    one = allocated(model, at, CORE, 1)
    assert one[0].saved == one[3].saved


def test_recomputing_a_layer_keeps_its_input_and_one_whole_layer() -> None:
    model = known_model("llama-2-7b").model
    at = Deployment(sequence=4096, zero=1, accounting="engine")
    (plain,) = allocated(model, at, CORE, 1)
    (full,) = allocated(model, at.with_changes(scope="full"), CORE, 1)
    assert full.saved == 32 * (2 * 4096 * 4096) + plain.saved // 32


@pytest.mark.parametrize(("ranks", "chunks", "count"), [(2, 2, 4), (4, 2, 8), (4, 3, 4), (3, 4, 6)])
def test_passes_in_flight_are_those_of_the_interleaved_schedule(
    ranks: int, chunks: int, count: int
) -> None:
    pipeline = Pipeline(
        num_ranks=ranks, num_microbatches=count, num_chunks=chunks, forward=1, backward=2
    )
    schedule = family("interleaved").schedule(pipeline)
    peaks = measure(pipeline.problem(), schedule).peak_activations
    assert peaks == tuple(in_flight_passes(ranks, r, count, chunks) for r in range(ranks))


def test_a_fused_loss_has_no_logits_of_32_bits() -> None:
    """4096 tokens of GPT-2's 50304 padded words: 6 bytes of each, or 2 (the head's backward needs
    2 of each as well, and 4 h a token is gathered only from a tensor group)."""
    model = known_model("gpt2").model.with_changes(layers=1, vocabulary=50304)
    at = Deployment(sequence=4096, zero=1, accounting="engine")
    plain = replace(CORE, fused_loss=False, placeholders=False)
    (copied,) = allocated(model, at, plain, 1)
    (fused,) = allocated(model, at, replace(plain, fused_loss=True), 1)
    assert copied.moment - fused.moment == 4 * 4096 * 50304


def test_context_parallelism_keeps_the_attentions_output_twice() -> None:
    model = known_model("llama-3-70b").model.with_changes(layers=12)
    at = Deployment(sequence=32768, context=8, zero=1, accounting="engine")
    one = at.with_changes(context=1, sequence=4096)
    assert layer_saved(model, at) - layer_saved(model, one) == 2 * 4096 * model.query_width
    plain = at.with_changes(accounting="fused")
    assert layer_saved(model, plain) == layer_saved(model, one.with_changes(accounting="fused"))
