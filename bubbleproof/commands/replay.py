"""``bubbleproof replay SCHEDULE``: run a verified schedule on torch and compare."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from bubbleproof.commands.inputs import Given
from bubbleproof.commands.output import BROKEN, HOLDS, print_json, print_table, say
from bubbleproof.commands.read_sharded import read_to_replay
from bubbleproof.commands.replay_files import require_endings, write_files
from bubbleproof.commands.replay_torch import BACKEND, run_replay_torch
from bubbleproof.reference_exec.spec import ModelSpec
from bubbleproof.reference_exec.training import Training
from bubbleproof.reference_exec.zero_levels import ZeroLevels

if TYPE_CHECKING:
    from bubbleproof.reference_exec.report import ReplayReport

OWN_BACKENDS = ("virtual", "gloo")
BACKENDS = (*OWN_BACKENDS, BACKEND)
MISSING = 'replay needs PyTorch: pip install "bubbleproof[exec]"'


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


def run_replay(
    words: Sequence[str],
    *,
    backend: str | None,
    spec: ModelSpec,
    training: Training | None = None,
    seed: int,
    comm: str | None,
    timeout: float,
    dialect: str | None,
    as_json: bool,
    unsafe: bool = False,
    debug_headers: bool = False,
    device: str | None = None,
    torchrun: bool = False,
    data_parallel: int = 1,
    zero: str | None = None,
    targets: Sequence[str] = (),
) -> int:
    """Replay one schedule and print the evidence; status 1 where a promise is broken.

    ``unsafe`` runs what is not verified too, says so, and gives status 1 for it. With ``torchrun``
    this process is one of the ranks. With ``data_parallel`` or ``zero`` a family gets its
    collectives (``read_sharded``). ``targets`` are files to write (``replay_files``).
    """
    require_endings(targets)
    levels = None if zero is None else ZeroLevels.parse(zero)
    is_sharded = data_parallel != 1 or levels is not None
    if torchrun:
        with torch_needed():
            from bubbleproof.commands.torchrun import Request, run_rank
        request = Request(
            words=words,
            spec=spec,
            training=training,
            backend=backend or "gloo",
            device=device,
            comm=comm,
            timeout=timeout,
            dialect=dialect,
            is_unsafe=unsafe,
            data_parallel=data_parallel,
            levels=levels,
            targets=tuple(targets),
            has_headers=debug_headers,
        )
        return run_rank(request, as_json=as_json)
    backend = backend or "virtual"
    _require_backend(backend, unsafe=unsafe)
    if backend == BACKEND:
        if training is not None:
            raise ValueError(f"replay steps are taken by our own ranks, not by {BACKEND}")
        if targets:
            raise ValueError(f"replay files are written of our own ranks, not of {BACKEND}")
        if is_sharded:
            raise ValueError(
                f"replay --data-parallel and --zero are for our own ranks, got {BACKEND}"
            )
        with torch_needed():
            return run_replay_torch(
                words, spec=spec, comm=comm, timeout=timeout, dialect=dialect, as_json=as_json
            )
    given = read_to_replay(words, dialect=dialect, data_parallel=data_parallel, levels=levels)
    try:
        report = replay_given(
            given,
            spec,
            training=training,
            backend=backend,
            seed=seed,
            comm=comm,
            timeout=timeout,
            quiet=as_json,
            unsafe=unsafe,
            debug_headers=debug_headers,
            device=device or "cpu",
            data_parallel=data_parallel,
            zero=levels,
        )
    except RuntimeError as error:  # a stalled or failed rank; its message says which and where
        say(str(error))
        if as_json:
            print_json({"name": given.name, "ok": False, "failures": [str(error)]})
        return BROKEN
    write_files(targets, given, report, spec, evidence(report), quiet=as_json)
    return print_report(given.name, report, as_json=as_json)


def print_report(name: str, report: ReplayReport, *, as_json: bool) -> int:
    """Print the evidence; the exit status."""
    if as_json:
        print_json({"name": name, **report.to_dict()})
    else:
        title = f"{name} (UNSAFE: run without being verified)" if report.unsafe else name
        print_table(title, ("evidence", "predicted", "measured", "verdict"), evidence(report))
    return HOLDS if report.ok else BROKEN


def _require_backend(backend: str, *, unsafe: bool) -> None:
    if backend == "nccl":
        raise ValueError(
            "nccl runs a process per GPU: torchrun --nproc-per-node RANKS "
            "-m bubbleproof.reference_exec SCHEDULE --backend nccl"
        )
    if backend not in BACKENDS:
        known = f"{', '.join(BACKENDS)}, or nccl under torchrun"
        raise ValueError(f"replay backend must be one of {known}, got {backend!r}")
    if unsafe and backend == BACKEND:
        raise ValueError(f"replay --unsafe is for our own ranks; got --backend {BACKEND}")


@contextmanager
def torch_needed() -> Iterator[None]:
    """Say what to install where torch is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ValueError(MISSING) from None


def replay_given(
    given: Given,
    spec: ModelSpec,
    *,
    training: Training | None = None,
    backend: str,
    seed: int = 0,
    comm: str | None = None,
    timeout: float = 60.0,
    quiet: bool = False,
    unsafe: bool = False,
    debug_headers: bool = False,
    device: str = "cpu",
    data_parallel: int = 1,
    zero: ZeroLevels | None = None,
) -> ReplayReport:
    """Verify and run. Raises ``ValueError`` for what is not verified or cannot run.

    ``unsafe`` runs what is not verified too; see ``reference_exec.replay``.
    """
    with torch_needed():
        from bubbleproof.reference_exec.replay import replay
    return replay(
        given.problem,
        given.timed_roughly() if unsafe else given.timed(),
        spec,
        training=training,
        program=given.program if given.has_communication else None,
        backend=backend,
        seed=seed,
        semantics=comm,
        timeout=timeout,
        unsafe=unsafe,
        data_parallel=data_parallel,
        zero=zero,
        debug_headers=debug_headers,
        progress=None if quiet else say,
        device=device,
    )


def _verification(report: ReplayReport) -> list[tuple[str, str, str, str]]:
    """What a replay that was forced says of the rules, and what ended it."""
    rules = zip(report.broken_rules, report.violations, strict=True)
    rows = [(f"UNSAFE: {rule}", "holds before running", why, "violated") for rule, why in rules]
    if report.unsafe and not rows:
        rows = [("UNSAFE: all rules", "hold before running", "hold", "holds")]
    if report.stopped:
        rows.append(("the run", "comes to its end", report.stopped, "violated"))
    return rows


def evidence(report: ReplayReport) -> list[tuple[str, str, str, str]]:
    """(what, predicted, measured, verdict) rows."""
    return _verification(report) + ([] if report.stopped else _measurements(report))


def _measurements(report: ReplayReport) -> list[tuple[str, str, str, str]]:
    ranks = f"{report.ranks} ranks"
    if report.zero:
        ranks = f"{report.data_parallel} replicas of {ranks}, ZeRO {report.zero}"
    where = f"{report.backend}, {ranks}, {report.model} {report.dtype}"
    rows = [
        (
            f"gradients ({where})",
            "equal bit for bit to each microbatch alone, summed in order",
            "equal" if report.gradients_equal else "different",
            "holds" if report.gradients_equal else "violated",
        ),
        (
            "losses",
            "equal bit for bit",
            "equal" if report.losses_equal else "different",
            "holds" if report.losses_equal else "violated",
        ),
        (
            "relative error to the ordinary float64 backward",
            f"at most {report.tolerance:.0e}",
            f"{report.max_relative_error:.1e}",
            "holds" if report.max_relative_error <= report.tolerance else "violated",
        ),
    ]
    peaks = [
        (
            "peak live activation bytes per rank",
            report.predicted_peak_bytes,
            report.measured_peak_bytes,
        )
    ]
    if report.steps:
        rows += _weights_evidence(report)
    elif report.num_updated_stages:
        rows.append(
            (
                f"weights of {report.num_updated_stages} stages that "
                f"{'shards' if report.zero else 'the host'} update{'s' * (not report.zero)}",
                "equal bit for bit to a step with the expected gradients",
                "equal" if report.weights_equal else "different",
                "holds" if report.weights_equal else "violated",
            )
        )
    if report.num_updated_stages:
        what = "gathered weights and gradients" if report.zero else "weights on the move"
        peaks = [(f"peak live bytes per rank, {what} included", *peaks[0][1:])]
    if report.zero:
        peaks.append(
            (
                "bytes of sharded and whole model state per rank",
                report.predicted_state_bytes,
                report.measured_state_bytes,
            )
        )
    if report.predicted_host_peak_bytes:
        peaks.append(
            (
                "peak live bytes per rank's host",
                report.predicted_host_peak_bytes,
                report.measured_host_peak_bytes,
            )
        )
    for name, predicted, measured in peaks:
        verdict = "holds" if predicted == measured else "violated"
        rows.append((name, " ".join(map(str, predicted)), " ".join(map(str, measured)), verdict))
    if report.traces and all(trace.predicted for trace in report.traces):
        rows.append(_bytes_of_actions(report))
    return rows


def _bytes_of_actions(report: ReplayReport) -> tuple[str, str, str, str]:
    counted = sum(bool(samples) for trace in report.traces for samples in trace.live_bytes)
    off = sum(trace.num_differing for trace in report.traces)
    return (
        f"live bytes at each of {counted} actions",
        "the model's",
        "equal" if not off else f"{off} differ",
        "violated" if off else "holds",
    )


def _weights_evidence(report: ReplayReport) -> list[tuple[str, str, str, str]]:
    when = "after a global barrier" if report.has_barrier else "stage by stage"
    error = report.max_weight_error
    return [
        (
            f"weights after {report.steps} steps of {report.optimizer}, {when}",
            "equal bit for bit to steps with the expected gradients",
            "equal" if report.weights_equal else "different",
            "holds" if report.weights_equal else "violated",
        ),
        (
            f"relative error to torch's {report.optimizer} in float64",
            f"at most {report.tolerance:.0e}",
            f"{error:.1e}",
            "holds" if error <= report.tolerance else "violated",
        ),
    ]
