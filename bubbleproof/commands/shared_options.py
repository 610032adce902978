"""The options that several commands take, and those of ``solve``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from typer import Argument, Option

from bubbleproof.commands.option_groups import OptionGroup

Words = Annotated[
    list[str], Argument(metavar="SCHEDULE", help="FILE.json, FILE.csv, or FAMILY key=value…")
]
ProblemPath = Annotated[str, Argument(metavar="PROBLEM", help="FILE.toml or FILE.json")]
Json = Annotated[bool, Option("--json", help="One JSON object on standard output.")]
Dialect = Annotated[str | None, Option(help="Dialect of a PyTorch table: new or old.")]
TimeLimit = Annotated[float | None, Option(help="Seconds for the exact engine.")]
NewSchedule = Annotated[str | None, Option("-o", help="Write the schedule (.json).")]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions(OptionGroup):
    """Who looks for a schedule, for what, and how long; None where the problem decides."""

    HEADING: ClassVar[str] = "Search"

    engine: Annotated[str, Option(help="auto, cpsat, sat, z3 or pulp.")] = "auto"
    objective: Annotated[
        str | None, Option(help="makespan, span_idle, makespan-then-peak or peak.")
    ] = None
    within: Annotated[
        int | None, Option(help="Largest value wanted (for peak: largest makespan).")
    ] = None
    time_limit: TimeLimit = None
    work: Annotated[
        float | None, Option(help="Units of work at most: with them runs repeat exactly.")
    ] = None
    seed: Annotated[int, Option(help="Seed of the engine.")] = 1
    threads: Annotated[int, Option(help="Threads of the engine.")] = 2
    certified: Annotated[bool, Option(help="Take no engine's word for an optimum.")] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DemandOptions(OptionGroup):
    """What the schedule is to keep or to avoid (``demands``)."""

    HEADING: ClassVar[str] = "Demands"

    require: Annotated[
        list[str] | None, Option(help="An order to keep, such as 0F1<0B0; repeatable.")
    ] = None
    forbid: Annotated[
        list[str] | None, Option(help="An order to avoid on one resource; repeatable.")
    ] = None
    keep: Annotated[str | None, Option(help="A schedule to keep a part of.")] = None
    keep_ranks: Annotated[
        str | None, Option(help="Keep its orders on these ranks, such as 0,1.")
    ] = None
    keep_until: Annotated[int | None, Option(help="Keep its starts before this tick.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SolveOutput(OptionGroup):
    """Where the result of ``solve`` goes."""

    HEADING: ClassVar[str] = "Output"

    output: NewSchedule = None
    certificate: Annotated[str | None, Option(help="Write the bound's certificate (.json).")] = None
    json: Json = False
