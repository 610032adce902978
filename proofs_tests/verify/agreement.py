"""Rule 6 beside the token simulator: mutants of every family's programs, judged by both.

EVICTs and LOADs stand in the programs of their ranks, posted and waited for, as replays run them.
The simulator (``token_simulator``) shares nothing with rule 6; it runs each program ``RUNS`` times
under each semantics, with interleavings of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from operator import itemgetter

from bubbleproof.reference_exec.plans.transfer_rows import by_moments, moments, with_transfers
from bubbleproof.theory.families import member
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.programs.lowering import lower
from bubbleproof.verify import check_communication
from proofs_tests.cases import Case, all_family_cases, overlapped, wave_overlapped
from proofs_tests.verify.program_mutations import (
    PROGRAM_OPERATORS,
    TRANSFER_OPERATORS,
    Orders,
    ProgramOperator,
    mutate,
)
from proofs_tests.verify.token_simulator import SEMANTICS, Wiring, simulate

RUNS = 2
JUDGED_AS = {"one-queue": "rank-stream"}  # as semantics says, where they differ nothing gets stuck
TRANSFERS = "with transfers"
MANY = 24  # rows of a small program, at most
STRICTER = ("buffered", "pair-stream", "launch-order", "rank-stream")  # each than the one before


@dataclass(slots=True, kw_only=True)
class Tally:
    """Programs judged, outcomes by semantics and by operator, and disagreements."""

    programs: int = 0
    verdicts: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    operators: Counter[tuple[str, str]] = field(default_factory=Counter)
    families: Counter[tuple[str, str]] = field(default_factory=Counter)
    disagreements: list[str] = field(default_factory=list)


@cache
def cases(per_family: int) -> dict[str, list[Case]]:
    """``per_family`` small schedules of each family, and some that hold what few families do."""
    extra = {"overlapped": [overlapped()], "wave overlapped": [wave_overlapped()]}
    found = {**all_family_cases((2, 3, 4), (2, 3, 4), per_family), **extra}
    return found | {TRANSFERS: evicting()}


def evicting() -> list[Case]:
    """Schedules with one and with several evictions, over one link and over several."""
    shapes = [
        ("bpipe", {"p": 4, "m": 4}),
        ("bpipe", {"p": 6, "m": 7}),
        ("bpipe-interleaved", {"p": 4, "m": 4, "v": 2}),
    ]
    made = [(f"{name} {given}", member(name, **given)) for name, given in shapes]
    return [Case(name=name, problem=m.problem, schedule=m.schedule) for name, m in made]


def orders_of(case: Case, wiring: Wiring) -> Orders:
    """The lowered programs, EVICT and LOAD posted and waited for on both of their ranks."""
    problem, lowered = case.problem, lower(case.problem, case.schedule)
    if wiring.movers:
        moment = moments(problem, case.schedule)
        lowered = with_transfers(
            problem, case.schedule, by_moments(lowered, moment), moment, wiring.movers
        )
    return lowered.orders(problem.num_ranks)


def static_verdict(problem: Problem, orders: Orders) -> tuple[dict[str, bool], bool]:
    """Whether each semantics is free of faults, and whether all messages match."""
    verdict = check_communication(problem, Program.from_orders(orders))
    by_name = {finding.detail: finding.ok for finding in verdict.decisions}
    sentences = [violation.message for violation in verdict.violations]
    return by_name, all(sentence.startswith("deadlock under") for sentence in sentences)


def compare(tally: Tally, case: Case, wiring: Wiring, orders: Orders, name: str, runs: int) -> None:
    """Judge one program both ways; seeds differ so that interleavings do."""
    is_sound, is_matched = static_verdict(case.problem, orders)
    tally.programs += 1
    for weaker, stricter in pairwise(STRICTER):
        if is_sound[stricter] > is_sound[weaker]:
            tally.disagreements.append(f"{name} on {case.name}: {weaker} refuses, {stricter} not")
    for semantics in SEMANTICS:
        seen = {simulate(wiring, orders, semantics, seed) for seed in range(runs)}
        outcomes = {verdict == "ok" for verdict in seen}
        allowed = {"ok", "stuck"} if is_matched else seen - {"ok"}
        if outcomes != {is_sound[JUDGED_AS.get(semantics, semantics)]} or not seen <= allowed:
            tally.disagreements.append(f"{name} on {case.name}, {semantics}: {seen}, {is_sound}")
        kind = "matched" if is_matched else "unmatched"
        tally.verdicts[semantics, kind, "ok" if outcomes == {True} else "not ok"] += 1
        tally.operators[name, "ok" if outcomes == {True} else "not ok"] += 1


def tally_of(
    chosen: dict[str, list[Case]],
    total: int,
    *,
    operators: Sequence[ProgramOperator] = PROGRAM_OPERATORS,
    to_the_first: bool = False,
    runs: int = RUNS,
    onto: Tally | None = None,
    every: int = 1,
) -> Tally:
    """Make at least ``total`` mutants, equally many by each operator on each case; judge them.

    Of small programs, which are mostly alike, each ``every``-th is judged.
    The operators on transfers have fewer cases, so more mutants of each. ``to_the_first`` ends with
    the first disagreement; each program is run ``runs`` times under each semantics. What is found
    is added to ``onto``.
    """
    result = Tally() if onto is None else onto
    members = [(family, case) for family, found in chosen.items() for case in found]
    each = -(-total // (len(members) * len(operators)))
    for family, case in members:
        wiring = Wiring.of(case.problem)
        orders = orders_of(case, wiring)
        chances = [(operator, each) for operator in operators]
        if wiring.movers and operators is PROGRAM_OPERATORS:
            chances += [(operator, 4 * each) for operator in TRANSFER_OPERATORS]
        tries = [(number, operator) for operator, count in chances for number in range(count)]
        for number, operator in sorted(tries, key=itemgetter(0)):  # one by each, then another
            if to_the_first and result.disagreements:
                return result
            seed = f"{case.name} {operator.name} {number}"
            mutant = mutate(operator, seed, wiring, orders)
            if mutant is None:
                continue
            result.families[operator.name, family] += 1
            if len(case.schedule) > MANY or result.families.total() % every == 0:
                compare(result, case, wiring, mutant, operator.name, runs)
    return result
