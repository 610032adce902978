"""Sharded pipelines: a training step whose collectives are part of its problem.

Replicas train on samples of their own and run one program; what a problem shows is one of them.
"""

from __future__ import annotations

from dataclasses import dataclass

from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.pipelines.collectives import Sharding, with_collectives
from bubbleproof.theory.pipelines.pipeline import Pipeline


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardedPipeline(Pipeline):
    """A pipeline with collectives, which follow its enqueue and dequeue sequences."""

    enqueue: tuple[int, ...]
    dequeue: tuple[int, ...]
    sharding: Sharding

    def problem(self) -> Problem:
        """The tasks, resources, precedences and memory, collectives included."""
        plain = Pipeline.problem(self)  # a slotted dataclass has no zero-argument super()
        return with_collectives(plain, self.sharding, self.enqueue, self.dequeue)
