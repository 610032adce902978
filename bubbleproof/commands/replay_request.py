"""The command line of ``replay``: what is to run, on what model, and how."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bubbleproof.commands.replay_options import (
    CommunicationOptions,
    ModelOptions,
    ReplayOutput,
    RunOptions,
    TrainingOptions,
)
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.plans.training import Training
from bubbleproof.reference_exec.plans.zero_levels import ZeroLevels


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayRequest:
    """A schedule to replay; ``backend`` and ``device`` None where the driver has its own.

    ``is_unsafe``: what is not verified runs too. With ``data_parallel`` above 1 or ``levels`` a
    schedule gets its collectives (``read_sharded``, ``replicated``). ``targets`` are files to write
    (``replay_files``).
    """

    words: Sequence[str]
    spec: ModelSpec
    training: Training | None = None
    backend: str | None = None
    device: str | None = None
    seed: int = 0
    comm: str | None = None
    timeout: float = 60.0
    dialect: str | None = None
    is_unsafe: bool = False
    has_headers: bool = False
    counts_bytes: bool = True
    data_parallel: int = 1
    levels: ZeroLevels | None = None
    targets: Sequence[str] = ()
    as_json: bool = False

    @classmethod
    def of(
        cls,
        words: Sequence[str],
        run: RunOptions,
        model: ModelOptions,
        training: TrainingOptions,
        communication: CommunicationOptions,
        output: ReplayOutput,
    ) -> ReplayRequest:
        """The request that a command line makes. Raises ``ValueError`` for what none can mean."""
        return cls(
            words=words,
            spec=model.spec(),
            training=training.training(),
            backend=run.backend,
            device=run.device,
            seed=run.seed,
            comm=communication.comm,
            timeout=communication.timeout,
            dialect=run.dialect,
            is_unsafe=run.unsafe,
            has_headers=communication.debug_headers,
            counts_bytes=not run.no_count_bytes,
            data_parallel=training.data_parallel,
            levels=training.levels(),
            targets=output.output or (),
            as_json=output.json,
        )

    @property
    def is_sharded(self) -> bool:
        """Whether replicas or ZeRO levels are asked for."""
        return self.data_parallel != 1 or self.levels is not None
