"""``bubbleproof verify SCHEDULE --spec``: rules 1 to 5 and 8 by their definition alone.

No code of the fast checker runs: what is printed is what ``verify.spec`` finds. The other rules
are not decided, and no word is said of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from bubbleproof.commands.inputs import read_schedule_input
from bubbleproof.commands.output import BROKEN, HOLDS, print_json, print_table, ratio, say
from bubbleproof.verify.finding import Finding, Rule
from bubbleproof.verify.spec import Number, breaches, measures, plain_problem, plain_schedule

DECIDED = (Rule.COMPLETE, Rule.PLACED, Rule.DEPENDENCIES, Rule.EXCLUSIVE, Rule.MEMORY, Rule.CLAIMS)
OTHERS = tuple(rule for rule in Rule if rule not in DECIDED)
NOT_DECIDED = "not decided"


def run_spec(
    schedule: Sequence[str], *, problem: str | None, dialect: str | None, json: bool
) -> int:
    """Verify one schedule by the definition. Raises ``ValueError`` where it has no times."""
    given = read_schedule_input(schedule, dialect=dialect, problem=problem)
    plain, timed = plain_problem(given.problem), plain_schedule(given.timed())
    found = breaches(plain, timed)
    if json:
        print_json(
            {
                "name": given.name,
                "ok": not found,
                "rules": [_rule_to_json(rule, found) for rule in Rule],
                "violations": [
                    {"rule": f.rule.name.lower(), "tasks": f.tasks, "at": f.at} for f in found
                ],
                "measured": {n: _plain(v) for n, v in measures(plain, timed.rows).items()},
            }
        )
    else:
        rows = [(rule.name.lower(), _state(rule, found), rule.value) for rule in Rule]
        print_table(f"{given.name}, by the definition", ("rule", "verdict", "statement"), rows)
        for breach in found:
            say(_line(breach))
    return BROKEN if found else HOLDS


def _count(rule: Rule, found: Sequence[Finding]) -> int | None:
    """How often a rule is broken, None where it is not decided."""
    return None if rule in OTHERS else sum(f.rule is rule for f in found)


def _state(rule: Rule, found: Sequence[Finding]) -> str:
    count = _count(rule, found)
    if count is None:
        return NOT_DECIDED
    return f"violated {count}x" if count else "holds"


def _rule_to_json(rule: Rule, found: Sequence[Finding]) -> dict[str, object]:
    count = _count(rule, found)
    return {
        "rule": rule.name.lower(),
        "ok": None if count is None else not count,
        "count": count,
        "verdict": _state(rule, found),
    }


def _line(breach: Finding) -> str:
    rule = breach.rule.name.lower()
    when = "" if breach.at is None else f" at {breach.at}"
    return f"{rule}: {' '.join(breach.tasks) or 'a base load'}{when}"


def _plain(value: Number) -> object:
    return ratio(value) if isinstance(value, Fraction) else value
