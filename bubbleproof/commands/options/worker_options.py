"""Workers elsewhere: the address of a ``dask.distributed`` scheduler, for commands that take it.

``--scheduler`` was called ``--cluster`` until 0.3, where a cluster is nothing but cards. The old
name is still taken, and says so on standard error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from typer import Option

from bubbleproof.commands.options.option_groups import OptionGroup


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkersElsewhere(OptionGroup):
    """Whose workers do it, where not this machine's. Raises ``ValueError`` for both names."""

    scheduler: Annotated[str | None, Option(help="Address of a dask.distributed scheduler.")] = None
    cluster: Annotated[str | None, Option(hidden=True)] = None

    def __post_init__(self) -> None:
        if self.cluster is None:
            return
        if self.scheduler is not None:
            raise ValueError("--cluster is the old name of --scheduler: give --scheduler alone")
        from bubbleproof.commands.output import say

        say("--cluster is called --scheduler now, and will go: a cluster is of cards")

    @property
    def address(self) -> str | None:
        """The scheduler's address, by either name."""
        return self.cluster if self.scheduler is None else self.scheduler
