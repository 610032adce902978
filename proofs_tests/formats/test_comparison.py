"""A pipeline in a family's shape keeps the work and the memory of each rank."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubbleproof.formats import comparison_pipeline
from bubbleproof.theory.families import family
from bubbleproof.theory.pipelines.pipeline import Pipeline
from proofs_tests.formats.strategies import pipelines


def test_same_shape_keeps_every_stage() -> None:
    uneven = Pipeline(num_ranks=2, num_microbatches=3, forward=(5, 8), static=(7, 0))
    assert comparison_pipeline(uneven, family("1f1b")) == uneven


def test_stages_are_cut_into_chunks() -> None:
    # Rank 0 has 5 = 3 + 2 ticks for its chunks, stages 0 and 2; rank 1 has 8 = 4 + 4.
    uneven = Pipeline(num_ranks=2, num_microbatches=3, forward=(5, 8), backward=(9, 16))
    cut = comparison_pipeline(uneven, family("interleaved"), num_chunks=2)
    assert cut.forward == (3, 4, 2, 4)
    assert cut.backward == (5, 8, 4, 8)
    assert (cut.num_chunks, cut.placement) == (2, "loop")


def test_chunks_are_joined() -> None:
    wave = Pipeline(
        num_ranks=2, num_microbatches=1, num_chunks=2, placement="wave", forward=(1, 2, 3, 4)
    )
    # Rank 0 has stages 0 and 3, rank 1 stages 1 and 2.
    assert comparison_pipeline(wave, family("gpipe")).forward == (5, 5)


@given(
    pipeline=pipelines(),
    name=st.sampled_from(["gpipe", "1f1b", "interleaved", "bfs", "zb-h1"]),
    chunks=st.integers(1, 3),
)
def test_rank_totals_stay(pipeline: Pipeline, name: str, chunks: int) -> None:
    chosen = family(name)
    cut = comparison_pipeline(
        pipeline, chosen, num_chunks=chunks if "v" in chosen.options else None
    )
    for column in ("forward", "backward", "input_backward", "activation", "static"):
        assert rank_totals(cut, column) == rank_totals(pipeline, column)
    if pipeline.num_slices == 1:
        assert chosen.refusal(cut) is None


def rank_totals(pipeline: Pipeline, column: str) -> list[int]:
    """What a rank's stages have together; where slices differ, all slices' numbers together."""
    totals = [0] * pipeline.num_ranks
    for rank, value in zip(pipeline.stage_ranks, getattr(pipeline, column), strict=True):
        totals[rank] += sum(value) if isinstance(value, tuple) else value * pipeline.num_slices
    return totals


def test_unequal_slices_are_cut_each_on_its_own_and_weights_stay_whole() -> None:
    pipeline = Pipeline(
        num_ranks=2,
        num_microbatches=1,
        num_slices=2,
        forward=((5, 8), (1, 2)),
        split_backward=True,
        weight_backward=5,
        weight_parts=(2, 3),
    )
    cut = comparison_pipeline(pipeline, family("svpp-w"), num_chunks=2)
    # 5 = 3 + 2 and 8 = 4 + 4 on rank 0; 1 = 1 + 0 and 2 = 1 + 1 on rank 1.
    assert cut.forward == ((3, 4), (1, 1), (2, 4), (0, 1))
    assert cut.weight_parts == ()
    assert cut.weight_backward == (3, 3, 2, 2)
    same = comparison_pipeline(pipeline, family("svpp-w"))
    assert same.weight_parts == ((2, 3), (2, 3))


def test_workspace_is_kept_where_weights_are_not_cut() -> None:
    pipeline = Pipeline(
        num_ranks=2,
        num_microbatches=1,
        split_backward=True,
        weight_backward=5,
        weight_parts=(2, 3),
        weight_workspace=((1, 2), (4, 3)),
    )
    # A W that is whole, and a full backward, hold the largest of their GEMMs'.
    for name in ("zb-h1", "1f1b"):
        assert comparison_pipeline(pipeline, family(name)).weight_workspace == ((2,), (4,))
    # GEMMs do not shrink where stages are cut: both chunks of a rank hold what its stage did.
    cut = comparison_pipeline(pipeline, family("svpp-w"), num_chunks=2)
    assert cut.weight_workspace == ((2,), (4,), (2,), (4,))


@pytest.mark.parametrize("name", ["chimera", "dualpipe", "dualpipev", "zb-v", "v-half", "v-min"])
def test_a_family_brings_its_own_placement_splits_and_overlaps(name: str) -> None:
    uneven = Pipeline(
        num_ranks=4,
        num_microbatches=8,
        forward=(2, 4, 6, 8),
        backward=(4, 8, 12, 16),
        input_backward=(2, 4, 6, 8),
        weight_backward=(2, 4, 6, 8),
        static=(10, 20, 30, 40),
    )
    chosen = family(name)
    fitted = comparison_pipeline(uneven, chosen)
    assert chosen.refusal(fitted) is None
    # The work of all ranks stays: 8 microbatches through stages of 6 + 12 + 18 + 24 ticks.
    assert fitted.problem().duration.sum() == 8 * (6 + 12 + 18 + 24)
    # Bidirectional families hold every stage twice.
    copies = 2 if fitted.is_bidirectional else 1
    assert sum(store.base for store in fitted.problem().stores) == copies * 100
    back = comparison_pipeline(fitted, family("gpipe"))
    assert family("gpipe").refusal(back) is None


def test_a_family_that_cannot_be_fitted_says_why() -> None:
    odd = Pipeline(num_ranks=3, num_microbatches=8)
    chosen = family("dualpipe")
    refused = chosen.refusal(comparison_pipeline(odd, chosen))
    assert refused == "dualpipe needs an even number of ranks, got p=3"
