"""The options of ``claims``: which claims, whether and how far they are decided, and by whom."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from typer import Argument, Option

from bubbleproof.commands.options.option_groups import OptionGroup
from bubbleproof.commands.options.shared_options import Json, WorkersElsewhere
from bubbleproof.solvers.engines import require_engine


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
    engine: Annotated[
        str | None,
        Option(help="Compare what claims call least with what this engine finds alone: z3, pulp."),
    ] = None
    time_limit: Annotated[
        float | None, Option(help="Seconds for each search of the engine (default 30).")
    ] = None
    json: Json = False

    def __post_init__(self) -> None:
        if self.limit is not None and self.limit < 1:
            raise ValueError(f"--limit must be 1 or more, got {self.limit}")
        if self.engine is not None:
            require_engine(self.engine)
            if self.audit or self.settings:
                raise ValueError("--engine goes without --audit and --set")
        elif self.time_limit is not None:
            raise ValueError("--time-limit goes with --engine; without it nothing is searched")
        if self.time_limit is not None and not self.time_limit > 0:
            raise ValueError(f"--time-limit must be above 0 seconds, got {self.time_limit}")
        asked: dict[str, object] = {"--quick": self.quick}
        asked |= {} if self.engine else {"--limit": self.limit}
        asked |= {"--workers": self.workers, "--scheduler": self.elsewhere.scheduler}
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
