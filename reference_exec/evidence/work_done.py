"""The work that a replay did, beside the predicted: by action, in every pass.

Two things are compared of each action of each pass: the floating-point operations that ran, and to
how many gradients was added (``predicted_work``). So a weight gradient that is computed in I while
its W only lets go, an extra forward, one that runs twice, are told with rank, action and numbers.
Loads no torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bubbleproof.reference_exec.models.footprint import of_size, stage_flops
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.plans.predicted_work import ActionWork
from bubbleproof.reference_exec.plans.replay_plan import ReplayPlan
from bubbleproof.theory.model.actions import Action, Kind

_PHRASES = {
    "flops": "{where} did {found} floating-point operations, {expected} were predicted",
    "gradients": "{where} added to {found} gradients, {expected} were predicted",
}
_UNKNOWN = (
    "Operations without a formula in torch's FLOP counter, which has them for products of "
    "matrices, convolutions and attention: norms, activations, sums, embeddings, optimizer steps; "
    "and kernels of Triton or of an extension.",
    "What is computed before the first action, as a rank is made.",
    "What threads compute that the executor or the model starts: autograd's own are counted.",
)
_STEPS = (
    "At which action a stage steps: an update has no such operations; weights are compared as the "
    "training ends, model state as each pass does."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RankWorked:
    """One process's work: predicted of each action, and done in each of ``num_passes`` passes.

    The last entry of each row is what was done after the last action.
    """

    name: str
    actions: tuple[Action, ...]
    predicted: tuple[ActionWork, ...]
    passes: tuple[tuple[ActionWork, ...], ...]
    num_passes: int = 1

    @property
    def flops(self) -> tuple[int, int]:
        """All floating-point operations, done and predicted."""
        done = sum(work.flops for one in self.passes for work in one)
        return done, sum(work.flops for work in self.predicted) * self.num_passes

    def differing(self, quantity: str) -> list[tuple[int, int]]:
        """The (pass, number of the action) whose ``flops``, or ``gradients``, differ."""
        return [
            (step, number)
            for step in range(max(self.num_passes, len(self.passes)))
            for number, expected in enumerate(self.predicted)
            if self._done(step, number, quantity) != getattr(expected, quantity)
        ]

    def told(self, quantity: str) -> str:
        """The first action that differs, and how many do; empty where none does."""
        off = self.differing(quantity)
        if not off:
            return ""
        step, number = off[0]
        found = self._done(step, number, quantity)
        expected = getattr(self.predicted[number], quantity)
        where = f"{self.name}: {self._action(number)}"
        if self.num_passes > 1:
            where += f" of pass {step}"
        text = _PHRASES[quantity].format(where=where, found=found, expected=expected)
        return text if len(off) == 1 else f"{text}; {len(off)} actions differ"

    def _done(self, step: int, number: int, quantity: str) -> object:
        """A quantity of one action of one pass; None where it did not come to be counted."""
        done = self.passes[step] if step < len(self.passes) else ()
        return getattr(done[number], quantity) if number < len(done) else None

    def _action(self, number: int) -> str:
        if number == len(self.actions):
            return "the rank, after its last action,"
        return f"{self.actions[number]} (action {number})"


def uncounted_work(plan: ReplayPlan) -> tuple[str, ...]:
    """One sentence for each thing that is not seen as work, some of stages of this plan."""
    stages = {stage: stage_flops(plan.spec, stage) for stage in range(plan.num_stages)}
    unknown = [stage for stage, flops in stages.items() if not flops.forward]
    found = [*_UNKNOWN, *([] if plan.training is None else [_STEPS])]
    if unknown:
        found.append(f"All of {_named(unknown)}: no operation there has such a formula.")
    found += (
        f"Whether the split backward of stage {stage} has to do {split} floating-point operations, "
        f"as it was found to: whole it does {flops.backward} (parts of it are computed again)."
        for stage, flops in stages.items()
        if (split := flops.input_backward + sum(flops.gemms)) != flops.backward
    )
    return tuple(found)


def _named(stages: Sequence[int]) -> str:
    numbers = ", ".join(map(str, stages))
    return f"stage {numbers}" if len(stages) == 1 else f"stages {numbers}"


def work_dependence(spec: ModelSpec, worked: Sequence[RankWorked]) -> str:
    """How the work of a model's forwards depends on its data; empty where it does not."""
    first: dict[tuple[int, ModelSpec], tuple[str, int]] = {}
    for rank in worked:
        for step, done in enumerate(rank.passes):
            for action, work in zip(rank.actions, done, strict=False):
                if action.kind is not Kind.F:
                    continue
                name = f"microbatch {action.microbatch}" + (f" of step {step}" if step else "")
                of = action.stage, of_size(spec, action.microbatch)
                earlier, expected = first.setdefault(of, (name, work.flops))
                if work.flops != expected:
                    return (
                        f"the model's work depends on its data: stage {action.stage} did "
                        f"{expected} floating-point operations for {earlier}, {work.flops} for "
                        f"{name}; no schedule's work can be predicted with it"
                    )
    return ""
