"""How far rounding may take a gradient of 16 bits from the float64 one: a derived tolerance.

For a parameter p, in a replay of N contributions (microbatches, slices and replicas) added one to
the other, with sums of at most n terms, in a type of unit roundoff u whose products are summed in a
type of unit roundoff u':

    tolerance(p) = lambda (A(p) (1 + sqrt(n) u' / u) + sqrt(N) u)

relative to the largest gradient of its stage. A(p) is what one rounding at each operation does to
the gradient: the graph of forwards and backwards is run in float64, the result of every operation
is moved by a relative error drawn from [-u, u] (Monte Carlo arithmetic: Parker, "Monte Carlo
arithmetic", UCLA 1997), and A(p) is the largest difference that this makes in ``DRAWS`` runs. So
depth is in it as the roundings of all operations on the paths to p, independent and of mean zero,
which add as their squares do (Higham and Mary, SIAM J. Sci. Comput. 41 (2019), theorem 2.4: where
nothing amplifies or damps, A = sqrt(2 d) u at depth d), and so is what the model amplifies or
damps, such as norms of few elements. An operation of torch rounds its result once; each term of its
sums is rounded to u', but for the gradients of a layer norm's gain and bias, which torch's kernel
adds up in the type itself, row by row: these are moved by sqrt(rows) u. Each contribution is added
with one rounding. lambda = 3 covers what more draws would find.

Numbers of float16 below 2^-14 are 2^-24 apart, so there every result is also moved by an absolute
error drawn from [-2^-25, 2^-25] (Higham, "Accuracy and Stability of Numerical Algorithms", section
2.2: fl(x) = x (1 + d) + e); where the loss is scaled, these runs scale it too. Numbers beyond 65504
are infinite there, which this does not know: it is seen as an overflow, or as an error.

A wrong schedule is off by a microbatch at least. Where the tolerance is above the *share* of some
microbatch, the least max |its contribution| / max |all| over the microbatches of a stage, nothing
follows from lying within it: the comparison with float64 is *undecidable*, and only the
order-matched one, bit for bit in the same type, judges the schedule.

Where all is computed in float64, or in float32, the tolerance is the constant of that type
(``oracle.TOLERANCES``), or what is derived for it where gradients are off by more and that is more:
a deep model may amplify what rounding does. Beside float64 both sides are rounded, so it is twice
the above; there operations are moved by 2^-40, of which float64 rounds little away, and what that
does is scaled down. A user's model may compute in another type than it is given, by autocast or
by casts of its own: then u is that of the coarsest type of any result. Where a tolerance is derived
none is for weights after steps, which are then compared bit for bit alone: Adam divides by a root,
so that a gradient near 0 may move its weight either way.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeGuard

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from bubbleproof.reference_exec.evidence.oracle import (
    TOLERANCES,
    contributions,
    max_relative_error,
    stages_with,
    whole_loss,
    with_ties,
)
from bubbleproof.reference_exec.evidence.training_oracle import (
    ExpectedTraining,
    OrdinaryTraining,
)
from bubbleproof.reference_exec.models.layers import DTYPES
from bubbleproof.reference_exec.models.reference import gradients_of, run_backward
from bubbleproof.reference_exec.plans.replay_plan import ReplayPlan
from bubbleproof.reference_exec.runtime.compute import Gradients

UNIT_ROUNDOFF = {"bfloat16": 2.0**-8, "float16": 2.0**-11, "float32": 2.0**-24, "float64": 2.0**-53}
UNDERFLOW = {"float16": 2.0**-25}  # half of its least number above 0
SUMMED_IN = "float32"  # products of 16 bits, by all kernels of torch that are used here
LEAST_DRAWN = 2.0**-40  # relative: what float64 moves by less is lost in its own rounding
LAMBDA = 3.0
DRAWS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Nearness:
    """How near gradients are to the ordinary ones; both relative to the largest of the stage.

    ``error`` and ``tolerance`` are those of the parameter (or the loss) that uses most of its
    tolerance, ``rounded_to`` the type from whose rounding it is derived, empty where it is a
    constant; ``share`` is the least of a microbatch in any stage, 1 where it was not asked for.
    """

    error: float
    tolerance: float
    rounded_to: str = ""
    share: float = 1.0


NOT_NEAR = Nearness(error=math.inf, tolerance=0.0)


def tolerance_of(moved: float, num_terms: int, num_added: int, dtype: str) -> float:
    """The formula of the module's text; ``moved`` is A.

    >>> f"{tolerance_of(0.01, 64, 8, 'bfloat16'):.4f}"  # 3 (0.01 (1 + 0.0001) + 2.83 / 256)
    '0.0631'
    """
    u = UNIT_ROUNDOFF[dtype]
    summed = min(u, UNIT_ROUNDOFF[SUMMED_IN])
    return LAMBDA * (moved * (1 + math.sqrt(num_terms) * summed / u) + math.sqrt(num_added) * u)


def nearness(
    plan: ReplayPlan,
    gradients: Gradients,
    loss: float,
    exact: OrdinaryTraining,
    matched: ExpectedTraining | None = None,
) -> Nearness:
    """What the gradients and the loss of a pass are off by, and what they may be.

    Parameters
    ----------
    gradients, loss
        The replay's, of its last pass; gradients by (stage, name).
    exact
        The ordinary ones of that pass, in float64.
    matched
        With all weights before each step of a training and at its end in its ``course``; without a
        training, which is one pass of the initial weights, none. Where the last step is one of its
        ``skipped``, nothing is near and nothing is decided.
    """
    course = () if matched is None else matched.course
    scale = None if matched is None else matched.scale
    if matched is not None and len(course) - 2 in matched.skipped:
        return Nearness(error=math.inf, tolerance=1.0, rounded_to=working_type(plan), share=0.0)
    if scale is not None:
        gradients = {key: value.double() / scale for key, value in gradients.items()}
    off = abs(loss - exact.loss) / max(abs(exact.loss), 1e-300)
    coarsest = working_type(plan)
    fixed = TOLERANCES.get(coarsest, 0.0) if coarsest == plan.spec.dtype else 0.0
    if fixed:
        error = max(max_relative_error(gradients, exact.gradients), off)
        if not fixed < error < 1:  # it is near, or whatever is rounded it is not
            return Nearness(error=error, tolerance=fixed)
    before, step = (course[-2], len(course) - 2) if course else (None, 0)
    tolerances = tolerances_of(plan, coarsest, before, step=step, scale=scale)
    largest = _scales(exact.gradients)
    pairs = [(off, max(fixed, *tolerances.values()))]
    for key in exact.gradients:
        allowed = tolerances[key]
        error = _off(gradients.get(key), exact.gradients[key]) / largest[key[0]]
        pairs.append((error, max(fixed, allowed)))
    error, tolerance = max(pairs, key=lambda pair: pair[0] / pair[1])
    if tolerance == fixed:
        return Nearness(error=error, tolerance=fixed)
    share = smallest_share(plan, before, step=step, scale=scale)
    return Nearness(error=error, tolerance=tolerance, rounded_to=coarsest, share=share)


def _off(found: torch.Tensor | None, expected: torch.Tensor) -> float:
    """The largest difference; infinite where it is none, of another shape or not finite."""
    if found is None or found.shape != expected.shape:
        return math.inf
    off = (found.double() - expected).abs().max().item()
    return off if math.isfinite(off) else math.inf


def tolerances_of(
    plan: ReplayPlan,
    dtype: str,
    weights: Gradients | None = None,
    *,
    step: int = 0,
    scale: float | None = None,
) -> dict[tuple[int, str], float]:
    """The tolerance of each parameter by (stage, name), in a pass that begins with the weights.

    ``dtype`` is the type that results are rounded to, ``scale`` what the loss is multiplied by.
    """
    exact = _gradients_in_float64(plan, weights, step, scale)
    largest = _scales(exact)
    moved = dict.fromkeys(exact, 0.0)
    u = UNIT_ROUNDOFF[dtype]
    unit = max(u, LEAST_DRAWN)
    for draw in range(DRAWS):
        with _Rounded(unit, draw, UNDERFLOW.get(dtype, 0.0)):
            drawn = _gradients_in_float64(plan, weights, step, scale)
        moved = {
            key: max(moved[key], u / unit * _off(drawn[key], value) / largest[key[0]])
            for key, value in exact.items()
        }
    terms = max(
        *(size for p in exact.values() for size in p.shape), plan.spec.batch * plan.spec.sequence
    )
    added = plan.batch_samples * plan.num_slices
    sides = 2 if dtype == "float64" else 1  # what it is compared with is rounded as well
    return {key: sides * tolerance_of(each, terms, added, dtype) for key, each in moved.items()}


def working_type(plan: ReplayPlan) -> str:
    """The coarsest type of any result in the forwards and backwards of a step's microbatches.

    Any of them may be computed otherwise than the first. That of the replay for a reference model,
    which casts nothing.
    """
    own = plan.spec.dtype
    if plan.spec.kind != "own":
        return own
    seen = _Types()
    stages = stages_with(plan, None, DTYPES[own])
    for microbatch in range(plan.batch_samples):
        with seen:
            loss = whole_loss(plan, stages, microbatch, step=0, dtype=DTYPES[own])
            run_backward(plan.spec, loss)
    return max(seen.found | {own}, key=lambda name: UNIT_ROUNDOFF[name])


def _gradients_in_float64(
    plan: ReplayPlan, weights: Gradients | None, step: int, scale: float | None = None
) -> Gradients:
    """The gradients of all microbatches, one after the other, of ``scale`` times their losses."""
    stages = stages_with(plan, weights, torch.float64)
    for microbatch in range(plan.batch_samples):
        run_backward(plan.spec, whole_loss(plan, stages, microbatch, step=step), scale)
    return with_ties(plan, gradients_of(dict(enumerate(stages))))


class _Types(TorchDispatchMode):
    """Keeps the floating types of all results, by name."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch's own
        self.found: set[str] = set()

    def __torch_dispatch__(
        self,
        func: torch._ops.OpOverload,
        types: object,
        args: tuple[object, ...] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        found = func(*args, **(kwargs or {}))
        for result in found if isinstance(found, tuple | list) else (found,):
            if isinstance(result, torch.Tensor) and result.is_floating_point():
                self.found.add(str(result.dtype).removeprefix("torch."))
        return found


class _Rounded(TorchDispatchMode):
    """Every operation's result is moved by relative errors drawn from [-u, u].

    And by absolute ones from [-``least``, ``least``], of a type whose small numbers are spaced so.
    Views and what is written in place stay as they are: their bits were rounded before.
    """

    def __init__(self, unit: float, seed: int, least: float = 0.0) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch's own
        self._unit, self._least = unit, least
        self._generator = torch.Generator().manual_seed(seed)

    def __torch_dispatch__(
        self,
        func: torch._ops.OpOverload,
        types: object,
        args: tuple[object, ...] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        found = func(*args, **(kwargs or {}))
        results = found if isinstance(found, tuple | list) else (found,)
        units = [self._unit] * len(results)
        if func is torch.ops.aten.native_layer_norm_backward.default:
            units[1:] = [self._unit * math.sqrt(_rows(*args))] * (len(results) - 1)
        for result, returned, unit in zip(results, func._schema.returns, units, strict=False):
            if returned.alias_info is None and _is_rounded(result):
                draw = torch.rand(result.shape, generator=self._generator, dtype=result.dtype)
                if unit == self._unit:
                    result.mul_(1 + unit * (2 * draw - 1))
                else:  # what was summed on the way may be as large as any of them
                    result.add_(unit * result.abs().max() * (2 * draw - 1))
                if self._least:
                    draw = torch.rand(result.shape, generator=self._generator, dtype=result.dtype)
                    result.add_(self._least * (2 * draw - 1))
        return found


def _rows(gradient: object, _: object, shape: object, *__: object) -> int:
    """How many rows torch's layer norm adds up to the gradient of its gain and bias."""
    if not (isinstance(gradient, torch.Tensor) and isinstance(shape, list | tuple)):
        raise TypeError("native_layer_norm_backward takes a gradient, an input and a shape")
    return gradient.numel() // math.prod(shape)


def _is_rounded(result: object) -> TypeGuard[torch.Tensor]:
    return isinstance(result, torch.Tensor) and result.dtype is torch.float64


def smallest_share(
    plan: ReplayPlan,
    weights: Gradients | None = None,
    *,
    step: int = 0,
    scale: float | None = None,
) -> float:
    """The least part of a stage's gradient that a microbatch or slice brings; 0 where one is 0."""
    alone, _ = contributions(plan, weights, step=step, scale=scale)
    total: Gradients = {}
    for gradients in alone.values():
        for key, value in gradients.items():
            total[key] = total[key] + value.double() if key in total else value.double()
    whole = _scales(total)
    return min(
        _scales(gradients)[stage] / whole[stage] for gradients in alone.values() for stage in whole
    )


def _scales(gradients: Mapping[tuple[int, str], torch.Tensor]) -> dict[int, float]:
    """The largest gradient of each stage; 1 where all are 0."""
    found: dict[int, float] = {}
    for (stage, _), value in gradients.items():
        found[stage] = max(found.get(stage, 0.0), value.double().abs().max().item())
    return {stage: value or 1.0 for stage, value in found.items()}
