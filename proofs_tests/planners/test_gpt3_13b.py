"""GPT-3 13B on eight A100 is planned to the end: optimal over its choices, with proof of each."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bubbleproof.formats import read_problem
from bubbleproof.planners import PlanOptions, plan
from bubbleproof.solvers import Status
from bubbleproof.verify.candidates.bundle import check_bundle
from proofs_tests.patience import PATIENCE
from proofs_tests.planners.found_plans import found_plan
from proofs_tests.sized import sized

FILE = Path(__file__).parents[2] / "examples" / "cluster" / "gpt3-13b-8xA100.toml"


@pytest.mark.parametrize("chunks", sized([(1, 5)], full=[(1, 5), (1, 2, 4)]))
def test_it_is_optimal_over_its_choices(chunks: tuple[int, ...]) -> None:
    """Of v chunks in a loop rank 0 has room for 8 v forwards and no more (v = 4: 32.8; 5: 40.98).

    32 microbatches take 36,320 + 74,120 us each; the first I on rank 0 comes 7 tI after the 8 v
    forwards before it, tI = 37,060 / v.
    """
    space = read_problem(FILE).plan
    assert space is not None
    options = PlanOptions(time_limit=PATIENCE, threads=1)
    found = found_plan(plan(replace(space, chunks=chunks), options))
    most = max(chunks)
    assert str(found.winner.candidate) == f"v={most} loop split"
    assert found.winner.value == 32 * (36_320 + 74_120) + 7 * 37_060 // most
    assert (found.status, found.lower_bound) == (Status.OPTIMAL, found.winner.value)
    assert found.verdict.ok
    proved = check_bundle(found.space, found.bundle)
    assert (proved.is_proved, proved.bound) == (True, found.winner.value)
