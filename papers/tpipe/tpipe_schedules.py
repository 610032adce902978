"""What T-Pipe's claims measure on schedules: each function builds one and looks at its times.

Parameters: ``p`` ranks, ``m`` microbatches, ``v`` chunks, ``r`` a rank, ``tF`` ``tB`` ticks of a
forward and a backward, ``k`` the chunks of v that are recomputed. At tF = 1, tB = 2 of two chunks a
tick is the paper's T_unit = T_fwd / 2p, and one unit of memory is m_a / 2p. 1F1B with half of each
stage recomputed has forwards of 2 units, backwards of 4 and 1 more for the recomputation just in
time within the backward. "Kept" are the activations of chunks that are not recomputed, on the rank
where there are most, as in Figure 14, which leaves out the buffer of what is recomputed.
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
from bubbleproof.theory.model.actions import Ints
from bubbleproof.theory.model.measures import Measures, measure
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
