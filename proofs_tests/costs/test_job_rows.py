"""Rows of iterations: what a row says, and the one line that tells what is wrong with a file."""

from __future__ import annotations

import random
import re

import pytest

from bubbleproof.costs.times.job_rows import model_tflops, rows_of
from proofs_tests.costs.measured_cases import A100, B200

HEAD = (
    "gpus,global_batch,micro_batch,hidden,heads,layers,sequence,tensor,data,pipeline,iteration_ms"
)
LINE = "8,32,4,1024,16,24,1024,2,2,2,219.7"


def test_a_row_of_a_gpt() -> None:
    (row,) = rows_of(f"{HEAD}\n{LINE}", measured=True)
    assert (row.model.hidden, row.model.feed_forward, row.model.vocabulary) == (1024, 4096, 50257)
    assert (row.at.tensor, row.at.data, row.at.pipeline, row.at.scope) == (2, 2, 2, "none")
    assert row.microbatches == 4  # 32 / (2 x 4)
    assert row.measured == 219.7
    assert row.runs.name == "megatron-2021"
    assert row.recomputing("full").at.scope == "full"


def test_a_row_of_a_named_model() -> None:
    row = rows_of(B200, measured=False)[0]
    assert (row.model.name, row.model.layers, row.runs.name) == ("llama-3-70b", 12, "megatron-core")
    assert row.measured is None
    assert len({row.job for row in rows_of(B200, measured=False)}) == 6


def test_a_row_that_tells_its_scope_keeps_it() -> None:
    (row,) = rows_of(f"{HEAD},scope\n{LINE},full", measured=False)
    assert row.recomputing("none").at.scope == "full"


def test_a_part_of_a_model_has_its_part_of_dense_layers() -> None:
    """DeepSeek-V3: 3 of 61 layers; of 4 none by its part, but the first is."""
    head = B200.partition("\n")[0].removesuffix(",allocated_gib")
    for layers, told, dense in ((4, "", 1), (61, "", 3), (41, "", 2), (4, "2", 2)):
        line = f"8,8,1,deepseek-v3,{layers},4096,1,8,1,1.0,{told}"
        (row,) = rows_of(f"{head},dense_layers\n{line}", measured=False)
        assert row.model.dense_layers == dense


def test_a_row_may_tell_more_of_its_cut_and_shape() -> None:
    more = "context,zero,sequence_parallel,chunks,kv_heads,vocabulary"
    line = "8,4,1,llama3-70b,12,4096,1,1,2,1.0"
    head = B200.partition("\n")[0].removesuffix(",allocated_gib")
    (row,) = rows_of(f"{head},{more}\n{line},4,0,false,3,16,1000", measured=False)
    assert (row.at.context, row.at.zero, row.at.sequence_parallel, row.chunks) == (4, 0, False, 3)
    assert (row.model.kv_heads, row.model.vocabulary) == (16, 1000)
    (empty,) = rows_of(f"{head},{more}\n{line.replace('8,4', '2,4')},,,,,,", measured=False)
    assert (empty.at.context, empty.at.zero, empty.chunks) == (1, 1, 1)
    assert empty.at.sequence_parallel
    assert (empty.model.kv_heads, empty.model.vocabulary) == (8, 128256)


@pytest.mark.parametrize("poison", ["", "nan", "-1", "fast", "1e400"])
def test_a_measured_column_is_not_looked_at_unless_asked_for(poison: str) -> None:
    poisoned = LINE.replace("219.7", poison)
    assert rows_of(f"{HEAD}\n{poisoned}", measured=False) == rows_of(
        f"{HEAD}\n{LINE}", measured=False
    )
    with pytest.raises(ValueError, match="row 1: iteration_ms must be a number above 0"):
        rows_of(f"{HEAD}\n{poisoned}", measured=True)


def test_names_and_numbers_as_others_publish_them() -> None:
    """128 x 8192 tokens in 14,110 tokens/s of each of 8 cards: 9,289 ms. 8 cards without model
    parallelism are 8 replicas."""
    head = "card,precision,model,layers,gpus,gbs,mbs,seq,tp,pp,zero,software,tok,network_gbs"
    text = f"{head}\nh100,fp8,llama-3-8b,32,8,128,1,8192,1,1,3,megatron-2025,14110,25"
    (row,) = rows_of(text, measured=True)
    assert (row.at.data, row.at.zero, row.runs.products) == (8, 3, "fp8")
    assert row.runs.name == "megatron-core-overlapped"
    assert row.measured == pytest.approx(128 * 8192 / 14110 / 8 * 1e3)
    assert row.card is not None
    assert (row.card.network_gbs, row.card.link_gbs) == (25, 450)


def test_layers_that_do_not_divide_are_cut_with_the_ends_as_layers() -> None:
    """405B's 126 on 8 x 8 stages; 61 on 8 with fewer on the last; or as the row tells."""
    head = "model,layers,global_batch,micro_batch,sequence,tensor,pipeline,chunks,gpus,cut"
    row = "llama-3-405b,126,8,1,1024,8,8,8,64,"
    assert rows_of(f"{head}\n{row}", measured=False)[0].cut == (1, *(2,) * 62, 1)
    row = "deepseek-v3,61,8,1,1024,1,8,1,8,"
    assert rows_of(f"{head}\n{row}", measured=False)[0].cut == (7, 8, 8, 8, 8, 8, 8, 6)
    told = "6+8+8+8+8+8+8+7"
    assert rows_of(f"{head}\n{row}{told}", measured=False)[0].cut == (6, 8, 8, 8, 8, 8, 8, 7)


def test_one_bad_row_is_refused_and_the_others_are_read() -> None:
    refused: list[str] = []
    text = f"{HEAD}\n{LINE}\n{LINE.replace('8,32', '8,33')}\n{LINE}"
    assert [row.number for row in rows_of(text, measured=False, refused=refused)] == [1, 3]
    assert len(refused) == 1
    assert refused[0].startswith("row 2: global_batch must be a multiple")
    with pytest.raises(ValueError, match="row 2"):
        rows_of(text, measured=False)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "columns gpus, global_batch.* missing; there are none"),
        (HEAD, "no rows below the names"),
        (A100.replace("heads,", "h,"), "a column heads missing; there are gpus"),
        (A100.replace("heads,", "hidden,"), "each column must stand once, hidden stands twice"),
        (B200.replace("iteration_ms", "ms"), "a column iteration_ms missing"),
        (f"{HEAD}\n{LINE}".replace("8,32,4", "8,32,x"), "row 1: micro_batch must be a whole"),
        (f"{HEAD}\n{LINE}".replace("8,32,4", "8,33,4"), "use 32"),
        (f"{HEAD}\n{LINE}".replace("8,32,4", "4,32,4"), "are 8 cards, gpus says 4"),
        (f"{HEAD}\n{LINE}".replace(",24,1024,2,2,2", ",2,1024,1,1,8"), "at most layers . 2 = 4"),
        (B200.replace("llama3-70b", "lama-3-70"), "row 1: no model 'lama-3-70'; the nearest are"),
        (f"{HEAD},software\n{LINE},jax", "row 1: software must be one of megatron"),
        (f"{HEAD},scope\n{LINE},most", "row 1: scope must be one of none, attention, full"),
        (f"{HEAD},zero\n{LINE},4", "row 1: zero must be one of 0, 1, 2, 3, got '4'"),
        (f"{HEAD},sequence_parallel\n{LINE},yes", "sequence_parallel must be true or false"),
        (f"{HEAD},chunks\n{LINE},15", "row 1: pipeline x chunks must be at most layers . 2 = 26"),
        (f"{HEAD},cut\n{LINE},12+11", r"row 1: cut must be 2 numbers .* 24 together, got 12.11"),
        (f"{HEAD},shard\n{LINE},3", "row 1: shard must divide data x context 2, got 3"),
        (f"{HEAD},card\n{LINE},h1000", "row 1: no card 'h1000'"),
        (f"{HEAD},seconds\n{LINE},0.4", "row 1: seconds must agree with iteration_ms within 20 %"),
        (f"{HEAD},tok\n{LINE},9e9", "row 1: tokens_per_second must agree with iteration_ms"),
        (f"{HEAD},chunks\n{LINE},0", "row 1: chunks must be a whole number above 0"),
        (f"{HEAD},chunks\n{LINE},2".replace("2,2,2,219", "4,2,1,219"), "chunks must be 1 where"),
        (f"{HEAD},context\n{LINE},2", "data 2 x pipeline 2 x context 2 are 16 cards"),
        (f"{HEAD},expert\n{LINE},2", "row 1: expert must be 1 for a model without"),
        (f"{HEAD}\n8,32", "row 1: a row has a cell for each of 11 columns, got 2"),
        (f"{HEAD}\n{LINE},9", "row 1: a row has a cell for each of 11 columns, got 12"),
        (f"{HEAD}\n{LINE}".replace("8,32,4", "4,32,4"), "gpus says 4; use gpus = 8"),
        (f"{HEAD}\n{LINE}".replace("219.7", "99999999999999999999"), "at most 86400000"),
        (f"{HEAD}\n{LINE}".replace("219.7", "1_0"), "got '1_0'"),
        (f"{HEAD}\n{LINE}".replace("219.7", "\u0663"), "iteration_ms must be a number"),
        (f"{HEAD}\n{LINE}".replace("8,32,4", "\u0668,32,4"), "gpus must be a whole number"),
        (f"{HEAD}\n{LINE}".replace("8,32,4", "8,-32,4"), "global_batch must be a whole number"),
        (f"{HEAD}\n{LINE}".replace("1024,16", "1024,3"), "use heads = 2"),
        (f"{HEAD}\n{LINE}".replace("2,2,2", "32,2,2"), "tensor must divide heads 16, got 32"),
        (f'{HEAD}\n"8', "line 2 is no comma-separated values"),
        (f"{HEAD}\n" + "9" * 200_000, "line 2 is no comma-separated values"),
    ],
)
def test_bad_rows_are_one_line(text: str, told: str) -> None:
    with pytest.raises(ValueError, match=told) as refused:
        rows_of(text, measured=True)
    assert "\n" not in str(refused.value)


TRUE = {
    "gpus": 16, "global_batch": 64, "micro_batch": 2, "model": "llama-3-8b", "layers": 32,
    "sequence": 4096, "tensor": 2, "data": 2, "pipeline": 4, "context": 1, "zero": 1,
    "scope": "none", "seconds": 2.0,
}  # fmt: skip
TOKENS = 64 * 4096 / 16 / 2.0  # of each card in a second


def lies(rng: random.Random) -> tuple[dict[str, object], str]:
    """A row that contradicts itself in one place, and the column that says so."""
    by = rng.choice((0.3, 0.5, 0.75, 1.4, 2.0, 3.0))
    (nominal,) = rows_of(_text([TRUE]), measured=True)
    rate = model_tflops(nominal, 2000.0, whole=True)
    kinds: tuple[tuple[dict[str, object], str], ...] = (
        ({"gpus": rng.choice((8, 15, 17, 32))}, "gpus"),
        ({rng.choice(("tensor", "data", "pipeline")): rng.choice((1, 8))}, "gpus"),
        ({"context": 2}, "gpus"),
        ({"micro_batch": rng.choice((3, 5, 64))}, "global_batch"),
        ({"global_batch": rng.choice((1, 63, 66))}, "global_batch"),
        ({"tokens_per_second": TOKENS * by}, "tokens_per_second"),
        ({"iteration_ms": 2000 * by}, "seconds"),
        ({"tflops": rate * by}, "tflops"),
        ({"cut": rng.choice(("8+8+8+7", "16+16", "8+8+8+9"))}, "cut"),
        ({"layers": 3, "cut": "1+1+1"}, "cut"),
        ({"sequence": 4097, "context": 2, "data": 1}, "sequence"),
    )
    change, column = rng.choice(kinds)
    return {**TRUE, **change}, column


def _text(rows: list[dict[str, object]]) -> str:
    columns = list(dict.fromkeys(name for row in rows for name in row))
    lines = [",".join(str(row.get(name, "")) for name in columns) for row in rows]
    return "\n".join([",".join(columns), *lines])


def test_drawn_contradictions_are_told_by_row_and_column() -> None:
    """Each bad row by its number and column; the true ones between them are read."""
    rng = random.Random(20)
    drawn = [lies(rng) if number % 3 else (dict(TRUE), "") for number in range(240)]
    refused: list[str] = []
    found = rows_of(_text([row for row, _ in drawn]), measured=True, refused=refused)
    assert [row.number for row in found] == [*range(1, 241, 3)]
    bad = [(number, column) for number, (_, column) in enumerate(drawn, start=1) if column]
    for told, (number, column) in zip(refused, bad, strict=True):
        assert re.match(rf"row {number}: .*\b{column}\b", told), (told, column)
        assert "\n" not in told


def test_a_rate_is_that_of_the_time_by_what_counts() -> None:
    """Half of the square or all; the pass that recomputes counts where the row has one."""
    (nominal,) = rows_of(_text([TRUE]), measured=True)
    rate = model_tflops(nominal, 2000.0, whole=True)
    for more, scope, is_right in ((1.0, "none", 1), (1.3, "none", 0), (1.3, "full", 1)):
        refused: list[str] = []
        text = _text([TRUE, {**TRUE, "scope": scope, "tflops": more * rate}])
        found = rows_of(text, measured=True, refused=refused)
        assert len(found) == 1 + is_right
