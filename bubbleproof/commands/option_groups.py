"""Options that belong together: declared once, taken by any command, shown under one heading.

A group is a frozen dataclass derived from ``OptionGroup``; its fields are annotated as typer's
parameters are. ``@spread`` lets a command take whole groups as parameters, and typer see their
fields. ``HeadedCommand`` prints the options of each group under its ``HEADING``, which typer by
itself does in boxes only.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from copy import copy
from dataclasses import MISSING, fields
from functools import wraps
from typing import Annotated, ClassVar, Protocol, get_args, get_type_hints

from typer import Context
from typer.core import TyperCommand
from typer.models import OptionInfo


class OptionGroup:
    """Options under one ``HEADING`` of a command's help, a field each."""

    __slots__ = ()
    HEADING: ClassVar[str]


def spread(command: Callable[..., int]) -> Callable[..., int]:
    """The command with the options of a group in place of each parameter that is a group.

    Raises ``ValueError`` where two options have one name.
    """
    hints = get_type_hints(command, include_extras=True)
    options: dict[str, list[inspect.Parameter]] = {}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        if _is_group(hints[name]):
            options[name] = list(_options(hints[name]))
            parameters.extend(options[name])
        else:
            parameters.append(
                parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[name])
            )

    @wraps(command)
    def gathered(**given: object) -> int:
        for name, own in options.items():
            given[name] = hints[name](**{option.name: given.pop(option.name) for option in own})
        return command(**given)

    gathered.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    signature = inspect.Signature(parameters)
    gathered.__signature__ = signature  # type: ignore[attr-defined]  # what inspect looks for
    return gathered


def _is_group(hint: object) -> bool:
    return isinstance(hint, type) and issubclass(hint, OptionGroup)


def _options(group: type[OptionGroup]) -> Iterator[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    for field in fields(group):  # type: ignore[arg-type]  # every group is a dataclass
        kind, info = get_args(hints[field.name])
        headed: OptionInfo = copy(info)
        headed.rich_help_panel = group.HEADING
        yield inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if field.default is MISSING else field.default,
            annotation=Annotated[kind, headed],
        )


class _Formatter(Protocol):
    def section(self, name: str) -> AbstractContextManager[None]: ...
    def write_dl(self, rows: Sequence[tuple[str, str]]) -> None: ...


class HeadedCommand(TyperCommand):
    """A command whose help has a section for each group, after its other options."""

    def format_options(  # type: ignore[override]  # typer has no other contexts
        self, ctx: Context, formatter: _Formatter
    ) -> None:
        """Write the sections, in the order in which the command takes the groups."""
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for parameter in self.get_params(ctx):
            row = parameter.get_help_record(ctx)
            if row is not None:
                is_argument = parameter.param_type_name == "argument"
                heading = getattr(parameter, "rich_help_panel", None) or "Options"
                sections.setdefault("Arguments" if is_argument else heading, []).append(row)
        for heading, rows in sections.items():
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)
