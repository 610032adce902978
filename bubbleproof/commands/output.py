"""What commands print: tables for people, one JSON object for programs, progress on the side."""

from __future__ import annotations

import json
import os
import sys
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from fractions import Fraction
from textwrap import fill
from typing import TYPE_CHECKING, ClassVar, TextIO

from bubbleproof.facts import FactSource, rows, tree
from bubbleproof.facts import fields_of as fields_of
from bubbleproof.facts import ratio as ratio
from bubbleproof.formats.printable import harmless, on_one_line
from bubbleproof.report.amounts import Scale, percent, time
from bubbleproof.report.amounts import counted as counted
from bubbleproof.theory.model.measures import Measures
from bubbleproof.theory.model.problem import Problem
from bubbleproof.verify.verdict import Verdict

if TYPE_CHECKING:  # loaded for what is drawn or coloured
    from rich.console import Console
    from rich.text import Text

HOLDS, BROKEN, UNUSABLE, UNDECIDED, INTERRUPTED = 0, 1, 2, 3, 130
MIN_WIDTH, LABEL = 120, 11  # characters of a line, and of the label before it
MOST_RANKS = 16  # of which a line says each
CLEAR = "\r\x1b[K"  # the line of a terminal
NO_CAPACITY = 1 << 80  # above all loads
Progress = Callable[[str, int | None, int, float], None]  # who, best, bound, seconds
AnswerLine = tuple[str, str]
_GOOD = ("holds", "valid", "yes", "optimal", "equal")
_BAD = ("violated", "invalid", "unreadable", "no", "infeasible", "differ", "failed")


def console() -> Console:
    """Standard output for people; wide enough for tables where it is no terminal."""
    from rich.console import Console

    plain = Console()
    return plain if plain.is_terminal else Console(width=max(MIN_WIDTH, plain.width))


def width() -> int:
    """How wide ``console`` is."""
    if _is_drawn(sys.stdout):
        return console().width
    if (told := os.environ.get("COLUMNS", "")).isdigit():
        return max(MIN_WIDTH, int(told))
    for stream in range(3):  # one that is a terminal
        with suppress(OSError):
            return max(MIN_WIDTH, os.get_terminal_size(stream).columns)
    return MIN_WIDTH


def say(line: str) -> None:
    """A line of progress on standard error, which no script reads."""
    if not _is_drawn(sys.stderr):
        sys.stderr.write(f"{harmless(line)}\n")
        return
    from rich.console import Console

    Console(stderr=True, highlight=False).print(_cell(line, style="dim"), soft_wrap=True)


def _is_drawn(stream: TextIO) -> bool:
    """Whether it is a terminal, or the environment may say that it is one."""
    return stream.isatty() or bool({"FORCE_COLOR", "TTY_COMPATIBLE"}.intersection(os.environ))


def progress_line(unit: str, *, verbose: bool) -> Progress | None:
    """How a search says what is best so far: a line each, or one in its place on a terminal."""
    in_place = sys.stderr.isatty() and not verbose
    if not (in_place or verbose):
        return None

    from rich.console import Console

    def report(who: str, value: int | None, bound: int, seconds: float) -> None:
        best = "no schedule yet" if value is None else f"best {time(value, unit)}"
        line = f"{seconds:7.2f} s  {who:<12} {best}, bound {time(bound, unit)}"
        if in_place:
            sys.stderr.write(f"{CLEAR}{harmless(line)[: Console(stderr=True).width - 1]}")
            sys.stderr.flush()
        else:
            say(line)

    return report


@contextmanager
def end_progress() -> Iterator[None]:
    """What the block says in one place is gone when it ends."""
    try:
        yield
    finally:
        if sys.stderr.isatty():
            sys.stderr.write(CLEAR)


def print_text(text: str, *, style: str = "") -> None:
    """Text for people on standard output, as it is: nothing in it is coloured or broken."""
    if style and _is_drawn(sys.stdout):
        console().print(_cell(text, style=style), soft_wrap=True)
    else:
        sys.stdout.write(f"{harmless(text)}\n")
        sys.stdout.flush()


def refuse(message: str) -> int:
    """Print one line on standard error; the rest of a longer message is a picture below it."""
    sys.stderr.write(f"bubbleproof: {harmless(message)}\n")
    return UNUSABLE


def print_json(value: Mapping[str, object]) -> None:
    """One JSON object on standard output and nothing else."""
    sys.stdout.write(json.dumps(value, indent=2, default=_plain) + "\n")


def _plain(value: object) -> object:
    if isinstance(value, Fraction):
        return ratio(value)
    raise TypeError(f"{type(value).__name__} does not belong in our JSON")


def print_list(title: str, lines: Sequence[str]) -> None:
    """A titled list; nothing where it is empty."""
    if lines:
        rows = [f"{title}:", *(f"- {on_one_line(line)}" for line in lines)]
        sys.stdout.write("".join(f"{row}\n" for row in rows))


def print_table(title: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A table whose cells are coloured by their first word: good, bad, or neither."""
    from rich.table import Table

    table = Table(title=_cell(title), title_justify="left", header_style="bold")
    for name in header:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*(_cell(cell, style=_style(cell)) for cell in row))
    console().print(table)


def _cell(text: str, *, style: str = "") -> Text:
    from rich.text import Text

    return Text(harmless(text), style=style)


def _style(cell: str) -> str:
    word = cell.lower().split(" ")[0].rstrip(":,")
    return "green" if word in _GOOD else "red" if word in _BAD else ""


class Answer(FactSource):
    """What a command found: the answer in a few lines, and all the facts."""

    __slots__ = ()
    more: ClassVar[str]  # what else there is to see

    @property
    @abstractmethod
    def title(self) -> str:
        """What it is about."""

    @abstractmethod
    def lines(self) -> Iterator[AnswerLine]:
        """The answer, the verdict first: a label, which may be empty, and a text each."""


def print_answer(found: Answer, *, json: bool = False, verbose: bool = False) -> None:
    """The object for programs; or the answer for people, and with ``verbose`` every fact."""
    if json:
        print_json(tree(found.facts()))
        return
    *lines, (label, text) = found.lines()
    for line in lines:
        print_line(line[1], line[0])
    print_line(text if verbose else f"{text}   (-v: {found.more})", label)
    if verbose:
        print_facts(found)


def print_line(text: str, label: str = "") -> None:
    """A line of an answer behind its label; what a terminal has no room for goes on below."""
    line = on_one_line(f"{label:<10} {text}" if label else text)
    if _is_drawn(sys.stdout) and (screen := console()).is_terminal:
        below = " " * (LABEL if label else 2)
        width = max(screen.width, 3 * LABEL)
        line = fill(line, width, subsequent_indent=below, break_on_hyphens=False)
    print_text(line)


def print_facts(found: Answer) -> None:
    """A row for each fact that has a label, of the columns in which any has something."""
    header, *told = found.table()
    print_table(found.title, header, told)


def amounts_text(measured: Measures, problem: Problem) -> str:
    """The makespan, the idle ratio, and the rank whose memory is fullest."""
    peaks, capacities = measured.peak_memory, [store.capacity for store in problem.stores]

    def fullness(rank: int) -> tuple[Fraction, int]:
        return Fraction(peaks[rank], capacities[rank] or NO_CAPACITY), peaks[rank]

    parts = [time(measured.makespan, problem.unit), f"idle {percent(measured.idle_ratio)}"]
    if any(peaks):
        rank = max(range(problem.num_ranks), key=fullness)
        room, peak = capacities[rank], peaks[rank]
        scale = Scale.of(problem.memory_unit, max(peak, room or 0))
        load = scale.brief(peak) if room is None else f"{scale.brief(peak)} of {scale.brief(room)}"
        parts.append(f"peak {load} {scale.name} on {problem.resources[rank].name}")
    return " \N{MIDDLE DOT} ".join(parts)


def rule_rows(verdict: Verdict) -> list[tuple[str, str, str]]:
    """(rule, verdict, statement or reason), one row per rule, or case of one."""
    from bubbleproof.report.schedule_verdict import ScheduleVerdict

    return [
        (label, state, told) for label, _, told, state in rows(ScheduleVerdict.of(verdict).facts())
    ]


def status_of(verdict: Verdict) -> int:
    """The exit status of a verdict."""
    if any(not decision.ok for decision in verdict.decisions):
        return BROKEN
    return UNDECIDED if verdict.undecided else HOLDS
