"""Proofs case by case: the cases are all choices, and a proof that misses one is none."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from random import Random

import pytest

from bubbleproof.formats.errors import UnusableInput
from bubbleproof.formats.plans.bundle_json import read_bundle, write_bundle
from bubbleproof.planners.case_proofs import proof_by_cases
from bubbleproof.solvers import SolveOptions
from bubbleproof.theory.pipelines.allowed import AllowedChoices, AllowedEvictions, AllowedRecompute
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.shapes.plan_space import PlanSpace
from bubbleproof.verify.candidates.bundle import CandidateBound, check_bundle
from bubbleproof.verify.candidates.cases import Case, Cases, candidate_refusal, problems_of
from bubbleproof.verify.certificates.certificate import Drup, Lemma
from proofs_tests.patience import PATIENCE
from proofs_tests.planners.every_choice import every_choice
from proofs_tests.sized import sized
from proofs_tests.solvers.plain_model import optimum
from proofs_tests.verify.candidates.random_open import random_open
from proofs_tests.verify.candidates.test_relaxation import memory

MOST = 20  # choices of a pipeline that are listed


def leaves(case: Case) -> Iterator[Case]:
    """The cases without parts."""
    parts = case.parts()
    if not parts:
        yield case
    for part in parts:
        yield from leaves(part)


def texts(pipeline: Pipeline) -> tuple[str, ...]:
    """The tasks, precedences and memory of a pipeline, in no order."""
    problem = pipeline.problem()
    edges, events = problem.edges, problem.events
    waits = zip(edges.before.tolist(), edges.after.tolist(), edges.lag.tolist(), strict=True)
    rows = zip(
        events.task.tolist(),
        events.at_end.tolist(),
        events.store.tolist(),
        events.delta.tolist(),
        strict=True,
    )
    found = [f"{problem.label(a)} {problem.label(b)} {lag}" for a, b, lag in waits]
    found += [f"{problem.label(task)} {end} {store} {delta}" for task, end, store, delta in rows]
    found += [f"{store.base} {store.capacity}" for store in problem.stores]
    return tuple(sorted(found + [str(action) for action in problem.actions]))


def test_the_cases_without_parts_are_all_choices_each_once() -> None:
    compared = 0
    for number in range(sized(10, full=400)):
        pipeline, allowed = random_open(Random(number), most_ranks=2, most_stages=2)
        choices = [*islice(every_choice(pipeline, allowed), MOST + 1)]
        if len(choices) > MOST:
            continue
        compared += 1
        found = [*leaves(Case(pipeline=pipeline, allowed=allowed))]
        assert len(found) == len(choices), number
        answered = [case._answered() for case in found]
        assert sorted(map(texts, answered)) == sorted(map(texts, choices)), number
        # With every question answered nothing is relaxed.
        assert [memory(case.problem()) for case in found] == [
            memory(pipeline.problem()) for pipeline in answered
        ]
    assert compared > sized(2, full=5)


def test_no_choice_is_below_the_problem_of_its_case() -> None:
    compared = 0
    for number in range(sized(10, full=200)):
        pipeline, allowed = random_open(Random(1000 + number), most_ranks=2, most_stages=2)
        if len([*islice(every_choice(pipeline, allowed), 9)]) > 8:
            continue
        waiting = [*Case(pipeline=pipeline, allowed=allowed).parts()]
        while waiting:
            case = waiting.pop()
            waiting += case.parts()
            least = optimum(case.problem(), "makespan")
            for leaf in leaves(case):
                compared += 1
                problem = leaf._answered().problem()
                assert optimum(problem, "makespan", below=least) is None, (number, leaf)
    assert compared > 10


# Rank 0 has room for one microbatch: it recomputes, or evicts to rank 1, or waits.
PIPELINE = Pipeline(
    num_ranks=2,
    num_microbatches=2,
    forward=2,
    backward=4,
    activation=(3, 2),
    capacity=3,
    latency=2,
)
ALLOWED = AllowedChoices(
    recompute=AllowedRecompute(stages=(0,), kept=1),
    evict=AllowedEvictions(pairs=((0, 1),), duration=2),
)


def least() -> int:
    """The least makespan of any choice, each solved by a plain model."""
    values = [optimum(chosen.problem(), "makespan") for chosen in every_choice(PIPELINE, ALLOWED)]
    return min(value for value in values if value is not None)


@pytest.fixture(scope="module")
def proof() -> Cases:
    options = SolveOptions(time_limit=PATIENCE, threads=1)
    found = proof_by_cases(PIPELINE, ALLOWED, least(), options)
    assert found is not None
    assert found.proofs[0] is None  # the relaxation alone does not show it
    return found


def test_a_proof_by_cases_shows_what_no_relaxation_does(proof: Cases) -> None:
    assert candidate_refusal(PIPELINE, ALLOWED, proof) is None
    assert proof.num_shown == len(proof.proofs) - proof.proofs.count(None)
    # There is a schedule at the bound, so there is no proof of one tick more.
    options = SolveOptions(time_limit=PATIENCE, threads=1)
    assert proof_by_cases(PIPELINE, ALLOWED, proof.bound + 1, options) is None
    more = replace(proof, bound=proof.bound + 1)
    assert "is not about a makespan" in str(candidate_refusal(PIPELINE, ALLOWED, more))


def test_a_proof_that_was_asked_for_less_is_written_with_what_it_shows() -> None:
    """The checker refuses it one tick higher; what is chosen by plain models is never below it."""
    options = SolveOptions(time_limit=PATIENCE, threads=1)
    best = least()
    for asked in (1, best // 2, best - 1):
        for most in (None, best):
            found = proof_by_cases(PIPELINE, ALLOWED, asked, options, most)
            assert found is not None
            assert asked <= found.bound <= best
            assert candidate_refusal(PIPELINE, ALLOWED, found) is None
            certificates = [one for one in found.proofs if one is not None]
            assert min(one.bound for one in certificates) >= found.bound
            more = tuple(one and replace(one, bound=found.bound + 1) for one in found.proofs)
            stronger = Cases(bound=found.bound + 1, proofs=more)
            assert candidate_refusal(PIPELINE, ALLOWED, stronger) is not None


def test_no_case_may_be_missing_or_stand_twice(proof: Cases) -> None:
    for number in range(len(proof.proofs)):
        without = replace(proof, proofs=proof.proofs[:number] + proof.proofs[number + 1 :])
        assert candidate_refusal(PIPELINE, ALLOWED, without) is not None, number
        opened = replace(proof, proofs=(*proof.proofs[:number], None, *proof.proofs[number + 1 :]))
        if proof.proofs[number] is not None:
            assert candidate_refusal(PIPELINE, ALLOWED, opened) is not None, number
    twice = replace(proof, proofs=(*proof.proofs, proof.proofs[-1]))
    why = f"there are {len(proof.proofs)} cases, got {len(twice.proofs)}"
    assert candidate_refusal(PIPELINE, ALLOWED, twice) == why
    assert "no parts" in str(candidate_refusal(PIPELINE, ALLOWED, replace(proof, proofs=())))
    nothing = Case(pipeline=PIPELINE, allowed=AllowedChoices())
    with pytest.raises(ValueError, match="nothing to ask"):
        list(problems_of(nothing.pipeline, None, [True]))


def test_each_certificate_is_judged_on_its_own_case(proof: Cases) -> None:
    wrong = Drup(bound=proof.bound, lemmas=(Lemma(full=-1),))
    for number, one in enumerate(proof.proofs):
        if one is not None:
            given = (*proof.proofs[:number], wrong, *proof.proofs[number + 1 :])
            why = candidate_refusal(PIPELINE, ALLOWED, replace(proof, proofs=given))
            assert str(why).startswith(f"case {number}: ")
            idle = replace(one, objective="span_idle")
            given = (*proof.proofs[:number], idle, *proof.proofs[number + 1 :])
            why = candidate_refusal(PIPELINE, ALLOWED, replace(proof, proofs=given))
            assert str(why).startswith(f"case {number} is not about")


def test_of_other_choices_it_proves_nothing(proof: Cases) -> None:
    for allowed in (
        replace(ALLOWED, recompute=AllowedRecompute(stages=(0, 1))),
        replace(ALLOWED, evict=None),
        None,
    ):
        assert candidate_refusal(PIPELINE, allowed, proof) is not None
    assert candidate_refusal(PIPELINE.with_changes(backward=3), ALLOWED, proof) is not None


def test_slices_are_not_asked_about() -> None:
    sliced = PIPELINE.with_changes(num_slices=2)
    assert Case(pipeline=sliced, allowed=ALLOWED).parts() == ()


def test_a_file_keeps_every_case(proof: Cases, tmp_path: Path) -> None:
    space = PlanSpace(pipeline=PIPELINE, allowed=ALLOWED)
    [candidate] = space.candidates()
    bundle = (CandidateBound(candidate=candidate, bound=proof.bound, certificate=proof),)
    assert check_bundle(space, bundle).is_proved
    file = tmp_path / "bundle.json"
    write_bundle(file, space, bundle)
    assert read_bundle(file, space) == bundle
    content = json.loads(file.read_text())
    del content["candidates"][0]["cases"][-1]
    file.write_text(json.dumps(content))
    with pytest.raises(UnusableInput, match="every case of the choices"):
        read_bundle(file, space)
