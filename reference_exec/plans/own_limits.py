"""What a replay cannot do with somebody's own model on one schedule or another: refused by name.

Frozen parameters have no gradient and are never stepped. A host that updates a stage moves all of
its weights and gradients together, and shards of a stage are of all its parameters; neither is
told which of them to leave out.
"""

from __future__ import annotations

from bubbleproof.reference_exec.models.footprint import facts_of
from bubbleproof.reference_exec.plans.replay_plan import ReplayPlan


def require_unfrozen(plan: ReplayPlan) -> None:
    """Raise ``ValueError`` for a stage with frozen parameters that a host updates or members share.

    It names the first of them.
    """
    if plan.spec.kind != "own":
        return
    for stage, facts in enumerate(facts_of(plan.spec)):
        if facts.frozen and (plan.is_sharded or stage in plan.hosted):
            what = "is sharded (--zero)" if plan.is_sharded else "is updated by its host"
            raise ValueError(
                f"model stage {stage}: its parameter {facts.frozen[0]} is frozen, and the stage "
                f"{what}, which moves all of a stage: unfreeze it or take another schedule"
            )


def require_uncompiled(plan: ReplayPlan) -> None:
    """Raise ``ValueError`` for a compiled stage whose bytes or work are to be counted.

    What torch.compile makes as it first runs, and again where the number of threads or a mode of
    torch is another, nobody can predict.
    """
    counts = plan.counts_bytes or plan.counts_work
    for stage, facts in enumerate(facts_of(plan.spec) if plan.spec.kind == "own" else ()):
        if facts.is_compiled and counts:
            raise ValueError(
                f"model stage {stage} is made by torch.compile, whose own memory and work cannot "
                "be predicted: replay its gradients alone (--no-count-bytes --no-count-work), or "
                "the stage as it was before"
            )


def require_accumulable(plan: ReplayPlan) -> None:
    """Raise ``ValueError`` where sums of gradients do not stay on a rank from pass to pass."""
    if plan.accumulated == 1:
        return
    if plan.parallel is not None or plan.hosted:
        what = (
            "hosts step at the end of each pass"
            if plan.hosted
            else "replicas add theirs up (REDUCE_GRAD) in each pass"
        )
        raise ValueError(
            f"replay accumulates gradients where they stay on their ranks, and {what}: take more "
            "microbatches in a pass (m=), or leave --accumulate out"
        )


def require_clippable(plan: ReplayPlan) -> None:
    """Raise ``ValueError`` where gradients are to be whole on the ranks' devices and are not.

    So they are to be clipped, to be divided by a loss's scale, or to step masters of float16.
    """
    if plan.training is None or not (plan.is_sharded or plan.hosted):
        return
    what = "stages are sharded (--zero)" if plan.is_sharded else "hosts update stages"
    if plan.loss_scale is not None:
        raise ValueError(
            "replay loss scale: a step is skipped where any gradient on any rank is not finite, "
            f"and {what}: leave --loss-scale out or take another schedule"
        )
    if plan.spec.dtype == "float16":
        raise ValueError(
            f"replay trains float16 by master weights on the ranks, and {what}: leave --steps out "
            "or take another schedule"
        )
    if plan.training.clip is not None:
        raise ValueError(
            f"replay clip takes the norm of whole gradients on their ranks, and {what}: leave "
            "--clip out or take another schedule"
        )
