"""What gradients cannot tell: which of two microbatches went where, or was added first.

Where two microbatches have the same input, activations that ranks mix up are the same ones; where
they have the same target, so are the targets. Of reference models all data are drawn anew, but of
few words, and a user's model may give what it likes. The first two gradients of a sum may change
places without a bit changed, so two whole microbatches that ran as each other leave no trace where
every stage adds them first.
"""

from __future__ import annotations

from bubbleproof.reference_exec.bits import as_bytes
from bubbleproof.reference_exec.models.reference import microbatch_input, microbatch_target
from bubbleproof.reference_exec.plans.accumulation import accumulation_orders
from bubbleproof.reference_exec.plans.replay_plan import ReplayPlan

_DATA = {"input": microbatch_input, "target": microbatch_target}


def alike_data(plan: ReplayPlan) -> tuple[str, ...]:
    """One sentence for the inputs, and one for the targets, of which any two are the same."""
    found = []
    for what, drawn in _DATA.items():
        first: dict[tuple[object, ...], str] = {}
        again: list[tuple[str, str]] = []
        for step in range(plan.num_passes):
            for sample in range(plan.num_samples):
                data = drawn(plan.spec, sample, step=step)
                name = f"microbatch {sample}" + (f" of step {step}" if plan.num_passes > 1 else "")
                content = (data.dtype, tuple(data.shape), as_bytes(data))
                earlier = first.setdefault(content, name)
                if earlier != name:
                    again.append((earlier, name))
        if again:
            pair = " and ".join(again[0])
            more = f", as {len(again) - 1} more repeat another's" if again[1:] else ""
            found.append(
                f"Which {what} went where: {pair} have the same {what}{more}; numbers would be no "
                "other if ranks mixed them up."
            )
    return tuple(found)


def added_first(plan: ReplayPlan) -> tuple[str, ...]:
    """One sentence for two microbatches that every stage adds first, and one for two first W."""
    gemm, other = accumulation_orders(plan)
    found = []
    pairs = {frozenset(order[:2]) for order in (*gemm.values(), *other.values())}
    if plan.num_slices == 1 and len(pairs) == 1 and len(pair := sorted(*pairs)) == 2:
        first, second = (microbatch for microbatch, _ in pair)
        found.append(
            f"Whether microbatches {first} and {second} ran as each other: every stage adds their "
            "gradients first, and the sum is the same either way."
        )
    split = {key[0] for key in plan.split()}
    if any(stage in split and len(order) > 1 for (stage, _), order in gemm.items()):
        found.append(
            "Which of the first two W of a stage ran first: their sum is the same either way."
        )
    return tuple(found)
