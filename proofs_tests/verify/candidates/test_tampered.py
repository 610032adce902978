"""Damaged proofs over choices, shapes and deployments: none is accepted above the optimum."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest

from bubbleproof.theory.model.actions import Ints
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.pipelines.allowed import AllowedChoices
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.shapes.plan_space import PlanSpace
from bubbleproof.verify.candidates import cases, rank_claims
from bubbleproof.verify.candidates.bundle import BundleVerdict, DeploymentSpace, check_bundle
from bubbleproof.verify.candidates.deployment_bundles import check_deployments
from proofs_tests.sized import sized
from proofs_tests.verify.candidates import tampered
from proofs_tests.verify.candidates.damaged_bundles import Bundle, Bundles

KINDS = {"rank-work", "rank-memory", "no-room", "relaxation", "cases", "bundle", "deployments"}


@pytest.mark.sweep
def test_what_is_accepted_holds() -> None:
    """250 damaged proofs, 10,000 with ``BUBBLEPROOF_SWEEP=full``; the command does 100,000."""
    counts = tampered.sweep(sized(250, full=10_000), seed=15)
    assert counts.above == []
    assert counts.tampered == sum(counts.by_kind.values())
    assert set(counts.by_kind) == KINDS
    assert 0 < counts.accepted < counts.tampered / 3


# Checkers that forget something: what the sweep would show of them.

LIVES, PROBLEMS = rank_claims._lives, cases.problems_of


def without_life(problem: Problem, forward: Ints, backward: Ints) -> Ints:
    """A stage of no ticks is held all the same."""
    return np.maximum(LIVES(problem, forward, backward), 1)


def as_if_nothing_were_open(pipeline: Pipeline, _: AllowedChoices | None) -> Problem:
    return pipeline.problem()


def some_cases(
    pipeline: Pipeline, allowed: AllowedChoices | None, is_parted: Sequence[bool]
) -> Iterator[Problem]:
    """Whether there are more cases is not asked."""
    try:
        yield from PROBLEMS(pipeline, allowed, is_parted)
    except ValueError:
        return


def forgiven(verdict: BundleVerdict, bounds: Sequence[int], sentence: str) -> BundleVerdict:
    """The verdict without the refusals that say this."""
    left = tuple(why for why in verdict.refusals if sentence not in why)
    return replace(verdict, refusals=left, bound=None if left else min(bounds, default=None))


def some_candidates(space: PlanSpace, bundle: Bundle) -> BundleVerdict:
    bounds = [entry.bound for entry in bundle]
    return forgiven(check_bundle(space, bundle), bounds, "the bundle has no bound of")


def some_deployments(deployed: Sequence[DeploymentSpace], bundles: Bundles) -> BundleVerdict:
    known = {one.name: one for one in deployed}
    bounds = [
        entry.bound + known[name].follows(entry.candidate)
        for name, bundle in bundles
        for entry in bundle
        if name in known
    ]
    return forgiven(check_deployments(deployed, bundles), bounds, "nothing bounds the deployment")


CARELESS = {
    "no-room": (rank_claims, "_lives", without_life, 107, 120),
    "relaxation": (cases, "relaxation", as_if_nothing_were_open, 48, 120),
    "cases": (cases, "problems_of", some_cases, 15, 120),
    "bundle": (tampered, "check_bundle", some_candidates, 17, 250),
    "deployments": (tampered, "check_deployments", some_deployments, 0, 250),
}


@pytest.mark.parametrize("kind", CARELESS)
def test_a_careless_checker_is_noticed(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    home, name, careless, seed, count = CARELESS[kind]
    monkeypatch.setattr(home, name, careless)
    counts = tampered.sweep(count, seed=seed)
    assert any(line.endswith(f"by {kind}") for line in counts.above)
