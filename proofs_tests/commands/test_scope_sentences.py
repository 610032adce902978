"""What is optimal is so over a scope, and the scope is said: lists, cuts, and what was fixed."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path

import pytest

import bubbleproof as bp
from bubbleproof.planners import Plan, PlanOptions, plan
from bubbleproof.theory.pipelines.allowed import AllowedChoices, AllowedRecompute
from bubbleproof.theory.pipelines.shapes.cut_lists import BALANCED, EVEN, NamedCuts
from bubbleproof.theory.pipelines.shapes.layer_cuts import LayerPart, Layers
from bubbleproof.theory.pipelines.shapes.plan_space import PlanSpace
from bubbleproof.theory.pipelines.shapes.space_scope import scope_of, scope_text, with_cuts
from proofs_tests.commands.conftest import Run

# 46 layers and a head of six tenths of one on 4 ranks, 16 microbatches.
TIED = """
name = "tied"
ranks = 4
microbatches = 16
[layers]
number = 46
forward = 10
backward = 20
activation = 1
static = 1
cuts = ["even", "balanced"]
[layers.embedding]
static = 2
[layers.head]
forward = 6
backward = 12
static = 2
activation = 1
[plan]
chunks = [1]
"""


def early_1f1b(cut: tuple[int, ...], microbatches: int) -> int:
    """The makespan of 1F1B with twice the warm-up, of such a cut: a second route, of dates."""
    ranks = len(cut)
    took = {(r, "F"): 10 * n for r, n in enumerate(cut)}
    took |= {(r, "B"): 20 * n for r, n in enumerate(cut)}
    took[ranks - 1, "F"] += 6
    took[ranks - 1, "B"] += 12
    orders = []
    for r in range(ranks):
        warm = min(microbatches, 2 * (ranks - r) - 1)
        order = [("F", j) for j in range(warm)]
        for j in range(microbatches):
            order.append(("B", j))
            order += [("F", warm + j)] if warm + j < microbatches else []
        orders.append(order)
    end: dict[tuple[int, str, int], int] = {}
    free, at = [0] * ranks, [0] * ranks
    while any(at[r] < len(orders[r]) for r in range(ranks)):
        for r in range(ranks):
            while at[r] < len(orders[r]):
                kind, j = orders[r][at[r]]
                before = (r - 1, "F", j) if kind == "F" else (r + 1, "B", j)
                if 0 <= before[0] < ranks and before not in end:
                    break
                if kind == "B" and r == ranks - 1:
                    before = (r, "F", j)
                free[r] = max(free[r], end.get(before, 0)) + took[r, kind]
                end[r, kind, j], at[r] = free[r], at[r] + 1
    return max(free)


def test_an_optimum_names_the_cut_that_was_fixed(command: Run, tmp_path: Path) -> None:
    """The claim is of the cuts that were taken, of which the best has more layers where it starts.

    Rank 0 computes 16 x 13 x 30 = 6240 ticks of 13+12+11+10.
    """
    path, folder, proofs = tmp_path / "tied.toml", tmp_path / "out", tmp_path / "proofs.json"
    path.write_text(TIED)
    found = bp.plan(path)
    assert isinstance(found, Plan)
    assert found.winner.candidate.layers == (13, 12, 11, 10)
    others = (11, 12, 12, 11), (12, 12, 12, 10)
    assert 6240 <= found.value <= early_1f1b((13, 12, 11, 10), 16) < early_1f1b(others[0], 16)
    assert found.value < min(early_1f1b(cut, 16) for cut in others)
    said = "with layers cut even or balanced"
    assert found.statement == f"optimal over these choices, {said}"
    words = ("plan", path, "-o", folder, "--certificate", proofs)
    answer = json.loads(command(*words, "--json").out)
    assert said in answer["statement"]
    assert answer["lower_bound_of"] == f"any schedule of these candidates, {said}"
    assert answer["choices"]["layers"] == said.removeprefix("with layers ")
    assert said in (folder / "plan.html").read_text(encoding="utf-8")
    assert said in command("verify", folder, "--certificate", proofs).out
    assert said in " ".join(
        command("run", path, "-o", tmp_path / "run").out.replace("│", " ").split()
    )


LAYERS = Layers(runs=((LayerPart(forward=1, backward=2), 8),), rule=NamedCuts())


def space_of(layers: Layers | None) -> PlanSpace:
    pipeline = bp.Pipeline(num_ranks=2, num_microbatches=2)
    return PlanSpace(pipeline=pipeline, layers=layers)


def test_each_field_of_a_space_has_its_words() -> None:
    """A list that is added to the declaration has to be told, or this fails."""
    assert {*scope_of(space_of(LAYERS))} == {field.name for field in fields(PlanSpace)}
    for field in fields(AllowedChoices):
        allowed = AllowedRecompute(stages=(0,)) if field.name == "recompute" else None
        space = replace(space_of(None), allowed=AllowedChoices(recompute=allowed))
        assert ("recompute" in scope_text(space)) == (allowed is not None)


@pytest.mark.parametrize(
    ("layers", "said"),
    [
        (None, ""),
        (LAYERS, ", with layers cut 4+4 (even)"),
        (
            replace(LAYERS, rule=NamedCuts(kinds=(EVEN, BALANCED))),
            ", with layers cut even or balanced",
        ),
        (
            replace(
                LAYERS,
                rule=NamedCuts(kinds=(EVEN, BALANCED)),
                head=LayerPart(forward=3, backward=6),
            ),
            ", with layers cut even or balanced",
        ),
        (
            replace(LAYERS, rule=NamedCuts(spread=2)),
            ", with layers cut in every way within 2 of the even share",
        ),
    ],
)
def test_the_cut_is_told_as_it_was_declared(layers: Layers | None, said: str) -> None:
    space = space_of(layers)
    assert with_cuts(space) == said
    if layers is not None:
        found = plan(space, PlanOptions(work=1))
        assert found.statement == f"optimal over these choices{said}"
        for one in found.judged:  # each candidate's cut is one of those that were named
            assert one.candidate.layers is not None
            assert sum(one.candidate.layers) == layers.number
