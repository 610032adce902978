"""A deployment's space, made of its numbers, against the one that its problem file tells."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bubbleproof.costs.combinations import ForbiddenCombination, legal
from bubbleproof.formats.clusters.cluster_toml import ClusterFile, cluster_file_of_text
from bubbleproof.formats.clusters.deployed_content import (
    deployed_content,
    deployed_file,
    deployed_text,
)
from bubbleproof.formats.clusters.deployed_space import all_counted, deployed_space, space_of_layers
from bubbleproof.formats.problem_toml import problem_file_of_text, problem_of
from bubbleproof.theory.pipelines.shapes.plan_space import PlanSpace
from proofs_tests.sized import sampled, sized

EXAMPLE = Path("examples/cluster/llama-13b-64xA100.toml").read_text(encoding="utf-8")
SHAPES = """
[plan]
pipeline = [1, 4, 8]
zero = [1]
chunks = [1, 2]
placements = ["loop", "wave", "bidirectional", [0, 1, 2, 3]]
backward = ["split", "whole", [true, false, true, false]]
slices = [1, 2]
"""


def outcome(make: object) -> PlanSpace | str | None:
    """What is made, or why it cannot be."""
    assert callable(make)
    try:
        found = make()
    except ValueError as why:
        return str(why)
    assert isinstance(found, PlanSpace)
    return found


def file_of(plan: str = "", samples: int = 512) -> ClusterFile:
    text = EXAMPLE.partition("[plan]")[0].replace("samples = 512", f"samples = {samples}")
    return cluster_file_of_text(text + plan, name="small")


@pytest.mark.parametrize(
    ("plan", "samples"),
    [
        ("[plan]\nzero = [0, 1]", 512),
        (SHAPES, 512),
        ("[plan]\npipeline = [2, 4]\njitter = {straggler = [3, 20]}", 512),  # rank 3 of 2 or of 4
        ("[plan]\nzero = [1]\nmicro_batch = [1]", 1 << 24),  # more microbatches than are taken
    ],
)
def test_the_space_is_what_the_problem_file_tells(plan: str, samples: int) -> None:
    file = file_of(plan, samples)
    counts = legal(all_counted(file))
    assert counts
    for one in sampled(counts, every=3):
        told = outcome(lambda one=one: deployed_file(file, one).plan)
        assert outcome(lambda one=one: deployed_space(file, one)) == told


def test_the_text_of_the_problem_says_the_same() -> None:
    file = file_of(SHAPES)
    one = next(one for one in legal(all_counted(file)) if one.combination.pipeline == 4)
    told = problem_file_of_text(deployed_text(file, one), name=file.name)
    assert told == deployed_file(file, one)


@pytest.mark.sweep
@pytest.mark.parametrize("value", sized([1 << 53], full=[-1, 1 << 53]))
def test_a_number_that_no_file_tells_is_refused_by_its_place(value: int) -> None:
    file = file_of("[plan]\nzero = [1]\nmicro_batch = [1]")
    one, *_ = legal(all_counted(file))
    numbers = replace(one.numbers, capacity=value)
    content = deployed_content(numbers, ranks=1, microbatches=1, name="small")
    for make in (
        lambda: problem_of(content, name="small").plan,
        lambda: space_of_layers(numbers, file.shapes, ranks=1, microbatches=1),
    ):
        assert str(outcome(make)).startswith("memory.capacity: expected a ")


def test_a_combination_that_a_number_forbids_has_a_reason_and_no_numbers() -> None:
    none = next(iter(all_counted(file_of("[plan]\nzero = [0]", samples=7))))
    assert isinstance(none, ForbiddenCombination)
    assert "not divisible" in none.reason
