"""PipeMesh's sharded optimizer state, replayed on gloo."""

from __future__ import annotations

import pytest

from bubbleproof.papers.pipemesh.optimizer_sharding import with_sharded_state
from bubbleproof.reference_exec.drivers.gloo import GlooPool
from bubbleproof.reference_exec.plans.run_options import ReplayOptions
from bubbleproof.reference_exec.replaying import replay
from proofs_tests.reference_exec.cases import family_case
from proofs_tests.reference_exec.conftest import pool as pool  # the fixture
from proofs_tests.reference_exec.test_gloo import SPEC


@pytest.mark.torch
def test_an_interleaved_order_with_sharded_optimizer_state_replays_on_gloo(pool: GlooPool) -> None:
    # 2 x 2 processes, three chunks a rank: the order comes back to a chunk before it is done with
    # any, so no backward may wait for a reduction.
    case = family_case("interleaved", p=2, m=4, v=3)
    made = with_sharded_state(case.pipeline, case.schedule, 1)
    report = replay(*made, SPEC, ReplayOptions(backend="gloo", data_parallel=2), pool=pool)
    virtual = replay(*made, SPEC, ReplayOptions(data_parallel=2))
    assert report.ok, str(report)
    assert report.zero == "1"
    assert report.live_bytes == virtual.live_bytes
    assert report.loss == virtual.loss
