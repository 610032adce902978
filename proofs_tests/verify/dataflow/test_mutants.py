"""Rule 7 against the arithmetic twin on mutants of schedules and of programs with messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

import pytest

from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.theory.pipelines.programs.lowering import lower
from bubbleproof.verify import RuleDecision, Semantics, check_communication
from bubbleproof.verify.dataflow.activations import Activations
from bubbleproof.verify.dataflow.dataflow_rule import check_dataflow, check_dataflow_of_program
from bubbleproof.verify.dataflow.gradients import Gradients
from bubbleproof.verify.dataflow.parameter_versions import ParameterVersions
from bubbleproof.verify.dataflow.symbolic_messages import SymbolicMessages
from bubbleproof.verify.dataflow.training_step import NoTrainingStep
from proofs_tests.cases import Case, all_family_cases, overlapped
from proofs_tests.sized import sampled, sized
from proofs_tests.verify.dataflow.samples import all_samples
from proofs_tests.verify.dataflow.twin_runs import right_by_messages, right_by_time, timed
from proofs_tests.verify.mutations import mutants
from proofs_tests.verify.program_mutations import PROGRAM_OPERATORS, mutate
from proofs_tests.verify.tables import Specimen
from proofs_tests.verify.token_simulator import Wiring

# Work done once more than needed, or activations that never left although the problem evicts them,
# leave all numbers right; the rule is broken all the same.
NEEDLESS = (
    "for the first time",
    "has released them",
    "needs to be freed",
    "needs the gathered parameters",
    "is still to bring them back",
    "needs the whole gradient",
    "they are on rank",
)


SAMPLES = sampled(all_samples(), every=4)
EACH = sized(1, full=4)  # mutants by each operator of each case


@dataclass(slots=True, kw_only=True)
class Tally:
    """Mutants by (numbers right?, rule 7 holds?), and what is not understood."""

    counts: Counter[tuple[bool, bool]] = field(default_factory=Counter)
    strange: list[str] = field(default_factory=list)

    def add(self, name: str, finding: RuleDecision, is_right: bool) -> None:
        self.counts[is_right, finding.ok] += 1
        first = finding.violations[0].message if finding.violations else "nothing"
        if is_right != finding.ok and not (is_right and any(w in first for w in NEEDLESS)):
            self.strange.append(f"{name}: numbers right {is_right}, rule 7 finds {first}")


@cache
def mutants_of(case: Case, each: int) -> list[tuple[str, Problem, Schedule]]:
    """Mutants by their names, made once for all checks of which a part is taken away."""
    made = mutants(Specimen.of(case.problem, case.schedule), case.name, each)
    return [
        (f"{m.operator.name} of {case.name}", m.specimen.problem, m.specimen.schedule())
        for m in made
    ]


@cache
def numbers_are_right(problem: Problem, schedule: Schedule) -> bool:
    return right_by_time(problem, timed(problem, schedule))


def of_schedules(cases: Sequence[Case], each: int, *, until_strange: bool = False) -> Tally:
    tally = Tally()
    for case in cases:
        if until_strange and tally.strange:
            break
        for name, problem, schedule in mutants_of(case, each):
            if not problem.duration[problem.rank_of_task >= 0].min():
                continue  # the twin does not order computations of 0 ticks
            try:
                finding = check_dataflow(problem, schedule)
            except NoTrainingStep:
                continue
            tally.add(name, finding, numbers_are_right(problem, schedule))
    return tally


def of_programs(cases: Sequence[Case], each: int) -> tuple[Tally, list[str]]:
    """The tally, and programs on which rule 6 (``buffered``) and the numbers differ."""
    tally, differ = Tally(), []
    for case in cases:
        if len(case.problem.resources) > case.problem.num_ranks:
            continue
        wiring = Wiring.of(case.problem)
        orders = lower(case.problem, case.schedule).orders(case.problem.num_ranks)
        for operator in PROGRAM_OPERATORS:
            if "wait" in operator.name:  # waits carry no data: rule 6 alone judges them
                continue
            for number in range(each):
                name = f"{operator.name} {number} of {case.name}"
                mutant = mutate(operator, name, wiring, orders)
                if mutant is None:
                    continue
                program = Program.from_orders(mutant)
                is_right = right_by_messages(case.problem, mutant)
                tally.add(name, check_dataflow_of_program(case.problem, program), is_right)
                if check_communication(case.problem, program, [Semantics.BUFFERED]).ok != is_right:
                    differ.append(name)
    return tally, differ


def family_cases() -> list[Case]:
    found = [*all_family_cases((2, 3, 4), (2, 3, 4), per_family=1).values()]
    return [case for members in sampled(found, every=5) for case in members]


def test_schedules_of_families() -> None:
    tally = of_schedules([*family_cases(), overlapped()], each=1)
    assert tally.strange == []
    assert tally.counts[False, False] >= sized(70, full=400)
    assert tally.counts[True, True] >= sized(70, full=400)


@pytest.mark.sweep
def test_schedules_with_every_kind_of_action() -> None:
    tally = of_schedules(SAMPLES, each=EACH)
    assert tally.strange == []
    assert tally.counts[False, False] >= sized(30, full=150 * EACH)
    assert tally.counts[True, True] >= sized(30, full=150 * EACH)


@pytest.mark.sweep
def test_programs_with_messages() -> None:
    tally, differ = of_programs([*family_cases(), overlapped(), *SAMPLES], each=EACH)
    assert tally.strange == []
    assert differ == []
    assert tally.counts[False, False] >= sized(80, full=400 * EACH)
    assert tally.counts[True, True] >= sized(30, full=150 * EACH)


@pytest.mark.parametrize(
    ("part", "check"),
    [
        (Activations, "of_forward"),
        (Activations, "of_backward"),
        (Activations, "of_move"),
        (SymbolicMessages, "of_input"),
        (ParameterVersions, "of_use"),
        (Gradients, "of_step"),
        (Gradients, "left_over"),
    ],
)
def test_a_rule_without_one_part_is_found_out(
    part: type[object], check: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(part, check, lambda *_: iter(()))
    first = ("svpp", "hosted")  # their mutants need every part; only those of hosted `of_step`
    samples = sorted(all_samples(), key=lambda case: case.name not in first)
    assert of_schedules(samples, each=2, until_strange=True).strange != []
