"""``bubbleproof diff A B``: what differs between two schedules, and what it is worth.

A and B are schedule files, or families with their parameters in one word (``'1f1b p=4 m=8'``). Told
are the makespan and its like, peaks and idle ticks by rank and cause, the verdicts, and the actions
that only one has, that run elsewhere, or in another order. Exit status 0 where the two are the
same, 1 where they differ or a rule is broken.

With ``--json``: ``a`` and ``b`` (names), ``same``, ``measures`` (by name ``{a, b}``; null where it
cannot be measured), ``causes`` (idle ticks by cause, ``{a, b}``), ``broken`` (the rules by name),
``only_a``, ``only_b``, ``elsewhere``, ``moved``, ``sooner``, ``later`` and ``common``.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from bubbleproof.commands.first_lines import MOST_ROWS, print_answer, print_rows
from bubbleproof.commands.options.option_groups import require_meaning
from bubbleproof.commands.options.shared_options import Detail
from bubbleproof.commands.output import BROKEN, HOLDS, print_json, print_table, print_text
from bubbleproof.facts import rows
from bubbleproof.formats.format_table import has_dialects
from bubbleproof.formats.inputs import read_schedule_input
from bubbleproof.report.amounts import Scale, percent, time
from bubbleproof.report.schedule_difference import ComparedSchedules, compared_schedules
from bubbleproof.theory.orders.difference import ScheduleDifference

MOST_PEAKS = 12  # ranks whose peaks are said one by one


def run_diff(a: str, b: str, detail: Detail, dialect: str | None, json: bool) -> int:
    """Print what differs between two schedules."""
    is_alone = dialect is not None and not any(has_dialects(words) for words in (a, b))
    require_meaning("--dialect", "two schedules of which none is a table (.csv)", is_given=is_alone)
    one, other = (
        read_schedule_input([words], dialect=dialect if has_dialects(words) else None)
        for words in (a, b)
    )
    found = compared_schedules(one, other)
    if json:
        print_json(found.to_dict())
    elif print_answer(_lines(found), detail):
        _print_tables(found, detail)
    return HOLDS if found.ok else BROKEN


def _print_tables(compared: ComparedSchedules, detail: Detail) -> None:
    found, names = compared.actions, (compared.names[0] or "A", compared.names[1] or "B")
    print_table(f"{names[0]} and {names[1]}", ("", *names, "change"), rows(compared.facts()))
    if found.only_a:
        print_text(f"only in {names[0]}: {_first(found.only_a, detail)}")
    if found.only_b:
        print_text(f"only in {names[1]}: {_first(found.only_b, detail)}")
    if found.elsewhere:
        places = [(e.action, e.resource_a, e.resource_b) for e in found.elsewhere]
        print_rows("on other resources", ("action", *names), places, detail)
    if found.moved:
        header = "on", "action", f"place and start in {names[0]}", f"in {names[1]}"
        moves = [
            (m.resource, m.action, f"{m.place_a} at {m.start_a}", f"{m.place_b} at {m.start_b}")
            for m in found.moved
        ]
        print_rows("moved in the order", header, moves, detail)


def _lines(compared: ComparedSchedules) -> list[str]:
    """Which is shorter, or that they are the same; whether each is valid; why they differ."""
    (a, b), found = compared.names, compared.actions
    a, b = a or "A", b or "B"
    if found.is_none:
        told = [f"SAME  {a} and {b}: {_summary(found)}"]
    else:
        told = [f"{b} {_against(compared)} {a}"]
    for name, rules in zip((a, b), compared.broken, strict=True):
        if rules:
            told.append(f"{name} is INVALID: {', '.join(rules)}")
    loads, ratios = compared.measures["peak_memory"], compared.measures["idle_ratio"]
    if loads != (None, None):
        peaks = (_peaks(p, u) for p, u in zip(loads, compared.memory_units, strict=True))
        told.append(f"memory   {' -> '.join(peaks)} at the peaks of the ranks")
    if ratios != (None, None):
        told.append(f"idle     {' -> '.join(map(_percent, ratios))}")
    unit, causes = compared.units[0], compared.causes
    moved = [f"{w} {_span(x, unit)} -> {_span(y, unit)}" for w, (x, y) in causes.items() if x != y]
    told += [f"because  {', '.join(moved)}"] if moved else []
    return told if found.is_none else [*told, f"actions  {_summary(found)}"]


def _against(compared: ComparedSchedules) -> str:
    """``takes 27 ticks, 18.2 % less than the 33 ticks of``."""
    unit, other = compared.units
    a, b = compared.measures["makespan"]
    if not (isinstance(a, int) and isinstance(b, int)) or unit != other or not a:
        return f"cannot be compared in time with ({_span(b, other)}, {_span(a, unit)})"
    if a == b:
        return f"takes {_span(b, unit)}, as long as"
    change = f"{percent(abs(Fraction(b - a, a)))} {'more' if b > a else 'less'}"
    return f"takes {_span(b, unit)}, {change} than {_span(a, unit)} of"


def _span(value: object, unit: str) -> str:
    return time(value, unit) if isinstance(value, int) else "none"


def _percent(ratio: object) -> str:
    return percent(Fraction(ratio)) if isinstance(ratio, str) else "none"


def _peaks(peaks: object, unit: str) -> str:
    """Of a dozen ranks or fewer each; of more the least and the most."""
    if not isinstance(peaks, list | tuple) or not peaks:
        return "none"
    shown = peaks if len(peaks) <= MOST_PEAKS else [min(peaks), max(peaks)]
    scale = Scale.of(unit, max(peaks))
    return f"{' | '.join(map(scale.number, shown))} {scale.name}"


def _summary(found: ScheduleDifference) -> str:
    if found.is_none:
        return f"{found.common} actions in the same order at the same ticks"
    return (
        f"{found.common} in both: {len(found.elsewhere)} on other resources, "
        f"{len(found.moved)} moved in the order, {found.sooner} start sooner and {found.later} "
        f"later; {len(found.only_a)} only in the first, {len(found.only_b)} only in the second"
    )


def _first(actions: Sequence[str], detail: Detail) -> str:
    shown = actions if detail.all else actions[:MOST_ROWS]
    more = f" and {len(actions) - len(shown):,} more (--all)" if len(shown) < len(actions) else ""
    return " ".join(shown) + more
