"""Members put together: whole gradients and weights from the rows of a data-parallel group."""

from __future__ import annotations

from dataclasses import replace

import torch

from bubbleproof.reference_exec.compute import Gradients
from bubbleproof.reference_exec.plan import Plan
from bubbleproof.reference_exec.rank import RankResult


def whole_results(plan: Plan, results: list[RankResult], like: Gradients) -> list[RankResult]:
    """The results with whole tensors, in the shapes of ``like``, on the first of each group.

    The other members of the group keep none. Results of a plan without shards are as they were.
    """
    if plan.parallel is None or not results:
        return results
    found = []
    for process, result in enumerate(results):
        replica, rank = plan.seat(process)
        members = results[rank :: plan.num_ranks] if replica == 0 else []
        found.append(
            replace(
                result,
                gradients=_joined([member.gradients for member in members], like),
                updated=_joined([member.updated for member in members], like),
            )
        )
    return found


def _joined(members: list[Gradients], like: Gradients) -> Gradients:
    """Whole tensors from the rows of all members, in their order."""
    if not members:
        return {}
    return {
        key: torch.cat([member[key] for member in members]).view(like[key].shape)
        for key in members[0]
    }
