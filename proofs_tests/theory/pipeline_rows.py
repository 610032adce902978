"""The precedences and memory events of a problem, by the labels of its tasks."""

from __future__ import annotations

from collections import Counter

from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.pipelines.pipeline import Pipeline

PLAIN = Pipeline(num_ranks=2, num_microbatches=2)


def edges(problem: Problem) -> Counter[tuple[str, str, int]]:
    label = problem.label
    rows = zip(problem.edges.before, problem.edges.after, problem.edges.lag, strict=True)
    return Counter((label(int(a)), label(int(b)), int(lag)) for a, b, lag in rows)


def events(problem: Problem) -> Counter[tuple[str, str, int, int]]:
    e = problem.events
    rows = zip(e.task, e.at_end, e.store, e.delta, strict=True)
    return Counter(
        (problem.label(int(t)), "end" if at_end else "start", int(s), int(d))
        for t, at_end, s, d in rows
    )
