"""The judge against the plain checker on mutants of every family, and negative controls of both."""

from __future__ import annotations

import importlib
from dataclasses import replace

import pytest

from bubbleproof.theory.model.measures import measure
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.verify import Rule
from proofs_tests.cases import Case, all_family_cases, hand_built
from proofs_tests.sized import sized
from proofs_tests.verify.mutation_report import EACH, Report, Trials, cases, judged, mutation_report
from proofs_tests.verify.mutations import OPERATORS
from proofs_tests.verify.plain import broken_rules, plain_measures

CHECKED = {
    "complete": Rule.COMPLETE,
    "placed": Rule.PLACED,
    "dependencies": Rule.DEPENDENCIES,
    "exclusive": Rule.EXCLUSIVE,
    "memory": Rule.MEMORY,
    "claims": Rule.CLAIMS,
}


def some_cases() -> dict[str, list[Case]]:
    """One of each family and those by hand, or all."""
    return {name: members[: sized(1, full=None)] for name, members in cases().items()}


@pytest.fixture(scope="module")
def report() -> Report:
    return mutation_report(Trials.of(some_cases(), sized(1, full=EACH)))


@pytest.fixture(scope="module")
def few() -> Trials:
    """Few mutants, for judges of which something was taken away."""
    found = all_family_cases((3,), (3,), 1)
    chosen = {name: found[name] for name in sorted(found)[:: sized(11, full=1)]}
    return Trials.of({**chosen, "hand-built": [hand_built()]}, 1)


def test_judge_and_plain_accept_every_case_and_measure_alike() -> None:
    for case in [case for members in some_cases().values() for case in members]:
        assert judged(case.problem, case.schedule) == set(), case.name
        assert broken_rules(case.problem, case.schedule) == set(), case.name
        measured = measure(case.problem, case.schedule)
        for name, value in plain_measures(case.problem, case.schedule).items():
            assert getattr(measured, name) == value, (case.name, name)


def test_every_mutant_breaks_the_same_rules_for_both(report: Report) -> None:
    assert report.total("disagreements") == 0, str(report)


def test_every_invalid_mutant_is_caught_by_the_right_rule(report: Report) -> None:
    for operator in OPERATORS:
        invalid = report.counts[operator.name, "invalid"]
        assert report.counts[operator.name, "caught"] == invalid, operator.name


def test_every_valid_mutant_is_accepted(report: Report) -> None:
    for operator in OPERATORS:
        valid = report.counts[operator.name, "valid"]
        assert report.counts[operator.name, "accepted"] == valid, operator.name


def test_operators_are_as_harmful_as_they_say(report: Report) -> None:
    for operator in OPERATORS:
        invalid = report.counts[operator.name, "invalid"] > 0
        valid = report.counts[operator.name, "valid"] > 0
        expected = {"wrong": (True, False), "harmless": (False, True), "either": (True, True)}
        assert (invalid, valid) == expected[operator.nature], operator.name


def test_every_operator_mutates_every_family_it_applies_to(report: Report) -> None:
    assert len(OPERATORS) >= 20
    assert {name for name, _ in report.needed} == {operator.name for operator in OPERATORS}
    barren = [pair for pair in sorted(report.needed) if not report.families[pair]]
    assert barren == []


@pytest.mark.parametrize("name", CHECKED)
def test_a_judge_without_one_rule_is_found_out(
    name: str, few: Trials, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = CHECKED[name]
    module = importlib.import_module("bubbleproof.verify.check")
    monkeypatch.setattr(module, name, lambda *_: [])
    crippled = mutation_report(few)
    assert crippled.total("disagreements") > 0
    missed = {o.name for o in OPERATORS if crippled.counts[o.name, "disagreements"]}
    always_named = {o.name for o in OPERATORS if o.rules == {rule.name} and o.nature == "wrong"}
    made = {o.name for o in OPERATORS if crippled.counts[o.name, "mutants"]}
    assert always_named & made <= missed


def test_a_judge_that_allows_one_tick_too_early_is_found_out(few: Trials) -> None:
    def lenient(problem: Problem, schedule: Schedule) -> set[str]:
        edges = replace(problem.edges, lag=problem.edges.lag - 1)
        return judged(replace(problem, edges=edges), schedule)

    crippled = mutation_report(few, lenient)
    assert crippled.counts["start_one_earlier", "disagreements"] > 0
    assert crippled.counts["slower_message", "disagreements"] > 0


def test_a_judge_that_allows_one_unit_too_much_is_found_out(few: Trials) -> None:
    def lenient(problem: Problem, schedule: Schedule) -> set[str]:
        stores = tuple(
            replace(s, capacity=None if s.capacity is None else s.capacity + 1)
            for s in problem.stores
        )
        return judged(replace(problem, stores=stores), schedule)

    crippled = mutation_report(few, lenient)
    assert crippled.counts["cap_minus_one", "disagreements"] > 0
