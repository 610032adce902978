"""The plain model says what ``solve`` proves, on small instances of every kind."""

from __future__ import annotations

from random import Random

import pytest

from benchmarks.drawn_instances import KINDS, Found, Tally, faults, is_better, ours, plain
from bubbleproof.solvers.choices.pipeline_variants import PipelineVariants


@pytest.mark.parametrize("kind", KINDS)
def test_both_find_the_same_optimum(kind: str) -> None:
    random, compared = Random(f"small {kind}"), 0
    while compared < 2:
        drawn = KINDS[kind](random)
        if drawn.pipeline.problem().num_tasks > 36:
            continue
        variants = PipelineVariants(drawn.pipeline, drawn.allowed).variants
        found, beside = ours(drawn, 1), plain(variants, 1)
        if found.is_optimal and beside.is_optimal:
            assert found.value == beside.value == found.bound
        compared += 1


def test_behind_is_longer_lower_or_later() -> None:
    short, long = Found(9, 8, False, 1.0), Found(10, 8, False, 1.0)
    assert list(faults(long, short)) == ["longer"]
    assert not list(faults(short, long))
    assert list(faults(Found(None, 8, False, 1.0), short)) == ["longer"]
    assert not list(faults(short, Found(None, 0, False, 1.0)))
    assert list(faults(Found(9, 7, False, 1.0), short)) == ["lower bound"]
    proved = Found(9, 9, True, 1.0)
    assert list(faults(proved._replace(work=2.1), proved)) == ["later"]  # 1.5 * 1.0 + 0.5 = 2.0
    assert not list(faults(proved._replace(work=1.9), proved))


def test_better_is_shorter_or_as_long_and_surer() -> None:
    found = Found(9, 8, False, 1.0)
    assert is_better(found, found._replace(value=10, bound=9))
    assert is_better(found, found._replace(bound=7))
    assert is_better(found, found._replace(value=None))
    assert not is_better(found, found)


def test_a_tally_names_the_seeds_behind() -> None:
    tally, short, long = Tally("chunks"), Found(9, 9, True, 1.0), Found(10, 8, False, 1.0)
    for seed, pair in enumerate(((short, long), (short, short), (long, short))):
        tally.add(str(seed), *pair)
    assert tally.cells == ["chunks", "3", "1", "1", "1", "2", "2", "2 (longer, lower bound)"]
