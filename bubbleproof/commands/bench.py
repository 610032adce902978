"""``bubbleproof bench [PROBLEM]...``: every engine on the same problems, on this machine.

All begin alike, from the bounds, the published orders and list scheduling, one after the other with
the same limit; a named engine then does the rest, while ``auto`` may also propagate, probe and turn
to several. Without a problem the ``INSTANCES`` are taken. Bounds are the certified ones. Seconds
are wall-clock; a ratio is an engine's time divided by that of ``auto`` on the same problem in the
same run, and a lower bound of it (``>=``) where the engine ran out of time.

With ``--decide`` three engines, or those that are named, decide each problem alone: none has a
schedule or another's bound to begin from, only what resources and stores show; what those show to
be impossible, a store that cannot hold one microbatch or a cycle of waits, no engine is asked. Each
schedule passes the checker, bounds are the engines' word. Engines that contradict each other end
the command; else a line says what they agree on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bubbleproof.commands.first_lines import print_answer, print_rows
from bubbleproof.commands.options.shared_options import Detail
from bubbleproof.commands.output import HOLDS, INTERRUPTED, UNDECIDED, counted, print_json, say
from bubbleproof.reference_exec.evidence.machine_versions import this_machine
from bubbleproof.report.solved_result import ProblemInput, read_problem_input
from bubbleproof.solvers import Result, SolveOptions, Status
from bubbleproof.solvers.engine_runs import AUTO, INSTANCES, EngineRun, engine_runs, is_decided
from bubbleproof.solvers.engines import ENGINES, is_installed, require_engine

DEFAULT_ENGINES = (AUTO, "cpsat", "sat", "z3", "pulp")
DECIDING_ENGINES = ("cpsat", "z3", "pulp")  # by constraints, by difference logic, by programs
PACKAGES = ("bubbleproof", "ortools", "python-sat", "z3-solver", "pulp")
LEAST_SECONDS = 0.01  # what a ratio is taken to: a bound that closes at once says nothing
COLUMNS = ("problem", "engine", "best", "bound", "proof", "seconds", "by auto")


def run_bench(
    detail: Detail,
    problems: Sequence[str] | None,
    engine: Sequence[str] | None,
    time_limit: float,
    threads: int,
    decide: bool,
    json: bool,
) -> int:
    """Measure and print; undecided if a run with ``auto`` is, or if ``decide``, any. Ctrl-C ends it
    with what it has."""
    engines = tuple(engine or _all_here(DECIDING_ENGINES if decide else DEFAULT_ENGINES))
    for name in engines:
        require_engine(name)
    if decide and AUTO in engines:
        known = " ".join(ENGINES)
        raise ValueError(f"--decide asks single engines, one of {known}, got {AUTO!r}")
    SolveOptions(time_limit=time_limit, threads=threads)  # refuses what no engine can be told
    chosen = [_without_choices(path) for path in problems or ()] or [
        ProblemInput(name=name, problem=pipeline.problem(), pipeline=pipeline)
        for name, pipeline in INSTANCES.items()
    ]
    runs: list[EngineRun] = []
    is_whole = True
    entries = [(each.name, each.problem, [*each.starts]) for each in chosen]
    tell = None if json else say
    try:
        runs.extend(engine_runs(entries, engines, time_limit, threads, alone=decide, tell=tell))
    except KeyboardInterrupt:
        is_whole = False
    if json:
        print_json({"machine": _machine(threads, time_limit), "runs": [_to_json(r) for r in runs]})
    elif print_answer(_lines(runs, decide=decide), detail):
        print_rows(_machine(threads, time_limit), COLUMNS, [*_rows(runs)], detail)
    if not is_whole:
        return INTERRUPTED
    undecided = any(r.engine == AUTO and r.result.status is not Status.OPTIMAL for r in runs)
    undecided |= decide and not all(is_decided(run.result) for run in runs)
    return UNDECIDED if undecided else HOLDS


def _lines(runs: Sequence[EngineRun], *, decide: bool) -> list[str]:
    """How many problems were decided, and what each solver did; of ``--decide`` what they say."""
    entries = dict.fromkeys(run.entry for run in runs)
    decided = {run.entry for run in runs if is_decided(run.result)}
    told = [f"{len(decided)} of {counted(len(entries), 'problem')} decided"]
    if decide:
        return [*told, *_agreements(runs)]
    by_engine: dict[str, list[EngineRun]] = {}
    for run in runs:
        by_engine.setdefault(run.engine, []).append(run)
    for name, own in by_engine.items():
        done = sum(is_decided(run.result) for run in own)
        seconds = sum(run.result.seconds for run in own)
        told.append(f"{name:9} {done} of {len(own)} decided in {seconds:.2f} s")
    return told


def _all_here(names: Sequence[str]) -> Sequence[str]:
    """Those that are installed; a line names the others."""
    missing = [name for name in names if not is_installed(name)]
    if missing:
        say(f"without {' and '.join(missing)}, which is not installed")
    return [name for name in names if name not in missing]


def _without_choices(path: str) -> ProblemInput:
    source = read_problem_input(path)
    if source.has_choices:
        raise ValueError(f"{path}: bench compares engines, which take no [choices]")
    return source


def _agreements(runs: Sequence[EngineRun]) -> Iterator[str]:
    """What the engines say of each problem; none contradicts another."""
    for entry in dict.fromkeys(run.entry for run in runs):
        engines_by_answer: dict[str, list[str]] = {}
        for run in runs:
            if run.entry == entry:
                engines_by_answer.setdefault(_answer(run.result), []).append(run.engine)
        said = (f"{answer} ({', '.join(who)})" for answer, who in engines_by_answer.items())
        yield f"{entry}: {'; '.join(said)}"


def _answer(result: Result) -> str:
    if result.status is Status.INFEASIBLE:
        return "there is no schedule" + (f": {result.reason}" if not result.is_claimed else "")
    if result.value is None:
        return f"undecided, no schedule is below {counted(result.best_bound, 'tick')}"
    if result.status is Status.OPTIMAL:
        return f"the least makespan is {counted(result.value, 'tick')}"
    return f"undecided between {result.best_bound} and {counted(result.value, 'tick')}"


def _machine(threads: int, limit: float) -> str:
    return f"{this_machine(PACKAGES)}; {threads} threads, at most {limit:g} s each"


def _rows(runs: Sequence[EngineRun]) -> Iterator[tuple[str, ...]]:
    by_auto = {run.entry: run.result.seconds for run in runs if run.engine == AUTO}
    for run in runs:
        result = run.result
        best = "-" if result.value is None else str(result.value)
        proof = "-" if result.proof is None else result.proof.value
        times = (f"{result.seconds:.2f}", _ratio(result, by_auto.get(run.entry)))
        yield (run.entry, run.engine, best, str(run.bound), proof, *times)


def _ratio(result: Result, auto: float | None) -> str:
    if auto is None:
        return "-"
    sign = "" if result.status is Status.OPTIMAL else ">= "
    return f"{sign}{max(result.seconds, LEAST_SECONDS) / max(auto, LEAST_SECONDS):.1f}"


def _to_json(run: EngineRun) -> dict[str, object]:
    result = run.result
    return {
        "problem": run.entry,
        "engine": run.engine,
        "status": result.statement,
        "best": result.value,
        "bound": run.bound,
        "proof": None if result.proof is None else result.proof.value,
        "seconds": round(result.seconds, 3),
    }
