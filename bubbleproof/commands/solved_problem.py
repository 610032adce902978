"""What ``solve`` found, the answer first: how good it is, then how idle and full its ranks are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from bubbleproof.commands.demand_words import CLOSINGS
from bubbleproof.commands.output import MOST_RANKS, Answer, AnswerLine, counted, width
from bubbleproof.facts import Fact, FactCells
from bubbleproof.report.amounts import Scale, each_load, load, percent, time
from bubbleproof.report.memory_price import memory_price
from bubbleproof.report.solved_result import ProblemInput, SolvedResult
from bubbleproof.report.text import grid
from bubbleproof.solvers import ProofOrigin, Status
from bubbleproof.solvers.demands import Demands
from bubbleproof.theory.families import family
from bubbleproof.theory.model.measures import Measures
from bubbleproof.theory.model.problem import Problem
from bubbleproof.verify import check
from bubbleproof.verify.certificates.one_machine import OneMachine

MOST_CAUSES = 5  # of which a line says each
MOST_TASKS = 150_000  # of a schedule that 1F1B is made beside


@dataclass(frozen=True, slots=True, kw_only=True)
class SolvedProblem(Answer):
    """What ``solve`` found of a problem.

    ``demands`` are what a schedule had to keep, and ``causes`` why none does.
    """

    columns: ClassVar[FactCells] = ("quantity", "", "value", "")
    more: ClassVar[str] = "every quantity"
    result: SolvedResult
    demands: Demands
    causes: tuple[str, ...]

    @property
    def title(self) -> str:
        """The problem's name."""
        return self.result.given.name

    def facts(self) -> Iterator[Fact]:
        """All that was found, and what it is about."""
        yield from self.result.facts()
        if self.result.engine != "auto":
            yield Fact(label="engine", told=self.result.engine_text)
        scope = scope_text(self.demands)
        yield Fact(key="scope", label="scope" if self.demands else "", value=scope)
        yield Fact(key="causes", value=self.causes)
        yield from (Fact(label="because", told=cause) for cause in self.causes)

    def lines(self) -> Iterator[AnswerLine]:
        """The status with what it rests on; then the schedule's amounts, or why there is none."""
        result = self.result
        kept = f"{result.scope}{f', {scope_text(self.demands)}' if self.demands else ''}"
        proof, is_claimed = result.proof_text, result.proof is ProofOrigin.ENGINE
        claim = f" by the claim of {result.solver_name}" if is_claimed else ""
        is_optimal = result.status is Status.OPTIMAL
        if result.status is Status.INFEASIBLE:
            yield from self._infeasible(kept + claim, proof)
        elif result.found is None:
            yield "NO SOLUTION", f"in the time ({result.seconds:.1f} s) {kept}; {proof}"
        else:
            heading = "LEAST PEAK" if is_optimal and result.objective == "peak" else None
            if claim and is_optimal:  # no certificate was accepted
                heading, claim = "UNPROVED", f", optimal{claim}"
            told = f"{value_text(result)} {kept}{claim}   ({proof})"
            yield heading or result.status.name, told
            yield from self._found(result.found.measured)
        if result.reason and result.status is not Status.INFEASIBLE:
            yield "note", result.reason

    def _infeasible(self, kept: str, proof: str) -> Iterator[AnswerLine]:
        """First what would have to change, then what shows it."""
        causes = [cause for cause in self.causes if cause not in CLOSINGS]
        if causes:
            all_needed = CLOSINGS[0] in self.causes
            which = "unless one of these changes" if all_needed else "by some or all of these"
            if len(causes) == 1:
                yield "INFEASIBLE", f"{kept} unless this changes: {causes[0]}"
            else:
                yield "INFEASIBLE", f"{kept} {which}:"
                yield from (("", f"- {cause}") for cause in causes[:MOST_CAUSES])
            if len(causes) > MOST_CAUSES:
                yield "", f"- and {len(causes) - MOST_CAUSES} more"
        else:
            yield "INFEASIBLE", f"{kept}: no schedule exists"
        yield "why", f"{self.result.reason} ({proof})" if self.result.reason else proof

    def _found(self, measured: Measures) -> Iterator[AnswerLine]:
        """Idle ratio and memory, what was chosen, and what bounds it."""
        source, result = self.result.given, self.result
        known = "" if source.choices else beside_1f1b(source, measured.makespan)
        if not result.objective.startswith("makespan"):
            yield "makespan", time(measured.makespan, source.problem.unit)
        yield "idle", f"{percent(measured.idle_ratio)}{known and f'   {known}'}"
        yield "memory", memory_text(source.problem, measured)
        if source.choices is None and (price := memory_price(source.pipeline)) is not None:
            yield "limit", str(price)
        if source.choices is not None and source.choices.chosen:
            first = source.choices.chosen[:MOST_CAUSES]
            more = len(source.choices.chosen) - len(first)
            yield "chosen", f"{'; '.join(first)}{f' and {more} more' if more else ''}"
        if (name := bottleneck_of(result)) is not None:
            helps = "only less work there or less waiting around it can help"
            yield "bottleneck", f"{name}: {helps}, another order does not"

    def picture(self) -> str:
        """The ranks as wide as the screen; nothing where there is no schedule."""
        if self.result.schedule is None:
            return ""
        problem = self.result.given.problem
        return grid(problem, self.result.schedule, width=width(), max_lines=MOST_RANKS)


def scope_text(demands: Demands) -> str:
    """Which schedules the status and the bound are about."""
    counts = {"order": len(demands.orders), "start": len(demands.starts)}
    kept = [counted(number, what) for what, number in counts.items() if number]
    if not kept:
        return "all schedules of the problem"
    return f"schedules that keep the {' and '.join(kept)} demanded"


def value_text(result: SolvedResult) -> str:
    """The objective's value with its unit; one that is not shown to be optimal with its distance.

    Raises ``ValueError`` where no schedule was found.
    """
    problem, found, value = result.given.problem, result.found, result.value
    if found is None or value is None:
        raise ValueError(f"{result.given.name} has no schedule")
    name, peak = result.objective, load(found.peak, problem.memory_unit)
    told = peak if name == "peak" else time(value, problem.unit)
    told += " idle within the span of a rank" if name == "span_idle" else ""
    told += f", least peak {peak}" if name == "makespan-then-peak" else ""
    bound = result.best_bound if name == "peak" else result.lower_bound
    if result.status is Status.OPTIMAL or not bound:
        return told
    above = percent(Fraction(value - bound, bound))
    return f"{told}, at most {above} above the optimum"


def beside_1f1b(source: ProblemInput, makespan: int) -> str:
    """How long 1F1B takes, where it is an order of the pipeline and fits the memory."""
    pipeline, problem, known = source.pipeline, source.problem, family("1f1b")
    if pipeline is None or problem.num_tasks > MOST_TASKS or known.refusal(pipeline) is not None:
        return ""
    verdict = check(problem, known.schedule(pipeline, problem))
    if not verdict.ok or verdict.measured is None or not makespan:
        return ""
    longer = Fraction(verdict.measured.makespan - makespan, makespan)
    if not longer:
        return "as long as 1F1B"
    sign = "+" if longer > 0 else ""
    return f"1F1B: {time(verdict.measured.makespan, problem.unit)} ({sign}{percent(longer)})"


def memory_text(problem: Problem, measured: Measures) -> str:
    """The peak of each rank, and its capacity."""
    peaks, unit = measured.peak_memory, problem.memory_unit
    caps = [store.capacity for store in problem.stores[: problem.num_ranks]]
    limits = [cap for cap in caps if cap is not None]
    if len(peaks) > MOST_RANKS:
        most = problem.resources[peaks.index(max(peaks))].name
        of = f" of {load(min(limits), unit)} or more" if limits else ""
        return f"{load(max(peaks), unit)} on {most}{of}; least {load(min(peaks), unit)}"
    if len(limits) < len(caps):
        return each_load(peaks, unit)
    scale = Scale.of(unit, max(*peaks, *limits))
    room = limits[:1] if len({*limits}) == 1 else limits
    told, of = (" | ".join(map(scale.brief, values)) for values in (peaks, room))
    return f"{told} of {of} {scale.name}"


def bottleneck_of(result: SolvedResult) -> str | None:
    """The resource that alone makes the schedule as long as it is, as a certificate shows."""
    problem, certificate = result.certified
    is_met = result.objective != "peak" and result.value == result.lower_bound
    if not (is_met and isinstance(certificate, OneMachine)):
        return None
    return problem.resources[certificate.resource].name
