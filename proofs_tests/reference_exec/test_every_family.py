"""No family is forgotten: each that is registered replays; in the full form in both types, under
two semantics.

Those with a shape of their own say it below; ``pipemesh`` runs its collectives on two replicas.
What is particular to one of them is tested elsewhere in this folder.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from bubbleproof.reference_exec.evidence.replay_report import ReplayReport
from bubbleproof.reference_exec.plans.run_options import ReplayOptions
from bubbleproof.reference_exec.plans.zero_levels import ZeroLevels
from bubbleproof.reference_exec.replaying import replay
from bubbleproof.theory.families import families
from bubbleproof.verify import USUAL, Semantics
from proofs_tests.reference_exec.cases import TINY, family_case
from proofs_tests.reference_exec.meshes import mesh
from proofs_tests.sized import sampled, sized

SHAPES = {
    "bfs": {"p": 2, "m": 3, "v": 2},
    "bpipe": {"p": 4, "m": 5},
    "bpipe-interleaved": {"p": 4, "m": 4, "v": 2},
    "hanayo": {"p": 2, "m": 3, "v": 4},
    "interleaved": {"p": 2, "m": 4, "v": 2},
    "terapipe": {"p": 2, "m": 2, "s": 2},
    "seq1f1b": {"p": 2, "m": 2, "s": 2, "v": 2},
    "slimpipe": {"p": 2, "m": 2, "s": 2, "v": 2},
    "svpp": {"p": 2, "m": 2, "s": 2, "v": 2},
    "svpp-w": {"p": 2, "m": 2, "s": 2},
}
ORDINARY = {"p": 2, "m": 4}
ALL = USUAL
PAIRS = tuple(zip(ALL, (*ALL[1:], ALL[0]), strict=True))
NAMES, DTYPES = sorted(families()), ("float64", "float32")
PAIRED = [(name, DTYPES[index % 2]) for index, name in enumerate(NAMES)]


def report_of(
    name: str, dtype: str = "float64", *, count_bytes: bool = True, seed: int, semantics: Semantics
) -> ReplayReport:
    """The replay of a small member of a family."""
    spec = replace(TINY, dtype=dtype, sequence=2)
    if name == "pipemesh":
        return replay(
            *mesh(3),
            spec,
            ReplayOptions(
                data_parallel=2,
                zero=ZeroLevels.parse("3,bias=1"),
                seed=seed,
                semantics=semantics,
                count_bytes=count_bytes,
            ),
        )
    case = family_case(name, **SHAPES.get(name, ORDINARY))
    return replay(
        case.pipeline,
        case.schedule,
        spec,
        ReplayOptions(seed=seed, semantics=semantics, count_bytes=count_bytes),
    )


@pytest.mark.sweep
@pytest.mark.parametrize(("name", "dtype"), sized(PAIRED, full=[*product(NAMES, DTYPES)]))
def test_a_registered_family_replays(name: str, dtype: str) -> None:
    seeded = [*enumerate(PAIRS[NAMES.index(name) % len(PAIRS)])]
    for seed, semantics in sized(seeded[:1], full=seeded):
        report = report_of(name, dtype, seed=seed, semantics=semantics)
        assert report.gradients_equal
        assert report.peak_bytes.measured == report.peak_bytes.predicted
        assert len(report.peak_bytes.measured) == report.ranks * report.data_parallel
        assert report.ok, str(report)


@pytest.mark.sweep
@pytest.mark.parametrize("name", sampled(NAMES, every=3))
def test_a_registered_family_replays_without_counting_bytes(name: str) -> None:
    report = report_of(name, count_bytes=False, seed=0, semantics=Semantics.PAIR_STREAM)
    assert report.gradients_equal
    assert report.ok, str(report)
    assert not report.counts_bytes
    assert not any(report.peak_bytes.measured)
    assert not any(report.live_bytes)
    what = "gradients" if report.trains else "losses"
    assert str(report).endswith(f"{what} equal, bytes not counted")
