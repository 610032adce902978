"""In which order a program adds the contributions to a gradient, and which REDUCE_GRAD sums them.

A full backward B adds to all parameters of its stage. Of a split one, W adds to the weights of the
GEMMs, where W is cut the part of it with the weight's GEMM (``shares``), and I to all others. So
the order is that of B and W, or of B and I, on each rank of the stage.

A parameter of level 1, or of whole replicas, is summed once; one of level 2 or 3 by every
REDUCE_GRAD of its stage on its rank, each of which takes what its plan says
(``DataParallel.reduction``). A weight of a GEMM is added by B or W, any other parameter by B or I,
so that of one microbatch they may go to different REDUCE_GRADs.
"""

from __future__ import annotations

from bubbleproof.reference_exec.models.footprint import shares
from bubbleproof.reference_exec.plans.replay_plan import ReplayPlan
from bubbleproof.theory.model.actions import NONE, Action, Kind

Orders = dict[tuple[int, int], list[tuple[int, int]]]  # by (stage, rank): (microbatch, slice)


def accumulation_orders(plan: ReplayPlan, part: int = NONE) -> tuple[Orders, Orders]:
    """What each stage's GEMM weights (B, W) and its others (B, I) add, in order, by its ranks.

    Where W is cut, the GEMM weights are those of one ``part``. Each contribution stands once, also
    where a program that was not verified forgets it.
    """
    replicas = [(stage, rank) for rank in range(plan.num_ranks) for stage in plan.stages_of(rank)]
    gemm: Orders = {replica: [] for replica in replicas}
    other: Orders = {replica: [] for replica in replicas}
    rows = zip(plan.program.actions, plan.program.resource.tolist(), strict=True)
    for action, rank in rows:
        done: Action = action.partner or action
        if (done.stage, rank) not in gemm:
            continue
        if done.kind in (Kind.B, Kind.W) and done.part in (NONE, part):
            gemm[done.stage, rank].append((done.microbatch, done.slice))
        if done.kind in (Kind.B, Kind.I):
            other[done.stage, rank].append((done.microbatch, done.slice))
    whole = {(stage, rank): _parts(plan, stage, rank) for stage, rank in replicas}
    return _completed(gemm, whole), _completed(other, whole)


def begins_at_zero(plan: ReplayPlan, stage: int) -> bool:
    """Whether a stage's sums begin at 0.0 and not with their first contribution.

    So it is where there is room for them before, of shards or of a stage that comes from a host. A
    sum of nothing but -0.0 tells the two apart.
    """
    return plan.is_sharded or stage in plan.hosted


def _parts(plan: ReplayPlan, stage: int, rank: int) -> list[tuple[int, int]]:
    """The (microbatch, slice) that a rank runs of a stage."""
    own = [j for j in range(plan.num_microbatches) if plan.rank_of(stage, j) == rank]
    return [(microbatch, k) for microbatch in own for k in range(plan.num_slices)]


def _completed(orders: Orders, whole: Orders) -> Orders:
    """The orders with each part of the whole once: where it first stands, or else at the end."""
    found: Orders = {}
    for replica, order in orders.items():
        parts = set(whole[replica])
        found[replica] = [p for p in dict.fromkeys([*order, *whole[replica]]) if p in parts]
    return found


def part_of_weights(plan: ReplayPlan, stage: int, gemms: tuple[str, ...]) -> dict[str, int]:
    """The part of W that has the GEMM of each of these weights, ``NONE`` where W is whole."""
    if stage not in plan.weight_parts:
        return dict.fromkeys(gemms, NONE)
    cut = shares(len(gemms), plan.weight_parts[stage])
    return {gemms[k]: part for part, share in enumerate(cut) for k in share}


GradientPart = tuple[int, int]  # (microbatch, slice)


def summed_together(
    plan: ReplayPlan, stage: int, rank: int, name: str, order: list[GradientPart], part: int | None
) -> list[list[GradientPart]]:
    """What a parameter adds in ``order``, by the REDUCE_GRADs that sum it, in the order they end.

    ``part`` is the part of W with the parameter's GEMM (``NONE``: W is whole), None where it has
    no GEMM. A REDUCE_GRAD that a program forgets, which was not verified then, counts as the last.
    """
    parallel = plan.parallel
    if parallel is None or parallel.levels is None or parallel.levels.of(name) == 1:
        return [order]
    split = plan.split()
    found: dict[int, list[GradientPart]] = {}
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


def _ended(plan: ReplayPlan, stage: int, rank: int) -> dict[int, int]:
    """The place of the end of each REDUCE_GRAD of a stage on a rank."""
    order = plan.order(rank)
    wanted = (Kind.REDUCE_GRAD, stage)
    return {a.slice: place for place, a in enumerate(order) if (a.kind, a.stage) == wanted}
