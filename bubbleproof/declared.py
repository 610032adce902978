"""Options stated once: beside its type and default an option has what is said of it.

A field of a dataclass whose annotation holds ``OptionNote`` is an option. The command line
and the checks at the door are made of that, and so is which keys a problem file has.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, get_args, get_type_hints


@dataclass(frozen=True, slots=True)
class OptionNote:
    """What is said of an option.

    ``help`` is for people; ``unit`` is "seconds" or "bytes" where a text may have a unit of its
    own. What ``is_in_file`` is a key of the file too.
    """

    help: str
    unit: str = ""
    is_in_file: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredOption:
    """An option: its name, the type of its values, its default and what is said of it.

    ``marks`` are what else stands in its annotation.
    """

    name: str
    kind: Any
    default: object
    said: OptionNote
    marks: tuple[object, ...]


def declared(options: Any) -> tuple[DeclaredOption, ...]:
    """The options of a dataclass in the order of its fields, those of its own class first."""
    hints, found = get_type_hints(options, include_extras=True), []
    for field in fields(options):
        kind, *marks = get_args(hints[field.name]) or (None,)
        said = [each for each in marks if isinstance(each, OptionNote)]
        if said:
            found.append(
                DeclaredOption(
                    name=field.name,
                    kind=kind,
                    default=field.default,
                    said=said[0],
                    marks=tuple(marks),
                )
            )
    own = vars(options)["__annotations__"]
    return tuple(sorted(found, key=lambda each: each.name not in own))
