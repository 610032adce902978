"""Programs and starts in a schedule file: an order per resource, by the resource's name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from bubbleproof.formats.action_text import action_texts, parse_actions
from bubbleproof.formats.errors import UnusableInput, quoted
from bubbleproof.formats.problem_layout import refuse_wide
from bubbleproof.formats.validation import where
from bubbleproof.theory.model.actions import Action, ActionTable
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program, Schedule


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
