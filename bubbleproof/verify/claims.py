"""Rule 8: are the numbers that a schedule's author claims the measured ones?"""

from __future__ import annotations

from dataclasses import fields
from fractions import Fraction

from bubbleproof.theory.model.measures import Measures
from bubbleproof.theory.model.schedule import Claim
from bubbleproof.verify.rows import Rows, finding
from bubbleproof.verify.verdict import Finding, Rule, Violation


def claims(rows: Rows, measured: Measures) -> Finding:
    names = {field.name for field in fields(measured)}
    violations = []
    for name, claimed in rows.schedule.claims.items():
        if name not in names:
            message = f"{name} is claimed, but no measure has that name"
        elif (number := _as_value(claimed)) is None:
            message = f"{name} is claimed to be {claimed!r}, which is no number"
        elif number != (value := getattr(measured, name)):
            message = f"{name} is claimed to be {claimed}, but measures {value}"
        else:
            continue
        violations.append(Violation(rule=Rule.CLAIMS, tasks=(), at=None, message=message))
    return finding(Rule.CLAIMS, len(violations), violations)


def _as_value(claimed: Claim) -> int | Fraction | tuple[int, ...] | None:
    """The claimed value, a text read as a fraction; None where the text is none."""
    try:
        return Fraction(claimed) if isinstance(claimed, str) else claimed
    except (ValueError, ZeroDivisionError):
        return None
