"""Instances that no solver was tuned on: random pipelines, also of several sorts of microbatches.

    python -m benchmarks.unseen [COUNT] [--time-limit S]

solves so many (67 unless said) and tells of each whether its optimum has a certificate that
``verify`` accepts or rests on an engine's word, and in the end how many of each kind do. Kinds, in
turn: ``plain`` (loop or wave, whole or split, uneven stages, tight memory, latency), ``both ways``
(bidirectional), ``lengths`` (microbatches of two or three lengths, in ticks and in memory) and
``mixed`` (some microbatches with a split backward). Numbers are drawn from the instance's number.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from random import Random

import numpy as np

from bubbleproof.solvers import Proof, SolveOptions, Status, solve
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.pipelines.pipeline import Pipeline

KINDS = ("plain", "both ways", "lengths", "mixed")
EVERY_NUMBER = 67
SIZES = ((2, 4), (2, 6), (3, 4), (3, 6), (4, 4), (4, 6), (4, 8))  # ranks, microbatches


def instance(number: int) -> tuple[str, Problem]:
    """The kind and the problem of a number."""
    rng, kind = Random(1000 + number), KINDS[number % len(KINDS)]
    p, m = rng.choice(SIZES)
    split: bool | tuple[tuple[bool, ...], ...] = rng.random() < 0.4
    if kind == "mixed":
        split = (tuple(rng.random() < 0.5 for _ in range(m)),) * p
    chunks = rng.choice((1, 1, 2)) if kind == "plain" and p * m <= 18 else 1
    pipeline = Pipeline(
        num_ranks=p,
        num_microbatches=m,
        num_chunks=chunks,
        placement="bidirectional" if kind == "both ways" else rng.choice(("loop", "wave")),
        split_backward=split,
        forward=tuple(rng.randint(1, 4) for _ in range(p * chunks)),
        backward=tuple(rng.randint(2, 6) for _ in range(p * chunks)),
        input_backward=tuple(rng.randint(1, 3) for _ in range(p * chunks)),
        weight_backward=tuple(rng.randint(1, 3) for _ in range(p * chunks)),
        capacity=rng.choice((None, p, p * chunks, 2 * p)),
        latency=rng.choice((0, 0, 1, 2)),
    )
    problem = pipeline.problem()
    return kind, _with_lengths(problem, rng, m, p) if kind == "lengths" else problem


def _with_lengths(problem: Problem, rng: Random, m: int, p: int) -> Problem:
    """Ticks and memory of each microbatch times its length; room for some of the longest."""
    lengths = np.array([rng.choice(rng.choice(((1, 2), (1, 2, 3)))) for _ in range(m)])
    of_task = lengths[problem.actions.microbatch]
    events = replace(problem.events, delta=problem.events.delta * of_task[problem.events.task])
    room = rng.randint(3, 3 + p)
    stores = tuple(
        replace(store, capacity=None if store.capacity is None else store.base + room)
        for store in problem.stores
    )
    return replace(problem, duration=problem.duration * of_task, events=events, stores=stores)


def main(words: Sequence[str] | None = None) -> int:
    """Print a line per instance and the counts."""
    parser = argparse.ArgumentParser(prog="benchmarks.unseen")
    parser.add_argument("count", type=int, nargs="?", default=EVERY_NUMBER, help="instances")
    parser.add_argument("--time-limit", type=float, default=20.0, help="seconds for each")
    given = parser.parse_args(words)
    counts: Counter[tuple[str, str]] = Counter()
    for number in range(given.count):
        kind, problem = instance(number)
        result = solve(problem, SolveOptions(time_limit=given.time_limit, threads=1))
        is_open = result.status in (Status.FEASIBLE, Status.UNKNOWN)
        by = "open" if is_open or result.proof is None else result.proof.name.lower()
        by = "certificate" if result.proof is Proof.ARGUMENT else by
        counts[kind, by] += 1
        sys.stdout.write(
            f"{number:3} {kind:10} {problem.num_tasks:4} tasks {result.status.name:10} "
            f"{result.value} {by} {result.seconds:.1f} s\n"
        )
        sys.stdout.flush()
    for by in ("certificate", "engine", "open"):
        each = ", ".join(f"{counts[kind, by]} {kind}" for kind in KINDS)
        sys.stdout.write(f"{by}: {sum(counts[kind, by] for kind in KINDS)} ({each})\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
