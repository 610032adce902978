"""What was measured, as rows: a file of rows, or one iteration of a job or of a plan.

A job is a file that starts from ``[model] [cluster] [batch]``, of which a configuration of one's
own was run; a plan is what ``plan -o`` wrote. The seconds of an iteration are given with either.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from pathlib import Path

from bubbleproof.costs.combinations import Combination, TrainingJob, counted_deployment
from bubbleproof.costs.times.job_rows import JobRow
from bubbleproof.formats.clusters.cluster_toml import is_cluster_file, read_cluster_file
from bubbleproof.formats.clusters.deployed_space import all_listed
from bubbleproof.formats.clusters.hardware_toml import read_rows
from bubbleproof.formats.inputs import read_plan_input, require_format
from bubbleproof.formats.plans.plan_json import PlanFile
from bubbleproof.planners.own_run import OwnRun
from bubbleproof.planners.side_by_side import own_asked
from bubbleproof.theory.pipelines.shapes.plan_space import WHOLE, Candidate

LOOP = "loop"


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRows:
    """The rows that are fitted, of what, and what is wrong with those that are not."""

    name: str
    rows: tuple[JobRow, ...]
    refused: tuple[str, ...] = ()


def measured_rows(path: str, yours: str | None, took: float | None) -> MeasuredRows:
    """The rows of a file, or the one of a job or a plan that was measured.

    Parameters
    ----------
    path
        A file of rows (.csv), a job (.toml), or a plan or its folder.
    yours
        What was run of a job, as ``own_asked`` takes it.
    took
        Seconds of an iteration of a job or a plan.

    Raises
    ------
    ValueError
        For what cannot be used, and where the seconds or the configuration are missing or have no
        meaning.
    """
    name = Path(path).name
    if (plan := read_plan_input([path])) is not None:
        return MeasuredRows(name=name, rows=(_of_plan(path, plan, yours, took),))
    if path.endswith(".toml") and is_cluster_file(path):
        if took is None or yours is None:
            raise ValueError(
                f"calibrate takes a job with what was run of it and the time that it took, such as "
                f'{path} --yours "tensor=4 pipeline=4 chunks=5" --took 14.7s'
            )
        file = read_cluster_file(path)
        own = own_asked(file, yours)
        if not isinstance(own, OwnRun):
            raise ValueError(str(own))
        at, shape = own.combination, own.candidate
        row = _row(own.own.trained_by(file.training), at, shape, took)
        return MeasuredRows(name=name, rows=(row,))
    if took is not None or yours is not None:
        raise ValueError("calibrate takes --yours and --took with a job (.toml) or a plan")
    require_format(path, "rows of iterations")
    refused: list[str] = []
    rows = read_rows(path, measured=True, refused=refused)
    return MeasuredRows(name=name, rows=tuple(rows), refused=tuple(refused))


def _of_plan(path: str, plan: PlanFile, yours: str | None, took: float | None) -> JobRow:
    file, won = plan.cluster, plan.winner
    if took is None or yours is not None or file is None:
        raise ValueError(
            f"calibrate takes a plan of a model on a cluster with the time that it took, such as "
            f"{path} --took 14.7s"
        )
    if won.placement != LOOP or won.backward != WHOLE or won.slices > 1 or won.beside:
        raise ValueError(f"{path}: calibrate takes a plan of 1F1B or interleaved 1F1B")
    at = next(one for one in all_listed(file) if str(one) == plan.deployment)
    return _row(file.training, at, won, took)


def _row(job: TrainingJob, at: Combination, shape: Candidate, took: float) -> JobRow:
    if not (took > 0 and isfinite(took)):
        raise ValueError(f"calibrate: the time must be above 0 seconds, got {took:g}")
    return JobRow(
        number=1,
        gpus=job.cluster.cards,
        global_batch=job.samples,
        model=job.model,
        at=counted_deployment(job, at),
        runs=job.cluster.runs,
        tells_scope=True,
        measured=1e3 * took,
        chunks=shape.chunks,
        cut=shape.layers or (),
        card=job.cluster.card,
    )
