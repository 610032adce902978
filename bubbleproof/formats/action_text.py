"""Actions as text in files: many at a time, each refused with its place."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from bubbleproof.formats.errors import UnusableInput, quoted
from bubbleproof.formats.files import FilePath
from bubbleproof.theory.actions import NONE, Action, ActionTable, Kind


def known_action(text: str) -> Action | None:
    """The action written ``text`` in ASCII (digits of other scripts are none), or None."""
    try:
        return Action.parse(text) if text.isascii() else None
    except ValueError:
        return None


def parse_action(path: FilePath, where: str, text: str) -> Action:
    """The action written ``text``. Raises ``UnusableInput`` naming the place ``where``."""
    if (action := known_action(text)) is None:
        expected = "an action <stage><KIND><microbatch>[.<slice>][#<part>]"
        raise UnusableInput(path, where, expected, quoted(text))
    return action


def parse_actions(
    path: FilePath, texts: Iterable[str], where: Callable[[int], str]
) -> list[Action]:
    """The actions of all texts; ``where(i)`` names the place of text i if it is refused."""
    return [
        known_action(text) or parse_action(path, where(index), text)
        for index, text in enumerate(texts)
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
