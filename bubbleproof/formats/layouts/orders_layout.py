"""What a schedule file says of the schedule: an order per resource by its name, and claims.

A claim stands under the name of a measure, in that measure's type: a count is a whole number, a
ratio ``"a/b"``, a list one whole number per rank. A string claim reads back as the ``Fraction`` it
writes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from fractions import Fraction

import numpy as np

from bubbleproof.formats.action_text import action_texts, parse_actions
from bubbleproof.formats.errors import UnusableInput, quoted
from bubbleproof.formats.layouts.problem_layout import refuse_wide
from bubbleproof.formats.sizes import LARGEST
from bubbleproof.formats.validation import Whole, unknown_key, where
from bubbleproof.theory.model.actions import Action, ActionTable
from bubbleproof.theory.model.measures import Measures
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import ClaimedNumber, Program, Schedule

ClaimLayout = Whole | str | list[Whole]
_RATIO = re.compile(r"-?\d{1,30}/\d{1,30}", re.ASCII)
_TYPES = {field.name: str(field.type) for field in fields(Measures)}
_EXPECTED = {
    "int": "a whole number",
    "Fraction": 'a whole number or a ratio "a/b"',
    "tuple[int, ...]": "a list of whole numbers",
}


def program_from_orders(
    key: str, texts: Mapping[str, Sequence[str]], resources: Mapping[str, int]
) -> Program:
    """The program whose orders are given by resource name, in any order of the names.

    Raises ``UnusableInput`` naming the place under ``key`` for an unknown resource or action.
    """
    actions: list[Action] = []
    resource: list[int] = []
    for name, order in texts.items():
        if name not in resources:
            known = ", ".join(list(resources)[:8])
            raise UnusableInput(key, f"resources such as {known}", quoted(name))
        actions += parse_actions(order, _place_in(key, name))
        resource += [resources[name]] * len(order)
    return Program.grouped(
        actions=ActionTable.from_actions(actions), resource=np.array(resource, dtype=np.int64)
    )


def _place_in(key: str, name: str) -> Callable[[int], str]:
    return lambda row: where([key, name, row])


def orders_to_json(
    problem: Problem, program: Program, schedule: Schedule | None
) -> dict[str, object]:
    """The key ``orders`` with the starts of the schedule, or ``program`` where there is none.

    Raises ``UnusableInput`` for a resource that the problem does not have and for a negative start.
    """
    names = [resource.name for resource in problem.resources]
    texts, rows = action_texts(program.actions), program.resource.tolist()
    if rows and not 0 <= min(rows) <= max(rows) < len(names):
        expected = f"resources 0 to {len(names) - 1} of the problem"
        raise UnusableInput("program", expected, f"resource {max(rows)}")
    if schedule is None:
        order: dict[str, list[str]] = {name: [] for name in names}
        for text, row in zip(texts, rows, strict=True):
            order[names[row]].append(text)
        return {"program": order}
    refuse_wide("orders", schedule.start)
    if (schedule.start < 0).any():
        first = str(int(schedule.start.min()))
        raise UnusableInput("orders", "starts of 0 ticks or more", first)
    orders: dict[str, list[tuple[str, int]]] = {name: [] for name in names}
    for text, row, start in zip(texts, rows, schedule.start.tolist(), strict=True):
        orders[names[row]].append((text, start))
    return {"orders": orders}


def claims_from_layout(layout: Mapping[str, ClaimLayout]) -> dict[str, ClaimedNumber]:
    """The claims of a file. Raises ``UnusableInput`` for an unknown measure or another type."""
    return {name: _read(name, value) for name, value in layout.items()}


def claims_to_json(claims: Mapping[str, ClaimedNumber]) -> dict[str, ClaimLayout]:
    """The claims as they are written. Raises ``UnusableInput`` for what a reader would refuse."""
    written = {name: _write(value) for name, value in claims.items()}
    claims_from_layout(written)
    return written


def _read(name: str, value: ClaimLayout) -> ClaimedNumber:
    if name not in _TYPES:
        raise unknown_key("claims", name, _TYPES)
    wanted = _TYPES[name]
    match value:
        case int() if wanted != "tuple[int, ...]":
            return value
        case str() if wanted == "Fraction" and _is_ratio(value):
            return Fraction(value)
        case list() if wanted == "tuple[int, ...]":
            return tuple(value)
    raise UnusableInput(where(["claims", name]), _EXPECTED[wanted], quoted(value))


def _is_ratio(text: str) -> bool:
    return bool(_RATIO.fullmatch(text)) and int(text.partition("/")[2]) > 0


def _write(value: ClaimedNumber) -> ClaimLayout:
    match value:
        case Fraction():
            return f"{value.numerator}/{value.denominator}"
        case tuple():
            return list(value)
        case int() if abs(value) > LARGEST:
            return str(value)
    return value
