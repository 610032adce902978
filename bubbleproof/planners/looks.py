"""Looks at one candidate: a first one of milliseconds, and solves of limited time.

What a look brings is judged before it counts: a schedule by the checker, a certificate on the
candidate's relaxation, which is what a reader of the bundle holds it against. What an engine says
of choices is then shown case by case, where time allows (``planners.case_proofs``). A candidate
whose store cannot take a single microbatch is refuted by the moment at which that one is whole.

A look that would not be prepared in the time that it has is not begun, and says so; its bound is
what the numbers of one rank show: claims of microseconds, before anything of it is built
(``verify.candidates.rank_claims`` has what they say, and why; here the rank is chosen that says
most).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from operator import attrgetter

from bubbleproof.planners.case_proofs import proof_by_cases, refuted
from bubbleproof.solvers import ProofOrigin, Result, SolveOptions, Status, solve, solve_choices
from bubbleproof.solvers.bounds import lower_bounds
from bubbleproof.solvers.shortening.known_orders import known_in_turn, known_orders
from bubbleproof.theory.model.measures import Measures
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.shapes.cut_bounds import NEVER
from bubbleproof.theory.pipelines.shapes.shaping import ShapedPipeline
from bubbleproof.theory.pipelines.timing import UntimedProgram, left_shift
from bubbleproof.verify import check
from bubbleproof.verify.candidates.cases import CandidateProof
from bubbleproof.verify.candidates.rank_claims import (
    NoRoom,
    RankClaim,
    RankMemory,
    RankWork,
    ShownByRanks,
    is_alike,
)
from bubbleproof.verify.candidates.relaxation import relaxation
from bubbleproof.verify.certificates.certificate_rule import Certificate, refusal

NO_ROOM = "one microbatch alone does not fit"
LATE = "no time was left for all of its orders"
CASES = 10.0  # seconds, or units of work, at most for a proof case by case
# Seconds per action until its problem, its bound and the published orders are there; and of a few
# orders that are named, with what one rank's numbers show.
PREPARED, TIMED = 6e-5, 5e-6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CandidateSearch:
    """What to look at, how, and the order to begin from beside the published ones."""

    shaped: ShapedPipeline
    options: SolveOptions
    known: Program | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FoundSchedule:
    """A schedule of ``pipeline``, with its choices fixed, and what the checker measured of it."""

    pipeline: Pipeline
    schedule: Schedule
    measured: Measures
    origin: str

    @property
    def value(self) -> int:
        """The makespan in ticks."""
        return self.measured.makespan

    @property
    def peak_memory(self) -> int:
        """The highest load of any rank's memory, in memory units."""
        return max(self.measured.peak_memory, default=0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SearchOutcome:
    """What a look brought: a schedule, or none, and a bound.

    ``bound`` (ticks) is shown by ``certificate``, or by the ``word`` of an engine.
    ``is_infeasible``: no schedule fits at all, by the ``reason``; ``is_begun``: no ``reason`` kept
    the look from its work, of which so many units were done. ``needed`` units of memory let the
    published order of the least need run, where none fits.
    """

    found: FoundSchedule | None = None
    bound: int = 0
    certificate: CandidateProof | None = None
    word: str = ""
    is_infeasible: bool = False
    is_begun: bool = True
    reason: str = ""
    work: float = 0.0
    needed: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FirstSearch:
    """What to look at, in so many seconds.

    Published orders are tried only where the bound is below ``most`` ticks: those of ``orders``,
    where any are named. The shortest that fits is taken, or where ``is_least`` that of least need.
    """

    shaped: ShapedPipeline
    most: int | None = None
    seconds: float = inf
    orders: tuple[str, ...] = ()
    is_least: bool = False


def preparation(pipeline: Pipeline, orders: Sequence[str] = ()) -> float:
    """Seconds, about, until a look has its problem, its bound and the published orders.

    Parameters
    ----------
    orders
        The families of which alone orders are timed; none: all, with a bound by search.
    """
    return (TIMED if orders else PREPARED) * _num_actions(pipeline)


def _num_actions(pipeline: Pipeline) -> int:
    """At most so many: F and B, or F, I and W, of each stage, microbatch and slice."""
    kinds = 2 if pipeline.split_backward is False else 3
    return kinds * pipeline.num_stages * pipeline.num_microbatches * pipeline.num_slices


def _not_begun(
    given: ShapedPipeline, seconds: float, orders: Sequence[str] = ()
) -> SearchOutcome | None:
    """What is to say where the time does not suffice; None where it does."""
    needed, actions = preparation(given.pipeline, orders), _num_actions(given.pipeline)
    if needed <= seconds:
        return None
    why = f"not begun: its {actions:,} actions take about {needed:.0f} s to prepare"
    return without_look(given, why)


def without_look(given: ShapedPipeline, why: str) -> SearchOutcome:
    """What the numbers of one rank show, and why there is no more.

    Parameters
    ----------
    why
        The reason that no look was taken, in words.
    """
    claim = quick_claim(given)
    is_full = isinstance(claim, NoRoom)
    return SearchOutcome(
        bound=0 if claim is None else claim.bound,
        certificate=claim,
        is_infeasible=is_full,
        is_begun=False,
        reason=NO_ROOM if is_full else why,
    )


def first_look(asked: FirstSearch) -> SearchOutcome:
    """The bound of milliseconds, and the best published order, if one fits.

    Where orders are named, the bound is what the numbers of one rank show.
    """
    pipeline, deadline = asked.shaped.pipeline, time.perf_counter() + asked.seconds
    if (unseen := _not_begun(asked.shaped, asked.seconds, asked.orders)) is not None:
        return unseen
    if asked.orders:
        seen = replace(without_look(asked.shaped, ""), is_begun=True)
        if seen.is_infeasible or (asked.most is not None and seen.bound >= asked.most):
            return seen
        return _published(seen, asked, deadline)
    relaxed = relaxation(pipeline, asked.shaped.allowed)
    if (full := refuted(relaxed)) is not None:
        return SearchOutcome(bound=NEVER, certificate=full, is_infeasible=True, reason=NO_ROOM)
    seen, bounds = SearchOutcome(), lower_bounds(relaxed)
    if not bounds.is_cyclic and refusal(relaxed, bounds.best) is None:
        seen = replace(seen, bound=bounds.best.bound, certificate=bounds.best)
    if asked.most is not None and seen.bound >= asked.most:
        return seen
    return _published(seen, asked, deadline)


def _published(seen: SearchOutcome, asked: FirstSearch, deadline: float) -> SearchOutcome:
    """With the best published order that fits, of the first and those made before the deadline."""
    pipeline, best, needed = asked.shaped.pipeline, None, list[int]()
    place = attrgetter(*(["peak_memory"] if asked.is_least else []), "value")
    for name, program in known_in_turn(pipeline, asked.orders):
        if (timed := _timed(pipeline, name, program)) is not None:
            found, is_fit = timed
            if not is_fit:
                needed.append(found.peak_memory)
            elif best is None or place(found) < place(best):
                best = found
        if time.perf_counter() > deadline:
            is_begun = best is not None or not asked.orders
            return replace(seen, found=best, is_begun=is_begun, reason="" if is_begun else LATE)
    return replace(seen, found=best, needed=min(needed, default=None) if best is None else None)


def _timed(pipeline: Pipeline, name: str, program: Program) -> tuple[FoundSchedule, bool] | None:
    """An order's schedule, and whether it fits; None where it has none."""
    problem = pipeline.problem()
    try:
        schedule = left_shift(problem, program)
    except UntimedProgram:
        return None
    verdict = check(problem, schedule)
    if verdict.measured is None:
        return None
    found = FoundSchedule(
        pipeline=pipeline, schedule=schedule, measured=verdict.measured, origin=name
    )
    return found, verdict.ok


def look(asked: CandidateSearch) -> SearchOutcome:
    """Solve the candidate with what is open in it."""
    pipeline, allowed = asked.shaped.pipeline, asked.shaped.allowed
    if (unseen := _not_begun(asked.shaped, asked.options.time_limit)) is not None:
        return unseen
    starts = known_orders(pipeline)
    if allowed is None:
        starts += [] if asked.known is None else [("the look before", asked.known)]
        result = solve(pipeline.problem(), asked.options, starts)
        return _judged(asked, result, pipeline, result.certificate)
    began, work = time.perf_counter(), asked.options.work
    options = replace(asked.options, work=None if work is None else work / 2)  # of each search
    found = solve_choices(pipeline, allowed, options, starts)
    seen = _judged(asked, found.result, found.pipeline, found.floor_certificate)
    left = asked.options.time_limit - (time.perf_counter() - began)
    if not seen.word or left <= 0:
        return seen
    options = replace(asked.options, time_limit=left).at_most(CASES)
    best = None if seen.found is None else seen.found.value
    proof = proof_by_cases(pipeline, allowed, seen.bound, options, best)
    return seen if proof is None else replace(seen, bound=proof.bound, certificate=proof, word="")


def _judged(
    asked: CandidateSearch, result: Result, pipeline: Pipeline, certificate: Certificate | None
) -> SearchOutcome:
    within, word, bound = asked.options.within, "", 0
    relaxed = relaxation(asked.shaped.pipeline, asked.shaped.allowed)
    if certificate is not None and refusal(relaxed, certificate) is None:
        bound = certificate.bound
    else:
        certificate = None
    claimed = result.best_bound
    if result.status is Status.INFEASIBLE:
        claimed = max(claimed, NEVER if within is None else within + 1)
    if claimed > bound:
        word, bound, certificate = _who(asked.options, result), claimed, None
    return SearchOutcome(
        found=_schedule_of(result, pipeline),
        bound=bound,
        certificate=certificate,
        word=word,
        is_infeasible=result.status is Status.INFEASIBLE and within is None,
        reason=result.reason,
        work=result.work,
    )


def _schedule_of(result: Result, pipeline: Pipeline) -> FoundSchedule | None:
    if (best := result.found) is None:
        return None
    return FoundSchedule(
        pipeline=pipeline, schedule=best.schedule, measured=best.measured, origin=result.origin
    )


def _who(options: SolveOptions, result: Result) -> str:
    """On whose word a bound without a certificate rests."""
    if result.proof is ProofOrigin.ARGUMENT:
        return "the solver's argument"
    return "cpsat" if options.engine == "auto" else options.engine


def quick_claim(found: ShapedPipeline) -> RankClaim | None:
    """That some rank has no room for a microbatch, or that no schedule is shorter than a bound.

    None where stages stand on two ranks.
    """
    pipeline = found.pipeline
    if pipeline.is_bidirectional:
        return None
    shown = ShownByRanks(pipeline)
    quick = RankWork(rank=_most(shown.work), bound=max(shown.work))
    if found.allowed is not None or not is_alike(pipeline):
        return quick
    for rank, room in enumerate(shown.room):
        if room is not None and room < 0:
            return NoRoom(rank=rank, bound=NEVER)
    held = RankMemory(rank=_most(shown.memory), bound=max(shown.memory))
    return quick if quick.bound >= held.bound else held


def _most(bounds: list[int]) -> int:
    return bounds.index(max(bounds))
