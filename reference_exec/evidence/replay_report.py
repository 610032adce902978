"""Replay reports: what a replay showed, and whether it is what was promised.

Three promises: the gradients (and losses) equal the order-matched oracle bit for bit, they agree
with the ordinary float64 backward up to rounding, and the measured peaks equal the predicted ones
to the byte on every rank. Where the host updates stages, or they are sharded, two more: their
weights after the step equal torch's own step on the oracle's gradients, and so do the hosts' bytes
or the shards' the predicted ones. In a training all of this is asked of every pass.

A replay that was forced (``unsafe``) names the rules that its schedule or program breaks; those are
failures too, whatever the run showed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace

from bubbleproof.facts import NOT_ASKED, UNDECIDABLE, Fact, broken, valued, verdict
from bubbleproof.reference_exec.evidence.replay_record import (
    RankComparison,
    ReplayRecord,
    StateMoment,
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReplayReport(ReplayRecord):
    """The outcome of one replay, and what it comes to."""

    @property
    def ok(self) -> bool:
        """Whether every promise holds."""
        return not self.failures

    @property
    def failures(self) -> tuple[str, ...]:
        """One sentence for each promise that is broken."""
        return broken(self.facts())

    def facts(self) -> list[Fact]:
        """All that was predicted and measured; of a run that stopped, what came of the rules."""
        ran = [
            *(*self._sums(), *self._updates(), *self._work(), *self._births(), *self._peaks()),
            *(*self._actions(), *self._states(), self._left()),
        ]
        if self.stopped:  # there is nothing to compare
            ran = [replace(fact, label="", detail=()) for fact in ran]
        return [*self._verification(), *ran]

    def _verification(self) -> list[Fact]:
        """What a replay that was forced says of the rules, what ended it, and what NCCL keeps."""
        found = [
            _holds(f"UNSAFE: {rule}", "holds before running", why, f"not verified, {rule}: {why}")
            for rule, why in zip(self.broken_rules, self.violations, strict=True)
        ]
        if self.unsafe and not found:
            found.append(_holds("UNSAFE: all rules", "hold before running", "hold"))
        if self.stopped:
            unlike = f"the run stopped: {self.stopped}"
            found.append(_holds("the run", "comes to its end", self.stopped, unlike))
        elif self.semantics_why:
            under = f"verified under {self.semantics}"
            found.append(_holds("communication", under, self.semantics_why))
        return found

    def _sums(self) -> Iterator[Fact]:
        """Gradients and losses."""
        alone = "equal bit for bit to each microbatch alone, summed in order"
        unlike = "gradients differ from those of each microbatch alone, summed in order"
        unlike = _with(unlike, self.gradient_difference)
        if self.trains:
            what = f"gradients ({self.where})"
            yield _equal("gradients", what, alone, self.gradients_equal, unlike)
        unlike = _with("losses differ from those of each microbatch alone", self.loss_difference)
        what = "losses" if self.trains else f"losses ({self.where})"
        yield _equal("losses", what, "equal bit for bit", self.losses_equal, unlike)
        to = f"the ordinary float64 {'backward' if self.trains else 'forward'}"
        unlike = f"{'gradients' if self.trains else 'losses'} are off {to}"
        near = self._error("gradients", to, unlike, self.max_relative_error)
        if self.rounded_to:
            share = f"a microbatch brings {self.smallest_share:.0e} or more"
            wanted = f"{near.wanted} by rounding to {self.rounded_to}; {share}"
            near = replace(near, wanted=wanted)
            yield from valued("gradients", smallest_share=self.smallest_share)
        yield near if self.is_decidable else replace(near, verdict=UNDECIDABLE, detail=())
        yield from valued("gradients", tolerance=self.tolerance)
        yield from valued("losses", each=self.losses)

    def _error(self, group: str, to: str, unlike: str, error: float) -> Fact:
        at_most, is_near = f"{self.tolerance:.0e}", error <= self.tolerance
        return Fact(
            key=f"{group}.max_relative_error",
            label=f"relative error to {to}",
            value=error,
            told=f"{error:.1e}",
            wanted=f"at most {at_most}",
            verdict=verdict(is_near),
            detail=() if is_near else (f"{unlike} by {error:.1e} (relative), more than {at_most}",),
        )

    def _updates(self) -> Iterator[Fact]:
        """Weights after the steps, or after those of the hosts."""
        what, step = "", "a step"
        if self.steps:
            what, step = self.stepped, "steps"
        elif self.num_updated_stages:
            who = "shards update" if self.zero else "the host updates"
            what = f"weights of {self.num_updated_stages} stages that {who}"
        expected = f"equal bit for bit to {step} with the expected gradients"
        unlike = "updated weights differ from a step with the expected gradients"
        unlike = _with(unlike, self.weight_difference)
        yield _equal("weights", what, expected, self.weights_equal, unlike)
        unlike = f"updated weights are off those of torch's own {self.optimizer} in float64"
        to = f"torch's {self.optimizer} in float64"
        error = self._error("weights", to, unlike, self.max_weight_error)
        if self.rounded_to:
            error = replace(error, wanted="", verdict=UNDECIDABLE, detail=())
        yield error if self.steps else replace(error, label="")
        names = ["optimizer", "steps", "has_barrier", "accumulate", "num_updated_stages"]
        names += ["clip"] * (self.clip is not None)
        names += ["loss_scale", "skipped_steps"] * bool(self.loss_scale)
        yield from valued("weights", **{name: getattr(self, name) for name in names})

    def _work(self) -> Iterator[Fact]:
        """What each action of each pass computed, and to how many gradients it added."""
        if not self.counts_work:
            label = "work at each action"
            yield Fact(key="work", label=label, told="not counted", verdict=NOT_ASKED)
            return
        passes = max((rank.num_passes for rank in self.work), default=0)
        actions = sum(len(rank.actions) for rank in self.work)
        each = f"at each of {actions} actions" + (f" of {passes} passes" if passes > 1 else "")
        measured, predicted = self.flops
        yield Fact(key="work.measured", value=measured, expected=predicted)
        yield from valued("work", not_counted=self.not_counted_work)
        if why := self.work_dependence:
            yield _holds(f"work {each}", "the same for all data", why, why)
            return
        for quantity, what, expected in (
            ("flops", "floating-point operations", "the model's"),
            ("gradients", "gradients added to", "those of its kind"),
        ):
            off = [text for rank in self.work if (text := rank.told(quantity))]
            yield _holds(f"{what} {each}", expected, "; ".join(off) or "equal", *off)

    def _births(self) -> Iterator[Fact]:
        """What was there as ranks were made: weights, constants, the data of the batch."""
        held = "{name} held {measured} bytes as it was made, {predicted} were predicted"
        of_hosts = any(self.host_born_bytes.predicted)
        for key, name, compared, whose in (
            ("births.", "rank", self.born_bytes, "rank" * self.counts_bytes),
            ("births.host_", "the host of rank", self.host_born_bytes, "rank's host" * of_hosts),
        ):
            what = whose and f"bytes that each {whose} begins with"
            fact = self._bytes(key, what, compared, held, name)
            yield replace(fact, detail=()) if self.broken_rules else fact

    def _peaks(self) -> Iterator[Fact]:
        """The most bytes that are live at once, by rank and by host."""
        each = "rank" if self.data_parallel == 1 else "rank, replica by replica"
        what = f"peak live activation bytes per {each}"
        if self.num_updated_stages:
            more = "gathered weights and gradients" if self.zero else "weights on the move"
            what = f"peak live bytes per {each}, {more} included"
        held = "{name} held {measured} bytes at its peak, {predicted} were predicted"
        peaks = self._bytes("peaks.", what, self.peak_bytes, held, "rank")
        if why := self.data_dependence:  # whatever the schedule
            dependent = _holds(what, "the same for all data", why, why)
            peaks = replace(dependent, key=peaks.key, value=peaks.value, expected=peaks.expected)
        elif not self.counts_bytes:
            peaks = replace(peaks, told="not counted", verdict=NOT_ASKED)
        yield peaks
        state = self.zero and f"bytes of sharded and whole model state per {each}"
        yield self._bytes("peaks.state_", state, self.state_bytes, held, "model state of rank")
        hosts = "peak live bytes per rank's host" * bool(self.host_peak_bytes.predicted)
        yield self._bytes("peaks.host_", hosts, self.host_peak_bytes, held, "host of rank")
        yield from valued("peaks", allocator=self.allocator_peak_bytes)

    def _bytes(
        self, key: str, label: str, compared: RankComparison[int], told: str, name: str
    ) -> Fact:
        """A comparison; a schedule that lacks tasks has nothing predicted."""
        measured, predicted = compared
        has_none = self.broken_rules and not predicted
        return Fact(
            key=f"{key}measured",
            label=label,
            value=measured,
            expected=predicted,
            verdict=verdict(measured == predicted),
            detail=() if has_none else tuple(self.differing(told, name, compared)),
        )

    def _actions(self) -> Iterator[Fact]:
        """Live bytes at each action of each pass; a row where the model says all of each rank."""
        for of_hosts, whose in ((False, "live bytes"), (True, "live bytes per rank's host")):
            accounts = self.accounts(of_hosts=of_hosts)
            counted = sum(bool(samples) for account in accounts for samples in account.live_bytes)
            off = [text for account in accounts if (text := account.told())]
            passes = f" of {len(self.passes)} passes" if len(self.passes) > 1 else ""
            is_whole = accounts and all(account.predicted for account in accounts)
            label = f"{whose} at each of {counted} actions{passes}" if is_whole else ""
            fact = _holds(label, "the model's", "; ".join(off) or "equal", *off)
            yield replace(fact, detail=()) if self.broken_rules else fact

    def _states(self) -> Iterator[Fact]:
        """Model state as passes begin and end; the last by rank, and by host where one has any."""
        held = "with {measured} bytes of weights, gradients and optimizer state, {predicted} were"
        last = StateMoment("ends", self.model_state, self.host_model_state)
        moments = (*self.earlier_state, last)
        of_hosts = any(state.weights for state in self.host_model_state.predicted)
        for key, name, whose, states in (
            ("model_state.", "rank", "rank", [each.on_ranks for each in moments]),
            (
                *("model_state.host_", "the host of rank", "rank's host" * of_hosts),
                [each.on_hosts for each in moments],
            ),
        ):
            off: list[str] = []
            for moment, compared in zip(moments, states, strict=True):
                told = f"{{name}} {moment.name} {held} predicted"
                off += self.differing(told, name, compared)
            measured, predicted = states[-1]
            has_row = whose and (self.steps or self.num_updated_stages)
            yield Fact(
                key=f"{key}measured",
                label=f"model state per {whose}: weights, gradients, optimizer" * bool(has_row),
                value=measured,
                expected=predicted,
                told=" ".join(str(state.total) for state in measured),
                wanted=" ".join(str(state.total) for state in predicted),
                verdict=verdict(measured == predicted),
                detail=tuple(off),
            )

    def _left(self) -> Fact:
        left = [
            f"rank {self.seat(number)} still holds {left} bytes when its program has ended"
            for number, left in enumerate(self.left_bytes)
            if left
        ]
        return Fact(detail=tuple(left))

    def to_dict(self) -> dict[str, object]:
        """All fields but ``passes``, ``earlier_state`` and ``work``, and ``ok``, for JSON.

        The claims are booleans and integers, never floats.

        A number that is not finite, which JSON cannot write, becomes None.
        """
        fields = asdict(replace(self, passes=(), earlier_state=(), work=()))
        del fields["passes"], fields["earlier_state"], fields["work"]
        for name, value in [*fields.items()]:
            if isinstance(value, RankComparison):
                del fields[name]
                fields |= {f"{side}_{name}": values for side, values in value._asdict().items()}
            elif isinstance(value, float) and not math.isfinite(value):
                fields[name] = None
        found = {"ok": self.ok, "failures": list(self.failures), **fields}
        return {**found, "not_counted": list(self.not_counted)}

    def __str__(self) -> str:
        kind = "UNSAFE " if self.unsafe else ""
        copies = f"{self.data_parallel} x " if self.data_parallel > 1 else ""
        head = (
            f"{kind}{self.backend} replay of {copies}{self.ranks} ranks, "
            f"{self.microbatches} microbatches in {self.precision}"
        )
        if self.ok:
            peaks = f"peaks {list(self.peak_bytes.measured)} as predicted"
            what = "gradients" if self.trains else "losses"
            return f"{head}: {what} equal, {peaks if self.counts_bytes else 'bytes not counted'}"
        return f"{head}: {'; '.join(self.failures)}"


def _with(what: str, first: str) -> str:
    """A failure with the first thing that differs, where it is known."""
    return f"{what}: {first}" if first else what


def _holds(label: str, wanted: str, told: str, *unlike: str) -> Fact:
    """What holds, unless there is a sentence for how it does not."""
    return Fact(
        label=label, wanted=wanted, told=told, verdict=verdict(not unlike), detail=tuple(unlike)
    )


def _equal(group: str, label: str, wanted: str, is_equal: bool, unlike: str) -> Fact:
    """What is equal, or ``unlike``."""
    told = "equal" if is_equal else "different"
    fact = _holds(label, wanted, told, *[unlike] * (not is_equal))
    return replace(fact, key=f"{group}.equal", value=is_equal)
