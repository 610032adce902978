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
from dataclasses import asdict
from fractions import Fraction

from bubbleproof.commands.first_lines import MOST_ROWS, print_answer, print_rows
from bubbleproof.commands.options.option_groups import require_meaning
from bubbleproof.commands.options.shared_options import Detail
from bubbleproof.commands.output import (
    BROKEN,
    HOLDS,
    measures_to_json,
    print_json,
    print_table,
    print_text,
)
from bubbleproof.formats import ScheduleFile
from bubbleproof.formats.format_table import has_dialects
from bubbleproof.formats.inputs import read_schedule_input
from bubbleproof.report.amounts import Scale, percent, time
from bubbleproof.theory.idle import idle_stretches
from bubbleproof.theory.orders.difference import ScheduleDifference, difference
from bubbleproof.verify import Verdict
from bubbleproof.verify.every_rule import check_every_rule

MOST_PEAKS = 12  # ranks whose peaks are said one by one
KEYS = (
    "makespan",
    "idle_ratio",
    "span_idle",
    "idle_ticks",
    "peak_memory",
    "peak_activations",
)
Pair = tuple[object, object]


def run_diff(a: str, b: str, detail: Detail, dialect: str | None, json: bool) -> int:
    """Print what differs between two schedules."""
    is_alone = dialect is not None and not any(has_dialects(words) for words in (a, b))
    require_meaning("--dialect", "two schedules of which none is a table (.csv)", is_given=is_alone)
    given = [
        read_schedule_input([words], dialect=dialect if has_dialects(words) else None)
        for words in (a, b)
    ]
    verdicts = [check_every_rule(each.to_judge) for each in given]
    one, other = ((each.problem, each.timed_roughly()) for each in given)
    found = difference(one, other)
    measures, causes = _measures(verdicts), _causes(given, verdicts)
    if json:
        _print_json(given, verdicts, found, measures, causes)
    elif print_answer(_lines(given, verdicts, found, measures, causes), detail):
        _print_tables(given, verdicts, found, {**measures, **causes}, detail)
    is_right = all(verdict.ok for verdict in verdicts)
    return HOLDS if found.is_none and is_right else BROKEN


def _measures(verdicts: Sequence[Verdict]) -> dict[str, Pair]:
    """Both values of every measure that is compared; None where a schedule has none."""
    found = [None if v.measured is None else measures_to_json(v.measured) for v in verdicts]
    one, other = ([None if each is None else each[key] for key in KEYS] for each in found)
    return dict(zip(KEYS, zip(one, other, strict=True), strict=True))


def _causes(given: Sequence[ScheduleFile], verdicts: Sequence[Verdict]) -> dict[str, Pair]:
    """The idle ticks of each cause in both; None where a rank does two things at once."""
    found: list[dict[str, int]] = []
    for each, verdict in zip(given, verdicts, strict=True):
        try:
            idle = idle_stretches(each.problem, each.timed_roughly()).ticks_by_cause()
        except ValueError:
            found.append({})
            continue
        found.append({cause.value: t for cause, t in idle.items() if verdict.measured is not None})
    words = [word for word in {**found[0], **found[1]} if any(each.get(word) for each in found)]
    return {word: (found[0].get(word), found[1].get(word)) for word in words}


def _broken(verdict: Verdict) -> list[str]:
    return [rule.name.lower() for rule in verdict.broken]


def _print_json(
    given: Sequence[ScheduleFile],
    verdicts: Sequence[Verdict],
    found: ScheduleDifference,
    measures: dict[str, Pair],
    causes: dict[str, Pair],
) -> None:
    def sides(pairs: dict[str, Pair]) -> dict[str, object]:
        return {key: {"a": a, "b": b} for key, (a, b) in pairs.items()}

    print_json(
        {
            "a": given[0].name,
            "b": given[1].name,
            "same": found.is_none,
            "measures": sides(measures),
            "causes": sides(causes),
            "broken": {"a": _broken(verdicts[0]), "b": _broken(verdicts[1])},
            **asdict(found),
        }
    )


def _print_tables(
    given: Sequence[ScheduleFile],
    verdicts: Sequence[Verdict],
    found: ScheduleDifference,
    values: dict[str, Pair],
    detail: Detail,
) -> None:
    names = given[0].name or "A", given[1].name or "B"
    rules = [", ".join(_broken(verdict)) or "every rule holds" for verdict in verdicts]
    rows = [("verdict", *rules, "")]
    rows += [(key, _text(a), _text(b), _change(a, b)) for key, (a, b) in values.items()]
    print_table(f"{names[0]} and {names[1]}", ("", *names, "change"), rows)
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


def _lines(
    given: Sequence[ScheduleFile],
    verdicts: Sequence[Verdict],
    found: ScheduleDifference,
    measures: dict[str, Pair],
    causes: dict[str, Pair],
) -> list[str]:
    """Which is shorter, or that they are the same; whether each is valid; why they differ."""
    a, b = given[0].name or "A", given[1].name or "B"
    if found.is_none:
        told = [f"SAME  {a} and {b}: {_summary(found)}"]
    else:
        told = [f"{b} {_against(given, measures['makespan'])} {a}"]
    for name, verdict in ((a, verdicts[0]), (b, verdicts[1])):
        if not verdict.ok:
            told.append(f"{name} is INVALID: {', '.join(_broken(verdict))}")
    units = [each.problem.memory_unit for each in given]
    if measures["peak_memory"] != (None, None):
        peaks = (_peaks(p, u) for p, u in zip(measures["peak_memory"], units, strict=True))
        told.append(f"memory   {' -> '.join(peaks)} at the peaks of the ranks")
    if measures["idle_ratio"] != (None, None):
        told.append(f"idle     {' -> '.join(map(_percent, measures['idle_ratio']))}")
    unit = given[0].problem.unit
    moved = [f"{w} {_span(x, unit)} -> {_span(y, unit)}" for w, (x, y) in causes.items() if x != y]
    told += [f"because  {', '.join(moved)}"] if moved else []
    return told if found.is_none else [*told, f"actions  {_summary(found)}"]


def _against(given: Sequence[ScheduleFile], spans: Pair) -> str:
    """``takes 27 ticks, 18.2 % less than the 33 ticks of``."""
    unit, other = (each.problem.unit for each in given)
    a, b = spans
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


def _text(value: object) -> str:
    if value is None:
        return "none"
    return " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _change(a: object, b: object) -> str:
    if isinstance(a, int) and isinstance(b, int):
        return f"{b - a:+}" if b != a else "0"
    return "same" if a == b else "differs"
