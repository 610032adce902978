"""What a machine with a GPU shows of replays, in ten minutes, as a page.

    python -m benchmarks.gpu_replays [--minutes 10] [--write docs/measured/gpu-replays.md]
                                     [--hidden 64] [--sequence 32] [--only 1f1b,zb-v] [--device cpu]

*Messages over NCCL.* ``RUNS`` by torchrun, one process for each rank; where there are more ranks
than GPUs, two on each at most, they share them (``--share-gpu``, from NCCL 2.30 on).

*Times.* ``bubbleproof profile`` of a stage: F, I, W and B, medians of its rounds. Then PyTorch's
own runtime under its profiler (``gpu_trace``), and what ``bubbleproof trace`` reads of that.

*Families.* All ranks run in this process on one GPU, each with streams of its own (``--backend
virtual``): each family at the first of ``SHAPES`` that it accepts, on every model in float32 and
float64, for one pass and as a training of two steps with Adam, and without slices as two replicas
too; model by model, until the time is up. Of this table:

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

It ends with status 1 if a promise is broken, and 2 where torch sees no GPU. ``--device cpu`` tries
the program without one, over gloo; the page then says that it shows nothing of a GPU.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

import torch
import typer

from benchmarks.markdown import cell, markdown_table, put_out
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
RUNS = (
    ("gpipe p=1 m=4", 1),
    ("1f1b p=2 m=4", 2),
    ("zb-v p=2 m=4", 2),
    ("interleaved p=2 m=4 v=2", 2),
    ("forward p=2 m=4", 2),
    ("bpipe p=4 m=5", 4),
)
MOST_SHARING = 2  # ranks of a GPU, for which NCCL's defaults are made
LIMIT_S = 90.0  # of one run by torchrun
TIMED = ("forward", "input_backward", "weight_backward", "backward")


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
        most = max(peaks.measured, default=0)
        self.ratios += [peak / most for peak in report.allocator_peak_bytes if peak and most]
        self.failures += [] if report.ok else [str(report)]

    @property
    def cells(self) -> tuple[object, ...]:
        errors = ", ".join(f"{error:.0e} ({dtype})" for dtype, error in sorted(self.errors.items()))
        ratios = f"{min(self.ratios):.1f} to {max(self.ratios):.1f}" if self.ratios else ""
        return self.replays, self.equal_bits, self.equal_bytes, errors, ratios


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of the page, and what of it is not as promised."""

    text: str
    failures: Sequence[str] = ()


def main(
    device: str = "cuda",
    minutes: float = 10.0,
    hidden: int = 64,
    sequence: int = 32,
    only: str = "",
    write: Path | None = None,
) -> None:
    """Replay and print or write; see the module's text."""
    if device == "cuda" and not torch.cuda.is_available():
        sys.stderr.write("torch sees no GPU: nothing was run (--device cpu tries the program)\n")
        raise typer.Exit(2)
    until = time.monotonic() + 60 * minutes
    gpus = torch.cuda.device_count() if device == "cuda" else 0
    names = only.split(",") if only else list(families())
    sections = [
        over_nccl(gpus),
        times(device, gpus),
        of_families(names, device, _models(hidden, sequence), until),
    ]
    put_out(page(device, sections), write)
    failures = [line for section in sections for line in section.failures]
    sys.stderr.write("".join(f"{line}\n" for line in failures))
    raise typer.Exit(1 if failures else 0)


def page(device: str, sections: Sequence[Section]) -> str:
    """The page of its parts, with the machine."""
    where = "No GPU: the program was tried on the cpu, over gloo. Nothing below is of a GPU."
    if device == "cuda":
        where = f"{torch.cuda.device_count()} x {torch.cuda.get_device_name()},"
    command = "python -m benchmarks.gpu_replays --write docs/measured/gpu-replays.md"
    today = time.strftime("%Y-%m-%d")
    made = f"Made by `{command}`, {today}."
    head = f"# Replays on a GPU\n\n{made}\n\n{where} {this_machine()}"
    return "\n\n".join([head, *(section.text.strip() for section in sections)]) + "\n"


def over_nccl(gpus: int) -> Section:
    """``RUNS``; over gloo where there are no GPUs."""
    rows: list[tuple[object, ...]] = []
    failures = []
    for schedule, ranks in RUNS:
        needed = -(-ranks // MOST_SHARING)
        if gpus and needed > gpus:
            rows.append((schedule, ranks, "not run", "", "", f"needs {needed} GPUs"))
            continue
        shares = gpus and ranks > gpus
        words = [
            "--json",
            *(["--backend", "nccl"] if gpus else []),
            *["--share-gpu"] * bool(shares),
        ]
        done = launched("bubbleproof.reference_exec", [*schedule.split(), *words], ranks)
        report = json.loads(done.stdout) if done.stdout.startswith("{") else {}
        told = "holds" if report.get("ok") else "; ".join(report.get("failures", ()))
        told = told or _last_line(done.stderr)
        bits = report.get("gradients_equal") and report.get("losses_equal")
        peaks = [report.get(f"{side}_peak_bytes") for side in ("measured", "predicted")]
        on = f"{ranks} on {min(ranks, gpus)}" if gpus else f"{ranks} on none"
        equal = peaks[0] is not None and peaks[0] == peaks[1]
        yes = {True: "equal", False: "not equal"}
        rows.append(
            (schedule, on, report.get("semantics", ""), yes[bool(bits)], yes[equal], cell(told))
        )
        failures += [] if report.get("ok") else [f"{schedule}: {told}"]
    head = ("schedule", "ranks on GPUs", "verified under", "bits", "bytes", "verdict")
    through = "NCCL {}".format(".".join(map(str, torch.cuda.nccl.version()))) if gpus else "gloo"  # type: ignore[no-untyped-call]  # torch leaves it untyped
    return Section(
        text=f"## Messages over {through}\n\n{markdown_table(head, rows)}", failures=failures
    )


def times(device: str, gpus: int) -> Section:
    """What a stage takes by itself, and in a pipeline, by a Kineto trace."""
    large = ["--hidden", "1024", "--sequence", "512"] if gpus else ["--hidden", "64"]
    model = ["--model", "transformer", "--dtype", "float32", *large]
    with tempfile.TemporaryDirectory() as folder:
        pipeline = ["--ranks", "2", "--microbatches", "4", "-o", f"{folder}/measured.toml"]
        alone = _bubbleproof("profile", *pipeline, "--device", device, *model, "--json")
        ranks = min(2, MOST_SHARING * gpus) or 2
        width = [] if gpus else ["--width", "64"]
        done = launched("benchmarks.gpu_trace", [folder, "--device", device, *width], ranks)
        if any(Path(folder).glob("rank*.json")):
            traced = _bubbleproof("trace", folder, "--json")
        else:
            traced = {"failed": _last_line(done.stderr)}
    failures = [f"{name}: {told['failed']}" for name, told in
                (("profile", alone), ("trace", traced)) if "failed" in told]  # fmt: skip
    stages = [(each["stage"], *(_milliseconds(each[kind]["seconds"]) for kind in TIMED))
              for each in alone.get("stages", ())]  # fmt: skip
    kinds = sorted({each["kind"] for each in traced.get("usual_ns", ())})
    usual = {(each["stage"], each["kind"]): each["ns"] / 1e6 for each in traced.get("usual_ns", ())}
    rows = [
        (stage, *(f"{usual[stage, kind]:.3f}" if (stage, kind) in usual else "" for kind in kinds))
        for stage in sorted({stage for stage, _ in usual})
    ]
    told = f"""## Times of a stage, ms

`bubbleproof profile {" ".join(model)} --device {device}`: each stage alone, medians of its rounds.

{markdown_table(("stage", "F", "I", "W", "B"), stages)}
PyTorch's interleaved zero-bubble schedule of two chunks on {ranks} ranks under its profiler; what
`bubbleproof trace` reads of its Kineto trace (a W stands behind its I).

{markdown_table(("stage", *kinds), rows)}"""
    return Section(text=told, failures=failures)


def of_families(
    names: Sequence[str], device: str, models: Sequence[ModelSpec], until: float
) -> Section:
    """All families in turn, again and again in other ways, until the time is up."""
    members = {name: _first_member(families()[name]) for name in names}
    rows = {name: Row() for name in names}
    for spec, training, replicas in product(models, (None, ADAM), (1, 2)):
        options = ReplayOptions(device=device, training=training, data_parallel=replicas)
        for name, found in members.items():
            is_plain = training is None and replicas == 1
            takes = replicas == 1 or found.pipeline.num_slices == 1
            if time.monotonic() < until and takes and (is_plain or not _trains_nothing(found)):
                rows[name].add(replay(found.pipeline, found.schedule, spec, options))
    head = ("family", "replays", "equal bits", "equal bytes", "error", "allocator")
    table = markdown_table(head, [(name, *row.cells) for name, row in rows.items()])
    return Section(
        text=f"## Families, all ranks on one device\n\n{table}",
        failures=[line for row in rows.values() for line in row.failures],
    )


def launched(
    module: str, words: Sequence[str], ranks: int, seconds: float = LIMIT_S
) -> subprocess.CompletedProcess[str]:
    """Run a module in so many processes by torchrun; all are ended after the time."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    start = ["torch.distributed.run", "--nnodes", "1", "--nproc-per-node", str(ranks)]
    start += ["--master-addr", "127.0.0.1", "--master-port", str(port), "-m", module, *words]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    here = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    done: subprocess.Popen[str] = subprocess.Popen(
        [sys.executable, "-m", *start], env=here, start_new_session=True, **pipes  # type: ignore[call-overload]  # of the names
    )  # fmt: skip
    try:
        out, err = done.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(done.pid, signal.SIGKILL)
        out, err = done.communicate()
        err += f"\nnot through after {seconds:g} s"
    return subprocess.CompletedProcess(done.args, done.returncode, out, err)


def _bubbleproof(*words: str) -> dict[str, Any]:
    """What a command prints as JSON; ``failed`` where it prints none."""
    done = subprocess.run(
        [sys.executable, "-m", "bubbleproof", *words],
        capture_output=True,
        text=True,
        timeout=2 * LIMIT_S,
        check=False,
    )
    if not done.stdout.startswith("{"):
        return {"failed": _last_line(done.stderr)}
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _last_line(text: str) -> str:
    """What a program said of its end: the last line that is ours, or the last."""
    lines = [line for line in text.splitlines() if line.strip()] or ["it said nothing"]
    ours = [line for line in lines if line.startswith("bubbleproof:") or " replay ended: " in line]
    return (ours or lines)[-1]


def _milliseconds(seconds: Sequence[float]) -> str:
    return f"{1e3 * median(seconds):.3f}"


def _trains_nothing(found: FamilyMember) -> bool:
    return bool(found.pipeline.choices.omitting)


def _first_member(family: Family) -> FamilyMember:
    """The family's schedule at the first shape that it accepts."""
    for shape in SHAPES:
        try:
            return family.member(make_parameters(shape))
        except ValueError:
            continue
    raise RuntimeError(f"family {family} accepts none of {SHAPES}")


def _models(hidden: int, sequence: int) -> list[ModelSpec]:
    return [
        ModelSpec(kind=kind, hidden=hidden, heads=4, kv_heads=2, sequence=sequence, dtype=dtype)
        for kind, dtype in product(("mlp", "transformer", "llama"), ("float32", "float64"))
    ]


if __name__ == "__main__":
    typer.run(main)
