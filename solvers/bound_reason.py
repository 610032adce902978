"""The reason for a lower bound in words: which resource or store it is of, and what would lower it.

>>> from bubbleproof.theory.pipelines.pipeline import Pipeline
>>> uneven = Pipeline(num_ranks=2, num_microbatches=4, forward=(1, 2), backward=(2, 4)).problem()
>>> print(bound_reason(uneven))
8 tasks on rank 1 take 24 ticks, none starts before 1, and 2 follow the last: no schedule is below \
27. Rank 1 has the most work, 24 of 36 ticks: move a layer off it.
"""

from __future__ import annotations

import numpy as np

from bubbleproof.solvers.bounds import ByResource, lower_bounds
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.pipelines.units import plural
from bubbleproof.verify.certificates.one_machine import OneMachine, longest_paths
from bubbleproof.verify.certificates.one_store import OneStore


def bound_reason(problem: Problem, certificate: ByResource | None = None) -> str:
    """Why no schedule has a smaller makespan than the bound of one resource, and what would help.

    Parameters
    ----------
    problem
        With a computation at least.
    certificate
        Of its makespan; by default the best that needs no search.

    Returns
    -------
    str
        Two sentences; ticks and memory in the problem's units.
    """
    if certificate is None:
        bounds = lower_bounds(problem)
        if bounds.is_cyclic:
            return "The precedences go round in a circle: there is no schedule."
        certificate = bounds.best
    if isinstance(certificate, OneMachine):
        return _of_machine(problem, certificate)
    store = problem.stores[certificate.store].name
    ending = f"no schedule is below {certificate.bound}. More room in {store} would lower that."
    if isinstance(certificate, OneStore):
        where = problem.resources[certificate.resource].name
        return f"{where} can do only so much at a time as {store} has room for: {ending}"
    return f"{store} has to hold what is in it for so long that, one after another, {ending}"


def _of_machine(problem: Problem, certificate: OneMachine) -> str:
    name, unit = problem.resources[certificate.resource].name, plural(problem.unit)
    paths = longest_paths(problem, "makespan", certificate.resource)
    assert paths is not None, "a certificate of a problem without circles"
    users = problem.occupancy.task[problem.occupancy.resource == certificate.resource]
    for chosen in (users, np.array(certificate.tasks)):  # all of them where that says as much
        work = int(problem.duration[chosen].sum())
        head, tail = (min(path[task] for task in chosen.tolist()) for path in paths)
        if head + work + tail >= certificate.bound:
            break
    why = f"{len(chosen)} tasks on {name} take {work} {unit}, none starts before {head}, and {tail}"
    why += f" follow the last: no schedule is below {certificate.bound}."
    return f"{why} {_advice(problem, certificate.resource, head + tail)}"


def _advice(problem: Problem, resource: int, around: int) -> str:
    """What would lower the bound of a resource, with ``around`` ticks before and after its work."""
    name, unit = problem.resources[resource].name, plural(problem.unit)
    if resource >= problem.num_ranks:
        return f"A faster {name}, or less that goes over it, would lower that."
    columns = problem.occupancy
    of_rank = np.zeros(len(problem.resources), dtype=np.int64)
    np.add.at(of_rank, columns.resource, problem.duration[columns.task])
    ranks = of_rank[: problem.num_ranks]
    if ranks.max() > ranks.min() and of_rank[resource] == ranks.max():
        most = f"{name.capitalize()} has the most work, {ranks[resource]} of {ranks.sum()} {unit}"
        return f"{most}: move a layer off it."
    if around:
        return (
            f"{around} {unit} of that are the way in and out: more microbatches spread them over "
            "more work, fewer or quicker stages make them fewer."
        )
    return f"{name.capitalize()} is never idle then: only quicker computation would lower that."
