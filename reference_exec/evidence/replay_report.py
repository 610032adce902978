"""Replay reports: what a replay showed, and whether it is what was promised.

Three promises: the gradients (and losses) equal the order-matched oracle bit for bit, they agree
with the ordinary float64 backward up to rounding, and the measured peaks equal the predicted ones
to the byte on every rank. Where the host updates stages, or they are sharded, two more: their
weights after the step equal torch's own step on the oracle's gradients, and so do the hosts' bytes
or the shards' the predicted ones. Bytes are sampled at action boundaries (see ``rank.RankResult``),
as ranks are made, and as passes begin and end; in a training all of this is asked of every pass.

A replay that was forced (``unsafe``) names the rules that its schedule or program breaks; those are
failures too, whatever the run showed.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Generic, NamedTuple, Never, TypeVar

from bubbleproof.reference_exec.evidence.uncounted import uncounted
from bubbleproof.reference_exec.evidence.work_done import RankWorked
from bubbleproof.reference_exec.plans.state_bytes import StateBytes
from bubbleproof.reference_exec.runtime.trace import Account, RankTrace

T = TypeVar("T", covariant=True)


class RankComparison(NamedTuple, Generic[T]):
    """What was measured on each rank (replica by replica), and what was predicted there."""

    measured: tuple[T, ...] = ()
    predicted: tuple[T, ...] = ()


NOTHING: RankComparison[Never] = RankComparison()


class StateMoment(NamedTuple):
    """The model state at one moment, such as ``begins pass 1``, on ranks and on their hosts."""

    name: str
    on_ranks: RankComparison[StateBytes]
    on_hosts: RankComparison[StateBytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayReport:
    """The outcome of one replay.

    ``semantics`` is what the communication was verified (and, on ``virtual``, run) under, and
    ``semantics_why``, over NCCL, why that is what holds there;
    ``live_bytes[r]`` the staircase of rank r; ``loss`` the replay's own, in ``dtype``;
    ``max_relative_error`` the largest over stages of max |found - expected| / max |expected|
    against the ordinary backward, ``tolerance`` what rounding may bring. One that is
    derived (``rounding``) is that of the type ``rounded_to``; it decides nothing where it exceeds
    the ``smallest_share``, the least that a microbatch brings, nor of weights after steps. In a
    training, gradients and losses are those of its last step, of ``accumulate`` passes,
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
    ``gradient_difference``, ``loss_difference`` and ``weight_difference`` name the first that is
    not equal, and how.
    ``stopped`` is what ended an unsafe run before its end; there is nothing to compare then, so
    nothing is equal.
    Unless it ``counts_bytes`` there are no live bytes, measured or predicted. ``alike`` says what
    numbers do not tell apart: microbatches with the same data, what makes gradients that are 0,
    steps that change no weight; ``added_first`` what may have changed places as any two numbers of
    a sum may. Where it ``counts_work``, ``work`` is what each action of each pass computed and was
    predicted to, ``flops`` all of it together; ``work_dependence`` says as ``data_dependence`` that
    a user's model's depends on its data, and ``not_counted_work`` what is not seen as work.
    ``losses`` are those of the last step, by (pass, microbatch, slice) in that order; those of all
    passes are compared. ``passes`` say when each rank did what in each pass, and what it and its
    host held then. ``born_bytes`` had been made when each rank was, ``host_born_bytes`` on its
    host.
    ``earlier_state`` is the model state as passes begin and end, but for the last end.
    ``left_bytes`` are live on each process as a pass has ended, ``kept_bytes`` those that a user's
    model may keep from one microbatch to the next, ``written_bytes`` those of what was there before
    and its stages write into; ``data_dependence`` says of a user's model that it saves more for
    some data than for other, so that no schedule has predictable bytes with it;
    ``weight_backward`` which gradients W makes of it, and which I, where backwards are split;
    ``model_notes`` what of it is not as its file or its configuration says;
    ``given_types`` in which types its parameters and buffers came, all of which ran in ``dtype``.
    ``loss_scale`` is the rule by which losses were scaled, ``last_scale`` the scale of the last
    step, ``skipped_steps`` those whose gradients were not all finite, by number.
    """

    backend: str
    semantics: str
    semantics_why: str = ""
    seed: int
    model: str
    dtype: str
    ranks: int
    stages: int
    microbatches: int
    gradients_equal: bool
    losses_equal: bool
    gradient_difference: str = ""
    loss_difference: str = ""
    weight_difference: str = ""
    max_relative_error: float
    tolerance: float
    rounded_to: str = ""
    smallest_share: float = 1.0
    loss: float
    counts_bytes: bool = True
    peak_bytes: RankComparison[int]
    host_peak_bytes: RankComparison[int] = NOTHING
    born_bytes: RankComparison[int] = NOTHING
    host_born_bytes: RankComparison[int] = NOTHING
    data_parallel: int = 1
    zero: str = ""
    state_bytes: RankComparison[int] = NOTHING
    model_state: RankComparison[StateBytes] = NOTHING
    host_model_state: RankComparison[StateBytes] = NOTHING
    earlier_state: tuple[StateMoment, ...] = ()
    weights_equal: bool = True
    max_weight_error: float = 0.0
    optimizer: str = ""
    steps: int = 0
    has_barrier: bool = False
    clip: float | None = None
    accumulate: int = 1
    loss_scale: str = ""
    last_scale: float | None = None
    skipped_steps: tuple[int, ...] = ()
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
    passes: tuple[tuple[RankTrace, ...], ...] = ()
    left_bytes: tuple[int, ...] = ()
    kept_bytes: tuple[int, ...] = ()
    written_bytes: tuple[int, ...] = ()
    data_dependence: str = ""
    weight_backward: tuple[str, ...] = ()
    model_notes: tuple[str, ...] = ()
    given_types: tuple[str, ...] = ()
    alike: tuple[str, ...] = ()
    added_first: tuple[str, ...] = ()
    counts_work: bool = True
    flops: RankComparison[int] = NOTHING
    work: tuple[RankWorked, ...] = ()
    work_dependence: str = ""
    not_counted_work: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether every promise holds."""
        return not self.failures

    @property
    def is_decidable(self) -> bool:
        """Whether a wrong microbatch would be seen beside the ordinary float64 backward."""
        return self.tolerance <= self.smallest_share

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
            alone = "gradients differ from those of each microbatch alone, summed in order"
            found.append(_with(alone, self.gradient_difference))
        if not self.losses_equal:
            alone = "losses differ from those of each microbatch alone"
            found.append(_with(alone, self.loss_difference))
        if self.is_decidable and not self.max_relative_error <= self.tolerance:
            found.append(
                f"gradients are off the ordinary float64 backward by {self.max_relative_error:.1e} "
                f"(relative), more than {self.tolerance:.0e}"
            )
        if not self.weights_equal:
            expected = "updated weights differ from a step with the expected gradients"
            found.append(_with(expected, self.weight_difference))
        if not self.rounded_to and not self.max_weight_error <= self.tolerance:
            found.append(
                f"updated weights are off those of torch's own {self.optimizer} in float64 by "
                f"{self.max_weight_error:.1e} (relative), more than {self.tolerance:.0e}"
            )
        found += self.work_failures("flops", "gradients")
        found += self._peak_failures()
        found += self._state_failures()
        if not self.broken_rules:
            accounts = [*self.accounts(), *self.accounts(of_hosts=True)]
            found += [*self.told_births(), *(text for each in accounts if (text := each.told()))]
        return (*found, *self._left())

    def work_failures(self, *quantities: str) -> list[str]:
        """What is wrong with ``flops``, with ``gradients``: a sentence for each process."""
        if self.work_dependence:
            return [self.work_dependence]
        told = [rank.told(quantity) for quantity in quantities for rank in self.work]
        return [text for text in told if text]

    @property
    def traces(self) -> tuple[RankTrace, ...]:
        """What each process did in the last pass."""
        return self.passes[-1] if self.passes else ()

    def told_births(self) -> list[str]:
        """What each rank, or its host, held beyond the model's as it was made."""
        told = "{name} held {measured} bytes as it was made, {predicted} were predicted"
        hosts = self._differing(told, "the host of rank", self.host_born_bytes)
        return self._differing(told, "rank", self.born_bytes) + hosts

    def accounts(self, *, of_hosts: bool = False) -> list[Account]:
        """What each rank, or its host, held at each action, pass by pass.

        None of a model whose bytes depend on its data: nothing is predicted of it.
        """
        found = []
        for step, traces in enumerate(() if self.data_dependence else self.passes):
            moment = f" in pass {step}" if len(self.passes) > 1 else ""
            found += [trace.account(moment, of_host=of_hosts) for trace in traces]
        return found

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
        last = StateMoment("ends", self.model_state, self.host_model_state)
        found = []
        for name, on_ranks, on_hosts in (*self.earlier_state, last):
            text = told.replace("ends", name, 1)
            found += self._differing(text, "rank", on_ranks)
            found += self._differing(text, "the host of rank", on_hosts)
        return found

    def _differing(self, told: str, name: str, compared: RankComparison[object]) -> list[str]:
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
        return uncounted(self.kept_bytes, self.written_bytes) if self.counts_bytes else ()

    def to_dict(self) -> dict[str, object]:
        """All fields but ``passes``, ``earlier_state`` and ``work``, and ``ok``, for JSON.

        The claims are booleans and integers, never floats.

        A number that is not finite, which JSON cannot write, becomes None.
        """
        fields = asdict(replace(self, passes=(), earlier_state=(), work=()))
        del fields["passes"], fields["earlier_state"], fields["work"]
        for name in COMPARED:
            for side, values in fields.pop(name)._asdict().items():
                fields[f"{side}_{name}"] = values
        for name, value in fields.items():
            if isinstance(value, float) and not math.isfinite(value):
                fields[name] = None
        found = {"ok": self.ok, "failures": list(self.failures), **fields}
        return {**found, "not_counted": list(self.not_counted)}

    @property
    def precision(self) -> str:
        """The type in which all was computed, and the model's own where that is another."""
        if self.given_types in ((), (self.dtype,)):
            return self.dtype
        return f"{self.dtype} (the model's parameters came as {', '.join(self.given_types)})"

    def __str__(self) -> str:
        kind = "UNSAFE " if self.unsafe else ""
        copies = f"{self.data_parallel} x " if self.data_parallel > 1 else ""
        head = (
            f"{kind}{self.backend} replay of {copies}{self.ranks} ranks, "
            f"{self.microbatches} microbatches in {self.precision}"
        )
        if self.ok:
            peaks = f"peaks {list(self.peak_bytes.measured)} as predicted"
            return f"{head}: gradients equal, {peaks if self.counts_bytes else 'bytes not counted'}"
        return f"{head}: {'; '.join(self.failures)}"


def _with(what: str, first: str) -> str:
    """A failure with the first thing that differs, where it is known."""
    return f"{what}: {first}" if first else what


COMPARED = (
    *("peak_bytes", "host_peak_bytes", "born_bytes", "host_born_bytes"),
    *("state_bytes", "model_state", "host_model_state"),
    "flops",
)
