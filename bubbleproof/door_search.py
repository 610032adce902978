"""The searches at the door (``import bubbleproof as bp``): ``solve``, ``plan`` and their like."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from bubbleproof.arguments import (
    checked,
    door_function,
    hears,
    listed,
    named_or_listed,
    number,
    path_text,
    text,
    whole,
    wrong,
)
from bubbleproof.door_given import schedule_file, stated
from bubbleproof.faults import WrongType
from bubbleproof.theory.pipelines.pipeline import Pipeline

if TYPE_CHECKING:
    from bubbleproof.arguments import FilePath, Progress
    from bubbleproof.costs.transformer import Transformer
    from bubbleproof.door_types import GivenFirst, GivenProblem
    from bubbleproof.formats.layouts.cluster_layout import ClusterLayout
    from bubbleproof.planners import PlanOptions
    from bubbleproof.planners.plan_facts import (
        DeploymentPlan,
        NoDeploymentPlan,
        NoPipelinePlan,
        PipelinePlan,
    )
    from bubbleproof.planners.planned import PlanSource
    from bubbleproof.report.solved_result import ProblemInput, SolvedResult
    from bubbleproof.solvers.options import Progress as SearchProgress
    from bubbleproof.solvers.pareto_front import Front
    from bubbleproof.solvers.repair_search import NoRepair, Repair
    from bubbleproof.solvers.result import Result


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
    progress: Progress | None = None,
) -> SolvedResult:
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
        Require a certificate: spend the time limit on one where a solver's bound has none.
    threads, seed
        Of the engine.
    memory
        What an engine may take: bytes, or a text such as ``"4 GiB"``. One that needs more is lost,
        which ``losses`` of the result tell.
    progress
        Hears of whatever improves, a line of text each.

    Returns
    -------
    SolvedResult
        A ``Result``: status, schedule, lower bound (ticks) and what proves it.

    Raises
    ------
    TypeError, ValueError
        For what is no problem, or for an option of another type or out of range.
    """
    given = locals()  # the options by name
    from bubbleproof.formats.values import bytes_of
    from bubbleproof.report.solved_result import SolvedResult
    from bubbleproof.solvers import SolveOptions
    from bubbleproof.solvers import solve as search

    source = _source_of(problem, "solve")
    asked = checked(SolveOptions, given, bytes_of, asker="solve")
    options = SolveOptions.asked(asked, progress=_improvements(progress, "solve"))
    return SolvedResult.of(source, search(source.problem, options, source.starts), engine)


def _improvements(progress: Progress | None, asker: str) -> SearchProgress:
    """Who hears of a better schedule or bound."""
    hear = hears(progress, asker=asker)

    def improved(who: str, best: int | None, bound: int, seconds: float) -> None:
        have = "no schedule yet" if best is None else f"best {best}"
        hear(f"{seconds:.1f} s  {have}, lower bound {bound}  ({who})")

    return improved


@door_function
def repair(
    schedule: GivenFirst,
    *,
    problem: GivenProblem | None = None,
    time_limit: float = 60.0,
    progress: Progress | None = None,
) -> Repair | NoRepair:
    """The valid schedule that moves the fewest tasks of a broken one.

    Parameters
    ----------
    schedule
        Whatever holds one, as ``check`` takes it.
    problem
        Repair it on this problem, as ``solve`` takes it.
    time_limit
        Seconds.
    progress
        Hears of whatever improves, a line of text each.

    Returns
    -------
    Repair
        ``schedule``, what was ``moved`` and ``added``, whether fewer moves suffice, and the
        ``result``, whose status and bound are about the problem alone.
    NoRepair
        That the problem has no schedule, or that none was found in the time (``status``).

    Raises
    ------
    TypeError, ValueError
        As ``check`` does, and for a time limit that is none.
    """
    from bubbleproof.report.solved_result import ProblemInput, SolvedResult
    from bubbleproof.solvers import SolveOptions
    from bubbleproof.solvers import solve as search
    from bubbleproof.solvers.repair_search import NoRepair
    from bubbleproof.solvers.repair_search import repair as mend

    given = schedule_file(schedule, asker="repair", problem=problem)
    options = SolveOptions(
        time_limit=number(time_limit, "time_limit", asker="repair"),
        progress=_improvements(progress, "repair"),
    )
    found = mend(given.problem, given.compute, options)
    source = ProblemInput(name=given.name, problem=given.problem, pipeline=given.pipeline)
    if found is None:
        return NoRepair(plain=SolvedResult.of(source, search(given.problem, options)))
    return replace(found, result=SolvedResult.of(source, found.result))


@door_function
def pareto(
    problem: GivenProblem, *, time_limit: float = 60.0, progress: Progress | None = None
) -> Front:
    """Every trade of makespan against peak memory that no other beats in both.

    Parameters
    ----------
    problem
        As ``solve`` takes it.
    time_limit
        Seconds for each point.
    progress
        Hears of each point, a line of text.

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
    from bubbleproof.report.solved_result import SolvedResult
    from bubbleproof.solvers import SolveOptions
    from bubbleproof.solvers.pareto_front import pareto as search

    source = _source_of(problem, "pareto")
    options = SolveOptions(time_limit=number(time_limit, "time_limit", asker="pareto"))
    hear = hears(progress, asker="pareto")

    def solved(cap: int, point: Result) -> None:
        hear(f"at most {cap}: {point!r}")

    found = search(source.problem, options, source.starts, on_point=solved)
    return replace(found, points=tuple(SolvedResult.of(source, each) for each in found.points))


def _source_of(given: GivenProblem, asker: str) -> ProblemInput:
    """The problem to solve, with its name where it has one."""
    from bubbleproof.report.solved_result import ProblemInput

    problem, pipeline, name = stated(given, asker=asker)
    return ProblemInput(name=name, problem=problem, pipeline=pipeline)


@door_function
def plan(
    problem: Pipeline | FilePath | None = None,
    *,
    model: Transformer | str | None = None,
    card: str | None = None,
    cards: int | None = None,
    cluster: ClusterLayout | None = None,
    samples: int | None = None,
    sequence: int | None = None,
    chunks: Sequence[int] = (1,),
    placements: Sequence[str | Sequence[int]] = ("loop",),
    backward: Sequence[str | Sequence[bool]] = ("whole",),
    slices: Sequence[int] = (1,),
    time_limit: float | None = None,
    work: float | None = None,
    threads: int = 2,
    seed: int = 1,
    memory: int | str | None = None,
    progress: Progress | None = None,
) -> PipelinePlan | NoPipelinePlan | DeploymentPlan | NoDeploymentPlan:
    """The best pipeline over shapes and choices, and how good it is.

    Parameters
    ----------
    problem
        A problem file with a table ``[plan]``, which then tells the shapes, or with ``[model]``,
        ``[cluster]`` and ``[batch]``; or a ``Pipeline`` of one chunk and one slice in a loop, with
        the ticks, activation and static memory of a rank. None: a model on a cluster, told by:
    model
        A published one by its name (``"llama-2-13b"``), or a ``Model``.
    card, cards
        Which card, by its name (``"h100"``), and how many.
    cluster
        A ``Cluster``, in place of both.
    samples, sequence
        Of one training step over all replicas, and the tokens of each; by default the model's
        longest.
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
    progress
        Hears of each candidate that was looked at, a line of text.

    Returns
    -------
    PipelinePlan
        ``winner`` with its pipeline and schedule, ``value`` and ``lower_bound`` (ticks), all
        candidates (``judged``) and the ``bundle`` of their proofs.
    NoPipelinePlan
        That nothing fits, or that nothing was found in the time: the same without a winner, and
        the ``least_capacity`` in which something fits.
    DeploymentPlan
        Of a model on a cluster: the ``winner`` of all deployments, its ``plan``, and ``rows``, what
        became of each.
    NoDeploymentPlan
        That no deployment runs, or none was found: ``rows``, and the ``nearest`` deployment.

    Raises
    ------
    TypeError, ValueError
        For what is no problem, for lists that are empty or too long, and for a file without a plan.
    """
    given = locals()  # the options by name
    from bubbleproof.costs import known_models
    from bubbleproof.formats import read_problem
    from bubbleproof.formats.clusters.cluster_toml import is_cluster_file
    from bubbleproof.formats.inputs import require_problem_file
    from bubbleproof.formats.values import bytes_of
    from bubbleproof.planners import PlanOptions
    from bubbleproof.planners import plan as search
    from bubbleproof.planners.plan_facts import stated_plan
    from bubbleproof.theory.pipelines.placement import PLACEMENTS
    from bubbleproof.theory.pipelines.shapes.few_candidates import few
    from bubbleproof.theory.pipelines.shapes.plan_space import MIXED, SPLIT, WHOLE, PlanSpace

    limits = checked(PlanOptions, given, bytes_of, asker="plan")
    options = PlanOptions.asked(limits, tell=hears(progress, asker="plan"))
    if problem is None:
        return _of_job(_job(model, card, cards, cluster, samples, sequence), options)
    job = {"model": model, "card": card, "cards": cards, "cluster": cluster, "samples": samples}
    if told := [name for name, value in {**job, "sequence": sequence}.items() if value is not None]:
        raise WrongType(f"plan: {', '.join(told)} go without a problem, which tells its own")
    if isinstance(problem, Pipeline):
        space = PlanSpace(
            pipeline=problem,
            chunks=_wholes(chunks, "chunks"),
            placements=named_or_listed(placements, "placements", PLACEMENTS, asker="plan"),
            backward=named_or_listed(backward, "backward", (WHOLE, SPLIT, MIXED), asker="plan"),
            slices=_wholes(slices, "slices"),
        )
        return stated_plan(None, search(few(space), options))
    path = path_text(problem, asker="plan")
    if path.lower() in known_models():
        like = 'card="h100", cards=64, samples=512'
        raise ValueError(f"plan: {path} is a model: write plan(model={path!r}, {like})")
    require_problem_file(path, asker="plan")
    if is_cluster_file(path):
        return _of_cluster(path, options)
    found = read_problem(path)
    if found.plan is None:
        raise ValueError(f"plan: {problem} has no table [plan], such as chunks = [1, 2]")
    planned = replace(search(found.plan, options), source=_source(path))
    return stated_plan(found, planned)


def _of_cluster(path: str, options: PlanOptions) -> DeploymentPlan | NoDeploymentPlan:
    from bubbleproof.formats.clusters.cluster_toml import read_cluster_file
    from bubbleproof.planners.plan_facts import stated_deployments
    from bubbleproof.planners.planning import plan_deployments

    file = read_cluster_file(path)
    found = replace(plan_deployments(file, options), source=_source(path))
    return stated_deployments(file, found)


def _of_job(text: str, options: PlanOptions) -> DeploymentPlan | NoDeploymentPlan:
    """Of the text of a file that nobody wrote."""
    from bubbleproof.formats.clusters.cluster_toml import cluster_file_of_text
    from bubbleproof.planners.plan_facts import stated_deployments
    from bubbleproof.planners.planned import PlanSource
    from bubbleproof.planners.planning import plan_deployments

    file = cluster_file_of_text(text, name="job")
    source = PlanSource(name=file.name, text=text)
    return stated_deployments(file, replace(plan_deployments(file, options), source=source))


def _job(
    model: Transformer | str | None,
    card: str | None,
    cards: int | None,
    cluster: ClusterLayout | None,
    samples: int | None,
    sequence: int | None,
) -> str:
    """The text of the file of a model on a cluster."""
    from bubbleproof.costs import Transformer
    from bubbleproof.formats.clusters.job_text import job_text
    from bubbleproof.formats.layouts.cluster_layout import ClusterLayout

    one = 'a problem, or model="llama-2-13b", card="h100", cards=64, samples=512'
    if model is None or samples is None or (cluster is None and (card is None or cards is None)):
        raise WrongType(f"plan: expected {one}")
    if cluster is not None and (card, cards) != (None, None):
        raise WrongType("plan: card and cards go without a cluster, which tells its own")
    if not isinstance(model, str | Transformer):
        raise wrong(model, "model", "a name or a Model", asker="plan")
    if cluster is None:
        named = text(card, "card", asker="plan")
        cluster = ClusterLayout(card=named, cards=whole(cards, "cards", asker="plan"))
    if not isinstance(cluster, ClusterLayout):
        raise wrong(cluster, "cluster", "a Cluster", asker="plan")
    tokens = None if sequence is None else whole(sequence, "sequence", asker="plan")
    return job_text(model, cluster, whole(samples, "samples", asker="plan"), tokens)


def _source(path: str) -> PlanSource:
    """The file that is planned, for ``check`` and ``write``."""
    from bubbleproof.planners.planned import PlanSource

    return PlanSource(name=Path(path).stem, text=Path(path).read_text(encoding="utf-8"))


def _wholes(given: Sequence[int], name: str) -> tuple[int, ...]:
    return tuple(whole(value, name, asker="plan") for value in listed(given, name, asker="plan"))
