"""The functions at the door (``import bubbleproof as bp``): each is one call of a room.

Wherever a problem is taken, a ``Pipeline`` serves as well; and where a problem and a schedule are
taken, whatever people hold a schedule in (``door_given``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, overload

from bubbleproof.arguments import (
    is_plan_like,
    number,
    seconds_and_work,
    size,
    text,
    whole,
    window_of,
    wrong,
)
from bubbleproof.door_calls import door_function
from bubbleproof.door_given import held, pair, stated
from bubbleproof.reference_exec.plans.run_options import ReplayOptions
from bubbleproof.theory.families import families as families
from bubbleproof.theory.families import family as family
from bubbleproof.theory.families import register as register
from bubbleproof.theory.pipelines.pipeline import Pipeline

if TYPE_CHECKING:
    from bubbleproof.door_given import GivenProblem
    from bubbleproof.door_judge import GivenToJudge, Proofs
    from bubbleproof.reference_exec.evidence.replay_report import ReplayReport
    from bubbleproof.reference_exec.models.model_spec import ModelSpec
    from bubbleproof.report.picture import Picture
    from bubbleproof.solvers.pareto_front import Front
    from bubbleproof.solvers.result import Result
    from bubbleproof.theory.model.measures import Measures
    from bubbleproof.theory.model.schedule import Program
    from bubbleproof.verify.candidates.plan_verdict import PlanVerdict
    from bubbleproof.verify.verdict import Verdict


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


@overload
def check(problem: object, schedule: object = None, *, certificate: None = None) -> Verdict: ...


@overload
def check(problem: GivenToJudge, schedule: None = None, *, certificate: Proofs) -> PlanVerdict: ...


@door_function
def check(
    problem: object, schedule: object = None, *, certificate: Proofs | None = None
) -> Verdict | PlanVerdict:
    """Decide every rule for a schedule: rules 1 to 5, 7 and 8, and 6 once it is lowered.

    Of a file that was read its pipeline, its messages and its collectives are judged as well.

    Of a plan, what ``plan`` gives or what ``read`` gives for its file: the rules of its schedule,
    and that the winner is one of the candidates; with its proofs also how good that is.

    Parameters
    ----------
    problem
        A ``Pipeline`` or ``Problem``; or what holds a schedule too: a family's member or its words
        (``"1f1b p=4 m=8"``), a path or what ``read`` gives for it, lists of actions or their texts
        per rank, a ``Program``, a table, a schedule object of torch.
    schedule
        A ``Schedule`` or a ``Result``, or any of these, on ``problem``; else it is held there.
    certificate
        Of a plan: the file of its proofs, or the plan's own ``bundle``.

    Returns
    -------
    Verdict
        A failed check returns its violations in it, it does not raise.
    PlanVerdict
        With a certificate: ``verdict``, and the ``distance`` (ticks) of the plan to what was
        proved; ``statement`` says it in a sentence.

    Raises
    ------
    TypeError
        For anything else.
    ValueError
        For a result or a file without a schedule, a plan without a winner, and proofs that cannot
        be read.
    """
    problem, schedule = held(problem, schedule, asker="check")
    if is_plan_like(problem):
        from bubbleproof.door_judge import check_certified, check_plan

        return check_plan(problem) if certificate is None else check_certified(problem, certificate)
    if certificate is not None:
        raise wrong(problem, "plan", "what plan gives, or a plan file that was read", asker="check")
    from bubbleproof.verify import check_whole

    if schedule is None and hasattr(problem, "to_judge"):  # a file, with all that stands in it
        from bubbleproof.verify.every_rule import check_every_rule

        return check_every_rule(problem.to_judge)
    given, found, _ = pair(problem, schedule, asker="check")
    return check_whole(given, found)


@door_function
def measure(problem: object, schedule: object = None) -> Measures:
    """Makespan, bubbles and peaks of a schedule.

    Parameters
    ----------
    problem, schedule
        As ``check`` takes them.

    Returns
    -------
    Measures
        ``makespan`` and ``span_idle`` in ticks, ``idle_ratio`` and ``idle_over_work`` as fractions,
        ``peak_memory`` in memory units, one number per rank.

    Raises
    ------
    TypeError, ValueError
        As ``check`` does; also where the schedule misses tasks.
    """
    from bubbleproof.theory.model.measures import measure as measured

    given, found, _ = pair(problem, schedule, asker="measure")
    return measured(given, found)


@door_function
def show(
    problem: object,
    schedule: object = None,
    *,
    title: str = "",
    window: tuple[int, int] | None = None,
) -> Picture:
    """A picture of a schedule: a notebook displays it, ``str`` gives a grid, ``save`` a file.

    Parameters
    ----------
    problem, schedule
        As ``check`` takes them.
    title
        Stands above the picture.
    window
        (first, last) tick of what is drawn; None for all of it.

    Returns
    -------
    Picture
        ``save(path)`` writes .svg, .png, .html, .perfetto.json or .txt.

    Raises
    ------
    TypeError, ValueError
        As ``check`` does, and for a window that does not end after it starts.
    """
    from bubbleproof.report.picture import Picture

    given, found, _ = pair(problem, schedule, asker="show")
    title, span = text(title, "title", asker="show"), window_of(window, asker="show")
    return Picture(problem=given, schedule=found, title=title, window=span)


@door_function
def replay(
    problem: object,
    schedule: object = None,
    *,
    model: ModelSpec | Callable[[], object] | str | None = None,
    backend: str = "virtual",
    steps: int = 0,
) -> ReplayReport:
    """Run a verified schedule on torch; compare gradients with an oracle and bytes with the model.

    Parameters
    ----------
    problem, schedule
        As ``check`` takes them.
    model
        Sizes of the model that is trained, by default a small one; or a model of your own: the
        function that makes it, or its name as the command takes it (``FILE.py:FUNCTION``).
    backend
        ``virtual`` (all ranks in this process) or ``gloo`` (a process per rank).
    steps
        Optimizer steps (SGD) to take; 0 compares one step's gradients alone.

    Returns
    -------
    ReplayReport
        ``ok``, what failed, and every predicted and measured number; bytes one per rank.

    Raises
    ------
    bubbleproof.reference_exec.replaying.NotVerified
        The schedule violates a rule.
    TypeError, ValueError
        As ``check`` does, and for options of another type or out of range.
    """
    from bubbleproof.reference_exec.plans.training import Training
    from bubbleproof.reference_exec.replaying import replay as run

    _, found, pipeline = pair(problem, schedule, asker="replay")
    if pipeline is None:
        raise wrong(problem, "problem", "a Pipeline", asker="replay")
    spec = _spec(model)
    count = whole(steps, "steps", asker="replay")
    training = Training(steps=count) if count else None
    return run(pipeline, found, spec, ReplayOptions(backend=backend, training=training))


def _spec(model: object) -> ModelSpec:
    """The model to train: the default, a spec, or one of the user's own by its function."""
    from bubbleproof.reference_exec.models.model_spec import ModelSpec, name_of

    if model is None:
        return ModelSpec()
    if callable(model):
        return ModelSpec(kind="own", factory=name_of(model))
    if isinstance(model, str) and ":" in model:
        return ModelSpec(kind="own", factory=model)
    if isinstance(model, ModelSpec):
        return model
    expected = f"a {ModelSpec.__module__}.ModelSpec, or a function that makes a model"
    raise wrong(model, "model", expected, asker="replay")
