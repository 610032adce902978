"""The options that several commands take, and those of ``solve``, ``plan`` and ``verify``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar

from typer import Argument, Option

from bubbleproof.commands.options.option_groups import GivenOptions, OptionGroup
from bubbleproof.commands.options.targets import Ends, Target
from bubbleproof.formats.format_table import Holds, endings, files_named
from bubbleproof.former_names import Former
from bubbleproof.solvers.search_limits import SearchLimits


def complete_family(incomplete: str) -> list[str]:
    """The families whose names begin so, for a shell; files it completes by itself."""
    from bubbleproof.theory.families import families

    return [name for name in families() if name.startswith(incomplete)]


SCHEDULES = files_named(endings(Holds.SCHEDULE))  # FILE.json, FILE.csv
IN_ONE_WORD = f"{SCHEDULES} or 'FAMILY key=value …'."
Words = Annotated[
    list[str],
    Argument(
        metavar="SCHEDULE",
        help=f"{SCHEDULES}, or FAMILY key=value…",
        autocompletion=complete_family,
    ),
]
ProblemPath = Annotated[
    str, Argument(metavar="PROBLEM", help="FILE.toml, FILE.json or 'FAMILY key=value …'.")
]
Json = Annotated[bool, Option("--json", help="One JSON object on standard output.")]
WITH_JSON = "--json, which says everything"
Verbose = Annotated[
    bool, Option("--verbose", "-v", "--all", help="Every quantity and each rule, in tables.")
]
Dialect = Annotated[str | None, Option(help="Dialect of a PyTorch table: new or old.")]
NewSchedule = Annotated[
    str | None,
    Option("-o", "--output", help="Write the schedule (.json)."),
    Target.FILE,
    Ends("the schedule's file", (".json",)),
]
PROOFS = Ends("the certificate's file", (".json",))


@dataclass(frozen=True, slots=True, kw_only=True)
class Loudness(OptionGroup):
    """How much is printed for people. Raises ``ValueError`` for little and much at once."""

    HEADING: ClassVar[str] = "Output"

    quiet: Annotated[bool, Option("-q", "--quiet", help="Print the first line alone.")] = False
    verbose: Annotated[bool, Option("-v", "--verbose", help="Print the details too.")] = False

    def __post_init__(self) -> None:
        if self.quiet and self.verbose:
            raise ValueError("-q prints the first line alone; leave out -v and --all")


@dataclass(frozen=True, slots=True, kw_only=True)
class Detail(Loudness):
    """The same of an answer with tables; ``--json`` has all of it."""

    all: Annotated[bool, Option("--all", help="Print every row of every table.")] = False

    def __post_init__(self) -> None:
        if self.quiet and self.has_tables:
            raise ValueError("-q prints the first line alone; leave out -v and --all")

    @property
    def has_tables(self) -> bool:
        """Whether tables follow the answer."""
        return self.verbose or self.all


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
        str | None, Option(help="Write the bound's certificate (.json)."), Target.FILE, PROOFS
    ] = None
    verbose: Verbose = False
    json: Json = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkersElsewhere(OptionGroup):
    """Whose workers do it, where not this machine's: those of a ``dask.distributed`` scheduler."""

    scheduler: Annotated[
        str | None, Option(help="Address of a dask.distributed scheduler."), Former("cluster")
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownParts(OptionGroup):
    """What more people see of a plan than the lines that answer."""

    verbose: Verbose = False
    all: Annotated[bool, Option("--all", help="Every candidate, in a table.")] = False
    why: Annotated[bool, Option("--why", help="What would change the answer.")] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRanges(OptionGroup):
    """Numbers of the job in place of the file's: of more than one each job has a plan."""

    cards: Annotated[
        str | None, Option(help="In place of the file's: 128, or several jobs: 64,96 or 64..512.")
    ] = None
    samples: Annotated[
        str | None, Option("--samples", "--batch", help="The same of the samples of a step.")
    ] = None
    sequence: Annotated[str | None, Option(help="The same of the tokens of a sample.")] = None

    @property
    def told(self) -> dict[str, str | None]:
        """Each by its name."""
        return {"cards": self.cards, "samples": self.samples, "sequence": self.sequence}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest(OptionGroup):
    """How a plan is made, and where it goes."""

    limits: GivenOptions[SearchLimits]
    workers: Annotated[int, Option(help="Processes that look at candidates.")] = 1
    elsewhere: WorkersElsewhere = field(default_factory=WorkersElsewhere)
    certificate: Annotated[
        str | None, Option(help="Write the proofs of all candidates (.json)."), Target.FILE, PROOFS
    ] = None
    paper: Annotated[
        str | None,
        Option(help="bpipe, mepipe, pipemesh, tpipe or vocabulary: show its own choice too."),
    ] = None
    yours: Annotated[
        list[str] | None,
        Option(
            help='Compare with what you run: a file, or "tensor=4 pipeline=4 chunks=5". '
            "Twice: both side by side, without a search."
        ),
    ] = None
    card: Annotated[
        str | None, Option(help="Of a MODEL: what its cards are (bubbleproof cards names them).")
    ] = None
    framework: Annotated[
        str | None, Option(help="Of a MODEL: what trains it (default megatron-core), or any.")
    ] = None
    ranges: JobRanges = field(default_factory=lambda: JobRanges())
    hardware: Annotated[
        str | None, Option(help="Constants of your own iterations: a file of calibrate (.toml).")
    ] = None
    tokens: Annotated[
        float | None, Option(help="Say how many days so many tokens take, such as 15e12.")
    ] = None
    what_if: Annotated[
        list[str] | None,
        Option(
            "--what-if",
            help="Plan with a change too: network=0.5x, memory=141GiB, cards=-2 or card=h200; "
            "several at once with commas between.",
        ),
    ] = None
    output: Annotated[
        str | None,
        Option("-o", "--output", help="Folder for the plan and its page."),
        Target.FOLDER,
    ] = None
    assumptions: Annotated[
        bool, Option("--assumptions", help="Print every number that the times rest on; no search.")
    ] = False
    shown: ShownParts = field(default_factory=ShownParts)
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
            help="Check messages as it waits for them: torch-2.13, torch-2.15, torchtitan, "
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
    workers: Annotated[int, Option(help="Processes that check several schedules.")] = 1
    junit: Annotated[str | None, Option(help="Write JUnit's XML for a CI."), Target.FILE] = None
    sarif: Annotated[
        str | None, Option(help="Write SARIF, which marks rows and cells."), Target.FILE
    ] = None
    verbose: Verbose = False
    json: Json = False


EXAMPLES: dict[str, list[str]] = {}  # whole command lines, below the help of each command
for _line in Path(__file__).with_name("examples.txt").read_text(encoding="utf-8").splitlines():
    EXAMPLES.setdefault(_line.split()[1], []).append(_line)


def examples(command: str) -> str:
    """The examples of a command of the core."""
    return below_help(EXAMPLES[command])


def below_help(lines: Sequence[str]) -> str:
    """Examples as a help shows them, each on a line of its own that is not broken (``\\b``)."""
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines)])
