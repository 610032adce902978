"""Overlapped pairs: one task with all that both had, or a refusal."""

from __future__ import annotations

from collections import Counter

import pytest

from bubbleproof.theory.pipelines.overlaps import fuse
from proofs_tests.theory.pipeline_rows import PLAIN, edges, events


def test_a_fused_pair_inherits_durations_edges_and_memory() -> None:
    made = PLAIN.with_changes(overlaps=(((1, 1), (1, 0)),)).problem()
    pair = "(1F1;1B0)OVERLAP_F_B"
    assert made.num_tasks == 7
    assert made.duration[made.task(pair)] == 3  # tF + tB = 1 + 2
    assert edges(made) == Counter(
        [("0F0", "1F0", 0), ("0F1", pair, 0), ("0F0", "0B0", 0), ("0F1", "0B1", 0),
         ("1F0", pair, 0), (pair, "1B1", 0), (pair, "0B0", 0), ("1B1", "0B1", 0)]
    )  # fmt: skip
    assert events(made)[pair, "start", 1, 1] == 1
    assert events(made)[pair, "end", 1, -1] == 1


@pytest.mark.parametrize(
    ("overlaps", "message"),
    [
        ([((0, 0), (1, 1))], "overlap needs 0F0 and 1B1 as tasks of one rank"),
        ([((0, 9), (0, 1))], "overlap needs 0F9 and 0B1 as tasks of one rank"),
        ([((0, 1), (0, 0)), ((0, 1), (0, 1))], "an action may be part of one overlap only"),
        ([((0, 0), (0, 1)), ((0, 1), (0, 1))], "an action may be part of one overlap only"),
    ],
)
def test_what_cannot_be_fused(
    overlaps: list[tuple[tuple[int, int], tuple[int, int]]], message: str
) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        fuse(PLAIN.problem(), overlaps)
    assert str(caught.value) == message
