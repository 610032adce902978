"""The command ``bubbleproof``.

Exit status: 0 all holds; 1 a violation or a refuted expectation; 2 unusable input (one line on
standard error: what, where, what was expected); 3 undecided in the time given. With ``--json`` one
JSON object goes to standard output and nothing else.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from bubbleproof.commands.output import refuse

app = typer.Typer(
    name="bubbleproof",
    help="State, solve, prove and run pipeline-parallel training schedules.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

Words = Annotated[
    list[str], typer.Argument(metavar="SCHEDULE", help="FILE.json, FILE.csv, or FAMILY key=value…")
]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")]
Dialect = Annotated[str | None, typer.Option(help="Dialect of a PyTorch table: new or old.")]
TimeLimit = Annotated[float | None, typer.Option(help="Seconds for the exact engine.")]


@app.command()
def run(
    problem: Annotated[str, typer.Argument(metavar="PROBLEM.toml")],
    output: Annotated[str | None, typer.Option("-o", help="Folder (default runs/NAME).")] = None,
    backend: Annotated[str, typer.Option(help="Replay on virtual or gloo.")] = "gloo",
    time_limit: TimeLimit = None,
    json: Json = False,
) -> int:
    """Solve, verify, draw and replay a problem; print one verdict table."""
    from bubbleproof.commands.run import run_problem

    return run_problem(problem, folder=output, backend=backend, time_limit=time_limit, as_json=json)


@app.command()
def solve(
    problem: Annotated[str, typer.Argument(metavar="PROBLEM", help="FILE.toml or FILE.json")],
    engine: Annotated[str, typer.Option(help="auto, cpsat, sat, z3 or pulp.")] = "auto",
    objective: Annotated[
        str | None, typer.Option(help="makespan, span_idle, makespan-then-peak or peak.")
    ] = None,
    within: Annotated[
        int | None, typer.Option(help="Largest value wanted (for peak: largest makespan).")
    ] = None,
    time_limit: TimeLimit = None,
    seed: Annotated[int, typer.Option(help="Seed of the engine.")] = 1,
    threads: Annotated[int, typer.Option(help="Threads of the engine.")] = 2,
    certified: Annotated[
        bool, typer.Option("--certified", help="Take no engine's word for an optimum.")
    ] = False,
    require: Annotated[
        list[str] | None, typer.Option(help="An order to keep, such as 0F1<0B0; repeatable.")
    ] = None,
    forbid: Annotated[
        list[str] | None, typer.Option(help="An order to avoid on one resource; repeatable.")
    ] = None,
    keep: Annotated[str | None, typer.Option(help="A schedule to keep a part of.")] = None,
    keep_ranks: Annotated[
        str | None, typer.Option(help="Keep its orders on these ranks, such as 0,1.")
    ] = None,
    keep_until: Annotated[
        int | None, typer.Option(help="Keep its starts before this tick.")
    ] = None,
    output: Annotated[str | None, typer.Option("-o", help="Write the schedule (.json).")] = None,
    certificate: Annotated[
        str | None, typer.Option(help="Write the bound's certificate (.json).")
    ] = None,
    json: Json = False,
) -> int:
    """Find the best schedule of a problem, with a checked bound, or why there is none."""
    from bubbleproof.commands.solve import SolveFlags, run_solve

    flags = SolveFlags(
        engine=engine,
        objective=objective,
        within=within,
        time_limit=time_limit,
        seed=seed,
        threads=threads,
        certified=certified,
        require=tuple(require or ()),
        forbid=tuple(forbid or ()),
        keep=keep,
        keep_ranks=keep_ranks,
        keep_until=keep_until,
        target=output,
        certificate=certificate,
        as_json=json,
    )
    return run_solve(problem, flags)


@app.command()
def repair(
    schedule: Words,
    problem: Annotated[str | None, typer.Option(help="Repair it on this problem.")] = None,
    dialect: Dialect = None,
    time_limit: Annotated[float, typer.Option(help="Seconds.")] = 60.0,
    output: Annotated[str | None, typer.Option("-o", help="Write the schedule (.json).")] = None,
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
    problem: Annotated[str, typer.Argument(metavar="PROBLEM", help="FILE.toml or FILE.json")],
    time_limit: Annotated[float, typer.Option(help="Seconds for each point.")] = 30.0,
    workers: Annotated[int | None, typer.Option(help="Processes (default: one per core).")] = None,
    cluster: Annotated[
        str | None, typer.Option(help="Address of a dask.distributed scheduler.")
    ] = None,
    output: Annotated[str | None, typer.Option("-o", help="Draw it (.svg, .png).")] = None,
    schedules: Annotated[
        str | None, typer.Option(help="Write each point's schedule to this folder.")
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
        list[str] | None, typer.Argument(metavar="[PROBLEM]...", help="Default: small instances.")
    ] = None,
    engine: Annotated[
        list[str] | None, typer.Option(help="auto, cpsat, sat, z3, pulp or pulp-cbc; repeatable.")
    ] = None,
    time_limit: Annotated[float, typer.Option(help="Seconds for each engine and problem.")] = 10.0,
    threads: Annotated[int, typer.Option(help="Threads of an engine.")] = 2,
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
    problem: Annotated[str | None, typer.Option(help="Check against this problem.")] = None,
    comm: Annotated[
        list[str] | None,
        typer.Option(help="buffered, rendezvous, pair-stream, rank-stream (default: all)."),
    ] = None,
    certificate: Annotated[
        str | None, typer.Option(help="A certificate (.json) of how good the schedule is.")
    ] = None,
    dialect: Dialect = None,
    json: Json = False,
) -> int:
    """Decide every rule for a schedule; print the counterexamples."""
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
    family: Annotated[str, typer.Argument(metavar="FAMILY")],
    parameters: Annotated[
        list[str] | None, typer.Argument(metavar="key=value…", help="p=4 m=8 [v=2 tF=1 tB=2 …]")
    ] = None,
    json: Json = False,
) -> int:
    """Measure a published schedule."""
    from bubbleproof.commands.measure import run_measure

    return run_measure(family, parameters or (), as_json=json)


@app.command()
def replay(
    schedule: Words,
    backend: Annotated[
        str | None,
        typer.Option(help="virtual (default), gloo or torch-runtime; under torchrun gloo or nccl."),
    ] = None,
    device: Annotated[
        str | None, typer.Option(help="cpu, or cuda: all ranks of virtual on one GPU.")
    ] = None,
    model: Annotated[
        str,
        typer.Option(help="mlp, transformer, llama, or a factory FILE.py:FUNCTION of your own."),
    ] = "mlp",
    hidden: Annotated[int, typer.Option(help="Hidden size.")] = 8,
    layers: Annotated[
        str, typer.Option(help="Layers per stage: one number, or one per stage such as 2,3,3,2.")
    ] = "1",
    heads: Annotated[int, typer.Option(help="Attention heads.")] = 2,
    kv_heads: Annotated[int, typer.Option(help="Heads of keys and values (llama).")] = 1,
    sequence: Annotated[int, typer.Option(help="Tokens of a sample.")] = 4,
    batch: Annotated[int, typer.Option(help="Samples of a microbatch.")] = 2,
    vocabulary: Annotated[
        int, typer.Option(help="Words to embed and to score; without, activations.")
    ] = 0,
    tied: Annotated[
        bool, typer.Option("--tied", help="Embedding and head share one matrix.")
    ] = False,
    dtype: Annotated[str, typer.Option(help="float64 or float32.")] = "float64",
    steps: Annotated[
        int | None, typer.Option(help="Optimizer steps; without, gradients alone.")
    ] = None,
    optimizer: Annotated[str | None, typer.Option(help="sgd, momentum or adam.")] = None,
    learning_rate: Annotated[float | None, typer.Option(help="Of the optimizer.")] = None,
    barrier: Annotated[
        bool, typer.Option("--barrier", help="Let all ranks end a pass before any steps.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Picks the interleaving (virtual).")] = 0,
    comm: Annotated[str | None, typer.Option(help="Communication semantics to assume.")] = None,
    timeout: Annotated[float, typer.Option(help="Seconds the ranks may take (gloo).")] = 60.0,
    unsafe: Annotated[bool, typer.Option("--unsafe", help="Run what is not verified too.")] = False,
    debug_headers: Annotated[
        bool, typer.Option("--debug-headers", help="Send a header ahead of each message (gloo).")
    ] = False,
    torchrun: Annotated[
        bool, typer.Option("--torchrun", help="This process is one rank, started by torchrun.")
    ] = False,
    data_parallel: Annotated[
        int, typer.Option(help="Replicas, each on microbatches of its own (pipemesh, files).")
    ] = 1,
    output: Annotated[
        list[str] | None,
        typer.Option("-o", help="x.html, x.json or x.perfetto.json; repeatable."),
    ] = None,
    zero: Annotated[
        str | None,
        typer.Option(help="ZeRO level, with others by parameter name: 2, or 3,norm=1."),
    ] = None,
    dialect: Dialect = None,
    json: Json = False,
) -> int:
    """Run a verified schedule on torch; compare gradients and peak bytes."""
    from bubbleproof.commands.replay import run_replay
    from bubbleproof.commands.replay_request import ReplayRequest, given_model, given_training
    from bubbleproof.reference_exec.zero_levels import ZeroLevels

    request = ReplayRequest(
        words=schedule,
        spec=given_model(
            model,
            layers,
            hidden=hidden,
            heads=heads,
            kv_heads=kv_heads,
            sequence=sequence,
            batch=batch,
            vocabulary=vocabulary,
            tied=tied,
            dtype=dtype,
        ),
        training=given_training(optimizer, steps, learning_rate, has_barrier=barrier),
        backend=backend,
        device=device,
        seed=seed,
        comm=comm,
        timeout=timeout,
        dialect=dialect,
        is_unsafe=unsafe,
        has_headers=debug_headers,
        data_parallel=data_parallel,
        levels=None if zero is None else ZeroLevels.parse(zero),
        targets=output or (),
        as_json=json,
    )
    return run_replay(request, torchrun=torchrun)


@app.command()
def profile(
    output: Annotated[str, typer.Option("-o", help="The problem file to write (.toml).")],
    ranks: Annotated[int, typer.Option(help="Ranks of the pipeline.")],
    microbatches: Annotated[int, typer.Option(help="Microbatches of a step.")],
    chunks: Annotated[int, typer.Option(help="Stages per rank.")] = 1,
    placement: Annotated[str, typer.Option(help="loop or wave.")] = "loop",
    whole: Annotated[
        bool, typer.Option("--whole", help="Pose whole backwards, not I and W.")
    ] = False,
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    model: Annotated[
        str,
        typer.Option(help="mlp, transformer, llama, or a factory FILE.py:FUNCTION of your own."),
    ] = "mlp",
    hidden: Annotated[int, typer.Option(help="Hidden size.")] = 8,
    layers: Annotated[str, typer.Option(help="Layers per stage, or of each: 2,3,3,2.")] = "1",
    heads: Annotated[int, typer.Option(help="Attention heads.")] = 2,
    kv_heads: Annotated[int, typer.Option(help="Heads of keys and values (llama).")] = 1,
    sequence: Annotated[int, typer.Option(help="Tokens of a sample.")] = 4,
    batch: Annotated[int, typer.Option(help="Samples of a microbatch.")] = 2,
    vocabulary: Annotated[
        int, typer.Option(help="Words to embed and to score; without, activations.")
    ] = 0,
    tied: Annotated[
        bool, typer.Option("--tied", help="Embedding and head share one matrix.")
    ] = False,
    dtype: Annotated[str, typer.Option(help="float64 or float32.")] = "float64",
    warmup: Annotated[int, typer.Option(help="Rounds that are not counted.")] = 3,
    repeats: Annotated[int, typer.Option(help="Rounds whose median is taken.")] = 10,
    tick: Annotated[
        str | None, typer.Option(help="Length of a tick such as 10us (default: one that fits).")
    ] = None,
    latency: Annotated[int, typer.Option(help="Ticks of a message; not measured.")] = 0,
    capacity: Annotated[
        str | None, typer.Option(help='Memory of each rank such as "80 GiB".')
    ] = None,
    json: Json = False,
) -> int:
    """Measure a model's stages on a device; write them as a problem to solve and replay."""
    from bubbleproof.commands.profile import ProfileRequest, run_profile
    from bubbleproof.commands.replay_request import given_model

    request = ProfileRequest(
        spec=given_model(
            model,
            layers,
            hidden=hidden,
            heads=heads,
            kv_heads=kv_heads,
            sequence=sequence,
            batch=batch,
            vocabulary=vocabulary,
            tied=tied,
            dtype=dtype,
        ),
        ranks=ranks,
        microbatches=microbatches,
        chunks=chunks,
        placement=placement,
        is_split=not whole,
        device=device,
        warmup=warmup,
        repeats=repeats,
        tick=tick,
        latency=latency,
        capacity=capacity,
    )
    return run_profile(request, target=output, as_json=json)


@app.command()
def show(
    schedule: Words,
    output: Annotated[
        str | None, typer.Option("-o", help="x.html, .svg, .png or .perfetto.json")
    ] = None,
    window: Annotated[str | None, typer.Option(help="FIRST:LAST ticks to draw.")] = None,
    dialect: Dialect = None,
) -> int:
    """Draw a schedule: on the terminal, or to a file."""
    from bubbleproof.commands.show import run_show

    return run_show(schedule, target=output, window=window, dialect=dialect)


@app.command()
def convert(
    schedule: Annotated[
        list[str], typer.Argument(metavar="SCHEDULE TARGET", help="target: .json or .csv")
    ],
    communication: Annotated[
        bool, typer.Option("--communication", help="Write SEND and RECV into the table.")
    ] = False,
    problem: Annotated[str | None, typer.Option(help="Put it on this problem first.")] = None,
    dialect: Dialect = None,
) -> int:
    """Write a schedule in another format."""
    from bubbleproof.commands.show import run_convert

    return run_convert(schedule, communication=communication, dialect=dialect, problem=problem)


@app.command()
def prove(
    theorems: Annotated[
        list[str] | None, typer.Argument(metavar="[THEOREM]...", help="Default: all.")
    ] = None,
    timeout: Annotated[float, typer.Option(help="Seconds for each query to Z3.")] = 10.0,
    json: Json = False,
) -> int:
    """Prove the theorems for all sizes; list assumptions, obligations and times."""
    from bubbleproof.commands.prove import run_prove

    return run_prove(theorems or (), timeout=timeout, as_json=json)


@app.command()
def claims(
    paper: Annotated[str | None, typer.Option(help="Only this paper's claims.")] = None,
    audit: Annotated[bool, typer.Option("--audit", help="Decide them anew.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="On their small domains.")] = False,
    workers: Annotated[int | None, typer.Option(help="Processes (default: cores).")] = None,
    cluster: Annotated[str | None, typer.Option(help="Dask scheduler's address.")] = None,
    limit: Annotated[int | None, typer.Option(help="At most so many cases per claim.")] = None,
    write: Annotated[str | None, typer.Option(help="Write the audit as Markdown.")] = None,
    json: Json = False,
) -> int:
    """List the papers' claims; with --audit, decide each by measuring every case."""
    from bubbleproof.commands.audit import Workers
    from bubbleproof.commands.claims import Request, run_claims

    workforce = Workers(count=workers, address=cluster)
    request = Request(paper=paper, is_audit=audit, is_quick=quick, limit=limit, workers=workforce)
    return run_claims(request, target=write, as_json=json)


def main() -> None:
    """Run the command line and exit with its status."""
    try:
        status = app(standalone_mode=False)
    except typer.TyperException as error:
        status = refuse(error.format_message())
    except (ValueError, OSError) as error:
        status = refuse(str(error))
    except (KeyboardInterrupt, typer.Abort):
        status = refuse("interrupted")
    except BrokenPipeError:
        # The reader of our output went away; nobody is left to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 1
    sys.exit(status if isinstance(status, int) else 0)
