"""What a field of a pipeline or of a choice may hold, told once, where the field is declared.

The annotation of a field says its types; what they do not say stands beside them:

- ``Expectation``: the words with which a value of another type is refused;
- ``AtLeast``: the least whole number (0 where nothing is said, and None for any);
- ``OneOf``: the values there are;
- ``AsActions``: that a file tells it as two actions in text form.

Types are tested from here (``require_types``), and the layouts of files are made from the same
annotations (``formats.derived_layout``). Whether a number fits is for others to say; a wrong type
is told by the field's name, what was expected and what was found, before anything is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import numpy as np


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a value has to be, in words."""

    words: str


@dataclass(frozen=True, slots=True)
class AtLeast:
    """The least that a whole number may be; None for no limit."""

    least: int | None


@dataclass(frozen=True, slots=True)
class OneOf:
    """The values there are."""

    values: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class AsActions:
    """A file tells the value as a pair of actions: ``words`` say which.

    ``read`` gives the value of a pair of actions, None where they are others.
    """

    words: str
    read: Callable[[Any], Any]
    written: Callable[[Any], Any]


def declared(kind: type) -> Mapping[str, object]:
    """The annotations of a class's fields by name, with what stands beside them."""
    return _declared(kind)


@cache
def _declared(kind: type) -> Mapping[str, object]:
    return get_type_hints(kind, include_extras=True)


def beside(hint: object, what: type) -> Any:
    """What of one kind stands beside an annotation's type; None where nothing does."""
    found = (one for one in getattr(hint, "__metadata__", ()) if isinstance(one, what))
    return next(found, None)


def alternatives(hint: object) -> Iterator[object]:
    """The types that an annotation names, those of a union one by one."""
    if get_origin(hint) in (Union, UnionType):
        for part in get_args(hint):
            yield from alternatives(part)
    else:
        yield hint


def settled(value: object) -> object:
    """Numpy's whole numbers as ours, and lists and arrays as tuples, at any depth."""
    if isinstance(value, np.integer | np.bool_ | np.ndarray):
        value = value.tolist()
    return tuple(map(settled, value)) if isinstance(value, list | tuple) else value


def require_types(values: Mapping[str, object], kind: type) -> None:
    """Raise ``TypeError`` naming the first field of ``kind`` whose value is of another type.

    Fields that say in no words what they expect are left to others.
    """
    for name, hint in declared(kind).items():
        expected: Expectation | None = beside(hint, Expectation)
        if expected is not None and not _fits(values[name], hint):
            value = values[name]
            found = f"{type(value).__name__} {value!r:.60}"
            raise TypeError(f"{name} must be {expected.words}, got {found}")


def _fits(value: object, hint: object, *, is_inside: bool = False) -> bool:
    """Whether a value has a type's structure; the numbers within rows are not looked at."""
    if get_origin(hint) is Annotated:
        return _fits(value, get_args(hint)[0], is_inside=is_inside)
    if get_origin(hint) in (Union, UnionType):
        return any(_fits(value, one, is_inside=is_inside) for one in alternatives(hint))
    if get_origin(hint) is Sequence:
        return isinstance(value, tuple)
    if get_origin(hint) is tuple:
        return _is_tuple(value, get_args(hint))
    if hint in (int, bool, str) and is_inside:
        return True
    return isinstance(value, hint or NoneType)  # type: ignore[arg-type]  # a class


def _is_tuple(value: object, parts: tuple[object, ...]) -> bool:
    if not isinstance(value, tuple):
        return False
    if parts[1:] == (...,):
        return all(_fits(one, parts[0], is_inside=True) for one in value)
    pairs = zip(value, parts, strict=False)
    return len(value) == len(parts) and all(_fits(v, p, is_inside=True) for v, p in pairs)
