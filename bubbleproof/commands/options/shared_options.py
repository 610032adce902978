"""The options that several commands take, and those of ``solve``, ``plan`` and ``verify``."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import Annotated, ClassVar

from typer import Argument, Option

from bubbleproof.commands.options.option_groups import OptionGroup
from bubbleproof.commands.options.target_marks import Target
from bubbleproof.commands.options.worker_options import WorkersElsewhere

DEFAULT_TIME_LIMIT = 60.0  # seconds


def complete_family(incomplete: str) -> list[str]:
    """The families whose names begin so, for a shell; files it completes by itself."""
    from bubbleproof.theory.families import families

    return [name for name in families() if name.startswith(incomplete)]


Words = Annotated[
    list[str],
    Argument(
        metavar="SCHEDULE",
        help="FILE.json, FILE.csv, or FAMILY key=value…",
        autocompletion=complete_family,
    ),
]
ProblemPath = Annotated[str, Argument(metavar="PROBLEM", help="FILE.toml or FILE.json")]
Json = Annotated[bool, Option("--json", help="One JSON object on standard output.")]
Dialect = Annotated[str | None, Option(help="Dialect of a PyTorch table: new or old.")]
TIME_LIMIT = "Seconds in all (default: the file's, or 60; beside --work none)."
WORK = "Units of work in all, about a second each: repeats exactly. The first limit met ends it."
TimeLimit = Annotated[float | None, Option(help=TIME_LIMIT)]
Work = Annotated[float | None, Option(help=WORK)]
Memory = Annotated[str | None, Option(help='What an engine may take, such as "4 GiB".')]
NewSchedule = Annotated[str | None, Option("-o", help="Write the schedule (.json)."), Target.FILE]


def seconds_of(asked: float | None, in_file: int | None, work: float | None = None) -> float:
    """The time limit: what is asked for; without it none beside ``work``, else the file's, or 60.

    >>> seconds_of(None, 30), seconds_of(None, 30, 2.0), seconds_of(5.0, 30, 2.0)
    (30, inf, 5.0)
    """
    if asked is None and work is not None:
        return inf
    said = in_file if asked is None else asked
    return DEFAULT_TIME_LIMIT if said is None else said


def memory_of(asked: str | None, in_file: int | None) -> int | None:
    """The bytes that an engine may take: what is asked for, else the file's.

    >>> memory_of("1 GiB", None), memory_of(None, 5)
    (1073741824, 5)
    """
    if asked is None:
        return in_file
    from bubbleproof.formats.values import bytes_of

    return bytes_of(asked)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions(OptionGroup):
    """Who looks for a schedule, for what, and how long; None where the problem decides."""

    HEADING: ClassVar[str] = "Search"

    engine: Annotated[
        str, Option(help="auto, or the one that decides alone: cpsat, sat, z3, pulp or pulp-cbc.")
    ] = "auto"
    objective: Annotated[
        str | None, Option(help="makespan, span_idle, makespan-then-peak or peak.")
    ] = None
    within: Annotated[
        int | None, Option(help="Largest value wanted (for peak: largest makespan).")
    ] = None
    time_limit: TimeLimit = None
    work: Work = None
    seed: Annotated[int, Option(help="Seed of the engine (not sat).")] = 1
    threads: Annotated[int, Option(help="Threads of the engine (cpsat and pulp).")] = 2
    memory: Memory = None
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
    certificate: Annotated[
        str | None, Option(help="Write the bound's certificate (.json)."), Target.FILE
    ] = None
    json: Json = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchLimits(OptionGroup):
    """How long a plan is looked for, and with what."""

    time_limit: TimeLimit = None
    work: Work = None
    threads: Annotated[int, Option(help="Threads of an engine.")] = 2
    seed: Annotated[int, Option(help="Seed of the engine.")] = 1
    memory: Memory = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest(OptionGroup):
    """How a plan is made, and where it goes."""

    limits: SearchLimits = field(default_factory=SearchLimits)
    workers: Annotated[int, Option(help="Processes that look at candidates.")] = 1
    elsewhere: WorkersElsewhere = field(default_factory=WorkersElsewhere)
    certificate: Annotated[
        str | None, Option(help="Write the proofs of all candidates (.json)."), Target.FILE
    ] = None
    paper: Annotated[
        str | None, Option(help="bpipe, mepipe, pipemesh or tpipe: show its own choice beside.")
    ] = None
    yours: Annotated[
        str | None,
        Option(help='Your own configuration beside it: "tensor=4 pipeline=4 chunks=5".'),
    ] = None
    output: Annotated[
        str | None, Option("-o", help="Folder for the plan and its page."), Target.FOLDER
    ] = None
    json: Json = False


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyRequest(OptionGroup):
    """What a schedule or a plan is held against."""

    problem: Annotated[str | None, Option(help="Check against this problem.")] = None
    comm: Annotated[
        list[str] | None,
        Option(
            help="buffered, rendezvous, pair-stream, launch-order, rank-stream, directed-edge, "
            "per-direction, rank-parity, bounded, lazy-pairs, batched, whole-batches, one-queue, "
            "captured (default: the first five)."
        ),
    ] = None
    runtime: Annotated[
        str | None,
        Option(
            help="Judge messages as one waits for them: torch-2.13, torch-2.15, torchtitan, "
            "automodel, megatron-core, deepspeed."
        ),
    ] = None
    certificate: Annotated[
        str | None, Option(help="A certificate (.json) of how good the schedule is.")
    ] = None
    coq: Annotated[
        str | None, Option(help="Write it with its certificate as a theorem of Coq."), Target.FILE
    ] = None
    spec: Annotated[
        bool, Option("--spec", help="Rules 1 to 5 and 8 by their plain definition alone.")
    ] = False
    dialect: Dialect = None
    workers: Annotated[int, Option(help="Processes that judge several schedules.")] = 1
    junit: Annotated[str | None, Option(help="Write JUnit's XML for a CI."), Target.FILE] = None
    sarif: Annotated[
        str | None, Option(help="Write SARIF, which marks rows and cells."), Target.FILE
    ] = None
    json: Json = False
