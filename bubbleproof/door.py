"""The functions at the door (``import bubbleproof as bp``): each is one call of a room.

Wherever a problem is taken, a ``Pipeline`` serves as well; and where a problem and a schedule are
taken, whatever people hold a schedule in (``door_given``).

>>> import bubbleproof as bp
>>> found = bp.idle(bp.family("1f1b")(p=2, m=3))
>>> found
<IdleStretches: 5 on 2 ranks; warm-up 1, drain 2, order 1, input 2>
>>> print(found.at(0, 3).sentence)
0B0 waits for 1B0 of rank 1 over link 1>0
"""

from __future__ import annotations

from typing import TYPE_CHECKING, overload

from bubbleproof.arguments import (
    door_function,
    hears,
    is_plan_like,
    text,
    whole,
    window_of,
    wrong,
)
from bubbleproof.door_given import held, pair
from bubbleproof.reference_exec.plans.run_options import ReplayOptions
from bubbleproof.theory import families as known
from bubbleproof.theory.families import Family
from bubbleproof.theory.families import families as families

if TYPE_CHECKING:
    from bubbleproof.door_types import (
        AnyPlan,
        GivenFirst,
        GivenModel,
        GivenRun,
        GivenSchedule,
        Progress,
        Proofs,
    )
    from bubbleproof.reference_exec.evidence.replay_report import ReplayReport
    from bubbleproof.reference_exec.models.model_spec import ModelSpec
    from bubbleproof.report.certified_plan import CertifiedPlan
    from bubbleproof.report.picture import Picture
    from bubbleproof.report.schedule_measures import ScheduleMeasures
    from bubbleproof.report.schedule_verdict import ScheduleVerdict
    from bubbleproof.theory.idle import IdleStretches


family, register = door_function(known.family), door_function(known.register)
# What people call; in the package ``member`` is called, whose errors are its own.
Family.__call__ = door_function(Family.__call__)  # type: ignore[method-assign]  # the door's


@overload
def check(
    problem: GivenFirst, schedule: GivenSchedule | None = None, *, certificate: None = None
) -> ScheduleVerdict: ...


@overload
def check(problem: AnyPlan, schedule: None = None, *, certificate: Proofs) -> CertifiedPlan: ...


@door_function
def check(
    problem: GivenFirst, schedule: GivenSchedule | None = None, *, certificate: Proofs | None = None
) -> ScheduleVerdict | CertifiedPlan:
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
    ScheduleVerdict
        A ``Verdict``: a failed check returns its violations in it, it does not raise.
    CertifiedPlan
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
    from bubbleproof.report.schedule_verdict import ScheduleVerdict

    whole, more = held(problem, schedule, asker="check")
    if is_plan_like(whole):
        from bubbleproof.door_judge import check_certified, check_plan

        if certificate is not None:
            from bubbleproof.report.certified_plan import CertifiedPlan

            return CertifiedPlan.of(check_certified(whole, certificate))
        return ScheduleVerdict.of(check_plan(whole))
    if certificate is not None:
        raise wrong(whole, "plan", "what plan gives, or a plan file that was read", asker="check")
    from bubbleproof.verify import check_whole

    if more is None and hasattr(whole, "to_judge"):  # a file, with all that stands in it
        from bubbleproof.verify.every_rule import check_every_rule

        return ScheduleVerdict.of(check_every_rule(whole.to_judge))
    given, found, _ = pair(whole, more, asker="check")
    return ScheduleVerdict.of(check_whole(given, found))


@door_function
def measure(problem: GivenFirst, schedule: GivenSchedule | None = None) -> ScheduleMeasures:
    """Makespan, bubbles and peaks of a schedule.

    Parameters
    ----------
    problem, schedule
        As ``check`` takes them.

    Returns
    -------
    ScheduleMeasures
        ``makespan`` and ``span_idle`` in ticks, ``idle_ratio`` and ``idle_over_work`` as fractions
        and, with ``_float`` behind their names, as floats; ``peak_memory`` in memory units, one
        number per rank.

    Raises
    ------
    TypeError, ValueError
        As ``check`` does; also where the schedule misses tasks.
    """
    from bubbleproof.report.schedule_measures import measured

    given, found, _ = pair(problem, schedule, asker="measure")
    return measured(given, found)


@door_function
def idle(problem: GivenFirst, schedule: GivenRun | None = None) -> IdleStretches:
    """Why each rank is idle: every idle tick has one cause (docs/guide/design.md §2).

    Parameters
    ----------
    problem, schedule
        As ``check`` takes them. What ``replay`` gave may stand in the schedule's place, after what
        was replayed: then the causes are of what ran, in microseconds, and ``order`` is also the
        time that the executor took between two actions.

    Returns
    -------
    IdleStretches
        An ``IdleStretch`` for each stretch of time, by rank and tick: ``rank``, ``from_tick``,
        ``to_tick``, ``cause`` (an ``IdleCause``), ``action``, ``of_action``, ``of_rank``, ``link``
        and all of it in a ``sentence``. ``at(rank, tick)`` is the one at a tick,
        ``ticks_by_cause(rank)`` the sums, which add up to the rank's ``idle_ticks``;
        ``critical_path`` are the tasks that make the schedule as long as it is. The columns are
        numpy's, for drawings of many.

    Raises
    ------
    TypeError, ValueError
        As ``check`` does; also where a rank does two things at once.
    """
    from bubbleproof.theory.idle import idle_stretches

    if schedule is not None and hasattr(schedule, "traces"):  # a replay's report
        from bubbleproof.reference_exec.evidence.measured import measured_idle

        given, found, _ = pair(problem, None, asker="idle")
        return measured_idle(given, found, schedule.traces)
    given, found, _ = pair(problem, schedule, asker="idle")
    return idle_stretches(given, found)


@door_function
def show(
    problem: GivenFirst,
    schedule: GivenSchedule | None = None,
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
    problem: GivenFirst,
    schedule: GivenSchedule | None = None,
    *,
    model: GivenModel | None = None,
    backend: str = "virtual",
    steps: int = 0,
    progress: Progress | None = None,
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
    progress
        Hears of it, a line of text now and then.

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
    spec = model_spec(model, asker="replay")
    count = whole(steps, "steps", asker="replay")
    training = Training(steps=count) if count else None
    options = ReplayOptions(backend=backend, training=training)
    return run(pipeline, found, spec, options, progress=hears(progress, asker="replay"))


def model_spec(model: GivenModel | None, *, asker: str) -> ModelSpec:
    """The model to train: the default, a spec, or one of the user's own by its function."""
    from bubbleproof.reference_exec.models.model_spec import ModelSpec, name_of

    if model is None:
        return ModelSpec()
    if callable(model):
        from bubbleproof.reference_exec.models.hf_model import held, is_model

        factory = held(model) if is_model(model) else model
        return ModelSpec(kind="own", factory=name_of(factory), keeps_type=True)
    if isinstance(model, str) and ":" in model:
        return ModelSpec(kind="own", factory=model, keeps_type=True)
    if isinstance(model, ModelSpec):
        return model
    expected = 'a ModelSpec, a function that makes a model, or "FILE.py:FUNCTION"'
    raise wrong(model, "model", expected, asker=asker)
