"""What is wrong with a gradient, by what it is instead: a multiple, a part, an older one.

A gradient is *the same* where it differs from another by at most ``tolerance`` times that one's
largest entry. What is named is what it equals: the right one times a factor, without one
microbatch or with one twice, with that of the step before added, or that of a model of which one
part has the parameters of the step before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import torch

from bubbleproof.testing.step_loop import Gradients


@dataclass(frozen=True, slots=True, kw_only=True)
class RightStep:
    """The right gradients, what each microbatch adds to them, and those that tell of a cause.

    ``stale[part]`` are the gradients where that part has the parameters before the last update.
    """

    right: Gradients
    parts: Sequence[Gradients]
    before: Gradients = field(default_factory=dict)
    stale: Mapping[str, Gradients] = field(default_factory=dict)


def same(found: torch.Tensor, wanted: torch.Tensor, tolerance: float) -> bool:
    """Whether two gradients are the same, see the module's text."""
    if found.shape != wanted.shape:
        return False
    least = torch.finfo(wanted.dtype).tiny
    return bool((found - wanted).abs().max() <= tolerance * max(float(wanted.abs().max()), least))


def differences(found: Gradients, step: RightStep, tolerance: float) -> list[str]:
    """One sentence for each parameter that differs; one for a stage that is stale, not for each."""
    wrong = [
        name
        for name, wanted in step.right.items()
        if name not in found or not same(found[name], wanted, tolerance)
    ]
    for part, gradients in step.stale.items():
        stale = [name for name in wrong if name in found and name in gradients]
        if stale and all(same(found[n], gradients[n], tolerance) for n in stale):
            return [f"stage {part} is stale: gradients are those of its parameters a step before"]
    told = [_told(name, found.get(name), step, tolerance) for name in wrong]
    beyond = (name for name in found if name not in step.right)
    return told + [f"{name}: a gradient where the loop has none" for name in beyond]


def _told(name: str, found: torch.Tensor | None, step: RightStep, tolerance: float) -> str:
    if found is None:
        return f"{name}: no rank has a gradient of it"
    wanted = step.right[name]
    if found.shape != wanted.shape:
        return f"{name}: shape {tuple(found.shape)}, must be {tuple(wanted.shape)}"
    for cause, like in _causes(name, wanted, step):
        if same(found, like, tolerance):
            return f"{name}: {cause}"
    squared = float((wanted * wanted).sum())
    factor = float((found * wanted).sum()) / squared if squared else 0.0
    if same(found, wanted * factor, tolerance):
        return f"{name}: {factor:.6g} times the loop's"
    largest = float(wanted.abs().max())
    error = float((found - wanted).abs().max()) / largest if largest else float("inf")
    return f"{name}: differs by {error:.1e} of its largest entry, for no reason that is known"


def _causes(name: str, wanted: torch.Tensor, step: RightStep) -> Iterator[tuple[str, torch.Tensor]]:
    """What may have been computed instead, the simplest first."""
    m = len(step.parts)
    yield "zero", torch.zeros_like(wanted)
    if m > 1:
        yield f"m = {m} times the loop's (not divided by the microbatches)", wanted * m
        yield f"1/m = 1/{m} of the loop's (divided once too often)", wanted / m
    for number, part in enumerate(step.parts):
        if name in part:
            yield f"microbatch {number} missing", wanted - part[name]
            yield f"microbatch {number} counted twice", wanted + part[name]
            yield f"microbatch {number} alone", part[name]
    if name in step.before:
        yield "the gradient of the step before was not cleared", wanted + step.before[name]
        yield "the gradient of the step before", step.before[name]
