"""What a traced job tells: its time by cause, its bubbles, its stragglers, and a prediction.

*Bubbles* are those of ``theory.model.measures``, taken of the median step as it ran: each
computation lasts as long as it worked, in nanoseconds. *Usual* times are the lower quartiles of a
stage and kind (``stragglers``). The *prediction* is the step that the order would take with the
usual times and messages that take their median time: what is left of the measured step beyond it is
launches, collectives, the host and times that were not usual.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy as np

from bubbleproof.formats.problem_toml import problem_of
from bubbleproof.formats.toml_text import toml_text
from bubbleproof.formats.values import Tick, fitting_tick
from bubbleproof.theory.model.actions import Kind
from bubbleproof.theory.model.measures import Measures, measure
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.theory.pipelines.timing import left_shift
from bubbleproof.traces.stragglers import (
    StageKind,
    Straggler,
    perhaps_stragglers,
    stragglers,
    times_of_work,
    usual_time,
)
from bubbleproof.traces.traced_waits import TimeSpent, TracedTimes

KEYS = {Kind.F: "forward", Kind.B: "backward", Kind.I: "input", Kind.W: "weight"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceReport:
    """Everything that is told of a job; times are nanoseconds.

    ``measured`` are the bubbles of the median step, ``predicted`` its length by usual times (None
    where the pipeline has more than forwards and backwards), ``content`` the problem file of them;
    ``perhaps`` are stages that are slow unless the clocks are wrong by as much as they may be.
    """

    times: TracedTimes
    measured: Measures
    usual: Mapping[StageKind, int]
    stragglers: Sequence[Straggler]
    perhaps: Sequence[Straggler]
    roots: Counter[tuple[int, str]]
    predicted: int | None
    content: Mapping[str, object] | None
    tick: Tick

    @property
    def lengths(self) -> list[int]:
        """Of all steps."""
        return [step.length for step in self.times.steps]

    def spent(self, rank: int) -> Counter[TimeSpent]:
        """By cause, in the median step; sums to its length."""
        return self.times.median_step().spent(rank)

    def problem_file(self) -> str | None:
        """The text of a problem file with the usual times, spreads in remarks."""
        if self.content is None:
            return None
        work = times_of_work(self.times)
        spreads = [
            f"stage {stage} {kind.name}: {self.usual[stage, kind] / 1e6:.3f} ms usual, "
            f"{median(work[stage, kind]) / 1e6:.3f} median, {min(work[stage, kind]) / 1e6:.3f} to "
            f"{max(work[stage, kind]) / 1e6:.3f}"
            for stage, kind in sorted(work)
        ]
        head = (
            f"From traces of {len(self.lengths)} steps: lower quartiles over microbatches and "
            "steps, without what was waited for. A trace tells no memory."
        )
        return toml_text(self.content, (head, *spreads))


def trace_report(times: TracedTimes, expected: Mapping[StageKind, float] | None) -> TraceReport:
    """All of it. ``expected`` are durations of a schedule that was given (``stragglers``)."""
    usual = {key: usual_time(lengths) for key, lengths in times_of_work(times).items()}
    tick = fitting_tick([each / 1e9 for each in usual.values()])
    content = _content(times, usual, tick)
    predicted = None
    if content is not None:
        predicted = measure(*_left_shifted(times, content)).makespan * tick.nanoseconds
    return TraceReport(
        times=times,
        measured=measure(*as_it_ran(times)),
        usual=usual,
        stragglers=stragglers(times, expected),
        perhaps=perhaps_stragglers(times, expected),
        roots=times.median_step().roots(),
        predicted=predicted,
        content=content,
        tick=tick,
    )


def by_usual_times(report: TraceReport) -> tuple[Problem, Schedule] | None:
    """The order that ran with usual times and messages of the usual latency, where that is told."""
    return None if report.content is None else _left_shifted(report.times, report.content)


def _left_shifted(times: TracedTimes, content: Mapping[str, object]) -> tuple[Problem, Schedule]:
    problem = problem_of(content, name="trace").pipeline.problem()
    return problem, left_shift(problem, times.job.program)


def as_it_ran(times: TracedTimes) -> tuple[Problem, Schedule]:
    """The median step with the times of its work (ns), as a problem and its schedule.

    Not every rule holds for it: a message that the clocks place after its consumer's begin stays
    there.
    """
    problem, step = times.job.pipeline.problem(), times.median_step()
    work = step.work()
    spans = [(work[action].begin, work[action].end) for action in problem.actions]
    begin, end = np.array(spans, dtype=np.int64).T - step.begin
    real = replace(problem, duration=end - begin, unit="ns")
    program = times.job.program
    start = np.array(
        [work[action].begin - step.begin for action in program.actions], dtype=np.int64
    )
    return real, Schedule(program=program, start=start)


def _content(
    times: TracedTimes, usual: Mapping[StageKind, int], tick: Tick
) -> dict[str, object] | None:
    """The problem file's keys, or None where it could not say what was run."""
    pipeline, stages = times.job.pipeline, times.job.pipeline.num_stages
    kinds = {kind for _, kind in usual}
    split = pipeline.split_backward
    if not isinstance(split, bool) or kinds - KEYS.keys() or pipeline.num_slices > 1:
        return None
    home = times.job.rank_of_stage()
    durations = {
        KEYS[kind]: [tick.of(usual[stage, kind] / 1e9) for stage in range(stages)]
        for kind in sorted(kinds)
    }
    return {
        "name": "trace",
        "unit": tick.unit,
        "ranks": times.job.num_ranks,
        "microbatches": pipeline.num_microbatches,
        "chunks": pipeline.num_chunks,
        "placement": [home[stage] for stage in range(stages)],
        "split_backward": split,
        "durations": durations,
        "links": {"latency": round(latency(times) / tick.nanoseconds)},
    }


def latency(times: TracedTimes) -> int:
    """The median time (ns) of messages that were waited for while under way; 0 without one."""
    found = [
        stretch.length
        for step in times.steps
        for stretches in step.ranks
        for stretch in stretches
        if stretch.spent is TimeSpent.LINK
    ]
    return round(median(found)) if found else 0
