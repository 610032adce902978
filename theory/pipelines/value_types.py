"""What a field of a pipeline or of a choice may hold, told once, where the field is declared.

The annotation of a field says its types; what they do not say stands beside them:

- ``Expectation``: the words with which a value of another type is refused;
- ``AtLeast``: the least whole number (0 where nothing is said, and None for any);
- ``OneOf``: the values there are.

Types are tested from here (``require_types``), and the layouts of files are made from the same
annotations (``formats.derived_layout``). Whether a number fits is for others to say; a wrong type
is told by the field's name, what was expected and what was found, before anything is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import numpy as np

Test = Callable[[object], bool]
_PLAIN = frozenset((int, str, bool))  # settled as they are
_NUMPY = np.integer, np.bool_, np.ndarray


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


@cache
def declared(kind: type) -> Mapping[str, object]:
    """The annotations of a class's fields by name, with what stands beside them."""
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
    if value is None or type(value) in _PLAIN:
        return value
    if isinstance(value, _NUMPY):
        value = value.tolist()
    return tuple(map(settled, value)) if isinstance(value, (list, tuple)) else value


def require_types(values: Mapping[str, object], kind: type) -> None:
    """Raise ``TypeError`` naming the first field of ``kind`` whose value is of another type.

    Fields that say in no words what they expect are left to others.

    Parameters
    ----------
    values
        A value for each field of ``kind``, by name.
    """
    for name, words, fits in _tests(kind):
        if not fits(values[name]):
            value = values[name]
            raise TypeError(f"{name} must be {words}, got {type(value).__name__} {value!r:.60}")


@cache
def _tests(kind: type) -> tuple[tuple[str, str, Test], ...]:
    """Of each field that says what it expects: its name, these words, and the test of a value."""
    told = ((name, hint, beside(hint, Expectation)) for name, hint in declared(kind).items())
    return tuple((name, said.words, _test(hint)) for name, hint, said in told if said is not None)


def _test(hint: object, *, is_inside: bool = False) -> Test:
    """Whether a value has a type's structure; the numbers within rows are not looked at."""
    if get_origin(hint) is Annotated:
        return _test(get_args(hint)[0], is_inside=is_inside)
    if get_origin(hint) in (Union, UnionType):
        tests = (_test(one, is_inside=is_inside) for one in alternatives(hint))
        return reduce(lambda one, more: lambda value: one(value) or more(value), tests)
    if get_origin(hint) is Sequence:
        return lambda value: isinstance(value, tuple)
    if get_origin(hint) is tuple:
        return _test_of_tuple(get_args(hint))
    if hint in (int, bool, str) and is_inside:
        return lambda _: True
    wanted: Any = hint or NoneType
    return lambda value: isinstance(value, wanted)


def _test_of_tuple(parts: tuple[object, ...]) -> Test:
    if parts[1:] == (...,):
        each = _test(parts[0], is_inside=True)
        return lambda value: isinstance(value, tuple) and all(map(each, value))
    tests = [_test(part, is_inside=True) for part in parts]

    def fits(value: object) -> bool:
        if not isinstance(value, tuple) or len(value) != len(tests):
            return False
        return all(test(one) for test, one in zip(tests, value, strict=True))

    return fits
