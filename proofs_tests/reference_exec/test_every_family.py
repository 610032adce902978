"""No family is forgotten: each that is registered replays, in both types, under two semantics.

Those with a shape of their own say it below; ``pipemesh`` runs its collectives on two replicas.
What is particular to one of them is tested elsewhere in this folder.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from bubbleproof.reference_exec.replay import replay
from bubbleproof.reference_exec.zero_levels import ZeroLevels
from bubbleproof.theory.families import families
from bubbleproof.verify import Semantics
from proofs_tests.reference_exec.cases import TINY, family_case
from proofs_tests.reference_exec.meshes import mesh

SHAPES = {
    "bfs": {"p": 2, "m": 3, "v": 2},
    "bpipe": {"p": 4, "m": 5},
    "bpipe-interleaved": {"p": 4, "m": 4, "v": 2},
    "hanayo": {"p": 2, "m": 3, "v": 4},
    "interleaved": {"p": 2, "m": 4, "v": 2},
    "terapipe": {"p": 2, "m": 2, "s": 2},
    "svpp": {"p": 2, "m": 2, "s": 2, "v": 2},
    "svpp-w": {"p": 2, "m": 2, "s": 2},
}
ORDINARY = {"p": 2, "m": 4}
ALL = tuple(Semantics)
PAIRS = tuple(zip(ALL, (*ALL[1:], ALL[0]), strict=True))
NAMES = sorted(families())


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", NAMES)
def test_a_registered_family_replays(name: str, dtype: str) -> None:
    spec = replace(TINY, dtype=dtype, sequence=2)
    for seed, semantics in enumerate(PAIRS[NAMES.index(name) % len(PAIRS)]):
        if name == "pipemesh":
            zero = ZeroLevels.parse("3,bias=1")
            report = replay(
                *mesh(3), spec, data_parallel=2, zero=zero, seed=seed, semantics=semantics
            )
        else:
            case = family_case(name, **SHAPES.get(name, ORDINARY))
            report = replay(case.problem, case.schedule, spec, seed=seed, semantics=semantics)
        assert report.gradients_equal
        assert report.measured_peak_bytes == report.predicted_peak_bytes
        assert report.ok, str(report)
