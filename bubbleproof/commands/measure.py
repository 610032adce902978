"""``bubbleproof measure FAMILY p=4 m=8 ...``: build a published schedule, check it, measure it."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from bubbleproof.commands.output import (
    measures_to_json,
    print_json,
    print_table,
    ratio,
    rule_rows,
    status_of,
)
from bubbleproof.faults import FaultError
from bubbleproof.theory import families
from bubbleproof.verify import check

KEYS = (
    "makespan",
    "work",
    "idle_ratio",
    "idle_over_work",
    "idle_ticks",
    "rank_spans",
    "span_idle",
    "peak_activations",
)


def run_measure(family: str, parameters: Sequence[str] | None, json: bool) -> int:
    """Print the measures of one family member, measured by the checker's own code."""
    member = families.family(family).member(families.parse_parameters(parameters or ()))
    verdict = check(member.problem, member.schedule)
    if verdict.measured is None:
        broken = ", ".join(rule.name.lower() for rule in verdict.broken)
        raise FaultError(f"family {family}", "an order", f"it cannot be measured (rules: {broken})")
    measured = measures_to_json(verdict.measured)
    parts = member.pipeline.num_stages * member.pipeline.num_slices  # actions of a sample's pass
    peaks = [ratio(Fraction(peak, parts)) for peak in verdict.measured.peak_activations]
    if json:
        answer: dict[str, object] = {"family": family, "params": member.params}
        answer.update((key, measured[key]) for key in KEYS)
        print_json({**answer, "peak_fraction": peaks})
    else:
        params = " ".join(f"{key}={_text(value)}" for key, value in member.params.items())
        rows = [(key, _text(measured[key])) for key in KEYS] + [("peak_fraction", _text(peaks))]
        print_table(
            f"{family} {params}", ("measure", "value (ticks, activations, or a ratio)"), rows
        )
        if not verdict.ok:
            print_table("verdict", ("rule", "verdict", "statement"), rule_rows(verdict))
    return status_of(verdict)


def _text(value: object) -> str:
    return " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
