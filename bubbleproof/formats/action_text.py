"""Actions as text in files: many at a time, each refused with its place."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from bubbleproof.formats.errors import UnusableInput, quoted
from bubbleproof.theory.model.actions import (
    MAX_MICROBATCH,
    MAX_PART,
    MAX_SLICE,
    MAX_STAGE,
    NONE,
    Action,
    ActionTable,
    Kind,
)

_NUMBERS = re.compile(
    r"(?P<stage>[0-9]+)(?P<kind>[A-Z_]+)(?P<microbatch>[0-9]*)"
    r"(\.(?P<slice>[0-9]+))?(#(?P<part>[0-9]+))?"
)
_MOST = {
    "stage": MAX_STAGE,
    "microbatch": MAX_MICROBATCH,
    "slice": MAX_SLICE,
    "part": MAX_PART,
}


def known_action(text: str) -> Action | None:
    """The action written ``text`` in ASCII (digits of other scripts are none), or None."""
    try:
        return Action.parse(text) if text.isascii() else None
    except ValueError:
        return None


def parse_action(where: str, text: str) -> Action:
    """The action written ``text``. Raises ``UnusableInput`` naming the place ``where``."""
    if (action := known_action(text)) is None:
        expected = too_large(text) or "an action <stage><KIND><microbatch>[.<slice>][#<part>]"
        raise UnusableInput(where, expected, quoted(text))
    return action


def too_large(text: str) -> str | None:
    """What is expected in place of a number that is one, but too large."""
    match = _NUMBERS.fullmatch(text)
    if match is None or match["kind"] not in Kind.__members__:
        return None
    for name, most in _MOST.items():
        digits = (match[name] or "").lstrip("0")
        if len(digits) > len(str(most)) or int(digits or 0) > most:
            return f"an action whose {name} is {most} or less"
    return None


def parse_actions(texts: Iterable[str], where: Callable[[int], str]) -> list[Action]:
    """The actions of all texts; ``where(i)`` names the place of text i if it is refused."""
    return [
        known_action(text) or parse_action(where(index), text) for index, text in enumerate(texts)
    ]


def action_texts(actions: ActionTable) -> list[str]:
    """The text form of every row, slice 0 left unwritten."""
    names = [kind.name for kind in Kind]
    plain = (actions.partner_stage == NONE) & (actions.slice == 0) & (actions.microbatch != NONE)
    plain &= actions.part == NONE
    columns = (actions.kind, actions.stage, actions.microbatch, plain)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [
        f"{stage}{names[kind]}{microbatch}" if is_plain else str(actions[row])
        for row, (kind, stage, microbatch, is_plain) in enumerate(rows)
    ]
