"""The command line of ``replay``: what is to run, on what model, and how."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bubbleproof.reference_exec.spec import ModelSpec
from bubbleproof.reference_exec.training import Training
from bubbleproof.reference_exec.zero_levels import ZeroLevels


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayRequest:
    """A schedule to replay; ``backend`` and ``device`` None where the driver has its own.

    ``is_unsafe``: what is not verified runs too. With ``data_parallel`` above 1 or ``levels`` a
    family gets its collectives (``read_sharded``). ``targets`` are files to write
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
    data_parallel: int = 1
    levels: ZeroLevels | None = None
    targets: Sequence[str] = ()
    as_json: bool = False

    @property
    def is_sharded(self) -> bool:
        """Whether replicas or ZeRO levels are asked for."""
        return self.data_parallel != 1 or self.levels is not None


def given_model(
    model: str,
    layers: str,
    *,
    hidden: int,
    heads: int,
    kv_heads: int,
    sequence: int,
    batch: int,
    vocabulary: int,
    tied: bool,
    dtype: str,
) -> ModelSpec:
    """The model of the command line: a kind, or a factory by its colon. Raises ``ValueError``."""
    own = ":" in model
    return ModelSpec(
        kind="own" if own else model,
        factory=model if own else "",
        layers=parsed_layers(layers),
        hidden=hidden,
        heads=heads,
        kv_heads=kv_heads,
        sequence=sequence,
        batch=batch,
        vocabulary=vocabulary,
        tied=tied,
        dtype=dtype,
    )


def parsed_layers(text: str) -> int | tuple[int, ...]:
    """The layers of every stage, or of each: ``"2"`` or ``"2,3,3,2"``.

    Raises ``ValueError`` for anything but whole numbers.
    """
    try:
        counts = tuple(int(part) for part in text.split(","))
    except ValueError:
        raise ValueError(
            f"replay layers must be a number or one per stage such as 2,3,3,2, got {text!r}"
        ) from None
    return counts[0] if len(counts) == 1 else counts


def given_training(
    optimizer: str | None, steps: int | None, learning_rate: float | None, *, has_barrier: bool
) -> Training | None:
    """The training that is asked for, None where nothing is. Raises ``ValueError``."""
    if (optimizer, steps, learning_rate, has_barrier) == (None, None, None, False):
        return None
    return Training(
        optimizer="sgd" if optimizer is None else optimizer,
        steps=1 if steps is None else steps,
        learning_rate=learning_rate,
        has_barrier=has_barrier,
    )
