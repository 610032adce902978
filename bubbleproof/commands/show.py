"""``bubbleproof show`` and ``convert``: a schedule as a picture, a page or another file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import ceil, floor
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING

from bubbleproof.commands.options.option_groups import require_meaning
from bubbleproof.commands.options.shared_options import Loudness
from bubbleproof.commands.options.targets import require_writable
from bubbleproof.commands.output import BROKEN, HOLDS, counted, print_text, say
from bubbleproof.formats import ScheduleFile
from bubbleproof.formats.all_or_nothing import written_together
from bubbleproof.formats.conversion import Conversion
from bubbleproof.formats.format_table import written_as
from bubbleproof.formats.inputs import read_schedule_input
from bubbleproof.report.amounts import SECONDS
from bubbleproof.report.extras import require_drawing
from bubbleproof.report.timeline import Window
from bubbleproof.theory.model.schedule import MAX_START, Schedule
from bubbleproof.theory.pipelines.programs.standstill import Standstill, standstill
from bubbleproof.theory.pipelines.timing import UntimedProgram
from bubbleproof.verify.every_rule import check_every_rule
from bubbleproof.verify.verdict import Verdict

if TYPE_CHECKING:  # a page is loaded where it is asked for
    from bubbleproof.report.page import ReportPage


def run_show(
    schedule: Sequence[str],
    loudness: Loudness,
    output: str | None,
    window: str | None,
    width: float | None,
    dialect: str | None,
) -> int:
    """Draw one schedule: to the terminal, or to the file whose ending says how.

    Of a program that comes to a standstill what runs is drawn, and what then waits for what. In one
    line it says how long and how idle the schedule is.
    """
    require_drawing([] if output is None else [output])
    if window is not None and output is not None and written_as(output) is not None:
        raise ValueError("a trace holds the whole schedule: --window goes with a picture or a page")
    _require_width(width, output)
    given = read_schedule_input(schedule, dialect=dialect)
    span = None if window is None else _window(window, given.problem.unit)
    stopped, why = standstill_of(given)
    drawn = given.timed() if stopped is None else stopped.schedule
    if loudness.verbose or (loudness.quiet and output is None):
        from bubbleproof.report.headline import headline

        told = headline(given.problem, drawn, pipeline=given.pipeline, stopped=stopped)
        print_text(f"{given.name}: {told}")
    if output is None and not loudness.quiet:
        _print_grid(given, drawn, span, stopped)
    if output is not None:
        with written_together(None, output) as (_, target):
            _write_picture(given, drawn, stopped, target, span, width)
        say(f"wrote {output}")
    if stopped is None:
        return HOLDS
    say(why)
    return BROKEN


def _write_picture(
    given: ScheduleFile,
    drawn: Schedule,
    stopped: Standstill | None,
    target: Path,
    span: Window | None,
    width: float | None,
) -> None:
    if (traced := written_as(target.name)) is not None:
        traced.write(target, replace(given, schedule=drawn))
    elif target.suffix == ".html":
        from bubbleproof.report.page import write_page

        verdict = check_every_rule(given.to_judge)
        write_page(target, page_of(given, drawn, stopped, verdict, span))
    else:
        from bubbleproof.report.gantt import draw

        title = given.name if stopped is None else f"{given.name}, until it stops"
        draw(
            given.problem,
            drawn,
            target,
            title=title,
            window=span,
            stopped=stopped,
            width_mm=width,
        )


def _require_width(width: float | None, output: str | None) -> None:
    """A width in millimetres is that of a picture for a paper."""
    if width is None:
        return
    from bubbleproof.report.gantt import require_width

    if output is None or not output.endswith((".svg", ".pdf", ".png")):
        raise ValueError(
            f"--width goes with a picture, -o x.svg .pdf or .png, got {output or 'no -o'}"
        )
    require_width(width)


def standstill_of(given: ScheduleFile) -> tuple[Standstill | None, str]:
    """How far a program without times comes, and why it has none."""
    try:
        given.timed()
    except UntimedProgram as error:
        return standstill(given.problem, given.compute), str(error)
    return None, ""


def _print_grid(
    given: ScheduleFile,
    schedule: Schedule,
    window: Window | None,
    stopped: Standstill | None,
) -> None:
    from bubbleproof.report.text import WIDTH, grid

    waits = () if stopped is None else stopped.waits
    waiting = {wait.resource: given.problem.label(wait.task) for wait in waits}
    wide = get_terminal_size((WIDTH, 24)).columns
    print_text(grid(given.problem, schedule, window=window, waiting=waiting, width=wide))
    if stopped is not None:
        print_text("\n".join(stopped.sentences()))


def _window(text: str, unit: str) -> Window:
    """Two times, in ticks or, where a tick is a time, with a unit: ``0.2s:300ms``."""
    first, colon, last = text.partition(":")
    times = [_ticks(each.strip(), unit) for each in (first, last)] if colon else []
    if len(times) < 2 or None in times:
        units = f" or in one of {' '.join(SECONDS)}" if unit in SECONDS else ""
        raise ValueError(
            f"--window must be FIRST:LAST in ticks{units}, such as 0:100, up to {MAX_START:,} "
            f"ticks, got {text[:60]!r}"
        )
    low, high = (Fraction(each or 0) for each in times)
    if low >= high:
        raise ValueError(f"a window must end after it starts, got {first} to {last}")
    return floor(low), ceil(high)


def _ticks(text: str, unit: str) -> Fraction | None:
    """The ticks of a time; None for what is none or is too late."""
    found = re.fullmatch(r"(\d{1,20}(?:\.\d{1,20})?) ?([a-z]*)", text, re.ASCII)
    if found is None or (found[2] and (found[2] not in SECONDS or unit not in SECONDS)):
        return None
    power = SECONDS[found[2]] - SECONDS[unit] if found[2] else 0
    value = Fraction(found[1]) * Fraction(10) ** power
    return value if value <= MAX_START else None


def page_of(
    given: ScheduleFile,
    schedule: Schedule,
    stopped: Standstill | None,
    verdict: Verdict,
    window: Window | None = None,
) -> ReportPage:
    """The page of one schedule; of what runs until a standstill where it is ``stopped``."""
    from bubbleproof.commands.verdicts import section_of
    from bubbleproof.report.headline import headline
    from bubbleproof.report.page import ComparisonRow, ReportPage

    section = replace(
        section_of(given.name, given.problem, schedule, verdict, stopped=stopped), window=window
    )
    rows = () if stopped is not None else (ComparisonRow.of(given.name, given.problem, schedule),)
    line = headline(given.problem, schedule, pipeline=given.pipeline, stopped=stopped)
    return ReportPage(title=given.name, headline=line, comparison=rows, sections=(section,))


def run_convert(
    schedule: Sequence[str],
    loudness: Loudness,
    communication: bool,
    torch: str | None,
    problem: str | None,
    dialect: str | None,
) -> int:
    """Read the schedule that all words but the last name, and write it to the last."""
    if len(schedule) < 2:
        raise ValueError("expected two things: convert SCHEDULE TARGET")
    *words, target = schedule
    asked = Conversion(target=target, communication=communication, torch=torch)
    require_writable([target])
    is_idle = communication and not asked.is_table
    require_meaning("--communication", "what is no table (.csv)", is_given=is_idle)
    given = read_schedule_input(words, dialect=dialect, problem=problem)
    found = asked.write(given)
    say(f"wrote {target}")
    told = [*(f"not written: {loss}" for loss in found.losses), found.runtime]
    if loudness.verbose:
        number, ranks = counted(len(given.program), "action"), given.problem.num_ranks
        told.append(f"{given.name}: {number} on {counted(ranks, 'rank')}")
    for line in () if loudness.quiet else filter(None, told):
        say(line)
    return HOLDS
