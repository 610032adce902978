"""Which contributions one REDUCE_GRAD sums, and in which order those of one rank end.

A parameter of level 1, or of whole replicas, is summed once; one of level 2 or 3 by every
REDUCE_GRAD of its stage on its rank, each of which takes what its plan says
(``DataParallel.reduction``). A weight of a GEMM is added by B or W, any other parameter by B or I,
so that of one microbatch they may go to different REDUCE_GRADs.
"""

from __future__ import annotations

from bubbleproof.reference_exec.plans.plan import Plan
from bubbleproof.theory.model.actions import Kind

Part = tuple[int, int]  # (microbatch, slice)


def summed_together(
    plan: Plan, stage: int, rank: int, name: str, order: list[Part], part: int | None
) -> list[list[Part]]:
    """What a parameter adds in ``order``, by the REDUCE_GRADs that sum it, in the order they end.

    ``part`` is the part of W with the parameter's GEMM (``NONE``: W is whole), None where it has
    no GEMM. A REDUCE_GRAD that a program forgets, which was not verified then, counts as the last.
    """
    parallel = plan.parallel
    if parallel is None or parallel.levels is None or parallel.levels.of(name) == 1:
        return [order]
    split = plan.split()
    found: dict[int, list[Part]] = {}
    for microbatch, slice_ in order:
        key = (stage, microbatch, slice_)
        if key not in split:
            number = parallel.reduction(Kind.B, key, rank)
        elif part is None:
            number = parallel.reduction(Kind.I, key, rank)
        else:
            number = parallel.reduction(Kind.W, key, rank, part)
        found.setdefault(number, []).append((microbatch, slice_))
    ended = _ended(plan, stage, rank)
    return [found[n] for n in sorted(found, key=lambda n: (ended.get(n, len(plan.program)), n))]


def _ended(plan: Plan, stage: int, rank: int) -> dict[int, int]:
    """The place of the end of each REDUCE_GRAD of a stage on a rank."""
    order = plan.order(rank)
    wanted = (Kind.REDUCE_GRAD, stage)
    return {a.slice: place for place, a in enumerate(order) if (a.kind, a.stage) == wanted}
