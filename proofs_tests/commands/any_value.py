"""A value of each JSON type at each place of a file's content, of however many levels.

Of a list the first and the last entry stand for all: they have one layout.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

Json = Any  # whatever a JSON file holds
Place = tuple[str | int, ...]

BY_TYPE: dict[str, tuple[Json, ...]] = {
    "null": (None,),
    "boolean": (True, False),
    "whole number": (0, 1, -1, 3, 1 << 52, 10**40),
    "number": (1.5, -0.5, 1.0, 1e300),
    "string": ("", "x", "0F0", "rank 0", "1/0", "\x00", "9" * 70),
    "list": ([], [0], [[]], [None], ["x"], [{}], [True], [-1], [1.5]),
    "table": ({}, {"kind": {}}, {"x": []}, {"version": []}, {"rank 0": 0}),
}


def places(content: Json, place: Place = ()) -> Iterator[Place]:
    """Every place of the content, the whole first."""
    yield place
    if isinstance(content, Mapping):
        for key, value in content.items():
            yield from places(value, (*place, key))
    if isinstance(content, list):
        for index in sorted({0, len(content) - 1} if content else ()):
            yield from places(content[index], (*place, index))


def at(content: Json, place: Place) -> Json:
    """What stands at a place."""
    for part in place:
        content = content[part]
    return content


def with_value(content: Json, place: Place, value: Json) -> Json:
    """The content with another value at a place."""
    if not place:
        return value
    found = deepcopy(content)
    at(found, place[:-1])[place[-1]] = value
    return found


def without(content: Json, place: Place) -> Json:
    """The content less a key or an entry."""
    found = deepcopy(content)
    del at(found, place[:-1])[place[-1]]
    return found


def changes(content: Json, *, stride: int) -> Iterator[tuple[str, Json]]:
    """What is done at each place, and the content then.

    Every value of every type with a stride of 1; else one value of every so many types, and at each
    place other types and values than at the one before.
    """
    types = list(BY_TYPE.items())
    for number, place in enumerate(places(content)):
        for name, values in types[number % stride :: stride]:
            for value in values if stride == 1 else (values[number % len(values)],):
                if repr(value) != repr(at(content, place)):
                    yield f"{name} {value!r:.40} at {place}", with_value(content, place, value)
        if place and number % stride == 0:
            yield f"nothing at {place}", without(content, place)
