"""Runs at the door (``bp.trace`` and its like): what ran, why it stands still, what starts it."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING

from bubbleproof.arguments import (
    FilePath,
    Progress,
    door_function,
    hears,
    is_plan_like,
    path_text,
    text,
    whole,
    wrong,
    yes,
)
from bubbleproof.door import model_spec
from bubbleproof.door_given import schedule_file

if TYPE_CHECKING:
    from bubbleproof.door_types import GivenFirst, GivenModel
    from bubbleproof.hand_over.handed_over import HandedOver
    from bubbleproof.report.profiled_model import ProfiledModel
    from bubbleproof.report.schedule_difference import ComparedSchedules
    from bubbleproof.traces.hang_report import HangReport
    from bubbleproof.traces.run_report import TracedRun


@door_function
def trace(
    files: FilePath | Sequence[FilePath],
    *,
    schedule: GivenFirst | None = None,
    names: FilePath | None = None,
    path: FilePath | None = None,
    progress: Progress | None = None,
) -> TracedRun:
    """Read traces of a run: where its time went, what was waited for, which stage is slow.

    Parameters
    ----------
    files
        Kineto traces, one for each rank, or a folder of them.
    schedule
        What was to run, as ``check`` takes it.
    names
        A file (.toml) that says how spans of other frameworks are named.
    path
        A folder for problem.toml, schedule.csv, trace.json and trace.html.
    progress
        Hears of each file before it is read.

    Returns
    -------
    TracedRun
        ``ok``, the ``report`` with all times in nanoseconds, and where another order ran.

    Raises
    ------
    TypeError, ValueError
        For what are no traces of one run.
    """
    from bubbleproof.formats.all_or_nothing import written_together
    from bubbleproof.traces.run_report import traced_run

    given = None if schedule is None else schedule_file(schedule, asker="trace")
    naming = None if names is None else path_text(names, asker="trace")
    target = None if path is None else path_text(path, asker="trace")
    found = traced_run(_paths(files, "trace"), given, naming, hears(progress, asker="trace"))
    if target is not None:
        with written_together(target) as (folder,):
            found.write(folder)
    return found


@door_function
def hang(dumps: FilePath | Sequence[FilePath], *, schedule: GivenFirst | None = None) -> HangReport:
    """Why the ranks of a job stand still: which message, where, who waits for whom.

    Parameters
    ----------
    dumps
        Dumps of PyTorch's Flight Recorder, one for each rank, or a folder of them.
    schedule
        What was run, as ``check`` takes it: calls are then named by its actions.

    Returns
    -------
    HangReport
        ``sentence``, the ``finding`` with its cells, and what the dumps leave open (``notes``).

    Raises
    ------
    TypeError, ValueError
        For what is no dump, and a schedule of another number of ranks.
    """
    from bubbleproof.traces.hang_report import hang_report

    given = None if schedule is None else schedule_file(schedule, asker="hang")
    return hang_report(_paths(dumps, "hang"), given)


@door_function
def hand_over(
    schedule: GivenFirst,
    path: FilePath,
    *,
    to: str,
    check: bool = False,
    progress: Progress | None = None,
) -> HandedOver:
    """Write what starts a training by a plan or a schedule in another framework.

    Parameters
    ----------
    schedule
        A plan, or whatever holds a schedule, as ``check`` takes it.
    path
        The folder for what starts the training.
    to
        torch-2.13, torch-2.15, torchtitan, automodel or megatron-core.
    check
        Train ten steps on gloo as well, and compare bits.
    progress
        Hears of what takes long.

    Returns
    -------
    HandedOver
        The ``files``, the command that ``start``s them, what is lost (``losses``), and the checks.

    Raises
    ------
    TypeError, ValueError
        As ``check`` does; also for what the framework would get wrong.
    """
    from bubbleproof.formats.inputs import read_plan_input
    from bubbleproof.hand_over.handed_over import handed_over

    words = path_text(schedule, asker="hand_over") if isinstance(schedule, str | PathLike) else None
    plan = None if words is None else read_plan_input([words])
    if plan is None and is_plan_like(schedule):
        from bubbleproof.door_judge import plan_file

        plan = plan_file(schedule, asker="hand_over")
    return handed_over(
        plan or schedule_file(schedule, asker="hand_over"),
        text(to, "to", asker="hand_over"),
        path_text(path, asker="hand_over"),
        check=yes(check, "check", asker="hand_over"),
        say=hears(progress, asker="hand_over"),
    )


@door_function
def diff(a: GivenFirst, b: GivenFirst) -> ComparedSchedules:
    """What differs between two schedules: actions, makespan, peaks, causes of idle time, verdicts.

    Parameters
    ----------
    a, b
        Whatever holds a schedule, as ``check`` takes it.

    Returns
    -------
    ComparedSchedules
        ``same``, the ``measures`` and idle ticks by ``causes`` of both, and which ``actions`` stand
        elsewhere.

    Raises
    ------
    TypeError, ValueError
        As ``check`` does.
    """
    from bubbleproof.report.schedule_difference import compared_schedules

    return compared_schedules(*(schedule_file(each, asker="diff") for each in (a, b)))


@door_function
def profile(
    model: GivenModel | None,
    path: FilePath,
    *,
    ranks: int,
    microbatches: int,
    chunks: int = 1,
    placement: str = "loop",
    whole_backward: bool = False,
    latency: int = 0,
    capacity: str | None = None,
    device: str = "cpu",
    warmup: int = 3,
    repeats: int = 10,
    tick: str | None = None,
    progress: Progress | None = None,
) -> ProfiledModel:
    """Measure a model's stages on a device, and write them as a problem to solve and replay.

    Parameters
    ----------
    model
        As ``replay`` takes it.
    path
        The problem file (.toml) to write.
    ranks, microbatches, chunks, placement
        The pipeline of the problem; chunks are stages per rank, placements loop and wave.
    whole_backward
        Whole backwards, not I and W.
    latency, capacity
        Ticks of a message, which is not measured, and the memory of a rank such as ``"80 GiB"``.
    device, warmup, repeats
        cpu or cuda; rounds that are not counted, and rounds whose median is taken.
    tick
        The length of a tick such as ``"10us"``; by default one that fits.
    progress
        Hears of each round.

    Returns
    -------
    ProfiledModel
        The times (seconds) and bytes of each of the ``stages``.

    Raises
    ------
    TypeError, ValueError
        For options of another type or out of range, and without PyTorch.
    bubbleproof.reference_exec.broken.ModelFailed
        For a model of yours that raises.
    """
    from bubbleproof.report.profiled_model import (
        ProfiledPipeline,
        StageMeasurement,
        profiled_model,
    )

    asker = "profile"
    pipeline = ProfiledPipeline(
        ranks=whole(ranks, "ranks", asker=asker),
        microbatches=whole(microbatches, "microbatches", asker=asker),
        chunks=whole(chunks, "chunks", asker=asker),
        placement=text(placement, "placement", asker=asker),
        whole=yes(whole_backward, "whole_backward", asker=asker),
        latency=whole(latency, "latency", asker=asker),
        capacity=None if capacity is None else text(capacity, "capacity", asker=asker),
    )
    measurement = StageMeasurement(
        device=text(device, "device", asker=asker),
        warmup=whole(warmup, "warmup", asker=asker),
        repeats=whole(repeats, "repeats", asker=asker),
        tick=None if tick is None else text(tick, "tick", asker=asker),
    )
    target, spec = path_text(path, asker=asker), model_spec(model, asker=asker)
    return profiled_model(spec, pipeline, measurement, target, hears(progress, asker=asker))


def _paths(given: FilePath | Sequence[FilePath], asker: str) -> list[str]:
    """One path, or several."""
    if isinstance(given, str | PathLike):
        return [path_text(given, asker=asker)]
    if not isinstance(given, Sequence) or isinstance(given, bytes):
        raise wrong(given, "files", "a path or a list of paths", asker=asker)
    if not given:
        raise ValueError(f"{asker}: expected a path or more, got none")
    return [path_text(each, asker=asker) for each in given]
