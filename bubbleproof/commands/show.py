"""``bubbleproof show`` and ``convert``: a schedule as a picture, a page or another file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bubbleproof.commands.inputs import Given, read_given
from bubbleproof.commands.output import HOLDS, console, rule_rows, say
from bubbleproof.commands.verify import verify_given
from bubbleproof.formats import ScheduleFile, write_schedule, write_table, write_trace
from bubbleproof.theory.lowering import lower
from bubbleproof.verify import Semantics

PICTURES = ".html .svg .png .perfetto.json"
FILES = ".json .csv .perfetto.json"


def run_show(
    words: Sequence[str], *, target: str | None, window: str | None, dialect: str | None
) -> int:
    """Draw one schedule: to the terminal, or to the file whose ending says how."""
    given = read_given(words, dialect=dialect)
    span = _window(window)
    if target is None:
        from bubbleproof.report.text import grid

        text = grid(given.problem, given.timed(), window=span)
        console().print(text, markup=False, highlight=False, soft_wrap=True)
        return HOLDS
    if target.endswith(".perfetto.json"):
        write_trace(target, given.problem, given.timed())
    elif target.endswith(".html"):
        _write_page(given, target)
    elif target.endswith((".svg", ".png")):
        from bubbleproof.report.gantt import draw

        draw(given.problem, given.timed(), target, title=given.name, window=span)
    else:
        raise ValueError(f"a picture's file must end in {PICTURES}, got {target!r}")
    say(f"wrote {target}")
    return HOLDS


def _window(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    first, colon, last = text.partition(":")
    if not (colon and first.isdecimal() and last.isdecimal()):
        raise ValueError(f"--window must be FIRST:LAST in ticks, such as 0:100, got {text!r}")
    return int(first), int(last)


def _write_page(given: Given, target: str) -> None:
    from bubbleproof.report.page import (
        ComparisonRow,
        Report,
        ScheduleSection,
        VerdictRow,
        write_page,
    )

    schedule = given.timed()
    verdict = verify_given(given, tuple(Semantics))
    section = ScheduleSection(
        name=given.name,
        problem=given.problem,
        schedule=schedule,
        verdicts=tuple(
            VerdictRow(rule=rule, verdict=state.split(" ")[0], detail=detail)
            for rule, state, detail in rule_rows(verdict)
        ),
        violations=tuple(map(str, verdict.violations)),
    )
    row = ComparisonRow.of(given.name, given.problem, schedule)
    write_page(target, Report(title=given.name, comparison=(row,), sections=(section,)))


def run_convert(
    words: Sequence[str], *, communication: bool, dialect: str | None, problem: str | None
) -> int:
    """Read the schedule that all words but the last name, and write it to the last."""
    if len(words) < 2:
        raise ValueError("expected two things: convert SCHEDULE TARGET")
    given, target = read_given(words[:-1], dialect=dialect, problem=problem), words[-1]
    if target.endswith(".perfetto.json"):
        write_trace(target, given.problem, given.timed())
    elif target.endswith(".csv"):
        program = lower(given.problem, given.timed()) if communication else given.compute
        for loss in write_table(target, program, problem=given.problem):
            say(f"lost: {loss}")
    elif target.endswith(".json"):
        write_schedule(target, _as_file(given))
    else:
        raise ValueError(f"the target must end in {FILES}, got {Path(target).name!r}")
    say(f"wrote {target}")
    return HOLDS


def _as_file(given: Given) -> ScheduleFile:
    if given.schedule is not None and not given.has_communication:
        return ScheduleFile.of(
            given.problem, given.schedule, pipeline=given.pipeline, name=given.name
        )
    return ScheduleFile(
        problem=given.problem, program=given.program, pipeline=given.pipeline, name=given.name
    )
