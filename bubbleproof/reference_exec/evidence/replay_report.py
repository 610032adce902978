"""Replay reports: what a replay showed, and whether it is what was promised.

Three promises: the gradients (and losses) equal the order-matched oracle bit for bit, they agree
with the ordinary float64 backward up to rounding, and the measured peaks equal the predicted ones
to the byte on every rank. Where the host updates stages, or they are sharded, two more: their
weights after the step equal torch's own step on the oracle's gradients, and so do the hosts' peaks
or the shards' bytes the predicted ones. ``live_bytes`` and the
peaks are sampled at action boundaries (see ``rank.RankResult``).

A replay that was forced (``unsafe``) names the rules that its schedule or program breaks; those are
failures too, whatever the run showed.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Generic, NamedTuple, Never, TypeVar

from bubbleproof.reference_exec.evidence.uncounted import uncounted
from bubbleproof.reference_exec.plans.state_bytes import StateBytes
from bubbleproof.reference_exec.runtime.trace import RankTrace

T = TypeVar("T", covariant=True)


class Compared(NamedTuple, Generic[T]):
    """What was measured on each rank (replica by replica), and what was predicted there."""

    measured: tuple[T, ...] = ()
    predicted: tuple[T, ...] = ()


NOTHING: Compared[Never] = Compared()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayReport:
    """The outcome of one replay.

    ``semantics`` is what the communication was verified (and, on ``virtual``, run) under;
    ``live_bytes[r]`` the staircase of rank r; ``loss`` the replay's own, in ``dtype``;
    ``max_relative_error`` the largest over stages of max |found - expected| / max |expected|
    against the ordinary backward. In a training, gradients and losses are those of its last pass,
    ``max_weight_error`` the largest of the weights after any step, where the ordinary training
    takes each step from the weights before it. ``seconds`` is the time of the ranks alone, start
    included.
    ``allocator_peak_bytes`` is what torch's allocator had given out at most on each device that
    keeps count: live bytes, and weights, gradients, messages and work space too.
    ``unsafe`` says that the replay ran whatever the verification found: ``broken_rules`` by name,
    each with its first violation in ``violations``. Where the schedule has collectives,
    ``data_parallel`` replicas ran it, ``microbatches`` each, with the levels ``zero``; bytes are
    then given replica by replica, and ``state_bytes`` are of what is there all the time.
    ``model_state`` and ``host_model_state`` are the bytes of weights, gradients and optimizer state
    as the run ends, on each rank and on each rank's host.
    ``stopped`` is what ended an unsafe run before its end; there is nothing to compare then, so
    nothing is equal.
    Unless it ``counts_bytes`` there are no live bytes, measured or predicted.
    ``losses`` are those of the (microbatch, slice), in that order; ``traces`` (of the last pass)
    say when each rank did what, and what it held then. ``left_bytes`` are live on each process as a
    pass has ended, ``kept_bytes`` those that a user's model may keep from one microbatch to the
    next; ``data_dependence`` says of a user's model that it saves more for some data than for
    other, so that no schedule has predictable bytes with it.
    """

    backend: str
    semantics: str
    seed: int
    model: str
    dtype: str
    ranks: int
    stages: int
    microbatches: int
    gradients_equal: bool
    losses_equal: bool
    max_relative_error: float
    tolerance: float
    loss: float
    counts_bytes: bool = True
    peak_bytes: Compared[int]
    host_peak_bytes: Compared[int] = NOTHING
    data_parallel: int = 1
    zero: str = ""
    state_bytes: Compared[int] = NOTHING
    model_state: Compared[StateBytes] = NOTHING
    host_model_state: Compared[StateBytes] = NOTHING
    weights_equal: bool = True
    max_weight_error: float = 0.0
    optimizer: str = ""
    steps: int = 0
    has_barrier: bool = False
    num_updated_stages: int = 0
    live_bytes: tuple[tuple[int, ...], ...]
    seconds: float
    device: str = "cpu"
    allocator_peak_bytes: tuple[int, ...] = ()
    torch_version: str
    unsafe: bool = False
    broken_rules: tuple[str, ...] = ()
    violations: tuple[str, ...] = ()
    stopped: str = ""
    losses: tuple[float, ...] = ()
    traces: tuple[RankTrace, ...] = ()
    left_bytes: tuple[int, ...] = ()
    kept_bytes: tuple[int, ...] = ()
    data_dependence: str = ""

    @property
    def ok(self) -> bool:
        """Whether every promise holds."""
        return not self.failures

    @property
    def failures(self) -> tuple[str, ...]:
        """One sentence for each promise that is broken."""
        found = [
            f"not verified, {rule}: {violation}"
            for rule, violation in zip(self.broken_rules, self.violations, strict=True)
        ]
        if self.stopped:
            return (*found, f"the run stopped: {self.stopped}")
        if not self.gradients_equal:
            found.append("gradients differ from those of each microbatch alone, summed in order")
        if not self.losses_equal:
            found.append("losses differ from those of each microbatch alone")
        if not self.max_relative_error <= self.tolerance:
            found.append(
                f"gradients are off the ordinary float64 backward by {self.max_relative_error:.1e} "
                f"(relative), more than {self.tolerance:.0e}"
            )
        if not self.weights_equal:
            found.append("updated weights differ from a step with the expected gradients")
        if not self.max_weight_error <= self.tolerance:
            found.append(
                f"updated weights are off those of torch's own {self.optimizer} in float64 by "
                f"{self.max_weight_error:.1e} (relative), more than {self.tolerance:.0e}"
            )
        found += self._peak_failures()
        found += self._state_failures()
        if not self.broken_rules:
            found += [
                trace.told()
                for trace in self.traces
                if trace.num_differing and not self.data_dependence
            ]
        return (*found, *self._left())

    def _peak_failures(self) -> list[str]:
        told = "{name} held {measured} bytes at its peak, {predicted} were predicted"
        found = [self.data_dependence] if self.data_dependence else []  # whatever the schedule
        for name, compared in (
            ("rank", self.peak_bytes),
            ("host of rank", self.host_peak_bytes),
            ("model state of rank", self.state_bytes),
        ):
            # a schedule that lacks tasks has nothing predicted
            has_none = self.broken_rules and not compared.predicted
            if not has_none and not (name == "rank" and self.data_dependence):
                found += self._differing(told, name, compared)
        return found

    def _left(self) -> list[str]:
        return [
            f"rank {self._seat(number)} still holds {left} bytes when its program has ended"
            for number, left in enumerate(self.left_bytes)
            if left
        ]

    def _state_failures(self) -> list[str]:
        told = (
            "{name} ends with {measured} bytes of weights, gradients and optimizer state, "
            "{predicted} were predicted"
        )
        on_ranks = self._differing(told, "rank", self.model_state)
        return on_ranks + self._differing(told, "the host of rank", self.host_model_state)

    def _differing(self, told: str, name: str, compared: Compared[object]) -> list[str]:
        pairs = enumerate(zip(*compared, strict=True))
        return [
            told.format(name=f"{name} {self._seat(number)}", measured=found, predicted=expected)
            for number, (found, expected) in pairs
            if found != expected
        ]

    def _seat(self, process: int) -> str:
        """The rank of a process, and its replica where there are several."""
        replica, rank = divmod(process, self.ranks)
        return f"{rank} of replica {replica}" if self.data_parallel > 1 else str(rank)

    @property
    def not_counted(self) -> tuple[str, ...]:
        """One phrase for each thing that is not among the live bytes; none where none count."""
        return uncounted(self.kept_bytes) if self.counts_bytes else ()

    def to_dict(self) -> dict[str, object]:
        """All fields but ``traces``, and ``ok``, for JSON.

        The claims are booleans and integers, never floats.

        A number that is not finite, which JSON cannot write, becomes None.
        """
        fields = asdict(replace(self, traces=()))
        del fields["traces"]
        for name in COMPARED:
            for side, values in fields.pop(name)._asdict().items():
                fields[f"{side}_{name}"] = values
        for name, value in fields.items():
            if isinstance(value, float) and not math.isfinite(value):
                fields[name] = None
        found = {"ok": self.ok, "failures": list(self.failures), **fields}
        return {**found, "not_counted": list(self.not_counted)}

    def __str__(self) -> str:
        kind = "UNSAFE " if self.unsafe else ""
        copies = f"{self.data_parallel} x " if self.data_parallel > 1 else ""
        head = (
            f"{kind}{self.backend} replay of {copies}{self.ranks} ranks, "
            f"{self.microbatches} microbatches"
        )
        if self.ok:
            peaks = f"peaks {list(self.peak_bytes.measured)} as predicted"
            return f"{head}: gradients equal, {peaks if self.counts_bytes else 'bytes not counted'}"
        return f"{head}: {'; '.join(self.failures)}"


COMPARED = ("peak_bytes", "host_peak_bytes", "state_bytes", "model_state", "host_model_state")
