"""Pydantic's findings told as one ``UnusableInput``.

A model describes the layout of a file: keys, types and ranges. ``validate`` checks data against it
and turns the first finding into a line that names the key (``pipeline.forward[2]``), what was
expected there and what stands there. Types are strict: a number is never taken from a string, a
whole number never from ``1.0`` or ``true``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Annotated, Any, ClassVar, TypeVar, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from bubbleproof.formats.errors import UnusableInput, quoted, values_at
from bubbleproof.formats.sizes import LARGEST
from bubbleproof.former_names import former_of, warn_of
from bubbleproof.theory.near_names import nearest_name

Whole = Annotated[int, Field(ge=-LARGEST, le=LARGEST)]
Count = Annotated[int, Field(ge=1, le=LARGEST)]
Natural = Annotated[int, Field(ge=0, le=LARGEST)]
RankPair = Annotated[tuple[Natural, Natural], Field(strict=False)]

Json = dict[str, object]  # an object of a file, by key

Model = TypeVar("Model", bound="Layout")


def _whole(value: object) -> object:
    if isinstance(value, bool | float):
        raise UnusableInput("", "a whole number", quoted(value))
    return value


AS_WHOLE = BeforeValidator(_whole)  # of a literal number, which to Python equals true or 1.0


class Layout(BaseModel):
    """Base of all file layouts: unknown keys are errors, types are strict.

    ``MAKES`` is the class that it describes, where it has the fields of one (``described``).
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)
    MAKES: ClassVar[type[Any] | None] = None


def described(value: object, place: str) -> Any:
    """A value as the theory has it: what a layout ``MAKES`` in its stead, tuples for lists.

    Raises ``UnusableInput`` naming the place where values do not fit together.
    """
    if isinstance(value, list | tuple):
        return tuple(described(item, f"{place}[{row}]") for row, item in enumerate(value))
    if not isinstance(value, Layout) or value.MAKES is None:
        return value
    told = set(value.model_fields_set)  # the rest are the defaults of what is made
    told |= {name for name, field in type(value).model_fields.items() if field.validate_default}
    values = {name: described(item, f"{place}.{name}") for name, item in value if name in told}
    with values_at(place):
        return value.MAKES(**values)


def validate(layout: type[Model], data: object, context: object = None) -> Model:
    """The data as a ``layout``. Raises ``UnusableInput`` for the first thing that does not fit.

    A validator of a field may raise one without its place; ``context`` is what it is told.
    """
    try:
        return layout.model_validate(data, context=context)
    except ValidationError as error:
        details = error.errors(include_url=False, include_context=True)
    for detail in details:
        if detail["type"] == "extra_forbidden":  # likely the reason for a key that is missing
            *table, key = _place(data, detail)
            if (new := _renamed(layout, table, key)) is not None:
                data = _by_new_name(data, table, key, new)
                return validate(layout, data, context)
            known = _keys_beside(layout, table)
            there = _elsewhere(layout, table, str(key))
            raise unknown_key(where(table), str(key), known, there) from None
    # Of a choice such as "number or list" each alternative reports: the deepest place tells most.
    places = [_place(data, detail) for detail in details]
    deepest = max(places, key=len)
    found = [d for d, place in zip(details, places, strict=True) if place == deepest]
    value = _value(data, deepest)
    told = next(filter(None, map(_told, found)), None)
    if told is not None and (len(found) == 1 or isinstance(value, str)):
        raise told.at(where(deepest))
    expected = " or ".join(dict.fromkeys(_expectation(detail) for detail in found))
    missing_key = found[0]["type"] == "missing" and isinstance(found[0]["loc"][-1], str)
    if missing_key and _is_table(layout, deepest):
        expected = "this table"
    shown = "nothing" if missing_key else quoted(value)
    raise UnusableInput(where(deepest), expected, shown) from None


def _renamed(layout: type[BaseModel], table: Sequence[str | int], key: str | int) -> str | None:
    """The key that was called so."""
    fields = _layout_at(layout, table).model_fields
    return next((new for new, field in fields.items() if former_of(field.metadata) == key), None)


def _by_new_name(data: object, table: Sequence[str | int], key: str | int, new: str) -> object:
    """The data with the new name of a key. Raises ``UnusableInput`` where it has both."""
    found = inner = cast(Any, deepcopy(data))
    for part in table:
        inner = inner[part]
    with values_at(where([*table, key])):
        warn_of(str(key), new, has_both=new in inner)
    inner[new] = inner.pop(key)
    return found


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


class Names:
    """The numbers of things by their names, which differ."""

    def __init__(self, names: Iterable[str], kind: str) -> None:
        """``kind`` says what is expected in place of a name that is none of them."""
        self.numbers = {name: number for number, name in enumerate(names)}
        self.kind = kind

    def number(self, name: str, *place: str | int) -> int:
        """The number of a name. Raises ``UnusableInput`` at the place for one that is not there."""
        if name not in self.numbers:
            raise UnusableInput(where(place), self.kind, quoted(name))
        return self.numbers[name]


def _place(data: object, detail: ErrorDetails) -> tuple[str | int, ...]:
    """Pydantic's location less the names of alternatives, which are no part of the data.

    What is not in the data is such a name, but for the last part where a key is missing.
    """
    place: list[str | int] = []
    for index, part in enumerate(loc := detail["loc"]):
        if (inside := _inside(data, part)) is not None:
            data = inside[0]
        elif index < len(loc) - 1 or detail["type"] != "missing" or isinstance(part, int):
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
    return list(_layout_at(layout, place).model_fields)


def _elsewhere(layout: type[BaseModel], table: Sequence[str | int], key: str) -> str:
    """Where a key stands that is none of a table's, or what it is called there; else nothing."""
    within = str(table[-1]) if table else ""
    for name in (f"{within}_{key}", key):
        if within and name in layout.model_fields:
            return f"{name} stands at the top"
    tables = (name for name in layout.model_fields if key in _keys_beside(layout, [name]))
    return next((f"[{name}] has it" for name in tables if [name] != [*table]), "")


def _is_table(layout: type[BaseModel], place: Sequence[str | int]) -> bool:
    """Whether a layout, and nothing else, belongs at a place."""
    *before, last = place
    field = _layout_at(layout, before).model_fields.get(str(last))
    return field is not None and bool(_layouts_in(field.annotation))


def _layout_at(layout: type[BaseModel], place: Sequence[str | int]) -> type[BaseModel]:
    """The layout of the table at a place."""
    for part in place:
        field = layout.model_fields.get(str(part))
        inner = _layouts_in(field.annotation) if field else []
        layout = inner[0] if inner else layout
    return layout


def _layouts_in(annotation: object) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    parts = getattr(annotation, "__args__", ())
    return [layout for part in parts for layout in _layouts_in(part)]


_EXPECTED = {
    "missing": "this key",
    "int_type": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "string_type": "a string",
    "bool_type": "true or false",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "a table",
    "model_type": "a table",
    "none_required": "null",
    "greater_than_equal": "a whole number of {ge} or more",
    "less_than_equal": "a whole number of {le} or less",
    "greater_than": "a number above {gt:g}",
    "literal_error": "{expected}",
    "too_long": "at most {max_length} entries",
    "too_short": "at least {min_length} entries",
    "string_too_long": "at most {max_length} characters",
    "string_too_short": "at least {min_length} characters",
}


def _told(detail: ErrorDetails) -> UnusableInput | None:
    """What a validator of ours says."""
    error = detail.get("ctx", {}).get("error")
    return error if isinstance(error, UnusableInput) else None


def _expectation(detail: ErrorDetails) -> str:
    if (told := _told(detail)) is not None:
        return told.expected
    if detail["type"] == "missing" and isinstance(detail["loc"][-1], int):
        return "more entries"
    words = _EXPECTED.get(detail["type"], "another kind of value")  # never pydantic's own
    return words.format(**detail.get("ctx", {}))


def unknown_key(where: str, key: str, known: Iterable[str], elsewhere: str = "") -> UnusableInput:
    """The error for a key that is none of ``known``, naming the nearest one, or where it stands."""
    names = list(known)
    close = nearest_name(key, names)
    hint = f" (did you mean {close!r}?)" if close else f" ({elsewhere})" if elsewhere else ""
    told = f"no key {quoted(key)}{hint}; the keys are {', '.join(names[:20])}"
    return UnusableInput(where, "", "", sentence=told)
