"""Loss scaling: by which power of two a loss is multiplied before its backward, step by step.

Gradients below 2^-24 are 0 in float16. So the loss of each microbatch is multiplied by a scale S
before its backward, all gradients of a pass are S times theirs, and a STEP divides them by S again.
S is a power of two, so that scaling changes no bit of a number that neither overflows nor
underflows.

A *static* scale stays. A *dynamic* one begins at ``FIRST``, is halved after a step whose gradients
are not all finite, and doubled after ``GROWTH_INTERVAL`` steps in a row whose are: the rule, and
the numbers, of ``torch.amp.GradScaler``. A step whose gradients are not all finite is skipped: no
weight and no optimizer state changes, on any rank. Loads no torch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

FIRST = 2.0**16
GROWTH_INTERVAL = 2000  # steps
LARGEST_SCALE = 2.0**24
DYNAMIC = "dynamic"


@dataclass(frozen=True, slots=True, kw_only=True)
class LossScale:
    """The scale of one step: ``value``, and how many ``finite_steps`` it has had in a row.

    Raises ``ValueError`` for a value that is no power of two from 1 to ``LARGEST_SCALE``; a dynamic
    one may fall below 1.
    """

    value: float = FIRST
    is_dynamic: bool = False
    finite_steps: int = 0

    def __post_init__(self) -> None:
        is_power = self.value > 0 and math.isfinite(self.value) and math.frexp(self.value)[0] == 0.5
        is_given = not self.is_dynamic
        if not is_power or (is_given and not 1 <= self.value <= LARGEST_SCALE):
            raise ValueError(
                "replay loss scale must be a power of two from 1 to 2**24 "
                f'(16777216), or "{DYNAMIC}", got {self.value:g}'
            )

    @classmethod
    def parse(cls, text: str) -> LossScale:
        """``"1024"``, or ``"dynamic"``. Raises ``ValueError``.

        >>> LossScale.parse("1024").value, LossScale.parse("dynamic").value
        (1024.0, 65536.0)
        """
        if text == DYNAMIC:
            return cls(is_dynamic=True)
        try:
            value = float(text)
        except ValueError:
            raise ValueError(
                f'replay loss scale must be a power of two or "{DYNAMIC}", got {text!r}'
            ) from None
        return cls(value=value)

    def after(self, *, is_finite: bool) -> LossScale:
        """The scale of the next step, by whether all gradients of this one were finite."""
        if not self.is_dynamic:
            return self
        if not is_finite:
            return replace(self, value=self.value / 2, finite_steps=0)
        if self.finite_steps + 1 == GROWTH_INTERVAL:
            return replace(self, value=2 * self.value, finite_steps=0)
        return replace(self, finite_steps=self.finite_steps + 1)

    def __str__(self) -> str:
        return f"{DYNAMIC}, {self.value:g}" if self.is_dynamic else f"{self.value:g}"
