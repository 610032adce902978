"""Faults in what ranks hand in: bits, shapes, types, what is missing, samples of bytes, losses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

import pytest
import torch

from bubbleproof.reference_exec.models import reference
from bubbleproof.reference_exec.runtime import compute, rank
from bubbleproof.reference_exec.runtime.rank import Rank, RankResult
from proofs_tests.reference_exec.patching import Marks, before

K = TypeVar("K")


def _handing_in(
    patch: pytest.MonkeyPatch, marks: Marks, change: Callable[[RankResult], RankResult]
) -> None:
    """Change the result of the first rank that has something to change."""
    right = Rank.result

    def result(self: Rank) -> RankResult:
        found = right(self)
        if marks or (other := change(found)) is found:
            return found
        marks.append(self.process)
        return other

    patch.setattr(Rank, "result", result)


def _changed(
    given: Mapping[K, torch.Tensor], change: Callable[[torch.Tensor], torch.Tensor]
) -> dict[K, torch.Tensor]:
    """The same with the first tensor changed."""
    first = next(iter(given))
    return {**given, first: change(given[first].clone())}


def _of_gradients(
    patch: pytest.MonkeyPatch, marks: Marks, change: Callable[[torch.Tensor], torch.Tensor]
) -> None:
    _handing_in(
        patch, marks, lambda found: replace(found, gradients=_changed(found.gradients, change))
    )


def _next_up(x: torch.Tensor) -> torch.Tensor:
    first = x.view(-1)[:1]
    x.view(-1)[:1] = torch.nextafter(first, torch.full_like(first, torch.inf))
    return x


def gradient_a_bit_off(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """The last bit of one element of one gradient is another."""
    _of_gradients(patch, marks, _next_up)


def gradient_of_no_number(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """One element of one gradient is a NaN."""
    _of_gradients(patch, marks, lambda x: x.index_fill_(0, torch.tensor([0]), torch.nan))


def zeros_lose_their_sign(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """Gradients of -0.0 are handed in as 0.0."""

    def change(found: RankResult) -> RankResult:
        zeros = {key for key, g in found.gradients.items() if (g == 0).any() and g.signbit().any()}
        if not zeros:
            return found
        cleaned = {key: found.gradients[key] + 0.0 for key in zeros}
        return replace(found, gradients={**found.gradients, **cleaned})

    _handing_in(patch, marks, change)


def gradient_missing(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """A parameter's gradient is not handed in."""

    def change(found: RankResult) -> RankResult:
        return replace(found, gradients=dict([*found.gradients.items()][1:]))

    _handing_in(patch, marks, change)


def gradient_never_computed(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """A parameter's gradient is dropped before it is collected."""

    def gradients(self: compute.Compute) -> None:
        next(iter(self.stages.values())).get_parameter("layers.0.up_bias").grad = None
        marks.append(self.rank)

    before(patch, compute.Compute, "gradients", gradients)


def gradient_transposed(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """A weight's gradient is handed in as its transpose."""

    def change(found: RankResult) -> RankResult:
        key = next(key for key, g in found.gradients.items() if g.dim() == 2)
        return replace(found, gradients={**found.gradients, key: found.gradients[key].t()})

    _handing_in(patch, marks, change)


def gradient_flattened(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """All gradients are handed in without their shapes."""

    def change(found: RankResult) -> RankResult:
        flat = {key: gradient.reshape(-1) for key, gradient in found.gradients.items()}
        return replace(found, gradients=flat)

    _handing_in(patch, marks, change)


def gradient_of_another_type(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """A gradient is handed in as float32."""
    _of_gradients(patch, marks, torch.Tensor.float)


def gradients_of_two_stages_swapped(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """What belongs to one stage is handed in as another's."""
    right = Rank.result

    def result(self: Rank) -> RankResult:
        found = right(self)
        marks.append(self.process)
        swapped = {(1 - stage, name): g for (stage, name), g in found.gradients.items()}
        return replace(found, gradients=swapped)

    patch.setattr(Rank, "result", result)


def rows_of_a_shard_missing(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """A member hands in a row less of a sharded gradient."""
    _of_gradients(patch, marks, lambda x: x[:-1])


def _of_losses(
    patch: pytest.MonkeyPatch,
    marks: Marks,
    change: Callable[[dict[tuple[int, ...], torch.Tensor]], object],
) -> None:
    def other(found: RankResult) -> RankResult:
        losses = dict(found.losses)
        if losses:
            change(losses)  # type: ignore[arg-type]  # whatever the keys are
        return replace(found, losses=losses) if losses != found.losses else found

    _handing_in(patch, marks, other)


def loss_a_bit_off(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """The last bit of one loss is another."""
    _of_losses(patch, marks, lambda losses: losses.update(_changed(losses, _next_up)))


def loss_missing(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """The loss of the last microbatch is left out."""
    _of_losses(patch, marks, lambda losses: losses.pop(max(losses)))


def losses_swapped(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """Two microbatches have each other's loss."""

    def swap(losses: dict[tuple[int, ...], torch.Tensor]) -> None:
        first, second = sorted(losses)[:2]
        losses[first], losses[second] = losses[second], losses[first]

    _of_losses(patch, marks, swap)


def loss_of_one_too_many(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """There is a loss of a microbatch that there is not."""

    def add(losses: dict[tuple[int, ...], torch.Tensor]) -> None:
        last = max(losses)
        losses[*last[:-2], last[-2] + 1, last[-1]] = losses[last]

    _of_losses(patch, marks, add)


def loss_without_its_scale(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """Losses are reported a thousandth too large; gradients are right."""

    def forward(
        ctx: torch.autograd.function.FunctionCtx,
        y: torch.Tensor,
        target: torch.Tensor,
        scale: float,
    ) -> torch.Tensor:
        marks.append(scale)
        error = y - target
        reference._ErrorTimesScale.keep(ctx, error, scale)
        return error.square().sum() * (scale / 2) * 1.001

    class OfRank(reference._SquaredError):
        pass

    OfRank.forward = staticmethod(forward)  # type: ignore[method-assign]  # of this one
    right = reference.microbatch_loss

    def scored(*given: object) -> torch.Tensor:
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(reference, "_SquaredError", OfRank)
            return right(*given)  # type: ignore[arg-type]  # passed on

    patch.setattr(compute, "microbatch_loss", scored)


def _sampling(
    patch: pytest.MonkeyPatch,
    marks: Marks,
    act: Callable[[compute.Compute, Callable[[compute.Compute], None]], None],
) -> None:
    right = compute.Compute.sample

    def sample(self: compute.Compute) -> None:
        before = len(self.live_bytes)
        act(self, right)
        marks.append(len(self.live_bytes) - before)

    patch.setattr(compute.Compute, "sample", sample)


def a_sample_left_out(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """One action's bytes are not looked at."""
    _sampling(patch, marks, lambda self, right: None if len(marks) == 3 else right(self))


def no_samples(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """The bytes of no action are looked at."""
    _sampling(patch, marks, lambda *_: None)


def a_sample_twice(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """One action's bytes are looked at twice."""

    def twice(self: compute.Compute, right: Callable[[compute.Compute], None]) -> None:
        right(self)
        if len(marks) == 3:
            right(self)

    _sampling(patch, marks, twice)


def a_sample_of_before(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """One action is said to hold what the one before it held."""

    def stale(self: compute.Compute, right: Callable[[compute.Compute], None]) -> None:
        right(self)
        if len(marks) == 6:
            self.live_bytes[-1] = self.live_bytes[-2]

    _sampling(patch, marks, stale)


def peaks_alone(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """Every action is said to hold the most that there was so far."""

    def highest(self: compute.Compute, right: Callable[[compute.Compute], None]) -> None:
        right(self)
        self.live_bytes[-1] = max(self.live_bytes)

    _sampling(patch, marks, highest)


def work_not_noted(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """What one action computed is not noted."""
    right = rank.RankWorkAccount.end_action

    def end(self: rank.RankWorkAccount) -> None:
        marks.append(self)
        if len(marks) != 4:
            right(self)

    patch.setattr(rank.RankWorkAccount, "end_action", end)


def work_of_a_pass_not_noted(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """A rank hands in no work at all."""
    _handing_in(patch, marks, lambda found: replace(found, work=()))


def weights_of_before_the_step(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """A rank hands in the weights that it began with."""
    first: dict[int, compute.Gradients] = {}
    right_init, right = Rank.__init__, Rank.result

    def made(self: Rank, *given: object, **how: object) -> None:
        right_init(self, *given, **how)  # type: ignore[arg-type]  # passed on
        first[id(self)] = {k: w.clone() for k, w in self._updates.weights().items()}

    def result(self: Rank) -> RankResult:
        marks.append(self.process)
        return replace(right(self), updated=first[id(self)])

    patch.setattr(Rank, "__init__", made)
    patch.setattr(Rank, "result", result)


def a_weight_missing(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """A rank does not hand in one of its stepped weights."""
    _handing_in(
        patch, marks, lambda found: replace(found, updated=dict([*found.updated.items()][1:]))
    )


def a_weight_a_bit_off(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """The last bit of one stepped weight is another."""
    _handing_in(
        patch, marks, lambda found: replace(found, updated=_changed(found.updated, _next_up))
    )


FAULTS = (
    (gradient_a_bit_off, "1f1b"),
    (gradient_a_bit_off, "zero"),
    (gradient_of_no_number, "1f1b"),
    (zeros_lose_their_sign, "negative zeros"),
    (gradient_missing, "1f1b"),
    (gradient_missing, "zero"),
    (gradient_never_computed, "1f1b"),
    (gradient_transposed, "1f1b"),
    (gradient_flattened, "1f1b"),
    (gradient_of_another_type, "1f1b"),
    (gradients_of_two_stages_swapped, "1f1b"),
    (rows_of_a_shard_missing, "zero"),
    (loss_a_bit_off, "1f1b"),
    (loss_missing, "1f1b"),
    (losses_swapped, "1f1b"),
    (loss_of_one_too_many, "1f1b"),
    (loss_without_its_scale, "1f1b"),
    (a_sample_left_out, "1f1b"),
    (no_samples, "zb-h1"),
    (a_sample_twice, "zb-h1"),
    (a_sample_of_before, "1f1b"),
    (peaks_alone, "1f1b"),
    (work_not_noted, "1f1b"),
    (work_of_a_pass_not_noted, "1f1b"),
    (weights_of_before_the_step, "training"),
    (a_weight_missing, "training"),
    (a_weight_a_bit_off, "zero"),
)
