"""Notes on a replay: what its numbers do not show, and what W makes of a user's model.

Gradients cannot tell which of two microbatches went where, or was added first.
Where two microbatches have the same input, activations that ranks mix up are the same ones; where
they have the same target, so are the targets. Of reference models all data are drawn anew, but of
few words, and a user's model may give what it likes. The first two gradients of a sum may change
places without a bit changed, so two whole microbatches that ran as each other leave no trace where
every stage adds them first.

Numbers that show nothing: gradients that are 0 throughout, and weights that no step changed.

Behind a head that begins with zeros, or of units that no data reach, a gradient is 0, and most
faults of what makes it leave it so. Where a step is less than a weight's last bit, it does as much
as no step.

Which gradients of a user's model W makes, which I, and which nobody: a sentence a stage.

A schedule plans W as the backward for the weights. Of somebody else's module that is what
``models.linear`` can defer; a replay says so, as times are to be read with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from bubbleproof.reference_exec.bits import as_bytes, same_bits
from bubbleproof.reference_exec.evidence.training_oracle import ExpectedTraining
from bubbleproof.reference_exec.models.dry_run import StageFacts
from bubbleproof.reference_exec.models.examined import examined
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
    if not plan.trains:
        return ()
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


Parameter = tuple[int, str]  # stage and name
NO_OTHER = "numbers would be no other if it went wrong"


def unmoved(expected: ExpectedTraining) -> tuple[str, ...]:
    """One sentence for the gradients of the last pass, and one for the weights of a training."""
    still = [key for key, gradient in expected.gradients.items() if not gradient.any()]
    told = (
        ("What makes the gradient", still, "it is all 0"),
        ("What a step does to the weights", [*_unstepped(expected)], "no bit of them changed"),
    )
    return tuple(f"{what} of {_named(of)}: {why}; {NO_OTHER}." for what, of, why in told if of)


def _unstepped(expected: ExpectedTraining) -> Iterator[Parameter]:
    """Those with gradients that have been in all passes what they were in the first."""
    for key, first in expected.course[0].items() if expected.course else ():
        if key in expected.gradients and all(
            same_bits(weights[key], first) for weights in expected.course[1:]
        ):
            yield key


def _named(parameters: Iterable[Parameter]) -> str:
    """The first of them, and how many more there are."""
    (stage, name), *more = sorted(parameters)
    return f"stage {stage} {name}" + (f" and of {len(more)} more" if more else "")


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
