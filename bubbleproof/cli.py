"""The command ``bubbleproof``.

Exit status: 0 all holds; 1 a violation or a refuted expectation; 2 unusable input or an engine
whose answer the checker refutes (one line on standard error); 3 undecided in the time given; 70 a
fault of this program (one line; ``--traceback`` shows where); 130 interrupted, after what was found
was printed. With ``--json`` one JSON object goes to standard output and nothing else.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from typer import Argument, Option

from bubbleproof.commands.last_resort import status_of_call
from bubbleproof.commands.option_groups import HeadedCommand, spread
from bubbleproof.commands.options import (
    DemandOptions,
    Dialect,
    Json,
    NewSchedule,
    ProblemPath,
    SearchOptions,
    SolveOutput,
    TimeLimit,
    Words,
)
from bubbleproof.commands.profile_options import MeasurementOptions, PipelineOptions
from bubbleproof.commands.replay_options import (
    CommunicationOptions,
    ModelOptions,
    ReplayOutput,
    RunOptions,
    TrainingOptions,
)

app = typer.Typer(
    name="bubbleproof",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback()
def common(
    traceback: Annotated[
        bool, Option("--traceback", help="Show where an error was raised.")
    ] = False,
) -> None:
    """State, solve, prove and run pipeline-parallel training schedules."""
    del traceback  # ``last_resort`` looks for the word, also where the rest cannot be read


@app.command()
def run(
    problem: Annotated[str, Argument(metavar="PROBLEM.toml")],
    output: Annotated[str | None, Option("-o", help="Folder (default runs/NAME).")] = None,
    backend: Annotated[str, Option(help="Replay on virtual or gloo.")] = "gloo",
    time_limit: TimeLimit = None,
    json: Json = False,
) -> int:
    """Solve, verify, draw and replay a problem; print one verdict table."""
    from bubbleproof.commands.run import run_problem

    return run_problem(problem, folder=output, backend=backend, time_limit=time_limit, as_json=json)


@app.command(cls=HeadedCommand)
@spread
def solve(
    problem: ProblemPath, search: SearchOptions, demands: DemandOptions, output: SolveOutput
) -> int:
    """Find the best schedule of a problem, with a checked bound, or why there is none."""
    from bubbleproof.commands.solve import run_solve

    return run_solve(problem, search, demands, output)


@app.command()
def repair(
    schedule: Words,
    problem: Annotated[str | None, Option(help="Repair it on this problem.")] = None,
    dialect: Dialect = None,
    time_limit: Annotated[float, Option(help="Seconds.")] = 60.0,
    output: NewSchedule = None,
    json: Json = False,
) -> int:
    """Find the valid schedule that moves the fewest tasks of a broken one."""
    from bubbleproof.commands.repair import run_repair

    return run_repair(
        schedule,
        problem=problem,
        dialect=dialect,
        time_limit=time_limit,
        target=output,
        as_json=json,
    )


@app.command()
def pareto(
    problem: ProblemPath,
    time_limit: Annotated[float, Option(help="Seconds for each point.")] = 30.0,
    workers: Annotated[int | None, Option(help="Processes (default: one per core).")] = None,
    cluster: Annotated[str | None, Option(help="Address of a dask.distributed scheduler.")] = None,
    output: Annotated[str | None, Option("-o", help="Draw it (.svg, .png).")] = None,
    schedules: Annotated[
        str | None, Option(help="Write each point's schedule to this folder.")
    ] = None,
    json: Json = False,
) -> int:
    """Find every trade of makespan against peak memory, beside the published schedules."""
    from bubbleproof.commands.pareto import run_pareto

    return run_pareto(
        problem,
        time_limit=time_limit,
        workers=workers,
        cluster=cluster,
        target=output,
        folder=schedules,
        as_json=json,
    )


@app.command()
def bench(
    problems: Annotated[
        list[str] | None, Argument(metavar="[PROBLEM]...", help="Default: small instances.")
    ] = None,
    engine: Annotated[
        list[str] | None, Option(help="auto, cpsat, sat, z3, pulp or pulp-cbc; repeatable.")
    ] = None,
    time_limit: Annotated[float, Option(help="Seconds for each engine and problem.")] = 10.0,
    threads: Annotated[int, Option(help="Threads of an engine.")] = 2,
    json: Json = False,
) -> int:
    """Compare the engines on your problems, on this machine."""
    from bubbleproof.commands.bench import run_bench

    engines = tuple(engine or ("auto", "cpsat", "sat", "z3", "pulp"))
    return run_bench(
        problems or (), engines=engines, time_limit=time_limit, threads=threads, as_json=json
    )


@app.command()
def verify(
    schedule: Words,
    problem: Annotated[str | None, Option(help="Check against this problem.")] = None,
    comm: Annotated[
        list[str] | None,
        Option(help="buffered, rendezvous, pair-stream, rank-stream (default: all)."),
    ] = None,
    certificate: Annotated[
        str | None, Option(help="A certificate (.json) of how good the schedule is.")
    ] = None,
    spec: Annotated[
        bool, Option("--spec", help="Rules 1 to 5 and 8 by their plain definition alone.")
    ] = False,
    dialect: Dialect = None,
    json: Json = False,
) -> int:
    """Decide every rule for a schedule; print the counterexamples."""
    if spec:
        from bubbleproof.commands.verify_spec import run_spec

        if comm or certificate is not None:
            raise ValueError("--spec decides rules 1 to 5 and 8 alone: no --comm, no --certificate")
        return run_spec(schedule, problem=problem, dialect=dialect, as_json=json)
    from bubbleproof.commands.verify import run_verify

    return run_verify(
        schedule,
        problem=problem,
        comm=comm or (),
        certificate=certificate,
        dialect=dialect,
        as_json=json,
    )


@app.command()
def measure(
    family: Annotated[str, Argument(metavar="FAMILY")],
    parameters: Annotated[
        list[str] | None, Argument(metavar="key=value…", help="p=4 m=8 [v=2 tF=1 tB=2 …]")
    ] = None,
    json: Json = False,
) -> int:
    """Measure a published schedule."""
    from bubbleproof.commands.measure import run_measure

    return run_measure(family, parameters or (), as_json=json)


@app.command(cls=HeadedCommand)
@spread
def replay(
    schedule: Words,
    run: RunOptions,
    model: ModelOptions,
    training: TrainingOptions,
    communication: CommunicationOptions,
    output: ReplayOutput,
) -> int:
    """Run a verified schedule on torch; compare gradients and peak bytes."""
    from bubbleproof.commands.replay import run_replay
    from bubbleproof.commands.replay_request import ReplayRequest

    request = ReplayRequest.of(schedule, run, model, training, communication, output)
    return run_replay(request, torchrun=communication.torchrun)


@app.command(cls=HeadedCommand)
@spread
def profile(
    output: Annotated[str, Option("-o", help="The problem file to write (.toml).")],
    pipeline: PipelineOptions,
    measurement: MeasurementOptions,
    model: ModelOptions,
    json: Json = False,
) -> int:
    """Measure a model's stages on a device; write them as a problem to solve and replay."""
    from bubbleproof.commands.profile import ProfileRequest, run_profile

    request = ProfileRequest(spec=model.spec(), pipeline=pipeline, measurement=measurement)
    return run_profile(request, target=output, as_json=json)


@app.command()
def show(
    schedule: Words,
    output: Annotated[str | None, Option("-o", help="x.html, .svg, .png or .perfetto.json")] = None,
    window: Annotated[str | None, Option(help="FIRST:LAST ticks to draw.")] = None,
    dialect: Dialect = None,
) -> int:
    """Draw a schedule: on the terminal, or to a file."""
    from bubbleproof.commands.show import run_show

    return run_show(schedule, target=output, window=window, dialect=dialect)


@app.command()
def convert(
    schedule: Annotated[
        list[str], Argument(metavar="SCHEDULE TARGET", help="target: .json or .csv")
    ],
    communication: Annotated[
        bool, Option("--communication", help="Write SEND and RECV into the table.")
    ] = False,
    problem: Annotated[str | None, Option(help="Put it on this problem first.")] = None,
    dialect: Dialect = None,
) -> int:
    """Write a schedule in another format."""
    from bubbleproof.commands.show import run_convert

    return run_convert(schedule, communication=communication, dialect=dialect, problem=problem)


@app.command()
def prove(
    theorems: Annotated[
        list[str] | None, Argument(metavar="[THEOREM]...", help="Default: all.")
    ] = None,
    timeout: Annotated[float, Option(help="Seconds for each query to Z3.")] = 10.0,
    json: Json = False,
) -> int:
    """Prove the theorems for all sizes; list assumptions, obligations and times."""
    from bubbleproof.commands.prove import run_prove

    return run_prove(theorems or (), timeout=timeout, as_json=json)


@app.command()
def claims(
    paper: Annotated[str | None, Option(help="Only this paper's claims.")] = None,
    audit: Annotated[bool, Option("--audit", help="Decide them; else they are listed.")] = False,
    quick: Annotated[bool, Option("--quick", help="On their small domains.")] = False,
    workers: Annotated[int | None, Option(help="Processes (default: cores).")] = None,
    cluster: Annotated[str | None, Option(help="Dask scheduler's address.")] = None,
    limit: Annotated[int | None, Option(help="At most so many cases per claim.")] = None,
    write: Annotated[str | None, Option(help="Write the audit as Markdown.")] = None,
    json: Json = False,
) -> int:
    """List the papers' claims; with --audit, decide each by measuring every case."""
    from bubbleproof.commands.audit import Workers
    from bubbleproof.commands.claims import Request, run_claims

    workforce = Workers(count=workers, address=cluster)
    request = Request(
        paper=paper, is_audit=audit, is_quick=quick, limit=limit, target=write, workers=workforce
    )
    return run_claims(request, as_json=json)


def main() -> None:
    """Run the command line and exit with its status."""
    sys.exit(status_of_call(lambda: app(standalone_mode=False)))
