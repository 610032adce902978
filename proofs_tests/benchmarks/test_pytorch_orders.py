"""Families beside PyTorch's schedules of the same names: the same order, action by action."""

from __future__ import annotations

import pytest

from benchmarks.torch_tables import Size, schedule_classes, to_program, torch_table
from bubbleproof.theory.families import family
from bubbleproof.theory.pipelines.pipeline import Pipeline
from proofs_tests.sized import sized

THEIRS = {"interleaved": "Interleaved1F1B", "zb-v": "ZBVZeroBubble"}


@pytest.mark.parametrize("name", THEIRS)
def test_the_family_is_pytorchs_order(name: str) -> None:
    for p in range(2, sized(6, full=9)):
        for m in range(1, 3 * p + 2):
            step = Pipeline(num_ranks=p, num_microbatches=m, num_chunks=2)
            ours = family(name)
            pipeline = ours.fitted(step)
            if ours.ours(pipeline) is not None:
                continue  # the source has no such shape
            size = Size(ranks=p, microbatches=m, chunks=2)
            table = torch_table(schedule_classes()[THEIRS[name]], size)
            assert table is not None
            theirs = to_program(table.compute)
            assert list(theirs.actions) == list(ours.program(pipeline).actions), str(size)
