"""What commands print: tables for people, one JSON object for programs, progress on the side."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from rich.console import Console
from rich.table import Table
from rich.text import Text

from bubbleproof.facts import fields_of as fields_of
from bubbleproof.facts import ratio as ratio
from bubbleproof.formats.printable import harmless, on_one_line
from bubbleproof.verify.finding import Rule
from bubbleproof.verify.verdict import Verdict

HOLDS, BROKEN, UNUSABLE, UNDECIDED, INTERRUPTED = 0, 1, 2, 3, 130
MIN_WIDTH = 120
_GOOD = ("holds", "yes", "optimal", "equal")
_BAD = ("violated", "no", "infeasible", "differ", "failed")


def console() -> Console:
    """Standard output for people; wide enough for tables where it is no terminal."""
    plain = Console()
    return plain if plain.is_terminal else Console(width=max(MIN_WIDTH, plain.width))


def say(line: str) -> None:
    """A line of progress on standard error, which no script reads."""
    Console(stderr=True, highlight=False).print(Text(harmless(line), style="dim"), soft_wrap=True)


def print_text(text: str, *, style: str = "") -> None:
    """Text for people on standard output, as it is: nothing in it is coloured or broken."""
    console().print(Text(harmless(text), style=style), soft_wrap=True)


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


def counted(number: int, noun: str) -> str:
    """``1 task``, ``2 tasks``."""
    return f"{number} {noun}" + ("" if number == 1 else "s")


def print_list(title: str, lines: Sequence[str]) -> None:
    """A titled list; nothing where it is empty."""
    if lines:
        rows = [f"{title}:", *(f"- {on_one_line(line)}" for line in lines)]
        sys.stdout.write("".join(f"{row}\n" for row in rows))


def print_table(title: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A table whose cells are coloured by their first word: good, bad, or neither."""
    table = Table(title=_cell(title), title_justify="left", header_style="bold")
    for name in header:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*(_cell(cell, style=_style(cell)) for cell in row))
    console().print(table)


def _cell(text: str, *, style: str = "") -> Text:
    return Text(harmless(text), style=style)


def _style(cell: str) -> str:
    word = cell.lower().split(" ")[0].rstrip(":,")
    return "green" if word in _GOOD else "red" if word in _BAD else ""


def verdict_to_json(verdict: Verdict) -> dict[str, object]:
    """A verdict with what it decides, counterexamples (grids included) and measures."""
    return {
        "ok": verdict.ok,
        "rules": [
            {
                "rule": decision.rule.name.lower(),
                "detail": decision.detail,
                "statement": decision.rule.value,
                "ok": decision.ok,
                "count": decision.count,
            }
            for decision in verdict.decisions
        ],
        "undecided": _reasons(verdict.undecided),
        "inapplicable": _reasons(verdict.inapplicable),
        "violations": [
            {"rule": v.rule.name.lower()}
            | {name: getattr(v, name) for name in ("tasks", "at", "message", "picture")}
            for v in verdict.violations
        ],
        "measured": None if verdict.measured is None else fields_of(verdict.measured),
    }


def _reasons(rules: Iterable[tuple[Rule, str]]) -> list[dict[str, str]]:
    return [{"rule": rule.name.lower(), "reason": why} for rule, why in rules]


def rule_rows(verdict: Verdict) -> list[tuple[str, str, str]]:
    """(rule, verdict, statement or reason), one row per rule, or case of one."""
    rows = []
    for decision in verdict.decisions:
        detail = f" ({decision.detail})" if decision.detail else ""
        state = "holds" if decision.ok else f"violated {decision.count}x"
        rows.append((decision.rule.name.lower() + detail, state, decision.rule.value))
    rows += [(rule.name.lower(), "undecided", why) for rule, why in verdict.undecided]
    rows += [(rule.name.lower(), "inapplicable", why) for rule, why in verdict.inapplicable]
    return rows


def status_of(verdict: Verdict) -> int:
    """The exit status of a verdict."""
    if any(not decision.ok for decision in verdict.decisions):
        return BROKEN
    return UNDECIDED if verdict.undecided else HOLDS
