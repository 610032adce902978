"""Members put together: whole gradients and weights from those of a data-parallel group.

Members that are sharded have rows of each; whole ones all have the same.
"""

from __future__ import annotations

from dataclasses import replace

import torch

from bubbleproof.reference_exec.plans.plan import Plan
from bubbleproof.reference_exec.runtime.compute import Gradients
from bubbleproof.reference_exec.runtime.rank import RankResult


def whole_results(plan: Plan, results: list[RankResult], like: Gradients) -> list[RankResult]:
    """The results with whole tensors, in the shapes of ``like``, on the first of each group.

    The other members of the group keep none, or, where they are whole, their weights. Results of a
    plan of one replica that is whole are as they were.
    """
    if plan.parallel is None or not results:
        return results
    found = []
    for process, result in enumerate(results):
        replica, rank = plan.seat(process)
        members = results[rank :: plan.num_ranks] if replica == 0 else []
        if plan.is_sharded:
            gradients = _joined([member.gradients for member in members], like)
            updated = _joined([member.updated for member in members], like)
        else:
            gradients, updated = result.gradients if members else {}, result.updated
        found.append(replace(result, gradients=gradients, updated=updated))
    return found


def members_agree(plan: Plan, results: list[RankResult]) -> bool:
    """Whether whole members of each group ended with the same gradients, bit for bit."""
    if plan.is_sharded:
        return True
    firsts = results[: plan.num_ranks]
    return all(
        result.gradients.keys() == first.gradients.keys()
        and all(torch.equal(result.gradients[key], g) for key, g in first.gradients.items())
        for number, result in enumerate(results)
        for first in (firsts[number % plan.num_ranks],)
    )


def _joined(members: list[Gradients], like: Gradients) -> Gradients:
    """Whole tensors from the rows of all members, in their order."""
    if not members:
        return {}
    return {
        key: torch.cat([member[key] for member in members]).view(like[key].shape)
        for key in members[0]
    }
