"""Training: how many optimizer steps a replay takes, by which rule, and when a stage may step.

A training of k steps runs the program k times, each pass on microbatches of its own; after it every
stage takes one STEP with the gradient of that pass. Without a global barrier (the default) a stage
steps as soon as its own last B or W has run, while other ranks still compute, and its rank goes on
with the next pass: what the zero-bubble papers' ``span_idle`` takes for granted. With one, all
ranks first wait for each other. Gradients that ranks have to add (replicas of a stage, tied
embeddings) are exchanged at the end of the pass, so these stages step then. Loads no torch.

Gradients may be accumulated over several passes. Then a step has the gradient of all of their
microbatches: the sums go on where the pass before has left them, the mean of the loss is over all
of them, and STEPs, exchanges and the barrier do nothing but in the last of the passes.

The STEPs and exchanges stand in the ranks' programs (``stepping``) and are judged with them: rule 7
over all passes, rule 6 for one of them. No verdict of rule 6 is lost by running a verified program
several times: each rank's passes follow each other, so on every channel the sends and the receives
of one pass end before those of the next, and a pass that cannot deadlock alone cannot after another
one.

Loss scaling: by which power of two a loss is multiplied before its backward, step by step.

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


OPTIMIZERS = {"sgd": 0.125, "momentum": 0.0625, "adam": 0.001}
MOMENTUM = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """``steps`` optimizer steps; ``learning_rate`` None is the optimizer's own of ``OPTIMIZERS``.

    ``sgd`` is w - rate x gradient, ``momentum`` the same with momentum ``MOMENTUM``, ``adam`` Adam
    (Kingma and Ba, Algorithm 1) with its usual constants. ``clip`` is the most that the global norm
    of all gradients may be (``runtime.clipping``), which takes a barrier. ``accumulate`` passes
    of the program add up to the gradient of one step. ``loss_scale`` is that of the first
    step, which takes a barrier too. Raises ``ValueError`` naming the field.
    """

    optimizer: str = "sgd"
    steps: int = 1
    learning_rate: float | None = None
    has_barrier: bool = False
    clip: float | None = None
    accumulate: int = 1
    loss_scale: LossScale | None = None

    def __post_init__(self) -> None:
        if self.optimizer not in OPTIMIZERS:
            known = ", ".join(OPTIMIZERS)
            raise ValueError(f"replay optimizer must be one of {known}, got {self.optimizer!r}")
        if not isinstance(self.steps, int) or self.steps < 1:
            raise ValueError(f"replay steps must be 1 or more, whole, got {self.steps!r}")
        if not isinstance(self.accumulate, int) or self.accumulate < 1:
            raise ValueError(
                f"replay accumulate must be 1 pass or more, whole, got {self.accumulate!r}"
            )
        if not (math.isfinite(self.rate) and self.rate > 0):
            raise ValueError(f"replay learning rate must be more than 0, got {self.learning_rate}")
        if self.loss_scale is not None and not self.has_barrier:
            raise ValueError(
                "replay loss scale: ranks skip a step together, so has_barrier must be set with it"
            )
        if self.clip is None:
            return
        if not (math.isfinite(self.clip) and self.clip > 0):
            raise ValueError(f"replay clip must be a norm above 0, got {self.clip}")
        if not self.has_barrier:
            raise ValueError("replay clip waits for all gradients: has_barrier must be set with it")

    @property
    def num_passes(self) -> int:
        """How often the program runs."""
        return self.steps * self.accumulate

    def ends_step(self, number: int) -> bool:
        """Whether the pass of a number, from 0 on, is the last before a step."""
        return (number + 1) % self.accumulate == 0

    @property
    def rate(self) -> float:
        """The learning rate."""
        return OPTIMIZERS[self.optimizer] if self.learning_rate is None else self.learning_rate
