"""The command ``bubbleproof``.

Exit status: 0 all holds; 1 a violation or a refuted expectation; 2 unusable input or an engine
whose answer the checker refutes (one line on standard error); 3 undecided in the time given; 70 a
fault of this program (one line; ``--traceback`` shows where); 130 interrupted, after what was found
was printed. With ``--json`` one JSON object goes to standard output and nothing else.
"""

from __future__ import annotations

import sys
from copy import copy
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option
from typer.main import get_command

from bubbleproof.commands.interrupts import loaded_since
from bubbleproof.commands.last_resort import status_of_call
from bubbleproof.commands.options.command_table import CommandTable, take_as_it_is
from bubbleproof.commands.options.option_groups import (
    GivenOptions,
    HeadedCommand,
    runs,
    seconds_option,
)
from bubbleproof.commands.options.shared_options import (
    IN_ONE_WORD,
    SCHEDULES,
    DemandOptions,
    Detail,
    Dialect,
    Json,
    Loudness,
    NewSchedule,
    PlanRequest,
    ProblemPath,
    SolveOutput,
    Verbose,
    VerifyRequest,
    Words,
    WorkersElsewhere,
    complete_family,
    examples,
)
from bubbleproof.commands.options.targets import Ends, Target
from bubbleproof.commands.options.wing_commands import Commands
from bubbleproof.formats.format_table import Holds, endings, listed
from bubbleproof.solvers.search_limits import SearchLimits

if TYPE_CHECKING:  # loaded with the command that takes them
    from bubbleproof.commands.replaying.replay_options import ProfileRequest, ReplayRequest
    from bubbleproof.solvers.options import SolveOptions

FRONT = Ends("the picture of a front", (".svg", ".png"))
PICTURES = Ends("a picture's file", endings(Holds.PICTURE))
app = typer.Typer(
    name="bubbleproof",
    cls=Commands,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _tell_version(is_asked: bool) -> None:
    if is_asked:
        from bubbleproof.version import package_version

        typer.echo(f"bubbleproof {package_version()}")
        raise typer.Exit


@app.callback()
def common(
    traceback: Annotated[
        bool, Option("--traceback", help="Show where an error was raised.")
    ] = False,
    version: Annotated[
        bool, Option("--version", help="Print the version.", callback=_tell_version, is_eager=True)
    ] = False,
) -> None:
    """State, solve, prove and run pipeline-parallel training schedules."""
    del version, traceback  # ``last_resort`` looks for the latter, whatever stands beside it


@app.command(epilog=examples("run"))
@runs("commands.planning.run_plan.run_problem")
def run(
    problem: Annotated[str, Argument(metavar="PROBLEM.toml")],
    limits: GivenOptions[SearchLimits],
    output: Annotated[
        str | None, Option("-o", "--output", help="Folder (default runs/NAME)."), Target.FOLDER
    ] = None,
    backend: Annotated[str, Option(help="Replay on virtual or gloo.")] = "gloo",
    verbose: Verbose = False,
    json: Json = False,
) -> None:
    """Plan (or solve), verify, draw and replay a problem."""


@app.command(cls=HeadedCommand, epilog=examples("solve"))
@runs("commands.solve.run_solve", "solvers.options")
def solve(
    problem: ProblemPath,
    search: GivenOptions[SolveOptions],
    demands: DemandOptions,
    output: SolveOutput,
) -> None:
    """Find the best schedule of a problem, with a checked bound, or why there is none."""


@app.command(epilog=examples("repair"))
@runs("commands.repair.run_repair")
def repair(
    schedule: Words,
    detail: Detail,
    problem: Annotated[str | None, Option(help="Repair it on this problem.")] = None,
    dialect: Dialect = None,
    time_limit: Annotated[float, seconds_option("Time in all")] = 60.0,
    output: NewSchedule = None,
    json: Json = False,
) -> None:
    """Find the valid schedule that moves the fewest tasks of a broken one."""


@app.command(epilog=examples("pareto"))
@runs("commands.pareto.run_pareto")
def pareto(
    problem: ProblemPath,
    elsewhere: WorkersElsewhere,
    detail: Detail,
    time_limit: Annotated[float, seconds_option("Time for each point")] = 30.0,
    workers: Annotated[int | None, Option(help="Processes (default: one per core).")] = None,
    output: Annotated[
        str | None, Option("-o", "--output", help="Draw it (.svg, .png)."), Target.FILE, FRONT
    ] = None,
    schedules: Annotated[
        str | None, Option(help="Write each point's schedule to this folder."), Target.FOLDER
    ] = None,
    json: Json = False,
) -> None:
    """Find every trade of makespan against peak memory, compared with the published schedules."""


@app.command(epilog=examples("plan"))
@runs("commands.planning.plan.run_plan")
def plan(
    problem: Annotated[
        str,
        Argument(
            metavar="PROBLEM.toml|MODEL",
            help="A file with [plan] or [model] [cluster] [batch]; or a name or hf:config.json.",
        ),
    ],
    request: PlanRequest,
) -> None:
    """Find the best deployment and schedule of a model on a cluster, with proof."""


@app.command("hand-over", epilog=examples("hand-over"))
@runs("commands.hand_over.run_hand_over")
def hand_over(
    schedule: Annotated[
        list[str],
        Argument(
            metavar="PLAN|SCHEDULE", help="A plan or its folder, FILE.json, or FAMILY key=value…"
        ),
    ],
    target: Annotated[
        str, Option("--to", help="torch-2.13, torch-2.15, torchtitan, automodel or megatron-core.")
    ],
    output: Annotated[
        str, Option("-o", "--output", help="Folder for what starts the training."), Target.FOLDER
    ],
    detail: Detail,
    check: Annotated[bool, Option(help="Train ten steps on gloo; compare bits.")] = False,
    json: Json = False,
) -> None:
    """Write what starts a training by a plan in another framework."""


@app.command(epilog=examples("bench"))
@runs("commands.bench.run_bench")
def bench(
    detail: Detail,
    problems: Annotated[
        list[str] | None, Argument(metavar="[PROBLEM]...", help="Default: small instances.")
    ] = None,
    engine: Annotated[
        list[str] | None, Option(help="auto, cpsat, sat, z3, pulp or pulp-cbc; repeatable.")
    ] = None,
    time_limit: Annotated[float, seconds_option("Time for each solver and problem")] = 10.0,
    threads: Annotated[int, Option(help="Threads of the solver.")] = 2,
    decide: Annotated[
        bool, Option("--decide", help="Each solver decides alone; their answers are compared.")
    ] = False,
    json: Json = False,
) -> None:
    """Compare the solvers on your problems, on this machine."""


@app.command(epilog=examples("verify"))
@runs("commands.verify.run_verify_any")
def verify(
    schedule: Annotated[
        list[str],
        Argument(
            metavar="SCHEDULE",
            help=f"{SCHEDULES}, folders of these, FAMILY key=value…, or a plan",
            autocompletion=complete_family,
        ),
    ],
    request: VerifyRequest,
) -> None:
    """Decide every rule for a schedule; print the counterexamples."""


@app.command(epilog=examples("measure"))
@runs("commands.measuring.measure.run_measure")
def measure(
    family: Annotated[str, Argument(metavar="FAMILY", autocompletion=complete_family)],
    parameters: Annotated[
        list[str] | None, Argument(metavar="key=value…", help="p=4 m=8 [v=2 tF=1 tB=2 …]")
    ] = None,
    why: Annotated[
        bool, Option("--why", help="Print the cause of every idle tick, and the critical path.")
    ] = False,
    verbose: Verbose = False,
    json: Json = False,
) -> None:
    """Measure a published schedule."""


@app.command(epilog=examples("diff"))
@runs("commands.measuring.diff.run_diff")
def diff(
    a: Annotated[str, Argument(metavar="A", help=IN_ONE_WORD)],
    b: Annotated[str, Argument(metavar="B", help="What it is compared with.")],
    detail: Detail,
    dialect: Dialect = None,
    json: Json = False,
) -> None:
    """Compare two schedules: makespan, peaks, idle causes, actions, validity."""


@app.command(epilog=examples("costs"))
@runs("commands.costs.run_costs")
def costs(
    model: Annotated[str, Argument(metavar="MODEL", help="llama-2-13b, ..., or a file's [model]")],
    detail: Detail,
    parameters: Annotated[
        list[str] | None,
        Argument(
            metavar="key=value…",
            help="tensor pipeline data context expert micro_batch sequence zero scope "
            "sequence_parallel accounting precision",
        ),
    ] = None,
    output: Annotated[
        str | None,
        Option("-o", "--output", help="Write the problem file of MODEL's cluster and batch."),
        Target.FILE,
    ] = None,
    json: Json = False,
) -> None:
    """Print a model's parameters, FLOPs, saved bytes and state bytes."""


@app.command(epilog=examples("calibrate"))
@runs("commands.calibrate.run_calibrate")
def calibrate(
    rows: Annotated[
        str,
        Argument(
            metavar="ROWS.csv",
            help="Measured iterations; or one: JOB.toml with --yours and --took, PLAN with --took.",
        ),
    ],
    output: Annotated[
        str, Option("-o", "--output", help="The hardware file (.toml) to write."), Target.FILE
    ],
    detail: Detail,
    card: Annotated[
        str | None, Option(help="Their card (default: the nearest by its data sheet).")
    ] = None,
    yours: Annotated[
        str | None, Option(help='What was run of JOB.toml: a file, or "tensor=4 pipeline=4".')
    ] = None,
    took: Annotated[float | None, seconds_option("What one iteration took")] = None,
    json: Json = False,
) -> None:
    """Fit the constants of the model of times to measured iterations."""


@app.command(epilog=examples("estimate"))
@runs("commands.estimate.run_estimate")
def estimate(
    rows: Annotated[str, Argument(metavar="ROWS.csv", help="Iterations to estimate.")],
    hardware: Annotated[str, Option(help="A file of calibrate (.toml), or a card, as h100.")],
    detail: Detail,
    json: Json = False,
) -> None:
    """Estimate the time and memory of iterations."""


@app.command(cls=HeadedCommand, epilog=examples("replay"))
@runs("commands.replaying.replay.run_replay", "commands.replaying.replay_options")
def replay(request: ReplayRequest) -> None:
    """Run a verified schedule on torch; compare gradients and peak bytes."""


@app.command(cls=HeadedCommand, epilog=examples("profile"))
@runs("commands.replaying.profile.run_profile", "commands.replaying.replay_options")
def profile(request: ProfileRequest) -> None:
    """Measure a model's stages on a device; write them as a problem to solve and replay."""


@app.command(epilog=examples("hang"))
@runs("commands.hang.run_hang")
def hang(
    dumps: Annotated[
        list[str],
        Argument(metavar="DUMP...", help="Flight Recorder dumps, one for each rank, or a folder."),
    ],
    detail: Detail,
    schedule: Annotated[str | None, Option(help=f"What was run: {IN_ONE_WORD}")] = None,
    json: Json = False,
) -> None:
    """Find why a job hangs: which message, where, who waits for whom."""


@app.command(epilog=examples("trace"))
@runs("commands.measuring.traced_run.run_trace")
def trace(
    files: Annotated[
        list[str],
        Argument(metavar="TRACE...", help="Kineto traces, one for each rank, or a folder."),
    ],
    detail: Detail,
    schedule: Annotated[str | None, Option(help=f"What was run: {IN_ONE_WORD}")] = None,
    names: Annotated[
        str | None, Option(help="FILE.toml: how spans of other frameworks are named.")
    ] = None,
    output: Annotated[
        str | None,
        Option("-o", "--output", help="Folder for problem.toml, schedule.csv and trace.json."),
        Target.FOLDER,
    ] = None,
    json: Json = False,
) -> None:
    """Read traces of a run: where its time went, what was waited for, which stage is slow."""


@app.command(epilog=examples("show"))
@runs("commands.show.run_show")
def show(
    schedule: Words,
    loudness: Loudness,
    output: Annotated[
        str | None,
        Option("-o", "--output", help=f"x{listed(endings(Holds.PICTURE))}"),
        Target.FILE,
        PICTURES,
    ] = None,
    window: Annotated[
        str | None, Option(help="FIRST:LAST to draw: 0:100 (ticks), 0.2s:300ms.")
    ] = None,
    width: Annotated[
        float | None, Option(help="Of an .svg, .pdf or .png in mm (default: 254).")
    ] = None,
    dialect: Dialect = None,
) -> None:
    """Draw a schedule: on the terminal, or to a file."""


@app.command(epilog=examples("serve"))
@runs("commands.serving.serve.run_serve")
def serve(
    loudness: Loudness,
    schedule: Annotated[
        list[str] | None,
        Argument(
            metavar="[SCHEDULE]",
            help=f"{SCHEDULES}, PROBLEM.toml or FAMILY key=value… (default: 1f1b p=4 m=8)",
            autocompletion=complete_family,
        ),
    ] = None,
    port: Annotated[
        int | None, Option(help="Of this machine alone (default: 9001, or a free one).")
    ] = None,
    dialect: Dialect = None,
) -> None:
    """Edit a schedule in the browser while the checker checks it."""


@app.command(epilog=examples("convert"))
@runs("commands.show.run_convert")
def convert(
    schedule: Annotated[
        list[str], Argument(metavar="SCHEDULE TARGET", help="target: .json or .csv")
    ],
    loudness: Loudness,
    communication: Annotated[
        bool,
        Option("--communication", help="Write messages and all that PyTorch's runtime needs."),
    ] = False,
    torch: Annotated[
        str | None, Option(help="For which torch, 2.6 to 2.15 (default: the installed one).")
    ] = None,
    problem: Annotated[str | None, Option(help="Put it on this problem first.")] = None,
    dialect: Dialect = None,
) -> None:
    """Write a schedule in another format."""


ListedName = Annotated[
    str | None, Argument(metavar="[NAME]", help="One of them, with all that is known of it.")
]


@app.command(epilog=examples("families"))
@runs("commands.listings.run_families")
def families(detail: Detail, name: ListedName = None, json: Json = False) -> None:
    """List the published schedules: bubble, memory, parameters, sources."""


@app.command(epilog=examples("cards"))
@runs("commands.listings.run_cards")
def cards(detail: Detail, name: ListedName = None, json: Json = False) -> None:
    """List the accelerators that are known by name: memory, speed, links."""


@app.command(epilog=examples("models"))
@runs("commands.listings.run_models")
def models(detail: Detail, name: ListedName = None, json: Json = False) -> None:
    """List the models that are known by name: parameters, layers, sequence."""


@app.command(epilog=examples("frameworks"))
@runs("commands.listings.run_frameworks")
def frameworks(detail: Detail, name: ListedName = None, json: Json = False) -> None:
    """List the frameworks that schedules are checked for and handed over to."""


@cache
def _built() -> Any:
    """The command line, made once in a process; each command of the core when it is named."""
    bare = copy(app)
    bare.registered_commands = []
    made: Any = get_command(bare)
    made.commands = CommandTable(app.registered_commands)
    take_as_it_is(made)
    return made


def main(began: float | None = None) -> None:
    """Run the command line and exit with its status.

    Parameters
    ----------
    began
        Since when it is waited for, a moment of ``time.perf_counter``; None: since now.
    """
    if began is not None:
        loaded_since(began)
    sys.exit(status_of_call(lambda: _built()(standalone_mode=False)))
