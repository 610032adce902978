"""``verify.check`` and the definition, finding by finding, on a few hundred mutants.

``test_mutations`` compares which rules break; here every finding and all measures.
"""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest

from bubbleproof.theory.families import family
from bubbleproof.verify import check
from bubbleproof.verify.check import findings
from proofs_tests.cases import Case, family_cases, hand_built, overlapped
from proofs_tests.sized import sized
from proofs_tests.verify.mutations import mutants
from proofs_tests.verify.plain import breaches_of, plain_measures
from proofs_tests.verify.tables import Specimen

FAMILIES = ("zb-h1", "interleaved", "bpipe", "svpp")


@cache
def cases(name: str) -> list[Case]:
    """Few small schedules in all variations: lags, uneven stages, tight and released in parts."""
    if name == "by hand":
        return [hand_built(), overlapped()]
    return list(family_cases(family(name), (2, 3), (2, 3), most=2))[: sized(1, full=3)]


@pytest.mark.parametrize("name", [*FAMILIES, "by hand"])
def test_every_finding_is_the_definition_s(name: str) -> None:
    tried = 0
    for case in cases(name):
        for mutant in mutants(Specimen.of(case.problem, case.schedule), case.name, 1):
            problem, schedule = mutant.specimen.problem, mutant.specimen.schedule()
            verdict, said = check(problem, schedule), f"{mutant.operator.name} of {case.name}"
            expected = Counter(breaches_of(problem, schedule))
            assert Counter(findings(problem, schedule)) == expected, said
            counts = Counter(finding.rule for finding in expected.elements())
            assert {d.rule: d.count for d in verdict.decisions} == {
                decision.rule: counts[decision.rule] for decision in verdict.decisions
            }, said
            whens = {(finding.rule, finding.tasks, finding.at) for finding in expected}
            for violation in verdict.violations:
                assert (violation.rule, violation.tasks, violation.at) in whens, said
            for measured, value in plain_measures(problem, schedule).items():
                assert getattr(verdict.measured, measured) == value, (said, measured)
            tried += 1
    assert tried > sized(20, full=60)
