"""Layouts that are made from a class of the theory: the class is the one statement of its fields.

A field is written as its annotation says it: a whole number of ``AtLeast`` (0 where nothing is
said), one of ``OneOf``, a list for a tuple or a sequence, actions and ratios as text, an overlap as
its two actions, and another such class as a table. A field without a default is a key that a file
must have.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import MISSING, fields, is_dataclass
from dataclasses import Field as ClassField
from fractions import Fraction
from functools import cache, partial, reduce
from operator import or_
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import AfterValidator, Field, create_model

from bubbleproof.formats.action_text import parse_action
from bubbleproof.formats.errors import UnusableInput, quoted
from bubbleproof.formats.sizes import LARGEST
from bubbleproof.formats.validation import AS_WHOLE, Layout, Whole
from bubbleproof.formats.values import NaturalSize, Time
from bubbleproof.theory.model.actions import Action, Kind
from bubbleproof.theory.pipelines.overlaps import Overlap
from bubbleproof.theory.pipelines.value_types import (
    AtLeast,
    OneOf,
    alternatives,
    beside,
    declared,
)


@cache
def layout_of(kind: type, is_measured: bool = False) -> type[Layout]:
    """The layout of a class's fields, described as the class is in its first paragraph.

    ``is_measured``: times and sizes may be texts with a unit, as people write them.
    """
    told = (kind.__doc__ or "").partition("\n\n")[0]
    forms = forms_of(kind, is_measured=is_measured)
    made: type[Layout] = create_model(
        f"{kind.__name__}Layout", __base__=Layout, __doc__=told, **forms
    )
    made.MAKES = kind
    return made


def forms_of(kind: type, *, is_measured: bool = False) -> dict[str, Any]:
    """What a file holds for each field of a class, with the default."""
    hints, measured = declared(kind), _MEASURED if is_measured else {}
    return {
        field.name: (
            form_of(hints[field.name], measured.get(field.name, 0), is_measured=is_measured),
            _default(field, is_measured),
        )
        for field in fields(kind)
    }


def _default(field: ClassField[Any], is_measured: bool) -> Any:
    default: Any = field.default
    if default is MISSING:
        return ...
    if isinstance(default, tuple):
        return Field(default_factory=list)
    if is_measured and field.name in _MEASURED and default:
        return Field(default=default, validate_default=True)
    is_value = is_dataclass(default) and not isinstance(default, type)
    return layout_of(type(default), is_measured)() if is_value else default  # type: ignore[arg-type]  # a type can be hashed


def form_of(hint: object, least: Any = 0, *, is_measured: bool = False) -> Any:
    """What a file holds for a value of this type.

    ``least`` is the least of its whole numbers, None for any, or what a file holds for each.
    """
    told: AtLeast | None = beside(hint, AtLeast)
    least = least if told is None else told.least
    again = partial(form_of, least=least, is_measured=is_measured)
    if (one_of := beside(hint, OneOf)) is not None:
        is_number = not isinstance(one_of.values[0], str)
        listed: Any = Literal.__getitem__(one_of.values)
        return Annotated[listed, AS_WHOLE] if is_number else listed
    if hint == Overlap:
        return Annotated[form_of(tuple[Action, Action]), AfterValidator(_overlap)]
    if get_origin(hint) is Annotated:
        return again(get_args(hint)[0])
    if len(parts := tuple(alternatives(hint))) > 1:
        return reduce(or_, map(again, parts))
    if get_origin(hint) in (tuple, Sequence):
        return _row_form(get_args(hint), again)
    if is_dataclass(hint) and isinstance(hint, type) and hint is not Action:
        return layout_of(hint, is_measured)
    return _number(least) if hint is int else _TEXTS.get(hint, hint)


def _row_form(parts: tuple[object, ...], form: Callable[[object], Any]) -> Any:
    """A list of one type, or of as many as there are parts."""
    if len(parts) == 1 or parts[1:] == (...,):
        return list[form(parts[0])]  # type: ignore[misc]  # a type made here
    forms = tuple(map(form, parts))
    return Annotated[tuple.__class_getitem__(forms), Field(strict=False)]


def _number(least: Any) -> Any:
    is_number = isinstance(least, int)
    return Annotated[int, Field(ge=least, le=LARGEST)] if is_number else least or Whole


def _overlap(pair: tuple[Action, Action]) -> Overlap:
    forward, backward = pair
    if (forward.kind, backward.kind) != (Kind.F, Kind.B) or forward.slice or backward.slice:
        raise UnusableInput("", "an F and a B action", quoted(" ".join(map(str, pair))))
    return (forward.stage, forward.microbatch), (backward.stage, backward.microbatch)


def _as_actions(overlap: Any) -> tuple[Action, Action]:
    (stage, microbatch), (other, later) = overlap
    return (
        Action(kind=Kind.F, stage=stage, microbatch=microbatch),
        Action(kind=Kind.B, stage=other, microbatch=later),
    )


def _ratio(text: str) -> Fraction:
    if (match := re.fullmatch(r"([1-9][0-9]{0,15})/([1-9][0-9]{0,15})", text)) is None:
        raise UnusableInput("", 'a number or a ratio "a/b"', quoted(text))
    return Fraction(int(match[1]), int(match[2]))


_TIMES = ("duration", "offload", "step", "reload", "gather", "reduce", "regather", "rereduce")
_SIZES = ("kept", "host_capacity", "parameter", "gradient", "weight", "state")
_MEASURED: dict[str, Any] = dict.fromkeys(_TIMES, Time) | dict.fromkeys(_SIZES, NaturalSize)
_TEXTS: dict[object, Any] = {
    Action: Annotated[str, AfterValidator(partial(parse_action, ""))],
    Fraction: Annotated[str, AfterValidator(_ratio)],
}


def plain(value: object, hint: object = None) -> object:
    """A value as a file holds it: lists, tables and texts for tuples, dataclasses and actions."""
    if hint == Overlap:
        return plain(_as_actions(value))
    if isinstance(value, Fraction) and value.denominator == 1:
        return value.numerator
    if isinstance(value, Action | Fraction):
        return str(value)
    if is_dataclass(value) and not isinstance(value, type):
        hints = declared(type(value))
        return {name: plain(getattr(value, name), hint) for name, hint in hints.items()}
    inner = hint.__origin__ if get_origin(hint) is Annotated else hint  # type: ignore[attr-defined]  # it has one
    each = get_args(inner)[0] if get_origin(inner) is tuple else None
    return [plain(item, each) for item in value] if isinstance(value, tuple) else value
