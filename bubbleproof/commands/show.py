"""``bubbleproof show`` and ``convert``: a schedule as a picture, a page or another file."""

from __future__ import annotations

from collections.abc import Sequence

from bubbleproof.commands.inputs import read_schedule_input
from bubbleproof.commands.output import BROKEN, HOLDS, print_text, say
from bubbleproof.commands.verify import verify_given
from bubbleproof.formats import ScheduleFile, write_schedule, write_table, write_trace
from bubbleproof.report.extras import require_drawing
from bubbleproof.theory.model.schedule import MAX_START, Schedule
from bubbleproof.theory.pipelines.lowering import lower
from bubbleproof.theory.pipelines.standstill import Standstill, standstill
from bubbleproof.theory.pipelines.timing import UntimedProgram
from bubbleproof.verify import Semantics

PICTURES = ".html .svg .png .perfetto.json"
FILES = ".json .csv .perfetto.json"


def run_show(
    schedule: Sequence[str], output: str | None, window: str | None, dialect: str | None
) -> int:
    """Draw one schedule: to the terminal, or to the file whose ending says how.

    Of a program that comes to a standstill what runs is drawn, and what then waits for what.
    """
    require_drawing([] if output is None else [output])
    if output is not None and not output.endswith(tuple(PICTURES.split())):
        raise ValueError(f"a picture's file must end in {PICTURES}, got {output!r}")
    span = _window(window)
    given = read_schedule_input(schedule, dialect=dialect)
    stopped, why = _standstill(given)
    drawn = given.timed() if stopped is None else stopped.schedule
    if output is None:
        _print_grid(given, drawn, span, stopped)
    elif output.endswith(".perfetto.json"):
        write_trace(output, given.problem, drawn)
    elif output.endswith(".html"):
        _write_page(given, drawn, stopped, output)
    else:
        from bubbleproof.report.gantt import draw

        title = given.name if stopped is None else f"{given.name}, until it stands still"
        draw(given.problem, drawn, output, title=title, window=span, stopped=stopped)
    if output is not None:
        say(f"wrote {output}")
    if stopped is None:
        return HOLDS
    say(why)
    return BROKEN


def _standstill(given: ScheduleFile) -> tuple[Standstill | None, str]:
    """How far a program without times comes, and why it has none."""
    try:
        given.timed()
    except UntimedProgram as error:
        return standstill(given.problem, given.compute), str(error)
    return None, ""


def _print_grid(
    given: ScheduleFile,
    schedule: Schedule,
    window: tuple[int, int] | None,
    stopped: Standstill | None,
) -> None:
    from bubbleproof.report.text import grid

    waits = () if stopped is None else stopped.waits
    waiting = {wait.resource: given.problem.label(wait.task) for wait in waits}
    print_text(grid(given.problem, schedule, window=window, waiting=waiting))
    if stopped is not None:
        print_text("\n".join(stopped.sentences()))


def _window(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    first, colon, last = text.partition(":")
    digits = len(str(MAX_START)) - 1
    if (
        not (colon and first.isdecimal() and last.isdecimal())
        or max(len(first), len(last)) > digits
    ):
        raise ValueError(
            f"--window must be FIRST:LAST in ticks, such as 0:100, of {digits} digits at most, "
            f"got {text[:60]!r}"
        )
    return int(first), int(last)


def _write_page(
    given: ScheduleFile, schedule: Schedule, stopped: Standstill | None, target: str
) -> None:
    from bubbleproof.commands.verify import section_of
    from bubbleproof.report.page import ComparisonRow, Report, write_page

    verdict = verify_given(given, tuple(Semantics))
    section = section_of(given.name, given.problem, schedule, verdict, stopped=stopped)
    row = ComparisonRow.of(given.name, given.problem, schedule)
    write_page(target, Report(title=given.name, comparison=(row,), sections=(section,)))


def run_convert(
    schedule: Sequence[str], communication: bool, problem: str | None, dialect: str | None
) -> int:
    """Read the schedule that all words but the last name, and write it to the last."""
    if len(schedule) < 2:
        raise ValueError("expected two things: convert SCHEDULE TARGET")
    if not schedule[-1].endswith(tuple(FILES.split())):
        raise ValueError(
            f"convert SCHEDULE TARGET: the target must end in {FILES}, got {schedule[-1]!r}; "
            "it is the last word"
        )
    given, target = (
        read_schedule_input(schedule[:-1], dialect=dialect, problem=problem),
        schedule[-1],
    )
    if target.endswith(".perfetto.json"):
        write_trace(target, given.problem, given.timed())
    elif target.endswith(".csv"):
        program = lower(given.problem, given.timed()) if communication else given.compute
        for loss in write_table(target, program, problem=given.problem):
            say(f"lost: {loss}")
    else:
        write_schedule(target, _as_file(given))
    say(f"wrote {target}")
    return HOLDS


def _as_file(given: ScheduleFile) -> ScheduleFile:
    if given.schedule is not None and not given.has_communication:
        return ScheduleFile.of(
            given.problem, given.schedule, pipeline=given.pipeline, name=given.name
        )
    return ScheduleFile(
        problem=given.problem, program=given.program, pipeline=given.pipeline, name=given.name
    )
