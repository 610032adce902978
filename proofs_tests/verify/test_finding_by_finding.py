"""``verify.check`` and the definition, finding by finding, on a few hundred mutants.

``test_mutations`` compares which rules break; here how often, at what times, and all measures.
"""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest

from bubbleproof.theory.families import family
from bubbleproof.verify import check
from bubbleproof.verify.spec import (
    Found,
    PlainProblem,
    Row,
    first_starts,
    plain_problem,
    plain_schedule,
)
from proofs_tests.cases import Case, family_cases, hand_built, overlapped
from proofs_tests.verify.mutations import mutants
from proofs_tests.verify.plain import RULES, breaches_of, plain_measures
from proofs_tests.verify.tables import Specimen

FAMILIES = ("zb-h1", "interleaved", "bpipe", "svpp")


@cache
def cases(name: str) -> list[Case]:
    """Few small schedules in all variations: lags, uneven stages, tight and released in parts."""
    if name == "by hand":
        return [hand_built(), overlapped()]
    return list(family_cases(family(name), (2, 3), (2, 3), most=2))[:3]


def crowded(problem: PlainProblem, rows: list[Row]) -> int:
    """How often rule 5 is broken, change by change, where the definition counts instants.

    Releases of an instant come first. Each change that ends above the capacity counts, and the
    last change of an instant where it ends below 0.
    """
    start, count = first_starts(problem, rows), 0
    for store, (base, capacity) in enumerate(problem.stores):
        steps = sorted(
            (start[task] + (problem.duration[task] if at_end else 0), delta > 0, delta)
            for task, at_end, where, delta in problem.events
            if where == store and task in start
        )
        count += capacity is not None and base > capacity
        load = base
        for i, (time, _, delta) in enumerate(steps):
            load += delta
            is_last = i + 1 == len(steps) or steps[i + 1][0] != time
            count += (capacity is not None and load > capacity) or (load < 0 and is_last)
    return count


def times(found: list[Found]) -> dict[str, set[int | None]]:
    """When each rule is broken, by its name."""
    return {
        rule: {each.at for each in found if each.rule == number} for number, rule in RULES.items()
    }


@pytest.mark.parametrize("name", [*FAMILIES, "by hand"])
def test_every_finding_is_the_definition_s(name: str) -> None:
    tried = 0
    for case in cases(name):
        for mutant in mutants(Specimen.of(case.problem, case.schedule), case.name, 1):
            problem, schedule = mutant.specimen.problem, mutant.specimen.schedule()
            plain = plain_problem(problem)
            expected = breaches_of(problem, schedule)
            counts = Counter(RULES[each.rule] for each in expected)
            counts["MEMORY"] = crowded(plain, plain_schedule(schedule).rows)
            verdict, said = check(problem, schedule), f"{mutant.operator.name} of {case.name}"
            assert {f.rule.name: f.count for f in verdict.findings} == {
                rule: counts[rule] for rule in RULES.values()
            }, said
            whens = times(expected)
            for violation in verdict.violations:
                assert violation.at in whens[violation.rule.name], (said, violation.message)
            for measured, value in plain_measures(problem, schedule).items():
                assert getattr(verdict.measured, measured) == value, (said, measured)
            tried += 1
    assert tried > 60
