"""What is decided of a generator at one size: the rules, each semantics, the distance.

The order is judged by rules 1 to 5; of one that holds, each placement of its messages by rule 6
under each semantics, its makespan and peak are measured, and a lower bound is proved for its
problem with every store capped at the order's own peak there. What is known of that problem from
``docs/measured/optimality.csv`` (searched for longer) counts too.

A program that ends under one semantics is not judged under those that follow from it
(``docs/measured/semantics.md``): strictest first, so most need two runs of fourteen.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from benchmarks.verdicts.generated import Generated, Generator, NotGenerated
from benchmarks.verdicts.our_generators import SOURCE as OURS
from bubbleproof.solvers.bounds import lower_bounds
from bubbleproof.theory.model.measures import known_rows
from bubbleproof.theory.model.memory import memory_profile
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.theory.pipelines.programs.messages_in_programs import (
    program_without_messages,
    without_messages,
)
from bubbleproof.verify import Semantics, check_program
from bubbleproof.verify.communication.deadlock import deadlock
from bubbleproof.verify.communication.steps import Steps

SEARCHED = Path(__file__).parents[2] / "docs" / "measured" / "optimality.csv"
MATCHES, STUCK, CROSSED = "ok", "deadlock", "crossed"
Key = tuple[str, *tuple[int, ...]]  # family, p, m, v, s
S = Semantics
STRICTEST_FIRST = (
    S.RENDEZVOUS, S.WHOLE_BATCHES, S.LAUNCH_ORDER, S.LAZY_PAIRS, S.RANK_PARITY, S.BATCHED,
    S.PER_DIRECTION, S.PAIR_STREAM, S.BOUNDED, S.DIRECTED_EDGE, S.BUFFERED,
)  # fmt: skip
SAME = {S.RANK_STREAM: S.RENDEZVOUS, S.ONE_QUEUE: S.RENDEZVOUS, S.CAPTURED: S.RENDEZVOUS}
FOLLOW: dict[Semantics, tuple[Semantics, ...]] = {
    S.RENDEZVOUS: tuple(each for each in S if each is not S.WHOLE_BATCHES),
    S.WHOLE_BATCHES: (S.BATCHED, S.DIRECTED_EDGE, S.BUFFERED),
    S.LAUNCH_ORDER: (S.PAIR_STREAM, S.DIRECTED_EDGE, S.BOUNDED, S.BUFFERED),
    S.LAZY_PAIRS: (S.PAIR_STREAM, S.DIRECTED_EDGE, S.BOUNDED, S.BUFFERED),
    S.PAIR_STREAM: (S.DIRECTED_EDGE, S.BOUNDED, S.BUFFERED),
    S.RANK_PARITY: (S.DIRECTED_EDGE, S.BUFFERED),
    S.BATCHED: (S.DIRECTED_EDGE, S.BUFFERED),
    S.DIRECTED_EDGE: (S.BUFFERED,),
    S.BOUNDED: (S.BUFFERED,),
    S.PER_DIRECTION: (),
    S.BUFFERED: (),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A placement, and what becomes of it under each semantics: ok, deadlock or crossed."""

    placement: str
    verdicts: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A generator at one size. Where it was refused or is broken, the numbers are None.

    ``refused`` is the generator's own answer, ``broken`` the rules (1 to 5) that the order violates
    or that cannot be decided; ``makespan``, ``shortest`` (that is known) and ``bound`` are in
    ticks, ``peak`` in units.
    """

    source: str
    name: str
    p: int
    m: int
    refused: str = ""
    broken: tuple[str, ...] = ()
    makespan: int | None = None
    shortest: int | None = None
    bound: int | None = None
    peak: int | None = None
    placed: tuple[Placed, ...] = ()

    @property
    def is_closed(self) -> bool:
        """Whether the optimum under the own memory is known."""
        return self.bound is not None and self.bound == self.shortest


def judge(generator: Generator, p: int, m: int) -> Judged:
    """Everything that is decided of a generator at one size."""
    at = {"source": generator.source, "name": generator.name, "p": p, "m": m}
    try:
        made = generator.make(p, m)
    except NotGenerated as refusal:
        return Judged(**at, refused=str(refusal))  # type: ignore[arg-type]  # fields by name
    verdict, schedule = check_program(made.problem, made.order)
    if not verdict.ok or schedule is None or verdict.measured is None:
        rules = [*verdict.broken, *(rule for rule, _ in verdict.undecided)]
        return Judged(**at, broken=tuple(rule.name.lower() for rule in rules))  # type: ignore[arg-type]  # fields by name
    bound = lower_bounds(capped(made.problem, schedule)).best.bound
    shortest = makespan = verdict.measured.makespan
    peak = max(verdict.measured.peak_activations)
    known = searched().get(_key(generator.name, made.problem, p, m))
    if known is not None and generator.source == OURS:
        if known[:2] != (makespan, peak):
            raise ValueError(f"{SEARCHED.name} has another {generator.name} at p={p} m={m}")
        shortest, bound = min(shortest, known[2]), max(bound, known[3])
    return Judged(
        **at,  # type: ignore[arg-type]  # fields by name
        makespan=makespan,
        shortest=shortest,
        bound=bound,
        peak=peak,
        placed=tuple(placed(made)),
    )


def placed(made: Generated) -> Iterable[Placed]:
    """What becomes of each placement."""
    for placement, program in made.placed.items():
        found = communication(made.problem, program)
        yield Placed(placement=placement, verdicts={each.value: found[each] for each in Semantics})


def communication(problem: Problem, program: Program) -> dict[Semantics, str]:
    """What becomes of the program under each semantics; what follows is not judged again.

    These are the findings of ``check_communication``, without its sentences and pictures.
    """
    plain = program_without_messages(problem, program)
    steps = Steps(without_messages(problem), plain)
    if steps.unmatched():
        return dict.fromkeys(Semantics, CROSSED)
    found: dict[Semantics, str] = {}
    for semantics in STRICTEST_FIRST:
        if semantics not in found:
            found[semantics] = _outcome(steps, semantics)
            if found[semantics] == MATCHES:
                found |= dict.fromkeys(FOLLOW[semantics], MATCHES)
    return found | {each: found[same] for each, same in SAME.items()}


def _outcome(steps: Steps, semantics: Semantics) -> str:
    if steps.crossed(semantics):
        return CROSSED
    return STUCK if deadlock(steps, semantics) else MATCHES


@cache
def searched() -> dict[Key, tuple[int, ...]]:
    """Of our families: makespan, peak, the shortest found and the bound."""
    with SEARCHED.open(encoding="utf-8", newline="") as stream:
        return {
            (row["family"], *(int(row[key]) for key in "pmvs")): tuple(
                int(row[key]) for key in ("published", "peak", "best", "bound")
            )
            for row in csv.DictReader(stream)
        }


def _key(name: str, problem: Problem, p: int, m: int) -> Key:
    stages, slices = problem.actions.stage.max() + 1, problem.actions.slice.max() + 1
    return name.partition(" ")[0], p, m, int(stages) // p, int(slices)


def capped(problem: Problem, schedule: Schedule) -> Problem:
    """The problem with every store's capacity set to the schedule's own peak there."""
    task, _, start = known_rows(problem, schedule)
    peaks = memory_profile(problem, task, start).peaks(problem).tolist()
    stores = tuple(
        replace(store, capacity=peak) for store, peak in zip(problem.stores, peaks, strict=True)
    )
    return replace(problem, stores=stores)
