"""``bubbleproof pareto PROBLEM``: every trade of makespan against peak memory, with its proof.

The published families are shown beside the front on the same work (``formats.comparison``), each
as a named point; those that do not take the problem's shape are listed with their reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from bubbleproof.commands.first_lines import print_answer, print_rows
from bubbleproof.commands.interrupts import is_interrupted, unless_interrupted
from bubbleproof.commands.options.shared_options import Detail, WorkersElsewhere
from bubbleproof.commands.output import HOLDS, INTERRUPTED, UNDECIDED, counted, print_json, say
from bubbleproof.commands.solve import schedule_file
from bubbleproof.formats import write_schedule
from bubbleproof.formats.all_or_nothing import written_together
from bubbleproof.parallel import open_executor
from bubbleproof.planners.published_points import PublishedPoint, common_capacity, published_point
from bubbleproof.platforms import num_cores
from bubbleproof.report.amounts import Scale, time
from bubbleproof.report.extras import require_drawing
from bubbleproof.report.solved_result import ProblemInput, read_problem_input
from bubbleproof.solvers import Result, SolveOptions
from bubbleproof.solvers.pareto_front import Front, pareto
from bubbleproof.theory.families import families
from bubbleproof.theory.pipelines.pipeline import Pipeline

COLUMNS = ("peak", "makespan", "bound of that peak or less", "proof", "schedule")


def run_pareto(
    problem: str,
    elsewhere: WorkersElsewhere,
    detail: Detail,
    time_limit: float,
    workers: int | None,
    output: str | None,
    schedules: str | None,
    json: bool,
) -> int:
    """Find the front, print it, and draw it and write its schedules where asked."""
    require_drawing([] if output is None else [output])
    source = read_problem_input(problem)
    if source.has_choices:
        raise ValueError(f"{problem}: pareto takes no [choices]")
    memory = None if source.file is None else source.file.memory
    options = SolveOptions(time_limit=time_limit, threads=1, memory=memory)

    def tell(cap: int, result: Result) -> None:
        say(f"peak <= {cap}: {result.status.name.lower()}, makespan {result.makespan}")

    found: list[Front] = []

    def search() -> None:
        with open_executor(workers, address=elsewhere.scheduler) as executor:
            front = pareto(
                source.problem,
                options,
                source.starts,
                executor=executor,
                workers=workers or (1 if executor is None else num_cores()),
                on_point=None if json else tell,
            )
            found.append(front)  # kept also where a Ctrl-C comes while the workers end

    unless_interrupted(search, None)
    front = found[0] if found else Front(points=(), is_exact=False, refusal=None)
    published = [] if source.pipeline is None else _published(source.pipeline)

    unless_interrupted(lambda: _write(source, front, published, output, schedules), None)
    if json:
        print_json(_to_json(source, front, published))
    elif print_answer(_lines(source, front, is_whole=not is_interrupted()), detail):
        _print(source, front, published, detail)
    if is_interrupted():
        return INTERRUPTED
    return HOLDS if front.is_exact else UNDECIDED


def _published(pipeline: Pipeline) -> list[PublishedPoint]:
    """Every family on the user's work, with no limit on memory; after a Ctrl-C those so far."""
    found: list[PublishedPoint] = []
    for name, family in families().items():
        if is_interrupted():
            break
        one = unless_interrupted(partial(published_point, name, family, pipeline), None)
        found += [] if one is None else [one]
    return found


def _write(
    source: ProblemInput,
    front: Front,
    published: Sequence[PublishedPoint],
    output: str | None,
    schedules: str | None,
) -> None:
    """The picture and the schedules where asked for; after a Ctrl-C no picture is begun."""
    drawn = None if is_interrupted() else output
    with written_together(schedules, drawn) as (folder, picture):
        if schedules is not None:
            for point in front.points:
                write_schedule(folder / f"peak-{point.peak}.json", schedule_file(source, point))
        if drawn is not None:
            _draw(source, front, published, picture)
    if schedules is not None:
        say(f"wrote {counted(len(front.points), 'schedule')} to {Path(schedules)}")
    if drawn is not None:
        say(f"wrote {drawn}")


def _draw(
    source: ProblemInput, front: Front, published: Sequence[PublishedPoint], target: Path
) -> None:
    from bubbleproof.report.front_chart import FrontPoint, draw_front

    found = [p for p in front.points if p.peak is not None and p.makespan is not None]
    draw_front(
        target,
        [FrontPoint("", p.peak or 0, p.makespan or 0, p.proof is not None) for p in found],
        [FrontPoint(p.name, p.peak, p.makespan) for p in published if p.refusal is None],
        title=f"{source.name}: makespan against peak memory",
        unit=source.problem.unit,
        memory_unit=source.problem.memory_unit,
        capacity=common_capacity(source.problem),
    )


def _lines(source: ProblemInput, front: Front, *, is_whole: bool) -> list[str]:
    """How many trades there are and whether that is proved, and each trade."""
    problem = source.problem
    why = "a longer --time-limit may find more" if is_whole else "interrupted"
    proof = "no other trade exists" if front.is_exact else f"not proved to be all: {why}"
    told = [f"{counted(len(front.points), 'trade')} of makespan against peak memory; {proof}"]
    scale = Scale.of(problem.memory_unit, max((p.peak or 0 for p in front.points), default=1))
    for point in front.points:
        if point.peak is None or point.makespan is None:
            continue
        span = time(point.makespan, problem.unit)
        least = "proved" if point.proof else f"at least {time(point.best_bound, problem.unit)}"
        told.append(f"peak {scale.amount(point.peak)}: {span} ({least})")
    return told


def _print(
    source: ProblemInput, front: Front, published: Sequence[PublishedPoint], detail: Detail
) -> None:
    unit, memory = source.problem.unit, source.problem.memory_unit
    rows = [
        (f"{p.peak} {memory}", f"{p.makespan} {unit}", str(p.best_bound), _proof(p), p.origin)
        for p in front.points
    ]
    print_rows(f"{source.name}: least makespan at each peak", COLUMNS, rows, detail)
    if front.refusal is not None:
        say(f"nothing lies below the first peak: {front.refusal}")
    taken = [p for p in published if p.refusal is None]
    if taken:
        columns = ("published", "peak", "makespan", "above the front")
        cap = common_capacity(source.problem)
        cells = [
            (p.name, f"{p.peak} {memory}", f"{p.makespan} {unit}", p.above(front, cap))
            for p in taken
        ]
        print_rows("the same work in published orders, memory unlimited", columns, cells, detail)
    for p in published:
        if p.refusal is not None:
            say(f"{p.name}: {p.refusal}")


def _proof(result: Result) -> str:
    return "not proved" if result.proof is None else result.proof.value


def _to_json(
    source: ProblemInput, front: Front, published: Sequence[PublishedPoint]
) -> dict[str, object]:
    return {
        "name": source.name,
        **front.to_dict(),
        "published": [
            {"name": p.name, "peak": p.peak, "makespan": p.makespan}
            if p.refusal is None
            else {"name": p.name, "refusal": p.refusal}
            for p in published
        ],
    }
