"""A schedule of one choice, and a bound on all of them case by case, are theorems of Coq."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import pytest

from bubbleproof.formats.coq.choices_theorem import choices_theorem
from bubbleproof.formats.coq.coq_words import changes_of, homes_of
from bubbleproof.solvers import SolveOptions, solve
from bubbleproof.solvers.bounds import lower_bounds
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.theory.pipelines.allowed import AllowedChoices, AllowedOffloads
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify.candidates.cases import STAY, Case, Cases, candidate_refusal
from bubbleproof.verify.certificates.certificate_rule import Certificate
from bubbleproof.verify.certificates.microbatch_windows import MicrobatchWindows
from proofs_tests.coq import answer, needs_coq
from proofs_tests.sized import sized
from proofs_tests.verify.candidates.random_open import random_open
from proofs_tests.verify.candidates.test_cases import leaves

SEED = 582  # drawn: two ranks, three microbatches, evictions, and more shown by parts than at once
Tree = tuple[Certificate | None, ...]


def proved(case: Case, bound: int) -> Tree | None:
    """The case by one resource or one store, or else its parts; None where that fails."""
    best = lower_bounds(case.problem()).best
    if best.bound >= bound:
        return (best,)
    parts = [proved(part, bound) for part in case.parts()]
    if not parts or None in parts:
        return None
    return (None, *(one for part in parts if part is not None for one in part))


@dataclass(frozen=True, slots=True, kw_only=True)
class Solved:
    """A pipeline with open choices, a best schedule of one, and a bound that is proved by cases."""

    pipeline: Pipeline
    allowed: AllowedChoices
    problem: Problem
    schedule: Schedule
    proof: Cases

    def theorem(self, proof: Certificate | Cases | None = None) -> str:
        """What is written for Coq."""
        return choices_theorem(
            self.problem, self.schedule, self.pipeline, self.allowed, proof or self.proof
        )


@pytest.fixture(scope="module")
def solved() -> Solved:
    pipeline, allowed = random_open(Random(SEED), most_ranks=2, most_stages=2)
    case = Case(pipeline=pipeline, allowed=allowed)
    found = list[tuple[int, Problem, Schedule]]()
    for each in leaves(case):
        problem = each._answered().problem()
        result = solve(problem, SolveOptions(threads=1))
        if result.schedule is not None and result.makespan is not None:
            found.append((result.makespan, problem, result.schedule))
    makespan, problem, schedule = min(found, key=lambda one: one[0])
    bound = min(lower_bounds(each.problem()).best.bound for each in leaves(case))
    assert lower_bounds(case.problem()).best.bound < bound <= makespan
    tree = proved(case, bound)
    assert tree is not None
    proof = Cases(bound=bound, proofs=tree)
    assert candidate_refusal(pipeline, allowed, proof) is None
    return Solved(
        pipeline=pipeline, allowed=allowed, problem=problem, schedule=schedule, proof=proof
    )


@pytest.fixture
def folder(coq_library: tuple[Path, dict[str, str]]) -> Path:
    return coq_library[0]


def parts(problem: Problem) -> tuple[dict[str, Hashable], Counter[Hashable], Counter[Hashable]]:
    """Tasks, precedences, and what each task does to each store, by name."""
    labels = [problem.label(task) for task in range(problem.num_tasks)]
    names = [resource.name for resource in problem.resources]
    homes = [tuple(sorted(names[each] for each in row)) for row in homes_of(problem)]
    tasks = dict(zip(labels, zip(problem.duration.tolist(), homes, strict=True), strict=True))
    edges = problem.edges
    rows = zip(edges.before.tolist(), edges.after.tolist(), edges.lag.tolist(), strict=True)
    changes = Counter[Hashable]()
    for store, each in zip(problem.stores, changes_of(problem), strict=True):
        for task, at_end, delta in each:
            changes[store.name, labels[task], at_end] += delta
    return {**tasks}, Counter((labels[a], labels[b], lag) for a, b, lag in rows), changes


def test_choices_only_add() -> None:
    """The problem of any choice is the one without choices, and what each of them adds alone.

    ``proofs/Cases.v`` has choices so; ``choices_theorem`` reads off what each adds.
    """
    chosen = 0
    for number in range(sized(20, full=600)):
        pipeline, allowed = random_open(Random(number), most_ranks=3, most_stages=3)
        random, case = Random(number), Case(pipeline=pipeline, allowed=allowed)
        while answered := case.parts():
            case = random.choice(answered)
        base = parts(pipeline.problem())
        tasks, edges, changes = base[0], base[1].copy(), base[2].copy()
        for (sample, _), way in zip(case.questions(), case.answers, strict=True):
            taken = {} if way == STAY else {way: [sample]}
            alone = pipeline.with_changes(**allowed.taking(taken, pipeline.stage_ranks))
            more = parts(alone.problem())
            assert base[0].items() <= more[0].items(), number
            assert base[1] <= more[1], number
            tasks, edges = tasks | more[0], edges + (more[1] - base[1])
            changes.update(more[2])
            changes.subtract(base[2])
            chosen += way != STAY
        full = parts(case._answered().problem())
        assert full[:2] == (tasks, edges), number
        assert full[2] == Counter({each: delta for each, delta in changes.items() if delta}), number
    assert chosen > 8


@needs_coq
def test_a_bound_over_choices_is_a_theorem_and_no_more(folder: Path, solved: Solved) -> None:
    text = solved.theorem()
    done = answer(folder, "Chosen", text)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Closed under the global context") == 1
    assert "[0%nat; 1%nat]" in text  # the two ranks' stores, together
    first = next(one for one in solved.proof.proofs if one is not None)
    wrong = {
        "raised": solved.theorem(replace(solved.proof, bound=solved.proof.bound + 1)),
        "an eviction that lies nowhere": re.sub(
            r"; \(1%nat, Event positive \w+ false \(\d+\)\)", "", text
        ),
        "one certificate for all": solved.theorem(replace(solved.proof, proofs=(first,))),
        "a part is missing": text.replace("Some ([", "None;\n  Some ([", 1),
        "other answers": text.replace("picked [", "picked [9%nat; ", 1),
    }
    for what in sized(["an eviction that lies nowhere"], full=list(wrong)):
        assert wrong[what] != text, what
        refused = answer(folder, "Wrong", wrong[what])
        assert refused.returncode, what
        assert "Syntax error" not in refused.stderr, what


def test_what_has_no_words_is_refused(solved: Solved) -> None:
    windows = MicrobatchWindows(first=0, store=0, windows=(), bound=1)
    with pytest.raises(ValueError, match="got a MicrobatchWindows"):
        solved.theorem(windows)
    idle = replace(solved.proof, objective="span_idle")
    with pytest.raises(ValueError, match="bounds of the makespan"):
        solved.theorem(idle)
    host = AllowedChoices(
        offload=AllowedOffloads(stages=(0,), offload=1, reload=1, host_capacity=1)
    )
    with pytest.raises(ValueError, match="hosts without a limit"):
        replace(solved, allowed=host).theorem()
    other = solved.pipeline.with_changes(num_microbatches=1)
    with pytest.raises(ValueError, match="none of those that were open"):
        replace(solved, pipeline=other).theorem()
