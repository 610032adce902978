"""The commands that wings give, after those of the core: looked for when the core has none."""

from __future__ import annotations

from functools import cache
from typing import cast

from typer import Context, Typer, TyperException
from typer.core import TyperGroup
from typer.main import get_group

from bubbleproof.wings import COMMANDS, INSTALL, entries, given, present


class Commands(TyperGroup):
    """The core's commands and the wings'; one of an absent wing says in one line what it needs."""

    def list_commands(self, ctx: Context) -> list[str]:  # type: ignore[override]  # as everywhere
        """Their names, the core's first."""
        self._join_wings()
        return super().list_commands(ctx)

    def resolve_command(  # type: ignore[override]  # typer has no other contexts
        self, ctx: Context, args: list[str]
    ) -> tuple[str | None, object, list[str]]:
        """The command that is named first. Raises ``AbsentWingError`` for one of an absent wing."""
        if args[0] not in self.commands:
            self._join_wings()
            if args[0] in entries(COMMANDS).keys() - self.commands:
                given(COMMANDS, args[0], args[0])
        try:
            return super().resolve_command(ctx, args)
        except TyperException as error:
            if not entries(COMMANDS):
                error.message += f" Those of wings come with an installation: {INSTALL}."
            raise

    def _join_wings(self) -> None:
        for app in _apps():
            self.commands.update(get_group(app).commands)


@cache
def _apps() -> tuple[Typer, ...]:
    """Of the wings that are there."""
    found = (given(COMMANDS, name, name) for name in present(COMMANDS))
    return tuple(cast(Typer, app) for app in dict.fromkeys(found))
