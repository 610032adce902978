"""Rule 8: are the numbers that a schedule's author claims the measured ones?"""

from __future__ import annotations

from dataclasses import fields
from fractions import Fraction

from bubbleproof.theory.model.measures import Measures
from bubbleproof.theory.model.schedule import ClaimedNumber, Schedule
from bubbleproof.verify.finding import Finding, Rule
from bubbleproof.verify.rows import Breaches


def claims(schedule: Schedule, measured: Measures) -> list[Breaches]:
    """Rule 8: claims of what is no measure, of no number, or of another number."""
    names = {field.name for field in fields(measured)}
    wrong = [
        name
        for name, claimed in schedule.claims.items()
        if name not in names or getattr(measured, name) != value_of(claimed)
    ]
    found = [Finding(Rule.CLAIMS, (name,), None) for name in wrong]
    return [Breaches(1, [finding].__getitem__) for finding in found]


def value_of(claimed: ClaimedNumber) -> int | Fraction | tuple[int, ...] | None:
    """The claimed value, a text read as a fraction; None where the text is none."""
    try:
        return Fraction(claimed) if isinstance(claimed, str) else claimed
    except (ValueError, ZeroDivisionError):
        return None
