"""Random meshes for PipeMesh's planner, with a budget under which some queues fit."""

from __future__ import annotations

from fractions import Fraction
from random import Random

from bubbleproof.papers.pipemesh.mesh_numbers import MeshNumbers
from bubbleproof.papers.pipemesh.pipemesh_queue import QueueNumbers, planned_queue
from bubbleproof.papers.pipemesh.recomputed_operations import RecomputedOperation
from bubbleproof.theory.pipelines.pipeline import Pipeline
from proofs_tests.sized import sized
from proofs_tests.zeros import zero_or


def drawn(seed: int, operations: int) -> MeshNumbers:
    """A random mesh with a budget under which some queues fit and others do not."""
    random = Random(seed)
    p, chunks = random.randint(2, 4), random.choice([1, 2, 3, 5, 6])
    m = random.randint(p, 4 * p)
    forward = zero_or(random, 2, 9)
    mesh = QueueNumbers(
        num_ranks=p,
        num_chunks=chunks,
        num_microbatches=m,
        replicas=random.randint(1, 4),
        parameters=zero_or(random, 1, 30),
        forward=forward,
        backward=forward + random.randint(0, 9),
        communication=zero_or(random, 1, 40),
    )
    listed = tuple(
        RecomputedOperation(name=f"o{k}", size=random.randint(0, 6), ticks=random.randint(0, 3))
        for k in range(operations)
    )
    base = random.randint(0, 5)
    full = base + sum(o.size for o in listed)
    least, most = planned_queue(mesh, p), planned_queue(mesh, m)
    low, high = least.total_bytes(base), most.total_bytes(full)
    budget = int(low + (high - low) * Fraction(random.randint(-1, 11), 10))
    plain = Pipeline(
        num_ranks=p,
        num_microbatches=m,
        num_chunks=chunks,
        forward=mesh.forward,
        backward=mesh.backward,
        activation=full,
    )
    return MeshNumbers(
        plain=plain,
        candidate=None,
        mesh=mesh,
        operations=listed,
        base=base,
        beside=0,
        budget=None if random.random() < 0.1 else budget,
    )


SEEDS = sized(range(60), full=range(600))
