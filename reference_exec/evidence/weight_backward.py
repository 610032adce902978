"""Which gradients of a user's model W makes, which I, and which nobody: a sentence a stage.

A schedule plans W as the backward for the weights. Of somebody else's module that is what
``models.own_linear`` can defer; a replay says so, as times are to be read with it.
"""

from __future__ import annotations

from collections.abc import Sequence

from bubbleproof.reference_exec.models.dry_run import StageFacts
from bubbleproof.reference_exec.models.examined import examined
from bubbleproof.reference_exec.plans.replay_plan import ReplayPlan

MOST_NAMES = 4
DRAWS = "draws random numbers, the same of a microbatch in F, R and any order"


def weight_backward(plan: ReplayPlan) -> tuple[str, ...]:
    """One sentence per stage that has a W, is frozen or draws; none for the reference models."""
    if plan.spec.kind != "own":
        return ()
    split, facts = {key[0] for key in plan.split()}, examined(plan.spec)
    told = {stage: _told(facts[stage]) for stage in split}
    sentences = []
    for stage, each in enumerate(facts):
        parts = [told[stage]] if stage in told else []
        parts += [f"frozen, without gradient: {_listed(each.frozen)}"] if each.frozen else []
        parts += [DRAWS] if each.draws else []
        sentences += [f"stage {stage}: {'; '.join(parts)}"] if parts else []
    return tuple(sentences)


def _told(facts: StageFacts) -> str:
    names = [f"{name}.weight".removeprefix(".") for name in facts.replaced]
    if names:
        count = f"{len(names)} of {facts.num_trained}"
        told = f"W makes {count} gradients ({_listed(names)}), I the others"
    else:
        told = f"I makes all {facts.num_trained} gradients, W none"
    return told + (f"; hooks watch {_listed(facts.watched)}" if facts.watched else "")


def _listed(names: Sequence[str]) -> str:
    more = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
