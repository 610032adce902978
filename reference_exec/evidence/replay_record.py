"""Replay records: all that a replay was, measured and was predicted to, field by field.

Bytes are sampled at action boundaries (see ``rank.RankResult``), as ranks are made, and as passes
begin and end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, NamedTuple, Never, TypeVar

from bubbleproof.facts import FactCells, FactSource
from bubbleproof.reference_exec.evidence.work_done import RankWorked
from bubbleproof.reference_exec.plans.state_bytes import StateBytes
from bubbleproof.reference_exec.runtime.trace import Account, RankTrace

_ALWAYS = (
    "What an action allocates and frees within itself, such as work space.",
    "At each action: parameters, buffers and constants of the model, gradients, optimizer state "
    "and data, but where a host or replicas move them. They are compared as ranks are made, and "
    "weights, gradients and optimizer state as each pass begins and ends.",
    "Tensors that only a reference cycle holds, which nobody reaches.",
    "Messages, from when they are made or awaited until they are used; on processes a sent one "
    "stays to the end of the pass.",
    "Losses and gradients that are kept to be compared.",
    "What was there before the ranks were made, unless the code of the model's file reaches it and "
    "torch counts a write into it (`.data` and arrays of numpy write uncounted).",
    "What the allocator rounds up, keeps in reserve or fragments; buffers of gloo, NCCL, cuBLAS.",
    "Memory that no tensor shows: Python objects, copies made by numpy, what a C++ extension keeps "
    "to itself; and sparse tensors.",
)


def uncounted(kept_bytes: Sequence[int], written_bytes: Sequence[int] = ()) -> tuple[str, ...]:
    """One phrase each; the bytes, by process, are what stages of a user's model may keep, and what
    was there before and they write into.
    """
    own = []
    if any(kept_bytes):
        kept = ", ".join(map(str, kept_bytes))
        own.append(
            f"What stages keep of their last forward until the next: at most {kept} bytes by rank."
        )
    if any(written_bytes):
        written = ", ".join(map(str, written_bytes))
        own.append(
            "Tensors that were there before the ranks were made and that stages write into: "
            f"{written} bytes by rank."
        )
    return (*_ALWAYS, *own)


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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReplayRecord(FactSource):
    """The outcome of one replay; ``ReplayReport`` states the facts of it.

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
    One that does not ``train`` ran forwards alone: there are no gradients, and those that are equal
    are none. Unless it ``counts_bytes`` there are no live bytes, measured or predicted. ``alike``
    says what numbers do not tell apart: microbatches with the same data, what makes gradients that
    are 0, steps that change no weight; ``added_first`` what may have changed places as any two
    numbers of a sum may. Where it ``counts_work``, ``work`` is what each action of each pass
    computed and was predicted to, ``flops`` all of it together; ``work_dependence`` says as
    ``data_dependence`` that a user's model's depends on its data, and ``not_counted_work`` what is
    not seen as work.
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

    columns: ClassVar[FactCells] = ("evidence", "predicted", "measured", "verdict")

    backend: str
    semantics: str
    semantics_why: str = ""
    seed: int
    model: str
    dtype: str
    ranks: int
    stages: int
    microbatches: int
    trains: bool = True
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
    def is_decidable(self) -> bool:
        """Whether a wrong microbatch would be seen beside the ordinary float64 backward."""
        return self.tolerance <= self.smallest_share

    @property
    def traces(self) -> tuple[RankTrace, ...]:
        """What each process did in the last pass."""
        return self.passes[-1] if self.passes else ()

    def accounts(self, *, of_hosts: bool = False) -> list[Account]:
        """What each rank, or its host, held at each action, pass by pass.

        None of a model whose bytes depend on its data: nothing is predicted of it.
        """
        found = []
        for step, traces in enumerate(() if self.data_dependence else self.passes):
            moment = f" in pass {step}" if len(self.passes) > 1 else ""
            found += [trace.account(moment, of_host=of_hosts) for trace in traces]
        return found

    @property
    def not_counted(self) -> tuple[str, ...]:
        """One phrase for each thing that is not among the live bytes; none where none count."""
        return uncounted(self.kept_bytes, self.written_bytes) if self.counts_bytes else ()

    @property
    def precision(self) -> str:
        """The type in which all was computed, and the model's own where that is another."""
        if self.given_types in ((), (self.dtype,)):
            return self.dtype
        return f"{self.dtype} (the model's parameters came as {', '.join(self.given_types)})"

    @property
    def where(self) -> str:
        """The backend, its processes and their model."""
        ranks = f"{self.ranks} ranks"
        if self.zero:
            ranks = f"{self.data_parallel} replicas of {ranks}, ZeRO {self.zero}"
        elif self.data_parallel > 1:
            ranks = f"{self.data_parallel} whole replicas of {ranks}"
        return f"{self.backend}, {ranks}, {self.model} {self.precision}"

    @property
    def stepped(self) -> str:
        """By how many steps of which optimizer weights are updated, and how."""
        when = "after a global barrier" if self.has_barrier else "stage by stage"
        clip = "" if self.clip is None else f", gradients clipped to norm {self.clip:g}"
        of = f" of {self.accumulate} passes each" if self.accumulate > 1 else ""
        scale = f", loss scaled by {self.loss_scale}" if self.loss_scale else ""
        what = f"weights after {self.steps} steps of {self.optimizer}{of}, {when}{clip}{scale}"
        if skipped := self.skipped_steps:
            what += f"; skipped for what is not finite: step {', '.join(map(str, skipped))}"
        return what

    def differing(self, told: str, name: str, compared: RankComparison[object]) -> list[str]:
        """``told`` of each process where something else was measured than predicted."""
        pairs = enumerate(() if self.stopped else zip(*compared, strict=True))
        return [
            told.format(name=f"{name} {self.seat(number)}", measured=found, predicted=expected)
            for number, (found, expected) in pairs
            if found != expected
        ]

    def seat(self, process: int) -> str:
        """The rank of a process, and its replica where there are several."""
        replica, rank = divmod(process, self.ranks)
        return f"{rank} of replica {replica}" if self.data_parallel > 1 else str(rank)


_OPEN = (
    "Durations: the measured times are shown beside the predicted ones, not compared with them.",
    "What is written after the last action: weights are compared as passes begin and end.",
    "Other sizes, other data: one model ran, on the data of its seed.",
)
_BACKENDS = {
    "virtual": (
        "Real messages: ranks took turns in one process, in one of many possible interleavings, "
        "under one semantics.",
    ),
    "gloo": (
        "Stricter semantics than gloo's: its sends never wait. What NCCL would wait for was "
        "verified at most, not run.",
    ),
    "nccl": ("Orders that the GPUs did not happen to take.",),
}


def not_checked(report: ReplayRecord) -> tuple[str, ...]:
    """One sentence for each thing that this replay leaves open."""
    found = [*report.alike, *report.added_first, *_BACKENDS.get(report.backend, ()), *_OPEN]
    if not report.trains:
        found.append("Gradients: forwards ran alone, nothing was trained.")
    elif not report.steps and not report.num_updated_stages:
        found.append("Optimizer steps: gradients were compared, no weight was updated.")
    if report.device == "cpu":
        found.append("GPUs: all ran on the processor.")
    if report.traces and not all(trace.predicted for trace in report.traces):
        found.append("Bytes of each action: the model was asked for the peaks alone.")
    if report.unsafe:
        found.append("Verification was not required to hold (--unsafe).")
    if report.stopped:
        found.append("Everything after the run stopped.")
    return tuple(found)
