"""Which stage is a straggler: the rule, fixed before it was tested.

Of each stage and kind of computation the *usual* time is the lower quartile of its times of work
(``traced_waits``: without what it waited for) over all microbatches and steps. A cause that lies in
the stage slows all of them; what other processes, the first run or the machine do to some does not
reach the quartile. A stage is a *straggler* in a kind where

- its usual time is more than ``FACTOR`` = 1.5 times the lower median of the usual times of that
  kind over all stages, and
- the difference, times the microbatches of a step, is at least ``SHARE`` = 5 % of the median step.

A stage is named only where that holds whatever the clocks may be (``clock_offsets``): its own work
taken as short, and that of the others as long, as they allow. Where it holds by the likeliest
clocks alone the stage is slow *perhaps*.

Stages that were given unequal work (a head, an embedding) are named too where the work says so:
the rule tells what is slow, not why. Where a schedule with durations of its own is given, usual
times are compared as multiples of those.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median_low

from bubbleproof.theory.model.actions import Kind
from bubbleproof.traces.traced_waits import Stretch, TracedTimes

FACTOR, SHARE = 1.5, 0.05
StageKind = tuple[int, Kind]


@dataclass(frozen=True, slots=True, kw_only=True)
class Straggler:
    """A stage that is slow in a kind: its usual time, and that of the median stage (ns)."""

    stage: int
    rank: int
    kind: Kind
    usual: int
    of_others: int

    def __str__(self) -> str:
        return (
            f"stage {self.stage} (rank {self.rank}) takes {self.usual / 1e6:.3f} ms for "
            f"{self.kind.name}, {self.usual / max(self.of_others, 1):.1f} times as long as the "
            f"median stage ({self.of_others / 1e6:.3f} ms)"
        )


def times_of_work(times: TracedTimes) -> dict[StageKind, list[int]]:
    """All times of work (ns) of each stage and kind, over microbatches and steps."""
    return _times(times, lambda work: work.length)


def _times(times: TracedTimes, length: Callable[[Stretch], int]) -> dict[StageKind, list[int]]:
    found: dict[StageKind, list[int]] = {}
    for step in times.steps:
        for action, work in step.work().items():
            found.setdefault((action.stage, action.kind), []).append(length(work))
    return found


def usual_time(lengths: Sequence[int]) -> int:
    """The lower quartile."""
    return sorted(lengths)[(len(lengths) - 1) // 4]


def stragglers(
    times: TracedTimes, expected: Mapping[StageKind, float] | None = None
) -> list[Straggler]:
    """The stragglers of a job, whatever its clocks; the one that costs most first.

    Parameters
    ----------
    times
        The job.
    expected
        Durations of a given schedule, in any unit, by stage and kind; by default all equal.
    """
    least = _usual(times, lambda work: max(0, work.length - work.late))
    most = _usual(times, lambda work: work.length + work.early)
    return _slow(times, least, most, expected)


def perhaps_stragglers(
    times: TracedTimes, expected: Mapping[StageKind, float] | None = None
) -> list[Straggler]:
    """The stages that are stragglers by the likeliest clocks alone; see ``stragglers``."""
    usual = _usual(times, lambda work: work.length)
    sure = {(each.stage, each.kind) for each in stragglers(times, expected)}
    found = _slow(times, usual, usual, expected)
    return [each for each in found if (each.stage, each.kind) not in sure]


def _usual(times: TracedTimes, length: Callable[[Stretch], int]) -> dict[StageKind, int]:
    return {key: usual_time(lengths) for key, lengths in _times(times, length).items()}


def _slow(
    times: TracedTimes,
    own: Mapping[StageKind, int],
    others: Mapping[StageKind, int],
    expected: Mapping[StageKind, float] | None,
) -> list[Straggler]:
    """The stages whose ``own`` usual times are so far above those of ``others``."""
    number, step = times.job.pipeline.num_microbatches, times.median_step().length
    home = times.job.rank_of_stage()
    found = []
    for kind in sorted({kind for _, kind in own}):
        scale = {stage: (expected or {}).get((stage, kind), 1.0) for stage, k in own if k is kind}
        base = median_low([others[stage, kind] / scale[stage] for stage in scale])
        for stage, unit in scale.items():
            usual, median = own[stage, kind], round(base * unit)
            if usual > FACTOR * median and (usual - median) * number >= SHARE * step:
                found.append(
                    Straggler(
                        stage=stage, rank=home[stage], kind=kind, usual=usual, of_others=median
                    )
                )
    return sorted(found, key=lambda each: each.of_others - each.usual)
