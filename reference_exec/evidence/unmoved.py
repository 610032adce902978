"""Numbers that show nothing: gradients that are 0 throughout, and weights that no step changed.

Behind a head that begins with zeros, or of units that no data reach, a gradient is 0, and most
faults of what makes it leave it so. Where a step is less than a weight's last bit, it does as much
as no step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from bubbleproof.reference_exec.bits import same_bits
from bubbleproof.reference_exec.evidence.training_oracle import ExpectedTraining

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
