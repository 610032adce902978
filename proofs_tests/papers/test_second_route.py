"""Claimed optima found again by one engine: what it confirms, catches, and leaves undecided."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction

import pytest

from bubbleproof import solvers
from bubbleproof.papers.claims import PaperClaim
from bubbleproof.papers.claims.any_order import least
from bubbleproof.papers.claims.claim import stated
from bubbleproof.papers.claims.domain import Domain, domain
from bubbleproof.papers.claims.measured_pipelines import (
    idle_ratio,
    made,
    makespan,
    peak,
    span_idle,
)
from bubbleproof.papers.claims.reading import Number, NumberOf
from bubbleproof.papers.claims.second_route import (
    MOST_TASKS,
    EngineAnswer,
    RouteOutcome,
    claims_optimum,
    engine_answer,
    optimum_cases,
)
from bubbleproof.papers.registry import claims
from bubbleproof.solvers import SolveOptions, Status
from bubbleproof.solvers.result import Result
from bubbleproof.theory.families import families
from bubbleproof.theory.model.problem import Problem

ENGINES = ("z3", "pulp")
TICKS = ((1, 1), (1, 2))
PLAIN = domain("p in 2 3, m = p", p=(2, 3), m="(p,)", tF_tB=TICKS)
SPLIT = domain("p = 2, m = 2", p=(2,), m=(2,), tF_tI_tW=((1, 1, 1),))
PATIENCE = 300.0  # seconds; each of these takes less than one


def claimed(
    measured: NumberOf, formula: str | int, cases: Domain = PLAIN, relation: str = "=="
) -> PaperClaim:
    return stated("test.least", "a test", "So.", "a number", measured, relation, formula, cases)


def answers(claim: PaperClaim, engine: str, seconds: float = PATIENCE) -> list[EngineAnswer]:
    return [engine_answer(case, engine, seconds) for case in optimum_cases({"x": claim})]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("measured", "formula", "cases"),
    [
        # The first forward reaches the last rank after p-1 and the last backward returns as long.
        (makespan("gpipe"), "(m+p-1)*(tF+tB)", PLAIN),
        (idle_ratio("1f1b"), "(p-1)/(m+p-1)", PLAIN),
        # With fewer in flight than p the first backward is back too late for forward p.
        (peak("1f1b"), "p", PLAIN),
        (least(makespan("gpipe")), "(m+p-1)*(tF+tB)", PLAIN),
        # F, I, W of 1 each: rank 0 waits F and I of the other, and has one W for it, at tW = 1.
        (span_idle("zb-h1"), "(p-1)*(tF+tI-tW)", SPLIT),
    ],
)
def test_the_engine_alone_finds_the_least(
    engine: str, measured: NumberOf, formula: str, cases: Domain
) -> None:
    found = answers(claimed(measured, formula, cases), engine)
    assert [answer.outcome for answer in found] == [RouteOutcome.EQUAL] * len({*cases.table[:, 0]})
    assert all("search" in answer.proof for answer in found)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("measured", "wrong", "right"),
    [
        # Of p = m = 2, tF = tB = 1: 3 slots of 2 ticks, of which each rank idles 2 ticks of 6.
        (makespan("1f1b"), "(m+p)*(tF+tB)", 6),
        (makespan("1f1b"), "m*(tF+tB)", 6),
        (idle_ratio("1f1b"), "p/(m+p)", Fraction(1, 3)),
        (peak("1f1b"), "p-1", 2),
        (peak("1f1b"), "p+1", 2),
        # GPipe itself holds m = 2 of 2; no order of that makespan needs less.
        (replace(peak("gpipe"), least=lambda at: at["m"]), 3, 2),
    ],
)
def test_a_wrong_formula_is_caught(
    engine: str, measured: NumberOf, wrong: str | int, right: Number
) -> None:
    first = answers(claimed(measured, wrong), engine)[0]
    assert (first.outcome, first.found) == (RouteOutcome.DIFFERS, right)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_schedule_that_is_not_the_least_is_caught(engine: str) -> None:
    # GPipe holds all m = 3 microbatches, and 1F1B on as many ticks 2: to call 3 the least is wrong.
    cases = domain("p = 2, m = 3", p=(2,), m=(3,), tF_tB=TICKS[:1])
    boasted = replace(peak("gpipe"), least=peak("gpipe"))
    found = answers(claimed(boasted, "m", cases), engine)
    assert [answer.outcome for answer in found] == [RouteOutcome.DIFFERS]
    assert found[0].found == 2


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ["makespan", "peak"])
def test_what_is_not_decided_in_the_time_is_not_equal(engine: str, name: str) -> None:
    measured = makespan("1f1b") if name == "makespan" else peak("1f1b")
    formula = "(m+p-1)*(tF+tB)" if name == "makespan" else "p"
    found = answers(claimed(measured, formula), engine, 1e-6)
    assert [answer.outcome for answer in found] == [RouteOutcome.UNDECIDED] * 2
    assert all(answer.found is None for answer in found)


def test_the_engine_is_given_no_schedule_and_no_other_engine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[str, object]] = []
    honest = solvers.solve

    def noting(problem: Problem, options: SolveOptions, starts: Iterable[object] = ()) -> Result:
        asked.append((options.engine, tuple(starts)))
        return honest(problem, options)

    monkeypatch.setattr(solvers, "solve", noting)
    answers(claimed(makespan("1f1b"), "p"), "z3")
    answers(claimed(peak("1f1b"), "p"), "z3")
    assert len(asked) > 4
    assert {*asked} == {("z3", ())}


def test_a_search_that_is_cut_short_decides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    # A schedule is found at each step, and the last one, which should refute, ends in UNKNOWN.
    honest = solvers.solve

    def hasty(problem: Problem, options: SolveOptions) -> Result:
        found = honest(problem, options)
        refuted = found.status is Status.INFEASIBLE
        return replace(found, status=Status.UNKNOWN, is_claimed=False) if refuted else found

    monkeypatch.setattr(solvers, "solve", hasty)
    found = answers(claimed(peak("1f1b"), "p"), "z3")
    assert [answer.outcome for answer in found] == [RouteOutcome.UNDECIDED] * 2


def test_which_readings_claim_an_optimum_follows_from_what_they_declare() -> None:
    assert claims_optimum(claimed(makespan("1f1b"), 1).reading())
    assert not claims_optimum(claimed(makespan("1f1b"), 1, relation=">=").reading())
    assert not claims_optimum(claimed(peak("gpipe"), 1).reading())  # which holds all of them
    assert claims_optimum(claimed(least(makespan("v-half")), 1, SPLIT).reading())
    assert not claims_optimum(claimed(makespan("v-half"), 1, SPLIT).reading())


def test_every_family_that_says_so_has_a_claim_that_is_looked_at() -> None:
    cases = optimum_cases(claims())
    looked_at = {case.measure.family for case in cases}
    assert {name for name, family in families().items() if family.least} <= looked_at
    assert {"bpipe.sec3.3.optimal", "field.few.least"} <= {case.claim.id for case in cases}
    for case in cases:
        assert made(case.measure.family, case.at).problem.num_tasks <= MOST_TASKS
