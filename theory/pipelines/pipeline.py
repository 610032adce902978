"""Pipelines: the shape of a pipeline-parallel training step, and its Problem.

Symbols: p ranks, m microbatches, v chunks per rank, s slices per sample, stages g = 0..p*v-1.
``theory.pipelines.pipeline_problem`` states the rules of the Problem: dependencies and memory.

A pipeline has every choice fixed (``theory.pipelines.choices``), so the Problem has no optional
task.
"""

from __future__ import annotations

from functools import lru_cache
from typing import final

from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.pipelines.choices import KINDS
from bubbleproof.theory.pipelines.pipeline_problem import problem_of
from bubbleproof.theory.pipelines.pipeline_statement import PipelineStatement

_LARGE = 4096  # stages times samples and slices: such a Problem takes half a MB or more


@final
class Pipeline(PipelineStatement):
    """A training step of ``num_ranks`` x ``num_chunks`` stages over ``num_microbatches`` samples.

    ``forward``, ``backward`` (full), ``input_backward`` (I) and ``weight_backward`` (W) are ticks
    of one action, given once, per stage, or as rows of one number per slice (see
    ``theory.pipelines.stage_numbers``); the parts of a W add up to its ``weight_backward``.
    ``activation``, ``released_at_input`` and ``static`` are memory units, given once or per stage;
    ``weight_workspace`` is what each GEMM of a W holds while it runs, given once or in rows like
    ``weight_parts``; ``capacity`` is the memory of each rank, given once, per rank, or None.
    ``message`` is what a stage sends on, in memory units, once or per stage; ``latency`` (ticks),
    ``bandwidth`` (memory units per tick, None for no limit) and ``duplex`` (``half`` or ``full``)
    hold for every pair of ranks that ``links`` does not name (``theory.pipelines.links``).

    ``choices`` hold what is decided beyond that. Each may also be given by its own name:
    ``Pipeline(num_ranks=4, num_microbatches=8, split_backward=True)``; what is given by name
    replaces what ``choices`` says.

    Raises ``TypeError`` naming the field, what was expected and what was found, and ``ValueError``
    where a number is out of range, a choice names what is not there, or choices have no meaning
    together: of what is made there is a Problem.
    """

    __slots__ = ()

    def __post_init__(self) -> None:
        """Check all of it: where something is chosen, by its problem, which says what there is."""
        PipelineStatement.__post_init__(self)
        if self.is_extreme or any(getattr(self.choices, name) for name in KINDS):
            try:
                self.problem()
            except OverflowError:
                raise ValueError("numbers must add up to less than 2**60") from None

    def problem(self) -> Problem:
        """The tasks, resources, precedences and memory of this training step, to be read only.

        Equal pipelines that are asked soon after each other have one object; of large ones the last
        is kept.
        """
        size = self.num_stages * self.num_microbatches * self.num_slices
        return _last(self) if size > _LARGE else _kept(self)


def _made(pipeline: Pipeline) -> Problem:
    """The Problem; whoever writes into one of its columns hears a ``ValueError``."""
    problem = problem_of(pipeline)
    problem.duration.setflags(write=False)
    for columns in (problem.actions, problem.occupancy, problem.edges, problem.events):
        for name in columns.__slots__:
            getattr(columns, name).setflags(write=False)
    return problem


_kept, _last = lru_cache(maxsize=32)(_made), lru_cache(maxsize=1)(_made)
