"""Rows of iterations: what a row says, and the one line that tells what is wrong with a file."""

from __future__ import annotations

import pytest

from bubbleproof.costs.times.job_rows import rows_of
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
