"""The options of ``claims``: which claims, whether and how far they are decided, and by whom."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from typer import Argument, Option

from bubbleproof.commands.options.option_groups import OptionGroup
from bubbleproof.commands.options.shared_options import Json, WorkersElsewhere


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimsRequest(OptionGroup):
    """Which claims to decide and how far: none unless ``audit``.

    Raises ``ValueError`` for options that contradict each other.
    """

    names: Annotated[
        list[str] | None,
        Argument(metavar="[ID]... [key=value…]", help="These claims alone; default: all."),
    ] = None
    at: Annotated[
        list[str] | None,
        Option("--set", help="A parameter of one case to evaluate one claim at: --set p=8 m=32."),
    ] = None
    paper: Annotated[str | None, Option(help="Only this paper's claims.")] = None
    audit: Annotated[bool, Option(help="Decide them; else they are listed.")] = False
    quick: Annotated[bool, Option(help="On their small domains.")] = False
    workers: Annotated[int | None, Option(help="Processes (default: cores).")] = None
    elsewhere: WorkersElsewhere = field(default_factory=WorkersElsewhere)
    limit: Annotated[int | None, Option(help="At most so many cases per claim.")] = None
    json: Json = False

    def __post_init__(self) -> None:
        if self.limit is not None and self.limit < 1:
            raise ValueError(f"--limit must be 1 or more, got {self.limit}")
        asked: dict[str, object] = {"--quick": self.quick, "--limit": self.limit}
        asked |= {"--workers": self.workers, "--scheduler": self.elsewhere.scheduler}
        asked |= {"--cluster": self.elsewhere.cluster}
        alone = [name for name, value in asked.items() if value]
        if alone and not self.audit:
            raise ValueError(f"{alone[0]} goes with --audit; without it nothing is decided")
        if self.ids and self.paper is not None:
            raise ValueError("claims by their ids go without --paper")
        if self.settings and (len(self.ids) != 1 or self.audit):
            raise ValueError("--set evaluates one claim at one case: claims ID --set p=8 m=32")

    @property
    def ids(self) -> list[str]:
        """The claims that are named."""
        return [word for word in self.names or () if "=" not in word]

    @property
    def settings(self) -> list[str]:
        """The parameters of a case, wherever they stand."""
        return [*(self.at or ()), *(word for word in self.names or () if "=" in word)]
