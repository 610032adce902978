"""How large a replay may be, from its numbers alone, and how long: asked before torch is loaded.

The bytes are those that any replay of a reference model holds at once: its weights with their
gradients, and in one stage the activations of one sample of work (``footprint``).
"""

from __future__ import annotations

from dataclasses import replace

from bubbleproof.reference_exec.models.footprint import footprint, weight_bytes
from bubbleproof.reference_exec.models.model_spec import MOST_BYTES, ModelSpec
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.pipelines.limits import MAX_RANKS, MAX_TASKS

MOST_GLOO = 256  # processes that a command starts on one machine, each of which loads torch


def require_size(problem: Problem, steps: int, replicas: int, *, backend: str = "virtual") -> None:
    """Raise ``ValueError`` for more processes or actions than a replay may have."""
    on, most = (" on gloo", MOST_GLOO) if backend == "gloo" else ("", MAX_RANKS)
    for what, limit, asked in (
        (f"processes{on}", most, problem.num_ranks * replicas),
        ("actions", MAX_TASKS, problem.num_tasks * steps * replicas),
    ):
        if asked > limit:
            raise ValueError(
                f"a replay has at most {limit} {what} in all steps and replicas, got {asked}"
            )


def require_room(
    spec: ModelSpec, *, num_stages: int, num_slices: int, replicas: int = 1, device: str = "cpu"
) -> None:
    """Raise ``ValueError`` for a reference model beyond ``MOST_BYTES`` on the cpu."""
    if spec.kind == "own" or device != "cpu":
        return
    least = least_bytes(spec, num_stages, num_slices, replicas)
    if least > MOST_BYTES:
        raise ValueError(
            f"a model on the cpu takes at most {MOST_BYTES} bytes, got one that needs "
            f"{least} or more (weights, gradients, one microbatch's activations); "
            "make it smaller, or use --device cuda"
        )


def least_bytes(spec: ModelSpec, num_stages: int, num_slices: int = 1, replicas: int = 1) -> int:
    """The bytes that every replay of a reference model needs at once; see the module."""
    spec = replace(spec, tied=False).on(num_stages)
    stages, last = range(num_stages), num_slices - 1  # which attends to all slices
    weights = sum(weight_bytes(spec, stage) for stage in stages)
    held = (
        footprint(spec, stage, num_stages, slice_index=last, num_slices=num_slices)
        for stage in stages
    )
    return 2 * replicas * weights + max(each.activation_bytes for each in held)


LONGEST_SECONDS = 1_000_000.0  # gloo waits for whole milliseconds in 32 bits: 24 days at most


def require_time_limit(seconds: float) -> None:
    """Raise ``ValueError`` for a time that no rank can be given.

    >>> require_time_limit(float("inf"))
    Traceback (most recent call last):
    ValueError: replay timeout must be more than 0 and at most 1000000 seconds, got inf
    """
    if not 0 < seconds <= LONGEST_SECONDS:
        raise ValueError(
            f"replay timeout must be more than 0 and at most {LONGEST_SECONDS:.0f} seconds, "
            f"got {seconds}"
        )
