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

from bubbleproof.commands.options.option_groups import require_meaning
from bubbleproof.commands.output import BROKEN, HOLDS, print_json, print_table, print_text
from bubbleproof.facts import rows
from bubbleproof.formats.format_table import has_dialects
from bubbleproof.formats.inputs import read_schedule_input
from bubbleproof.report.schedule_difference import ComparedSchedules, compared_schedules
from bubbleproof.theory.orders.difference import ScheduleDifference

MOST_ROWS = 40  # of a table for people; --json has all


def run_diff(a: str, b: str, dialect: str | None, json: bool) -> int:
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
    else:
        _print_tables(found)
    return HOLDS if found.ok else BROKEN


def _print_tables(compared: ComparedSchedules) -> None:
    found, names = compared.actions, (compared.names[0] or "A", compared.names[1] or "B")
    print_table(f"{names[0]} and {names[1]}", ("", *names, "change"), rows(compared.facts()))
    print_text(_summary(found))
    if found.only_a:
        print_text(f"only in {names[0]}: {_first(found.only_a)}")
    if found.only_b:
        print_text(f"only in {names[1]}: {_first(found.only_b)}")
    if found.elsewhere:
        places = [(e.action, e.resource_a, e.resource_b) for e in found.elsewhere[:MOST_ROWS]]
        print_table("on other resources", ("action", *names), places)
    if found.moved:
        header = "on", "action", f"place and start in {names[0]}", f"in {names[1]}"
        moves = [
            (m.resource, m.action, f"{m.place_a} at {m.start_a}", f"{m.place_b} at {m.start_b}")
            for m in found.moved[:MOST_ROWS]
        ]
        print_table("moved in the order", header, moves)
    for more in (len(found.elsewhere), len(found.moved)):
        if more > MOST_ROWS:
            print_text(f"{more - MOST_ROWS:,} more rows: --json has all of them.")


def _summary(found: ScheduleDifference) -> str:
    if found.is_none:
        return f"The same {found.common} actions in the same order at the same ticks."
    return (
        f"{found.common} actions in both: {len(found.elsewhere)} on other resources, "
        f"{len(found.moved)} moved in the order, {found.sooner} start sooner and {found.later} "
        f"later; {len(found.only_a)} only in the first, {len(found.only_b)} only in the second."
    )


def _first(actions: Sequence[str]) -> str:
    more = f" and {len(actions) - MOST_ROWS:,} more" if len(actions) > MOST_ROWS else ""
    return " ".join(actions[:MOST_ROWS]) + more
