"""Schedules whose transfers share an instant with what they serve: refused in one clear line."""

from __future__ import annotations

import pytest

from bubbleproof.theory.pipelines.activation_offload import ActivationOffload
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.transfers import Eviction
from proofs_tests.reference_exec.cases import family_case, random_case, run


def moved(ticks: int) -> Pipeline:
    """An eviction and an off-load that take so many ticks each way."""
    return Pipeline(
        num_ranks=2,
        num_microbatches=2,
        evictions=(Eviction(stage=0, microbatch=0, source=0, target=1, duration=ticks),),
        offloads=(ActivationOffload(stage=1, microbatch=1, offload=ticks, reload=ticks),),
    )


@pytest.mark.parametrize("name", ["bpipe", "toffload"])
def test_computations_of_no_time_are_refused_beside_transfers(name: str) -> None:
    with pytest.raises(ValueError, match="need computations of 1 tick or more; 0F0 takes none"):
        run(family_case(name, p=4, m=5, tF=0))


def test_what_leaves_and_is_back_at_once_is_refused() -> None:
    with pytest.raises(ValueError, match=r"cannot tell the bytes of 0EVICT0, .* by 0LOAD0 at"):
        run(random_case(moved(0), 0))
    for seed in range(3):
        report = run(random_case(moved(1), seed))
        assert report.ok, str(report)
