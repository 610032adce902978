"""Retiming gives what building and measuring the schedule gives, for every family."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bubbleproof.papers.claims.retiming import retimed, template
from bubbleproof.theory.families import families, family, make_parameters
from bubbleproof.theory.model.measures import measure
from proofs_tests.sized import sampled

TICKS: tuple[dict[str, int], ...] = (
    {},
    {"tF": 3},
    {"tF": 2, "tI": 3, "tW": 1},
    {"tF": 1, "tI": 2, "tW": 0},
    {"tF": 5, "tI": 1, "tW": 4},
)
SOME_TICKS = sampled(TICKS, every=2)
SHAPES: tuple[dict[str, int | tuple[int, ...]], ...] = (
    {"p": 4, "m": 8},
    {"p": 4, "m": 8, "v": 2},
    {"p": 3, "m": 7, "v": 3, "s": 2},
    {"p": 2, "m": 5, "s": 3, "f": 4},
    {"p": 6, "m": 12, "e": (6, 6), "d": (6, 6)},
    {"p": 5, "m": 3},
)


@pytest.mark.parametrize("name", families())
def test_retimed_is_measured(name: str) -> None:
    compared = 0
    for shape in SHAPES:
        try:
            chosen = template(name, shape)
        except ValueError:
            continue  # a shape that this family does not take
        for ticks in SOME_TICKS:
            taken = {tick: n for tick, n in ticks.items() if tick in family(name).ticks}
            member = family(name).member(make_parameters({**shape, **taken}))
            assert retimed(chosen, ticks) == measure(member.problem, member.schedule)
            compared += 1
    assert compared >= len(SOME_TICKS)


def test_a_full_backward_may_be_given_whole() -> None:
    chosen = template("1f1b", {"p": 3, "m": 5})
    # (m+p-1)(tF+tB) = 7 * 9.
    assert retimed(chosen, {"tF": 2, "tB": 7}).makespan == 63
    with pytest.raises(ValueError, match="tB must be tI"):
        retimed(template("zb-h1", {"p": 3, "m": 5}), {"tB": 7})


@pytest.mark.parametrize("column", [0, 1])
def test_a_forgotten_wait_shows(column: int) -> None:
    """Each column of waits carries weight: without it some makespan is too short."""
    chosen = template("1f1b", {"p": 4, "m": 6})
    blind = [len(chosen.sequence)] * len(chosen.sequence)
    waits = tuple(blind if k == column else kept for k, kept in enumerate(chosen.awaited))
    assert retimed(replace(chosen, awaited=waits), {}).makespan < retimed(chosen, {}).makespan
