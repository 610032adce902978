"""Microbatches that are alike: of which gradients cannot tell which one went where.

Where two microbatches have the same input, activations that ranks mix up are the same ones; where
they have the same target, so are the targets. Of reference models all data are drawn anew, but of
few words, and a user's model may give what it likes.
"""

from __future__ import annotations

from bubbleproof.reference_exec.bits import as_bytes
from bubbleproof.reference_exec.models.reference import microbatch_input, microbatch_target
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
