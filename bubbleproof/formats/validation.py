"""Pydantic's findings told as one ``UnusableInput``.

A model describes the layout of a file: keys, types and ranges. ``validate`` checks data against it
and turns the first finding into a line that names the key (``pipeline.forward[2]``), what was
expected there and what stands there. Types are strict: a number is never taken from a string, a
whole number never from ``1.0`` or ``true``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from bubbleproof.formats.errors import UnusableInput, quoted, unknown_key

# The largest whole number that every JSON reader keeps exactly (RFC 7493, section 2.2).
LARGEST = (1 << 53) - 1

Whole = Annotated[int, Field(ge=-LARGEST, le=LARGEST)]
Count = Annotated[int, Field(ge=1, le=LARGEST)]
Natural = Annotated[int, Field(ge=0, le=LARGEST)]

Model = TypeVar("Model", bound="Layout")


class Layout(BaseModel):
    """Base of all file layouts: unknown keys are errors, types are strict."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def validate(layout: type[Model], data: object) -> Model:
    """The data as a ``layout``. Raises ``UnusableInput`` for the first thing that does not fit."""
    try:
        return layout.model_validate(data)
    except ValidationError as error:
        details = error.errors(include_url=False, include_context=True)
    for detail in details:
        if detail["type"] == "extra_forbidden":  # likely the reason for a key that is missing
            *table, key = _place(data, detail["loc"])
            known = _keys_beside(layout, table)
            raise unknown_key(where(table), str(key), known) from None
    # Of a choice such as "number or list" each alternative reports: the deepest place tells most.
    places = [_place(data, detail["loc"]) for detail in details]
    deepest = max(places, key=len)
    found = [d for d, place in zip(details, places, strict=True) if place == deepest]
    expected = " or ".join(dict.fromkeys(_expectation(detail) for detail in found))
    missing_key = found[0]["type"] == "missing" and isinstance(found[0]["loc"][-1], str)
    shown = "nothing" if missing_key else quoted(_value(data, deepest))
    raise UnusableInput(where(deepest), expected, shown) from None


def where(place: Sequence[str | int]) -> str:
    """A place as people write it.

    >>> where(["orders", "rank 0", 3])
    'orders."rank 0"[3]'
    """
    text = ""
    for part in place:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            name = part if part.isidentifier() else quoted(part).replace("'", '"')
            text += f".{name}" if text else name
    return text


def _place(data: object, loc: Sequence[str | int]) -> tuple[str | int, ...]:
    """Pydantic's location less the names of alternatives, which are no part of the data."""
    place: list[str | int] = []
    for index, part in enumerate(loc):
        inside = _inside(data, part)
        last_key = index == len(loc) - 1 and isinstance(data, Mapping) and isinstance(part, str)
        if inside is not None:
            data = inside[0]
        elif not last_key:
            continue
        place.append(part)
    return tuple(place)


def _inside(data: object, part: str | int) -> tuple[object] | None:
    if isinstance(data, Mapping) and part in data:
        return (data[part],)
    if isinstance(data, list) and isinstance(part, int) and part < len(data):
        return (data[part],)
    return None


def _value(data: object, place: Sequence[str | int]) -> object:
    for part in place:
        data = (_inside(data, part) or (None,))[0]
    return data


def _keys_beside(layout: type[BaseModel], place: Sequence[str | int]) -> list[str]:
    """The keys that the layout knows at a place."""
    for part in place:
        field = layout.model_fields.get(str(part))
        inner = _layouts_in(field.annotation) if field else []
        layout = inner[0] if inner else layout
    return list(layout.model_fields)


def _layouts_in(annotation: object) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    parts = getattr(annotation, "__args__", ())
    return [layout for part in parts for layout in _layouts_in(part)]


_EXPECTED = {
    "missing": "this key",
    "int_type": "a whole number",
    "string_type": "a string",
    "bool_type": "true or false",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "a table",
    "model_type": "a table",
    "none_required": "null",
}


def _expectation(detail: ErrorDetails) -> str:
    context = detail.get("ctx") or {}
    match detail["type"]:
        case "missing" if isinstance(detail["loc"][-1], int):
            return "more entries"
        case "greater_than_equal":
            return f"a whole number of {context['ge']} or more"
        case "less_than_equal":
            return f"a whole number of {context['le']} or less"
        case "literal_error":
            return str(context["expected"])
        case "too_long":
            return f"at most {context['max_length']} entries"
        case "too_short":
            return f"at least {context['min_length']} entries"
        case "string_too_long":
            return f"at most {context['max_length']} characters"
        case "string_too_short":
            return f"at least {context['min_length']} characters"
        case kind:
            return _EXPECTED.get(kind, detail["msg"][:80])
