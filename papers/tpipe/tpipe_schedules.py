"""What T-Pipe's claims measure on schedules: each function builds one and looks at its times.

Parameters: ``p`` ranks, ``m`` microbatches, ``v`` chunks, ``r`` a rank, ``tF`` ``tB`` ticks of a
forward and a backward, ``k`` the chunks of v that are recomputed. At tF = 1, tB = 2 of two chunks a
tick is the paper's T_unit = T_fwd / 2p, and one unit of memory is m_a / 2p. "Steady" values are
those of the middle microbatch. 1F1B with half of each stage recomputed has forwards of 2 units,
backwards of 4 and 1 more for the recomputation just in time within the backward. "Kept" are the
activations of chunks that are not recomputed, on the rank where there are most, as in Figure 14,
which leaves out the buffer of what is recomputed.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from bubbleproof.papers.claims.any_order import makespan_of_any_order
from bubbleproof.papers.claims.domain import Params
from bubbleproof.papers.claims.measured_pipelines import (
    last_end,
    messages_between,
    on_pipeline,
    peaks_of,
)
from bubbleproof.papers.claims.measured_pipelines import messages as messages_of
from bubbleproof.theory.families.adapipe import AdaPipe
from bubbleproof.theory.families.base import Family, FamilyMember
from bubbleproof.theory.families.interleaved import InterleavedOneForwardOneBackward
from bubbleproof.theory.families.one_f_one_b import OneForwardOneBackward
from bubbleproof.theory.families.parameters import FamilyParameters, make_parameters
from bubbleproof.theory.families.recomputed_1f1b import (
    RecomputedOneForwardOneBackward,
    share_of_chunks,
)
from bubbleproof.theory.families.toffload import TOffload
from bubbleproof.theory.families.tpipe import TPipe
from bubbleproof.theory.families.trecomp import (
    TRecomp,
    TRecompInterleaved,
    recomputed_chunks,
    with_recomputations,
)
from bubbleproof.theory.model.actions import Ints, Kind
from bubbleproof.theory.model.measures import Measures, measure
from bubbleproof.theory.model.memory import memory_profile
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.recompute import Recompute
from bubbleproof.theory.pipelines.timing import left_shift

TPIPE, TRECOMP, TRECOMP_INTERLEAVED = TPipe(), TRecomp(), TRecompInterleaved()
PLAIN, INTERLEAVED, TOFFLOAD = (
    OneForwardOneBackward(),
    InterleavedOneForwardOneBackward(),
    TOffload(),
)
RECOMPUTED_1F1B = RecomputedOneForwardOneBackward()
_NAMES = ("p", "m", "v", "tF", "tB")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MeasuredMember:
    """A schedule with what was measured of it; ``start`` and ``end`` are by task number."""

    member: FamilyMember
    measures: Measures
    start: Ints
    end: Ints

    def begins(self, label: str) -> int:
        return int(self.start[self.member.problem.task(label)])

    def ends(self, label: str) -> int:
        return int(self.end[self.member.problem.task(label)])

    def peak_of_stages(self, stages: range, rank: int) -> int:
        """The most activations of some stages that lie on a rank at once."""
        problem = self.member.problem
        rows = np.isin(problem.actions.stage[problem.events.task], list(stages))
        return peaks_of(self.member, rows)[rank]

    def order(self, rank: int) -> list[tuple[Kind, int]]:
        """(kind, stage) of a rank's tasks in the order of its compute stream."""
        program = self.member.schedule.program
        own = program.resource == rank
        kinds, stages = program.actions.kind[own].tolist(), program.actions.stage[own].tolist()
        return [(Kind(kind), stage) for kind, stage in zip(kinds, stages, strict=True)]


def run(family: Family, at: Params) -> MeasuredMember:
    """The family's schedule for the parameters that it knows."""
    return _run(family, tuple((name, at[name]) for name in _NAMES if name in at))


@lru_cache(maxsize=256)
def _run(family: Family, params: tuple[tuple[str, int], ...]) -> MeasuredMember:
    made = family.member(make_parameters(dict(params)))
    problem = made.problem
    start = np.zeros(problem.num_tasks, dtype=np.int64)
    start[problem.locate(made.schedule.program.actions)] = made.schedule.start
    return MeasuredMember(
        member=made,
        measures=measure(problem, made.schedule),
        start=start,
        end=start + problem.duration,
    )


def makespan(family: Family, at: Params) -> int:
    return run(family, at).measures.makespan


def peak(family: Family, at: Params) -> int:
    """The most activations on any rank."""
    return max(run(family, at).measures.peak_activations)


def share(family: Family, at: Params) -> Fraction:
    """The peak as a share of m_a; one activation is m_a over the number of stages."""
    made = run(family, at)
    return Fraction(max(made.measures.peak_activations), made.member.pipeline.num_stages)


def chunk_peak(family: Family, at: Params, chunk: int) -> int:
    """The most activations of one chunk (1 or 2, as in the paper) on rank 0."""
    p = at["p"]
    return run(family, at).peak_of_stages(range((chunk - 1) * p, chunk * p), 0)


def at_total_peak(family: Family, at: Params, chunk: int) -> int:
    """The activations of one chunk on rank 0 when rank 0 first holds most."""
    made, p = run(family, at), at["p"]
    problem = made.member.problem
    profile = memory_profile(problem, np.arange(problem.num_tasks), made.start)
    time, load = profile.curve(problem, 0)
    moment = int(time[int(np.argmax(load))])
    events = problem.events
    when = np.where(events.at_end, made.end[events.task], made.start[events.task])
    stage = problem.actions.stage[events.task]
    rows = (events.store == 0) & (when <= moment) & (stage // p == chunk - 1)
    return int(events.delta[rows].sum())


def middle(at: Params) -> int:
    return at["m"] // 2


def forward_interval(family: Family, at: Params) -> int:
    """Steady units between chunk 1's forward on rank p-1 and chunk 2's forward on rank 0."""
    made, p, j = run(family, at), at["p"], middle(at)
    return made.begins(f"{p}F{j}") - made.ends(f"{p - 1}F{j}")


def backward_interval(family: Family, at: Params) -> int:
    """Steady units between chunk 2's backward on rank 0 and chunk 1's backward on rank p-1."""
    made, p, j = run(family, at), at["p"], middle(at)
    return made.begins(f"{p - 1}B{j}") - made.ends(f"{p}B{j}")


def life(family: Family, at: Params, chunk: int, *, from_end: bool = False) -> int:
    """Steady units on rank 0 from a chunk's forward (its start or end) to its backward's start."""
    made, j, stage = run(family, at), middle(at), (chunk - 1) * at["p"]
    label = f"{stage}F{j}"
    return made.begins(f"{stage}B{j}") - (made.ends(label) if from_end else made.begins(label))


def period(family: Family, at: Params) -> int:
    """Steady units between the backwards of two microbatches of chunk 2 on rank 0."""
    made, j = run(family, at), middle(at)
    return made.begins(f"{at['p']}B{j}") - made.begins(f"{at['p']}B{j - 1}")


def warm_up(family: Family, at: Params) -> int:
    """The end of microbatch 0's last forward."""
    return run(family, at).ends(f"{2 * at['p'] - 1}F0")


def cool_down(family: Family, at: Params) -> int:
    """From the start of the last microbatch's first backward to the end of the step."""
    made = run(family, at)
    return made.measures.makespan - made.begins(f"{2 * at['p'] - 1}B{at['m'] - 1}")


def steady(family: Family, at: Params) -> int:
    """What lies between warm-up and cool-down."""
    return makespan(family, at) - warm_up(family, at) - cool_down(family, at)


def idle_per_rank(family: Family, at: Params) -> int:
    """Idle ticks of a rank; every rank has the same work."""
    return max(run(family, at).measures.idle_ticks)


def before_first(family: Family, at: Params, many: tuple[Kind, int], one: tuple[Kind, int]) -> int:
    """How many of rank 0's tasks ``many`` come before its first ``one``; (kind, chunk from 1)."""
    p = at["p"]
    first, counted = ((kind, (chunk - 1) * p) for kind, chunk in (one, many))
    order = run(family, at).order(0)
    return order[: order.index(first)].count(counted)


def delay_rounds(at: Params) -> int:
    """Rounds by which T-Recomp launches chunk 2 later than T-Pipe, by the order of rank 0."""
    many, one = (Kind.F, 1), (Kind.F, 2)
    return before_first(TRECOMP, at, many, one) - before_first(TPIPE, at, many, one)


def messages(family: Family, at: Params) -> int:
    """Forward and backward messages between ranks in one step."""
    return messages_of(run(family, at).member.problem)


def messages_on_link(family: Family, at: Params) -> int:
    """Those between rank r and the next."""
    return messages_between(run(family, at).member.problem, at["r"], at["r"] + 1)


def idle_between(at: Params, left: str, right: str) -> int:
    """Idle units of T-Pipe's rank r from the end of one of its tasks to the start of another."""
    made = run(TPIPE, at)
    begin, stop = made.ends(left), made.begins(right)
    own = made.member.problem.rank_of_task == at["r"]
    inside = np.minimum(made.end[own], stop) - np.maximum(made.start[own], begin)
    return stop - begin - int(inside[inside > 0].sum())


def cool_down_window(at: Params) -> int:
    """Idle units of rank r between the last backwards of chunk 2 and chunk 1."""
    last = at["m"] - 1
    return idle_between(at, f"{at['p'] + at['r']}B{last}", f"{at['r']}B{last}")


def warm_up_window(at: Params) -> int:
    """Idle units of rank r between the first forwards of chunk 1 and chunk 2."""
    return idle_between(at, f"{at['r']}F0", f"{at['p'] + at['r']}F0")


def forward_gaps(at: Params) -> int:
    """Steady units that one microbatch waits between the ranks in T-Recomp's chunk 2 forwards."""
    made, p, j = run(TRECOMP, at), at["p"], middle(at)
    return made.begins(f"{2 * p - 1}F{j}") - made.begins(f"{p}F{j}") - (p - 1)


def offloaded_end(at: Params, *, offload: int = 0, step: int = 0, reload: int = 0) -> int:
    """The end of everything, hosts included, of T-Pipe with its deep chunk off-loaded."""
    plain = run(TPIPE, at).member.pipeline
    pipeline = TOFFLOAD.offloading(plain, offload=offload, step=step, reload=reload)
    return last_end(TOFFLOAD, pipeline)


def half_recomputed_makespan(at: Params) -> int:
    """1F1B's that recomputes half of every stage within the backward, in half stages."""
    pipeline = Pipeline(num_ranks=at["p"], num_microbatches=at["m"], forward=2, backward=5)
    return on_pipeline(PLAIN, pipeline).makespan


def half_recomputed_peak(at: Params) -> int:
    """Units of m_a / 2p that 1F1B with half recomputed holds, the recomputed half left out.

    An activation is two units, of which one stays and one is dropped after the forward and made
    again, just before the backward, by a task of its own. What is dropped lies there for one
    forward or backward at a time: the buffer, one unit of the measured peak.
    """
    return _half_recomputed_peak(at["p"], at["m"])


@lru_cache(maxsize=1024)
def _half_recomputed_peak(p: int, m: int) -> int:
    again = Recompute(stages=tuple(range(p)), kept=1, duration=1)
    pipeline = Pipeline(
        num_ranks=p, num_microbatches=m, forward=2, backward=4, activation=2, recompute=again
    )
    plain = PLAIN.program(Pipeline(num_ranks=p, num_microbatches=m))
    orders = [with_recomputations(order, p) for order in plain.orders(p)]
    problem = pipeline.problem()
    schedule = left_shift(problem, Program.from_orders(orders))
    return max(measure(problem, schedule).peak_activations) - 1


def half_recomputed_ratio(at: Params) -> Fraction:
    """What 1F1B with half recomputed holds over what T-Recomp holds."""
    return Fraction(half_recomputed_peak(at), peak(TRECOMP, at))


def least_interleaved_idle(at: Params) -> int:
    """The least idle units of T-Recomp on interleaved 1F1B by any order within (p+1)/2p m_a."""
    made = run(TRECOMP_INTERLEAVED, at).member
    within = made.problem.with_capacity(at["p"] + 1)
    return makespan_of_any_order(within, [("ours", made.schedule.program)]) - 7 * at["m"]


def kept(family: Family, at: Params) -> int:
    """The most activations on a rank of chunks that are not recomputed, k of v."""
    return _kept(family, at["p"], at["m"], at["v"], share_of_chunks(at["k"], at["v"]))


@lru_cache(maxsize=256)
def _kept(family: Family, p: int, m: int, v: int, again: int) -> int:
    made = family.member(FamilyParameters(p=p, m=m, v=v, R=again))
    problem = made.problem
    first = recomputed_chunks(made.pipeline) * p
    if isinstance(family, RecomputedOneForwardOneBackward):  # its chunks lie side by side
        stays = problem.actions.stage % v >= first // p
    else:
        stays = problem.actions.stage >= first
    return max(peaks_of(made, np.asarray(stays[problem.events.task], dtype=np.bool_)))


def adapipe_over_trecomp(at: Params) -> Fraction:
    """AdaPipe's step over T-Recomp's of two chunks, at the activations of T-Recomp.

    A rank is v parts (layers, or halves) for AdaPipe; both times are in parts.
    """
    p, m, v = at["p"], at["m"], at["v"]
    recomputed = run(TRECOMP, {"p": p, "m": m}).measures
    held = max(recomputed.peak_activations) * v // 2  # parts of half a rank each
    plan = AdaPipe().member(FamilyParameters(p=p, m=m, v=v, f=held))
    found = measure(plan.problem, plan.schedule)
    if max(found.peak_activations) > held:
        raise ValueError(f"AdaPipe's plan holds {max(found.peak_activations)} parts of {held}")
    return Fraction(2 * found.makespan, v * recomputed.makespan)
