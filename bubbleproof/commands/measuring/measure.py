"""``bubbleproof measure FAMILY p=4 m=8 ...``: build a published schedule, check it, measure it.

A schedule's file in place of the family is measured as it is; ``--json`` then gives its name as
``schedule``, and null for ``family`` and, of a schedule without a pipeline, ``peak_fraction``.
``--why`` adds a cause for every idle tick, the critical path and the best bound (``why_idle``).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from bubbleproof.commands.options.option_groups import require_meaning
from bubbleproof.commands.output import (
    console,
    measures_to_json,
    print_json,
    print_table,
    ratio,
    rule_rows,
    status_of,
)
from bubbleproof.faults import FaultError
from bubbleproof.formats import ScheduleFile
from bubbleproof.formats.format_table import Holds, format_of
from bubbleproof.formats.inputs import is_schedule_file, read_schedule_input
from bubbleproof.theory import families
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify import Verdict, check

KEYS = (
    "makespan",
    "work",
    "idle_ratio",
    "idle_over_work",
    "idle_ticks",
    "rank_spans",
    "span_idle",
    "peak_activations",
)


def run_measure(family: str, parameters: Sequence[str] | None, why: bool, json: bool) -> int:
    """Print the measures of one family member, measured by the checker's own code."""
    known = None if family in families.families() else format_of(family)
    if known is not None and known.holds is Holds.LAYOUT and not parameters:
        from bubbleproof.commands.measuring.megatron_layout import measure_layout

        require_meaning("--why", known.name, is_given=why)
        return measure_layout(family, json=json)
    if is_schedule_file(family) and family not in families.families():
        return _measure_file(read_schedule_input([family, *(parameters or ())]), why, json)
    member = families.family(family).member(families.parse_parameters(parameters or ()))
    verdict = check(member.problem, member.schedule)
    if verdict.measured is None:
        broken = ", ".join(rule.name.lower() for rule in verdict.broken)
        raise FaultError(f"family {family}", "an order", f"it cannot be measured (rules: {broken})")
    params = " ".join(f"{key}={_text(value)}" for key, value in member.params.items())
    named: dict[str, object] = {"family": family, "params": member.params}
    if (ours := families.family(family).ours(member.pipeline)) is not None:
        named["note"] = ours
    asked = (member.problem, member.schedule) if why else None
    _tell(f"{family} {params}", named, verdict, member.pipeline, asked, json)
    return status_of(verdict)


def _measure_file(given: ScheduleFile, why: bool, json: bool) -> int:
    """The same of a schedule from elsewhere, which may break any rule."""
    schedule = given.timed()
    verdict = check(given.problem, schedule)
    named: dict[str, object] = {"family": None, "schedule": given.name, "params": {}}
    asked = (given.problem, schedule) if why else None
    _tell(given.name, named, verdict, given.pipeline, asked, json)
    return status_of(verdict)


def _tell(
    title: str,
    named: dict[str, object],
    verdict: Verdict,
    pipeline: Pipeline | None,
    why: tuple[Problem, Schedule] | None,
    json: bool,
) -> None:
    """Print the measures, or why there are none."""
    measured, peaks = None, None
    if verdict.measured is not None:
        measured = measures_to_json(verdict.measured)
    if verdict.measured is not None and pipeline is not None:
        parts = pipeline.num_stages * pipeline.num_slices  # actions of a sample's pass
        peaks = [ratio(Fraction(peak, parts)) for peak in verdict.measured.peak_activations]
    if json:
        values = {key: None if measured is None else measured[key] for key in KEYS}
        more = {} if why is None else {"why": _why(*why)}
        print_json({**named, **values, "peak_fraction": peaks, **more})
        return
    if measured is not None:
        rows = [(key, _text(measured[key])) for key in KEYS]
        rows += [] if peaks is None else [("peak_fraction", _text(peaks))]
        print_table(title, ("measure", "value (ticks, activations, or a ratio)"), rows)
    if "note" in named:
        console().print(str(named["note"]))
    if not verdict.ok:
        print_table("verdict", ("rule", "verdict", "statement"), rule_rows(verdict))
    if why is not None:
        from bubbleproof.commands.measuring.why_idle import print_why

        print_why(*why)


def _why(problem: Problem, schedule: Schedule) -> dict[str, object]:
    from bubbleproof.commands.measuring.why_idle import (
        why_to_json,  # a bound is asked of the solvers
    )

    return why_to_json(problem, schedule)


def _text(value: object) -> str:
    return " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
