"""The page of a plan: the winner beside the file's own configuration, and all candidates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version

from bubbleproof.commands.planning.other_plans import OtherChoice
from bubbleproof.commands.verdicts import section_of
from bubbleproof.formats.problem_toml import ProblemFile
from bubbleproof.planners import Plan, SolvedCandidate
from bubbleproof.planners.configuration_words import shape_text
from bubbleproof.planners.jitter import Timed
from bubbleproof.planners.plan_results import (
    COLUMNS,
    candidate_rows,
    ranked,
)
from bubbleproof.report.headline import headline
from bubbleproof.report.page import ReportPage, ScheduleSection
from bubbleproof.report.plan_page import PlanPoint, bands, ranked_table, trades
from bubbleproof.theory.pipelines.programs.spread import Spread
from bubbleproof.theory.pipelines.shapes.plan_space import SPLIT, WHOLE
from bubbleproof.theory.pipelines.units import plural
from bubbleproof.verify import Verdict

EXPLAINED = (
    "Times in {}. bound: no schedule of the candidate is shorter, whatever is chosen in it; "
    "expected, 95 %: mean and 95 % quantile of the makespan with timing noise."
)


def plan_report(
    file: ProblemFile,
    found: Plan,
    timed: Timed,
    shown: OtherChoice | None,
    rows: Sequence[tuple[str, str]],
) -> ReportPage:
    """The page of the plan of a problem file, or of a deployment's; ``rows`` are its summary."""
    points = _points(file, found, timed)
    pipeline = file.pipeline
    explained = EXPLAINED.format(plural(pipeline.unit))
    parts = [
        ranked_table(COLUMNS, candidate_rows(file, found, timed), explained),
        trades(
            points,
            unit=pipeline.unit,
            memory_unit=pipeline.memory_unit,
            capacities=[store.capacity for store in pipeline.problem().stores],
        ),
        bands(points, unit=pipeline.unit, explained=_spread_text(file.spread)),
    ]
    sections = [_section("the plan", found.winner, found.verdict)]
    today = own_shape(file, found)
    if today is not None and today is not found.winner:
        sections.append(_section("the file's own configuration", today, None))
    if shown is not None:
        sections += shown.sections(found)
    winner = found.winner
    return ReportPage(
        title=f"{file.name}: plan",
        headline=headline(winner.pipeline.problem(), winner.schedule, pipeline=winner.pipeline),
        summary=(
            ("problem", file.description or file.name),
            ("ranks", str(pipeline.num_ranks)),
            ("microbatches", str(pipeline.num_microbatches)),
            *rows,
        ),
        parts=tuple(parts),
        sections=tuple(sections),
        is_drawn=pipeline.num_ranks > 1,
        versions=tuple((name, version(name)) for name in ("bubbleproof", "numpy", "ortools")),
    )


def own_shape(file: ProblemFile, found: Plan) -> SolvedCandidate | None:
    """The candidate that is the file's own configuration, where it is one and has a schedule."""
    backward = SPLIT if file.pipeline.split_backward is True else WHOLE
    for one in found.solved:
        shape = one.candidate
        is_own = (shape.chunks, shape.slices, shape.placement, shape.beside) == (1, 1, "loop", "")
        if is_own and shape.backward == backward:
            return one
    return None


def _section(name: str, one: SolvedCandidate, verdict: Verdict | None) -> ScheduleSection:
    title = f"{name}: {shape_text(one.candidate)} ({one.origin})"
    return section_of(title, one.pipeline.problem(), one.schedule, verdict)


def _points(file: ProblemFile, found: Plan, timed: Timed) -> list[PlanPoint]:
    points = []
    for one in ranked(file, found, timed):
        if not isinstance(one, SolvedCandidate):
            continue
        name, peaks = shape_text(one.candidate), one.measured.peak_memory
        point = PlanPoint(name=name, value=one.value, peaks=peaks)
        if (spans := timed.get(str(one.candidate))) is not None:
            point = replace(point, expected=spans.expected, p5=spans.p5, p95=spans.p95)
        points.append(point)
    return points


def _spread_text(spread: Spread) -> str:
    text = (
        f"{spread.samples} steps drawn with seed {spread.seed}, the orders kept: each action's "
        f"duration spreads by {spread.action_percent} %, each rank's speed by "
        f"{spread.rank_percent} % (standard deviations, log-normal)"
    )
    if spread.straggler is not None:
        text += "; rank {} takes {} % longer".format(*spread.straggler)
    if spread.slow_link is not None:
        text += "; messages between ranks {} and {} take {} % longer".format(*spread.slow_link)
    return f"{text}."
