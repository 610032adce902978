"""How a schedule is replayed: where, under which semantics, with what training, counting what."""

from __future__ import annotations

from dataclasses import dataclass

from bubbleproof.reference_exec.plans.replay_limits import require_time_limit
from bubbleproof.reference_exec.plans.training import Training
from bubbleproof.reference_exec.plans.zero_levels import ZeroLevels
from bubbleproof.verify.communication.semantics import Semantics


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayOptions:
    """What a replay is given beside a pipeline, its schedule and a model.

    Parameters
    ----------
    backend
        ``virtual`` (all ranks in this process) or ``gloo`` (a process per rank).
    device
        ``cpu``, or for ``virtual`` also ``cuda``: all ranks on one GPU.
    seed
        Picks the interleaving of ``virtual``. (The model's seed is in its ``ModelSpec``.)
    semantics
        What SEND and RECV are assumed to wait for. ``virtual`` (default ``pair-stream``) runs under
        it; on ``gloo`` sends never wait and receives arrive in order, which is its default
        ``buffered``, and stricter semantics are verified only.
    timeout
        Seconds the ranks of ``gloo`` may take, their start not counted; then one error says which
        rank was where, and no process is left.
    unsafe
        Run what violates a rule too. A run that cannot go on is then reported, not raised.
    training
        Optimizer steps to take, each after a run of the program; by default the program runs once
        and only what a host updates is stepped.
    data_parallel
        How many replicas run the schedule, each on microbatches of its own.
    zero
        The level of each parameter. By default a schedule with collectives has the highest that
        they are enough for, and replicas of one without are whole (plain data parallelism).
    count_bytes
        Count the bytes that live after each action, and compare them. Without, steps are some per
        cent faster, and the report says nothing of bytes.
    count_work
        Count what each action computes, and to which gradients it adds, and compare it. Without,
        the report does not say that a split backward is one.

    Raises
    ------
    ValueError
        For options that do not go together, or in another form than ours.
    """

    backend: str = "virtual"
    device: str = "cpu"
    seed: int = 0
    semantics: Semantics | str | None = None
    timeout: float = 60.0
    unsafe: bool = False
    training: Training | None = None
    data_parallel: int = 1
    zero: ZeroLevels | None = None
    count_bytes: bool = True
    count_work: bool = True

    @property
    def num_passes(self) -> int:
        """How often the program runs."""
        return 1 if self.training is None else self.training.num_passes

    def __post_init__(self) -> None:
        training: object = self.training
        if not isinstance(training, Training | None):
            raise ValueError(f"replay training must be a Training(steps=...), got {training!r}")
        zero: object = self.zero
        if not isinstance(zero, ZeroLevels | None):
            raise ValueError(f'replay zero must be ZeroLevels.parse("3,norm=1"), got {zero!r}')
        require_time_limit(self.timeout)
