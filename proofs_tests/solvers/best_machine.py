"""The bound of one machine alone, where a test is about it or must leave room above it."""

from __future__ import annotations

from bubbleproof.solvers.bounds import Bounds, machine_bound
from bubbleproof.theory.model.problem import Problem
from bubbleproof.verify.certificates.one_machine import OneMachine


def best_machine(problem: Problem, bounds: Bounds) -> OneMachine:
    """The best of all resources on the makespan. Precondition: the tasks are computations."""
    resources = range(len(problem.resources))
    found = [machine_bound(problem, r, bounds.heads, bounds.tails) for r in resources]
    return max(found, key=lambda certificate: certificate.bound)
