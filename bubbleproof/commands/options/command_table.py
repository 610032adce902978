"""What is made of a command line only when it is needed: commands, and converters of values.

By itself typer makes all commands of a program before it reads the first word, and has pydantic
convert every value, a text that is to be a text too; either takes longer than a small answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableMapping
from typing import Any

from typer.main import get_command_from_info, get_command_name
from typer.models import CommandInfo


class CommandTable(MutableMapping[str, Any]):
    """Commands by their names, each made when it is asked for."""

    def __init__(self, declared: Iterable[CommandInfo]) -> None:
        self._found: dict[str, Any] = {
            each.name or get_command_name(each.callback.__name__): each  # type: ignore[union-attr]  # each has one
            for each in declared
        }

    def __getitem__(self, name: str) -> Any:
        found = self._found[name]
        if isinstance(found, CommandInfo):
            plain = {"pretty_exceptions_short": False, "rich_markup_mode": None}
            found = get_command_from_info(found, **plain)  # type: ignore[arg-type]  # so typed
            self._found[name] = found
            take_as_it_is(found)
        return found

    def __setitem__(self, name: str, command: Any) -> None:
        self._found[name] = command

    def __delitem__(self, name: str) -> None:
        del self._found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


def take_as_it_is(command: Any) -> None:
    """Have the values of a command's parameters converted only where that changes anything."""
    listed = command.get_params

    def get_params(ctx: object) -> list[Any]:
        found: list[Any] = listed(ctx)
        for each in found:
            if "get_runtime_param" not in vars(each):
                each.get_runtime_param = _AsItIs(each).itself
        return found

    command.get_params = get_params


class _AsItIs:
    """Takes nothing, a default and a printable text as they are; typer converts all else."""

    def __init__(self, parameter: Any) -> None:
        self._converter = parameter.get_runtime_param  # which makes it

    def itself(self) -> _AsItIs:
        """Instead of typer's."""
        return self

    def coerce(self, value: object, param: Any, ctx: object) -> object:
        """The value for the command."""
        is_many = param.multiple or param.nargs == -1
        if value is None or value is param.default:
            return () if value is None and is_many else value
        kind = param.type_descriptor.annotation
        texts = value if is_many and isinstance(value, list | tuple) else [value]
        is_text = kind == (list[str] if is_many else str)
        if is_text and all(isinstance(each, str) and each.isprintable() for each in texts):
            return value
        return self._converter().coerce(value, param=param, ctx=ctx)
