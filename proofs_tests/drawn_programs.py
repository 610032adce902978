"""Programs that are drawn with their problems, executable or in any order at all."""

from __future__ import annotations

from random import Random

from hypothesis import strategies as st

from bubbleproof.testing.strategies import pipelines, programs, random_program
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline


@st.composite
def ordered_pipelines(
    draw: st.DrawFn, *, split: bool | None = None
) -> tuple[Pipeline, Problem, Program]:
    """A pipeline, its problem, and an executable program of it."""
    pipeline = draw(pipelines(split=split))
    problem = pipeline.problem()
    return pipeline, problem, draw(programs(problem))


@st.composite
def shuffled_programs(draw: st.DrawFn) -> tuple[Problem, Program]:
    """A problem and a program in any order at all: it may deadlock."""
    problem = draw(pipelines()).problem()
    orders = random_program(problem, Random(0)).orders(len(problem.resources))
    random = Random(draw(st.integers(0, 2**16)))
    for order in orders:
        random.shuffle(order)
    return problem, Program.from_orders(orders)
