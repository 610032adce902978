"""The figures of SlimPipe's authors are those of the orders, and not those of another one."""

from __future__ import annotations

from fractions import Fraction
from math import prod

from benchmarks.catalogue.slimpipe_figures import (
    GIB,
    MODELS,
    PrintedRow,
    filled,
    holds,
    kept_bytes,
    measured,
    printed_rows,
    share,
)
from proofs_tests.sized import sized

LONGEST = sized(41_000, full=1_000_000)  # forwards of a step
KV_WIDTH = {"LLaMA-13B": 5120, "LLaMA-70B-GQA": 1024, "LLaMA-150B-GQA": 1024}


def kept_numbers(model: str) -> int:
    """Numbers of a token in a layer without experts: what goes into and comes out of two norms, of
    the attention's queries, keys and values, what it puts out, and of the gated block two inputs
    and their product."""
    _, hidden, width, _ = MODELS[model]
    return 6 * hidden + 2 * KV_WIDTH[model] + 3 * width


def token_bytes(model: str) -> Fraction:
    return Fraction(2 * MODELS[model][0] * kept_numbers(model))


def rows_of(model: str, recompute: str) -> list[PrintedRow]:
    return [row for row in printed_rows() if row.kind == (model, recompute)]


def test_bubble_and_memory_without_recompute_are_the_printed_ones() -> None:
    wrong = []
    for model in KV_WIDTH:
        for row in rows_of(model, "no"):
            if prod(row.shape) > LONGEST:
                continue
            is_bubble = row.has_bubble(measured(row.shape).idle_ratio)
            is_memory = holds(row, token_bytes(model), share(row.shape))
            if not (is_bubble and is_memory):
                wrong.append((row.shape, is_bubble, is_memory))
    # The row of 32 slices has the figures of that of 64: 15/(16*64*5 + 15) = 0.29 per cent.
    assert wrong == [((16, 16, 32, 5), False, False)]


def test_rows_of_another_bubble_repeat_the_figures_of_another_row() -> None:
    rows = printed_rows()
    figures = ("model", "t", "c", "p", "n", "v", "bubble_percent")
    copies = {tuple(row.told[key] for key in figures) for row in rows if row.shape[1] == 4
              and row.told["file"] == "extended_configs.bak"}  # fmt: skip
    wrong = [row for row in rows if not row.has_bubble(measured(row.shape).idle_ratio)]
    (last,) = (row for row in wrong if row.told["file"] != "extended_configs")
    for row in wrong:
        is_copy = tuple(row.told[key] for key in figures) in copies
        assert is_copy == (row is not last)
    twice = {**last.told, "n": str(2 * last["n"])}
    assert twice in [row.told for row in rows]


def test_a_row_by_hand() -> None:
    row = next(row for row in rows_of("LLaMA-13B", "no") if row.shape == (8, 16, 16, 5))
    # 7 idle passes of each kind beside 16*16*5 on each rank; 16*5 + 2*7 passes of 8*16*5 in flight
    assert measured(row.shape).idle_ratio == Fraction(7, 1287)
    assert share(row.shape) == Fraction(94, 640)
    # 2 bytes, 40 layers, 6*5120 + 2*5120 + 3*13824 numbers, 16384 tokens on a card
    held = Fraction(2 * 40 * 82432 * 16384 * 94, 640 * GIB)
    assert round(float(held), 2) == 14.78
    assert (row.told["activation_gib"], row.told["bubble_percent"]) == ("14.78", "0.54")


def test_the_peak_of_another_order_is_not_the_printed_one() -> None:
    model = "Mixtral-8x7B"  # alone with one chunk, as Seq1F1B takes
    token = Fraction(2 * 32 * (6 * 4096 + 2 * 1024 + 3 * 2 * 14336))  # two experts
    rows = [row for row in rows_of(model, "no") if row["v"] == 1]
    assert {row.shape for row in rows} == {
        (32, 8, 32, 1), (32, 8, 64, 1), (32, 16, 32, 1), (32, 16, 64, 1)
    }  # fmt: skip
    for row in rows:
        assert holds(row, token, share(row.shape))
        assert not holds(row, token, share(row.shape, "seq1f1b"))


def test_the_printed_memory_is_that_of_a_step_with_microbatches_enough() -> None:
    (row, *_) = (row for row in rows_of("LLaMA-70B-GQA", "full") if row.shape == (16, 8, 1, 1))
    token = Fraction(2 * 80 * 8192)  # what each layer starts from
    # 1F1B: 16 in flight on 16 ranks are a sample's activations, and 8 are half of them
    assert (share(filled(row.shape)), share(row.shape)) == (Fraction(1), Fraction(1, 2))
    assert token * row.tokens == 40 * GIB
    assert row.told["activation_gib"] == "40.00"
    assert holds(row, token, share(filled(row.shape)))
    assert not holds(row, token, share(row.shape))


def test_a_plan_counts_statistics_and_exchanged_attention_besides() -> None:
    for model in KV_WIDTH:
        _, hidden, _, _ = MODELS[model]
        heads = hidden // 128
        # in 4 bytes one of each head and one of each norm; the attention's output once more
        alone = 2 * kept_numbers(model) + 4 * (heads + 2)
        assert kept_bytes(model, "none", 1) == alone
        assert kept_bytes(model, "none", 2) == alone + 2 * hidden
        assert kept_bytes(model, "full", 1) == 2 * hidden
