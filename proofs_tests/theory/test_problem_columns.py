"""Every family states the problem that it always stated: a digest of all columns, family by family.

The digests were taken before pipelines with choices became one class, and have to change only
where a family's problem is meant to: ``python -m proofs_tests.theory.test_problem_columns``
writes them anew.
"""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from bubbleproof.theory.families import families
from bubbleproof.theory.model.problem import Problem

FILE = Path(__file__).with_name("problem_columns.json")
SHAPES = ((1, 1), (2, 3), (4, 4), (4, 10), (5, 7), (6, 12))  # (p, m)


def digest(problem: Problem) -> str:
    """Of all columns, names, capacities and base loads, in order."""
    told = sha256()
    groups = (problem.actions, problem.occupancy, problem.edges, problem.events)
    for group in groups:
        for name in type(group).__dataclass_fields__:
            told.update(f"{name}:".encode())
            told.update(np.asarray(getattr(group, name)).astype(np.int64).tobytes())
    told.update(problem.duration.astype(np.int64).tobytes())
    for resource in problem.resources:
        told.update(f"{resource.name}|{resource.rank};".encode())
    for store in problem.stores:
        told.update(f"{store.name}|{store.base}|{store.capacity};".encode())
    return told.hexdigest()[:16]


def digests(name: str) -> dict[str, str]:
    """By shape; a shape that the family refuses is left out."""
    found = {}
    for p, m in SHAPES:
        try:
            found[f"p={p} m={m}"] = digest(families()[name](p=p, m=m).problem)
        except ValueError:
            continue
    return found


@pytest.mark.parametrize("name", sorted(json.loads(FILE.read_text())))
def test_a_family_poses_the_problem_it_always_posed(name: str) -> None:
    assert digests(name) == json.loads(FILE.read_text())[name]


def test_the_digest_sees_every_column() -> None:
    problem = families()["bpipe"](p=4, m=10).problem
    other = problem.with_capacity(9)
    assert digest(problem) != digest(other)
    assert digests("bpipe")["p=4 m=10"] == digest(problem)


if __name__ == "__main__":
    everything = {name: digests(name) for name in sorted(families())}
    FILE.write_text(json.dumps(everything, indent=1) + "\n")
