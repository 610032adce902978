"""No claim of a rank is above an optimum, whatever is chosen, and a microbatch stands for all."""

from __future__ import annotations

import re
from collections import Counter
from random import Random

import pytest

from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.pipelines.choices import CHOICES
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify.candidates import rank_claims
from bubbleproof.verify.candidates.rank_claims import copied_problem, is_alike
from bubbleproof.verify.required_table import stated
from proofs_tests.random_choices import anything, shape_of
from proofs_tests.sized import sized
from proofs_tests.verify.candidates.claims_of_anything import sweep

COPIED = copied_problem


@pytest.mark.sweep
def test_no_claim_is_above_an_optimum() -> None:
    """80 pipelines, 1,500 with ``BUBBLEPROOF_SWEEP=full``; the command does more."""
    counts = sweep(sized(80, full=1_500))
    assert counts.above == []
    assert counts.exact > 0
    assert counts.infeasible > 0
    assert not [name for name, count in counts.kinds("RankWork").items() if not count]


def all_trained(pipeline: Pipeline) -> tuple[Problem, int]:
    """As it was derived once: from numbers of the stages, which say not what is frozen."""
    return COPIED(pipeline.with_changes(frozen_stages=(), waits=()))


def always_copies(pipeline: Pipeline) -> tuple[Problem, int]:
    """As if no choice told microbatches apart."""
    flags = pipeline.split_backward
    one = flags if isinstance(flags, bool) else tuple(row[:1] for row in flags)
    try:
        sample = pipeline.with_changes(num_microbatches=1, split_backward=one)
    except ValueError:
        return COPIED(pipeline)
    return sample.problem(), pipeline.num_microbatches


@pytest.mark.parametrize(("careless", "seed"), [(all_trained, 300), (always_copies, 120)])
def test_the_sweep_sees_a_step_that_is_not_the_problems(
    careless: object, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rank_claims, "copied_problem", careless)
    assert sweep(12, seed).above


def renamed(name: str, microbatch: int) -> str:
    """The text of an action of microbatch 0 for another one."""
    return re.sub(r"^(\d+[A-Z_]+)0", rf"\g<1>{microbatch}", name)


@pytest.mark.sweep
def test_one_microbatch_stands_for_all_where_they_are_alike() -> None:
    """Tasks, waits, changes and stores of m copies are those of the problem; it has more waits."""
    met: Counter[str] = Counter()
    for number in range(sized(300, full=2_000)):
        random = Random(number)
        pipeline = anything(random, shape_of(random, 3, 4), every=random.choice((0.15, 0.4)))
        if not is_alike(pipeline):
            continue
        one, copies = copied_problem(pipeline)
        assert copies == pipeline.num_microbatches
        single, whole = stated(one), stated(pipeline.problem())
        of_all = [(j, renamed) for j in range(copies)]
        tasks = {name(task, j): how for j, name in of_all for task, how in single.tasks.items()}
        assert tasks == whole.tasks, pipeline
        changes = {
            (name(task, j), at, store): delta
            for j, name in of_all
            for (task, at, store), delta in single.changes.items()
        }
        assert changes == whole.changes, pipeline
        waits = {
            (name(before, j), name(after, j), lag): count
            for j, name in of_all
            for (before, after, lag), count in single.waits.items()
        }
        assert waits.items() <= whole.waits.items(), pipeline
        assert single.stores == whole.stores
        met.update(name for name in CHOICES if getattr(pipeline, name))
    assert min(met[name] for name in ("frozen_stages", "weight_parts", "split_backward")) > 2
