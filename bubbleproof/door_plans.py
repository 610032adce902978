"""Plans at the door (``import bubbleproof as bp``): ``plan``, and ``calibrate`` for its times."""

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
from bubbleproof.faults import WrongType
from bubbleproof.planners.asked_jobs import JobAsked
from bubbleproof.theory.pipelines.pipeline import Pipeline

if TYPE_CHECKING:
    from bubbleproof.arguments import FilePath, Progress
    from bubbleproof.costs.transformer import Transformer
    from bubbleproof.formats.clusters.changed_cluster import Several
    from bubbleproof.formats.clusters.fitted_hardware import FittedHardware
    from bubbleproof.formats.layouts.cluster_layout import ClusterLayout
    from bubbleproof.planners.asked_jobs import JobAnswer


@door_function
def plan(
    problem: Pipeline | FilePath | None = None,
    *,
    model: Transformer | str | None = None,
    card: str | None = None,
    cards: Several | None = None,
    cluster: ClusterLayout | None = None,
    samples: Several | None = None,
    sequence: Several | None = None,
    hardware: FilePath | None = None,
    yours: str | Sequence[str] | None = None,
    what_if: str | Sequence[str] = (),
    tokens: float | None = None,
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
) -> JobAnswer:
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
        longest. Beside a file these and ``cards`` take the place of its numbers. Of several,
        ``[64, 128]`` or ``"64..512"``, each job has a plan.
    hardware
        Constants of your own iterations: a file of ``calibrate``.
    yours
        What you run, to compare with: words such as ``"tensor=4 pipeline=4 chunks=5"``, or a file.
        Two stand side by side, and nothing is searched.
    what_if
        Changes to plan beside the job: ``"network=0.5x"``, ``"memory=141GiB,cards=-2"``.
    tokens
        Of the whole training, to say how many days they take.
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
        ``yours`` and ``what_if`` have what was asked beside it, ``assumptions`` what its times
        rest on.
    NoDeploymentPlan
        That no deployment runs, or none was found: ``rows``, and the ``nearest`` deployment.
    PlannedJobs
        Of several cards, samples or tokens: ``jobs``, a plan of each, and the ``best``.
    SideBySide
        Of two of ``yours``: their ``times`` and ``kinds`` of memory, and the ``causes``.

    Raises
    ------
    TypeError, ValueError
        For what is no problem, for lists that are empty or too long, and for a file without a plan.
    """
    given = locals()  # the options by name
    from bubbleproof.costs import known_models
    from bubbleproof.formats import read_problem
    from bubbleproof.formats.clusters.cluster_toml import (
        cluster_file_of_text,
        is_cluster_file,
        read_cluster_file,
    )
    from bubbleproof.formats.inputs import require_problem_file
    from bubbleproof.formats.values import bytes_of
    from bubbleproof.planners import PlanOptions
    from bubbleproof.planners import plan as search
    from bubbleproof.planners.plan_facts import stated_plan
    from bubbleproof.planners.planned import PlanSource
    from bubbleproof.theory.pipelines.placement import PLACEMENTS
    from bubbleproof.theory.pipelines.shapes.few_candidates import few
    from bubbleproof.theory.pipelines.shapes.plan_space import MIXED, SPLIT, WHOLE, PlanSpace

    limits = checked(PlanOptions, given, bytes_of, asker="plan")
    options = PlanOptions.asked(limits, tell=hears(progress, asker="plan"))
    asked = JobAsked(
        ranges={"cards": cards, "samples": samples, "sequence": sequence},
        hardware=None if hardware is None else path_text(hardware, asker="plan"),
        yours=_texts(yours, "yours"),
        what_if=_texts(what_if, "what_if"),
        tokens=None if tokens is None else number(tokens, "tokens", asker="plan", unit="tokens"),
    )
    if problem is None:
        told = _job(model, card, cards, cluster, samples, sequence)
        return asked.answer(cluster_file_of_text(told, name="job"), options)
    job = {"model": model, "card": card, "cluster": cluster}
    if told_of := [name for name, value in job.items() if value is not None]:
        raise WrongType(f"plan: {', '.join(told_of)} go without a problem, which tells its own")
    if not isinstance(problem, Pipeline):
        path = path_text(problem, asker="plan")
        if path.lower() in known_models():
            like = 'card="h100", cards=64, samples=512'
            raise ValueError(f"plan: {path} is a model: write plan(model={path!r}, {like})")
        require_problem_file(path, asker="plan")
        if is_cluster_file(path):
            return asked.answer(read_cluster_file(path), options)
    if names := asked.names:
        raise WrongType(f"plan: {', '.join(names)} go with a model on a cluster")
    if isinstance(problem, Pipeline):
        space = PlanSpace(
            pipeline=problem,
            chunks=_wholes(chunks, "chunks"),
            placements=named_or_listed(placements, "placements", PLACEMENTS, asker="plan"),
            backward=named_or_listed(backward, "backward", (WHOLE, SPLIT, MIXED), asker="plan"),
            slices=_wholes(slices, "slices"),
        )
        return stated_plan(None, search(few(space), options))
    found = read_problem(path)
    if found.plan is None:
        raise ValueError(f"plan: {problem} has no table [plan], such as chunks = [1, 2]")
    source = PlanSource(name=Path(path).stem, text=Path(path).read_text(encoding="utf-8"))
    return stated_plan(found, replace(search(found.plan, options), source=source))


def _job(
    model: Transformer | str | None,
    card: str | None,
    cards: Several | None,
    cluster: ClusterLayout | None,
    samples: Several | None,
    sequence: Several | None,
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
        cluster = ClusterLayout(card=named, cards=_first(cards, "cards"))
    if not isinstance(cluster, ClusterLayout):
        raise wrong(cluster, "cluster", "a Cluster", asker="plan")
    tokens = None if sequence is None else _first(sequence, "sequence")
    return job_text(model, cluster, _first(samples, "samples"), tokens)


def _first(given: Several | None, name: str) -> int:
    """The number, or the first of several."""
    from bubbleproof.formats.clusters.changed_cluster import numbers_of

    if given is None or not isinstance(given, str | Sequence):
        return whole(given, name, asker="plan")
    return numbers_of(name, given)[0]


def _texts(given: str | Sequence[str] | None, name: str) -> tuple[str, ...]:
    """One text, or several."""
    several = [given] if isinstance(given, str) else given or ()
    return tuple(text(each, name, asker="plan") for each in listed(several, name, asker="plan"))


def _wholes(given: Sequence[int], name: str) -> tuple[int, ...]:
    return tuple(whole(value, name, asker="plan") for value in listed(given, name, asker="plan"))


@door_function
def calibrate(
    rows: FilePath,
    path: FilePath,
    *,
    card: str | None = None,
    yours: str | None = None,
    took: float | None = None,
) -> FittedHardware:
    """Fit the constants of the model of times to measured iterations, and write them.

    Parameters
    ----------
    rows
        A CSV file of measured iterations, one a row (``costs.times.job_rows``); or one iteration:
        a file with ``[model] [cluster] [batch]``, or a plan's folder.
    path
        The hardware file (.toml) to write, which ``estimate`` and ``plan`` take.
    card
        The card that ran them; by default that which they name, or the nearest by its data sheet.
    yours, took
        What was run of such a file, as ``plan`` takes it, and the seconds of an iteration.

    Returns
    -------
    FittedHardware
        The constants (``calibration``) and the ``mean_error`` that is left on the rows.

    Raises
    ------
    TypeError, ValueError
        For rows, a card or a file that cannot be used.
    """
    from bubbleproof.formats.clusters.fitted_hardware import fitted_hardware
    from bubbleproof.planners.measured_job import measured_rows

    own = None if yours is None else text(yours, "yours", asker="calibrate")
    seconds = None if took is None else number(took, "took", asker="calibrate")
    taken = measured_rows(path_text(rows, asker="calibrate"), own, seconds)
    target, asker = path_text(path, asker="calibrate"), "calibrate: card"
    told = None if card is None else text(card, "card", asker="calibrate")
    return fitted_hardware(
        taken.rows, target, told, asker, source=taken.name, refused=taken.refused
    )
