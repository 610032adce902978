"""Rule 8: are the numbers that a schedule's author claims the measured ones?"""

from __future__ import annotations

from dataclasses import fields
from fractions import Fraction

from bubbleproof.theory.measures import Measures
from bubbleproof.theory.schedule import Claim
from bubbleproof.verify.rows import Rows, finding
from bubbleproof.verify.verdict import Finding, Rule, Violation


def claims(rows: Rows, measured: Measures) -> Finding:
    names = {field.name for field in fields(measured)}
    violations = []
    for name, claimed in rows.schedule.claims.items():
        if name not in names:
            message = f"{name} is claimed, but no measure has that name"
        elif _as_value(claimed) != (value := getattr(measured, name)):
            message = f"{name} is claimed to be {claimed}, but measures {value}"
        else:
            continue
        violations.append(Violation(rule=Rule.CLAIMS, tasks=(), at=None, message=message))
    return finding(Rule.CLAIMS, len(violations), violations)


def _as_value(claimed: Claim) -> int | Fraction | tuple[int, ...]:
    return Fraction(claimed) if isinstance(claimed, str) else claimed
