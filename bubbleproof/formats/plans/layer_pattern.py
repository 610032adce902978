"""Layers of kinds as a file tells them: ``dense*3 (window*5 full)*8``."""

from __future__ import annotations

import re

from bubbleproof.formats.errors import UnusableInput, quoted
from bubbleproof.formats.layouts.plan_layout import MOST_LAYERS

_ITEM = re.compile(r"(?:\(([^()]*)\)|([\w.-]+))(?:\*(\d{1,4}))?(?:\s+|$)")


def repeated(text: str, where: str) -> list[tuple[str, int]]:
    """The kinds of "dense*3 (window*5 full)*8", each with how many; no group is in a group."""
    found, rest = list[tuple[str, int]](), text.strip()
    while rest:
        item = _ITEM.match(rest)
        if item is None:
            expected = 'kinds with how many, such as "dense*3" or "(window*5 full)*8"'
            raise UnusableInput(where, expected, quoted(text))
        group, name, number = item[1], item[2], int(item[3] or 1)
        inner = [(name, number)] if group is None else repeated(group, where)
        times = 1 if group is None else number
        if len(found) + len(inner) * times > MOST_LAYERS:
            raise UnusableInput(where, f"at most {MOST_LAYERS} layers", quoted(text))
        found += inner * times
        rest = rest[item.end() :]
    return found
