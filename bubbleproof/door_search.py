"""The searches at the door (``import bubbleproof as bp``): ``solve``, ``pareto`` and ``plan``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from bubbleproof.arguments import (
    door_function,
    number,
    path_text,
    seconds_and_work,
    size,
    whole,
    wrong,
)
from bubbleproof.door_given import stated
from bubbleproof.theory.pipelines.pipeline import Pipeline

if TYPE_CHECKING:
    from bubbleproof.door_given import GivenProblem
    from bubbleproof.planners import NoPlanFound, Plan, PlanOptions
    from bubbleproof.planners.cluster_planned import ClusterPlan, NoClusterPlan
    from bubbleproof.planners.planned import PlanSource
    from bubbleproof.solvers.pareto_front import Front
    from bubbleproof.solvers.result import Result
    from bubbleproof.theory.model.schedule import Program

PlanItem = TypeVar("PlanItem")


@door_function
def solve(
    problem: GivenProblem,
    *,
    objective: str = "makespan",
    within: int | None = None,
    time_limit: float | None = None,
    work: float | None = None,
    engine: str = "auto",
    certified: bool = False,
    threads: int = 2,
    seed: int = 1,
    memory: int | str | None = None,
) -> Result:
    """The best schedule of a problem, and how good it is.

    Parameters
    ----------
    problem
        A ``Pipeline``, whose published orders are tried first, or a ``Problem``; or the path of a
        problem file (.toml), or what ``read`` gives for it.
    objective
        ``makespan``, ``span_idle``, ``makespan-then-peak`` or ``peak``.
    within
        The largest value wanted, in ticks (for ``peak``: the largest makespan).
    time_limit
        Seconds, by default 60, and no limit beside ``work``; a time-out is never called infeasible.
    work
        Units of work of about a second each, in place of seconds: the result repeats exactly.
    engine
        ``auto``, ``cpsat``, ``pulp``, ``z3`` or ``sat``.
    certified
        Spend the time limit on a certificate where an engine's word is all there is.
    threads, seed
        Of the engine.
    memory
        What an engine may take: bytes, or a text such as ``"4 GiB"``. One that needs more is lost,
        which ``losses`` of the result tell.

    Returns
    -------
    Result
        Status, schedule, lower bound (ticks) and what proves it.

    Raises
    ------
    TypeError, ValueError
        For what is no problem, or for an option of another type or out of range.
    """
    from bubbleproof.formats.values import bytes_of
    from bubbleproof.solvers import SolveOptions
    from bubbleproof.solvers import solve as search
    from bubbleproof.solvers.options import goal

    given, pipeline = stated(problem, asker="solve")
    if not isinstance(certified, bool):
        raise wrong(certified, "certified", "true or false", asker="solve")
    seconds, units = seconds_and_work(time_limit, work, asker="solve")
    options = SolveOptions(
        engine=engine,
        objective=goal(objective),
        within=None if within is None else whole(within, "within", asker="solve"),
        time_limit=seconds,
        work=units,
        seed=whole(seed, "seed", asker="solve"),
        threads=whole(threads, "threads", asker="solve"),
        certified=certified,
        memory=size(memory, "memory", bytes_of, asker="solve"),
    )
    return search(given, options, _published(pipeline))


@door_function
def pareto(problem: GivenProblem, *, time_limit: float = 60.0) -> Front:
    """Every trade of makespan against peak memory that no other beats in both.

    Parameters
    ----------
    problem
        As ``solve`` takes it.
    time_limit
        Seconds for each point.

    Returns
    -------
    Front
        ``points`` from the least peak (memory units) to the least makespan (ticks), a ``Result``
        each, and whether the front is proved to be whole.

    Raises
    ------
    TypeError, ValueError
        For what is no problem, or for a time limit that is none.
    """
    from bubbleproof.solvers import SolveOptions
    from bubbleproof.solvers.pareto_front import pareto as search

    given, pipeline = stated(problem, asker="pareto")
    options = SolveOptions(time_limit=number(time_limit, "time_limit", asker="pareto"))
    return search(given, options, _published(pipeline))


def _published(pipeline: Pipeline | None) -> list[tuple[str, Program]]:
    """The published orders to begin from; none for a problem built by hand."""
    from bubbleproof.solvers.shortening.known_orders import known_orders

    return [] if pipeline is None else known_orders(pipeline)


@door_function
def plan(
    problem: Pipeline | str | PathLike[str],
    *,
    chunks: Sequence[int] = (1,),
    placements: Sequence[str | Sequence[int]] = ("loop",),
    backward: Sequence[str | Sequence[bool]] = ("whole",),
    slices: Sequence[int] = (1,),
    time_limit: float | None = None,
    work: float | None = None,
    threads: int = 2,
    seed: int = 1,
    memory: int | str | None = None,
) -> Plan | NoPlanFound | ClusterPlan | NoClusterPlan:
    """The best pipeline over shapes and choices, and how good it is.

    Parameters
    ----------
    problem
        A problem file with a table ``[plan]``, which then tells the shapes, or with ``[model]``,
        ``[cluster]`` and ``[batch]``; or a ``Pipeline`` of one chunk and one slice in a loop, with
        the ticks, activation and static memory of a rank.
    chunks, slices
        Chunks per rank, and pieces of a sample along the sequence, to try. Each takes its share of
        the rank's ticks and activation.
    placements
        ``loop``, ``wave``, ``bidirectional``, or the rank of each stage.
    backward
        ``whole``, ``split``, ``mixed``, or whether each rank splits.
    time_limit
        Seconds in all, by default 60, and no limit beside ``work``.
    work
        Units of work in all, of about a second each, in place of seconds: the plan repeats exactly.
    threads, seed
        Of an engine.
    memory
        What an engine may take: bytes, or a text such as ``"4 GiB"``.

    Returns
    -------
    Plan
        ``winner`` with its pipeline and schedule, ``value`` and ``lower_bound`` (ticks), all
        candidates (``judged``) and the ``bundle`` of their proofs.
    NoPlanFound
        That nothing fits, or that nothing was found in the time: the same without a winner, and
        the ``least_capacity`` in which something fits.
    ClusterPlan
        Of a model on a cluster: the ``winner`` of all deployments, its ``plan``, and ``rows``, what
        became of each.
    NoClusterPlan
        That no deployment runs, or none was found: ``rows``, and the ``nearest`` deployment.

    Raises
    ------
    TypeError, ValueError
        For what is no problem, for lists that are empty or too long, and for a file without a plan.
    """
    from bubbleproof.formats import read_problem
    from bubbleproof.formats.clusters.cluster_toml import is_cluster_file
    from bubbleproof.formats.values import bytes_of
    from bubbleproof.planners import PlanOptions
    from bubbleproof.planners import plan as search
    from bubbleproof.theory.pipelines.placement import PLACEMENTS
    from bubbleproof.theory.pipelines.shapes.few_candidates import few
    from bubbleproof.theory.pipelines.shapes.plan_space import MIXED, SPLIT, WHOLE, PlanSpace

    seconds, units = seconds_and_work(time_limit, work, asker="plan")
    options = PlanOptions(
        time_limit=seconds,
        work=units,
        threads=whole(threads, "threads", asker="plan"),
        seed=whole(seed, "seed", asker="plan"),
        memory=size(memory, "memory", bytes_of, asker="plan"),
    )
    if isinstance(problem, Pipeline):
        space = PlanSpace(
            pipeline=problem,
            chunks=tuple(whole(value, "chunks", asker="plan") for value in _list(chunks, "chunks")),
            placements=_named_or_listed(placements, "placements", PLACEMENTS),
            backward=_named_or_listed(backward, "backward", (WHOLE, SPLIT, MIXED)),
            slices=tuple(whole(value, "slices", asker="plan") for value in _list(slices, "slices")),
        )
        return search(few(space), options)
    path = path_text(problem, asker="plan")
    if is_cluster_file(path):
        return _of_cluster(path, options)
    found = read_problem(path)
    if found.plan is None:
        raise ValueError(f"plan: {problem} has no table [plan], such as chunks = [1, 2]")
    return replace(search(found.plan, options), source=_source(path))


def _of_cluster(path: str, options: PlanOptions) -> ClusterPlan | NoClusterPlan:
    from bubbleproof.formats.clusters.cluster_toml import read_cluster_file
    from bubbleproof.formats.clusters.deployed_space import all_counted, deployed_space
    from bubbleproof.planners.planning import plan_cluster

    file = read_cluster_file(path)
    found = plan_cluster(
        all_counted(file),
        lambda one: deployed_space(file, one),
        replace(options, orders=file.orders),
        is_lazy=file.is_open,
        bounded=file.bounded,
    )
    return replace(found, source=_source(path))


def _source(path: str) -> PlanSource:
    """The file that is planned, for ``check`` and ``write``."""
    from bubbleproof.planners.planned import PlanSource

    return PlanSource(name=Path(path).stem, text=Path(path).read_text(encoding="utf-8"))


def _list(given: Sequence[PlanItem], name: str) -> Sequence[PlanItem]:
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise wrong(given, name, "a list of values", asker="plan")
    return given


def _named_or_listed(
    given: Sequence[str | Sequence[PlanItem]], name: str, words: Sequence[str]
) -> tuple[str | tuple[PlanItem, ...], ...]:
    """Values that are one of these words, or a list with an item for each rank or stage."""
    values = _list(given, name)
    for value in values:
        if isinstance(value, str) and value not in words:
            raise ValueError(f"plan: {name} must be one of {', '.join(words)}, got {value!r}")
    return tuple(value if isinstance(value, str) else tuple(value) for value in values)
