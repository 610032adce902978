"""Every family replayed on one GPU: the bits of each microbatch alone, the bytes of the model.

    python -m benchmarks.gpu_replays [--hidden 64] [--sequence 32] [--only 1f1b,zb-v] [--device cpu]

All ranks run in this process on one GPU, each with streams of its own (``--backend virtual``): each
family at the first of ``SHAPES`` that it accepts, on every model in float32 and float64, for one
pass and as a training of two steps with Adam, and without slices as two replicas too. Of the table:

``replays``
    how many ran;
``equal bits``
    gradients and losses equal the order-matched oracle's (``torch.equal``);
``equal bytes``
    peaks of live bytes equal the predicted ones on every rank, to the byte;
``error``
    the largest relative difference from the ordinary float64 backward on the cpu, for each dtype;
``allocator``
    the allocator's peak over the largest rank's live bytes, least and most: it holds weights,
    gradients, optimizer state, messages and work space of all ranks too.

It ends with status 1 if a promise is broken. ``--device cpu`` tries the program without a GPU.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
import typer

from bubbleproof.reference_exec.evidence.machine_versions import this_machine
from bubbleproof.reference_exec.evidence.replay_report import ReplayReport
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.plans.run_options import ReplayOptions
from bubbleproof.reference_exec.plans.training import Training
from bubbleproof.reference_exec.replaying import replay
from bubbleproof.theory.families import families, make_parameters
from bubbleproof.theory.families.base import Family, FamilyMember

ADAM = Training(steps=2, optimizer="adam")
SHAPES: tuple[dict[str, int | tuple[int, ...]], ...] = tuple(
    {"p": p, "m": m, **options}
    for p, m in ((4, 8), (2, 4))
    for options in ({"v": 2, "s": 2}, {"v": 2}, {"s": 2}, {})
)


@dataclass(slots=True)
class Row:
    """What the replays of one family showed."""

    replays: int = 0
    equal_bits: int = 0
    equal_bytes: int = 0
    errors: dict[str, float] = field(default_factory=dict)
    ratios: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def add(self, report: ReplayReport) -> None:
        """Count one replay."""
        peaks, dtype = report.peak_bytes, report.dtype
        self.replays += 1
        self.equal_bits += report.gradients_equal and report.losses_equal
        self.equal_bytes += peaks.measured == peaks.predicted
        self.errors[dtype] = max(self.errors.get(dtype, 0.0), report.max_relative_error)
        self.ratios += [peak / max(peaks.measured) for peak in report.allocator_peak_bytes if peak]
        self.failures += [] if report.ok else [str(report)]

    def __str__(self) -> str:
        errors = ", ".join(f"{error:.0e} ({dtype})" for dtype, error in sorted(self.errors.items()))
        ratios = f"{min(self.ratios):.1f} to {max(self.ratios):.1f}" if self.ratios else ""
        return f"{self.replays} | {self.equal_bits} | {self.equal_bytes} | {errors} | {ratios}"


def main(device: str = "cuda", hidden: int = 64, sequence: int = 32, only: str = "") -> None:
    """Replay and print; see the module's text."""
    sys.stdout.write("| family | replays | equal bits | equal bytes | error | allocator |\n")
    sys.stdout.write("|---|---|---|---|---|---|\n")
    rows = []
    chosen = only.split(",") if only else list(families())
    for name in chosen:
        family = families()[name]
        rows.append(_row(_first_member(family), device, hidden, sequence))
        sys.stdout.write(f"| {name} | {rows[-1]} |\n")
        sys.stdout.flush()
    where = torch.cuda.get_device_name() if device == "cuda" else "no GPU"
    sys.stdout.write(f"\n{where}, {this_machine()}\n")
    failures = [line for row in rows for line in row.failures]
    sys.stdout.write("".join(f"{line}\n" for line in failures))
    raise typer.Exit(1 if failures else 0)


def _row(found: FamilyMember, device: str, hidden: int, sequence: int) -> Row:
    """All replays of one schedule."""
    row = Row()
    for spec in _models(hidden, sequence):
        replicas = (1,) if found.pipeline.num_slices > 1 else (1, 2)
        for training in (None, ADAM):
            for data_parallel in replicas:
                options = ReplayOptions(
                    device=device, training=training, data_parallel=data_parallel
                )
                row.add(replay(found.pipeline, found.schedule, spec, options))
    return row


def _first_member(family: Family) -> FamilyMember:
    """The family's schedule at the first shape that it accepts."""
    for shape in SHAPES:
        try:
            return family.member(make_parameters(shape))
        except ValueError:
            continue
    raise RuntimeError(f"family {family} accepts none of {SHAPES}")


def _models(hidden: int, sequence: int) -> Iterator[ModelSpec]:
    for kind in ("mlp", "transformer", "llama"):
        for dtype in ("float32", "float64"):
            yield ModelSpec(
                kind=kind, hidden=hidden, heads=4, kv_heads=2, sequence=sequence, dtype=dtype
            )


if __name__ == "__main__":
    typer.run(main)
