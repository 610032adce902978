"""The sweep of damaged certificates: whatever the checker accepts is below the true optimum.

True certificates of random problems (one machine, one store, prices, windows, propagation, DRUP,
the floor of choices) are damaged in one way or two and most often claim a tick more than the
optimum, which the exhaustive walk knows. A damaged certificate may still prove something; so what
counts is the bound that is accepted. ``python -m proofs_tests.verify.tampered 500`` prints the
counts.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from random import Random

from bubbleproof.solvers import SolveOptions
from bubbleproof.solvers.bounds import lower_bounds
from bubbleproof.solvers.choices.pipeline_variants import PipelineVariants
from bubbleproof.solvers.choices.solving_choices import solve_variants
from bubbleproof.solvers.engines.engine import Budget
from bubbleproof.solvers.refutation.price_search import prices_beyond
from bubbleproof.solvers.refutation.proofs import refute
from bubbleproof.solvers.refutation.propagation import improve
from bubbleproof.solvers.refutation.store_bounds import first_crossings
from bubbleproof.theory.model.problem import Edges, Problem
from bubbleproof.theory.pipelines.allowed import (
    AllowedChoices,
    AllowedEvictions,
    AllowedOffloads,
    AllowedRecompute,
)
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify.candidates.certified_distance import check_certificate
from bubbleproof.verify.certificates.certificate import Drup, Lemma
from bubbleproof.verify.certificates.certificate_rule import Certificate
from bubbleproof.verify.certificates.crossings import Crossings
from bubbleproof.verify.certificates.index_order import index_order
from bubbleproof.verify.certificates.microbatch_windows import (
    Excerpts,
    MicrobatchWindow,
    MicrobatchWindows,
)
from bubbleproof.verify.certificates.one_machine import OneMachine
from bubbleproof.verify.certificates.one_store import OneStore
from bubbleproof.verify.certificates.tick_prices import Tariff, TickPrices
from bubbleproof.verify.certificates.volume import Volume
from proofs_tests.solvers.derived_floor import choices_of
from proofs_tests.solvers.exhaustive import Exhaustive, TooMuchWork
from proofs_tests.solvers.random_problems import random_problem

EACH = 4  # damaged forms of a certificate
SECONDS = 10.0  # for one proof


@dataclass(slots=True, kw_only=True)
class Counts:
    """``by_kind`` are the damaged certificates by what they were; ``above`` should be empty."""

    true: int = 0
    tampered: int = 0
    accepted: int = 0
    by_kind: Counter[str] = field(default_factory=Counter)
    above: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(self.by_kind.items()))
        return (
            f"{self.tampered} damaged certificates ({kinds}) of {self.true} true ones: "
            f"{self.accepted} still prove what they say, {len(self.above)} accepted above the "
            "optimum"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A true certificate ``of`` a problem, what the problem's least makespan is, and its like."""

    kind: str
    name: str
    problem: Problem
    certificate: Certificate
    optimum: int


def sweep(count: int, seed: int = 0, progress: Callable[[Counts], None] | None = None) -> Counts:
    """``count`` damaged certificates, of the problems from ``seed`` on."""
    counts = Counts()
    number = seed
    while counts.tampered < count:
        rng = Random(number)
        for case in _cases(rng, number):
            counts.true += 1
            if not check_certificate(case.problem, case.certificate).ok:
                counts.above.append(f"{case.name}: a true certificate is refused")
            for _ in range(min(EACH, count - counts.tampered)):
                _tamper(counts, rng, case)
        number += 1
        if progress is not None:
            progress(counts)
    return counts


def _tamper(counts: Counts, rng: Random, case: Case) -> None:
    certificate = case.certificate
    if rng.random() < 0.2:
        certificate = _of_another(rng, case) or certificate
    for _ in range(rng.choice((0, 1, 1, 2))):
        certificate = damaged(rng, case.problem, certificate)
    if rng.random() < 0.8:
        certificate = replace(certificate, bound=case.optimum + rng.choice((1, 1, 1, 2, 9)))
    counts.tampered += 1
    counts.by_kind[case.kind] += 1
    if check_certificate(case.problem, certificate).ok:
        counts.accepted += 1
        if certificate.objective == "makespan" and certificate.bound > case.optimum:
            counts.above.append(f"{case.name}: {certificate.bound} for {case.optimum}")


def _cases(rng: Random, number: int) -> Iterator[Case]:
    """The true certificates of one problem, with its optimum by exhaustive search."""
    if number % 5 == 4:
        yield from _case_of_choices(rng, number)
        return
    problem = random_problem(rng)
    optimum = _optimum(problem)
    if optimum is None:
        return
    for kind, certificate in _certificates(rng, problem, optimum):
        yield Case(
            kind=kind,
            name=f"{number} {kind}",
            problem=problem,
            certificate=certificate,
            optimum=optimum,
        )


def _optimum(problem: Problem) -> int | None:
    try:
        return Exhaustive(problem).optimum()
    except TooMuchWork:
        return None


def _certificates(rng: Random, problem: Problem, bound: int) -> Iterator[tuple[str, Certificate]]:
    """Proofs by one machine, stores, propagation and a SAT solver, where there are some."""
    bounds = lower_bounds(problem)
    if bounds.is_cyclic:
        return
    names = {OneMachine: "one-machine", OneStore: "one-store", Volume: "volume"}
    yield names[type(bounds.best)], bounds.best
    for claim in of_stores(rng, problem, bound):
        yield names[type(claim)], claim
    crossings = first_crossings(problem, bounds.order, bounds.heads, bounds.tails)
    if crossings is not None:
        yield "crossings", crossings
    deadline = time.perf_counter() + SECONDS
    known = max(1, bounds.best.bound - 3)
    for prices in prices_beyond(known, problem, bounds, Budget(deadline=deadline)):
        yield "prices", prices
    for windows in _of_windows(rng, problem):
        yield "windows", windows
    found = improve(problem, bounds, bound, deadline)
    if found is not None:
        yield "propagation", found
    proved = refute(problem, bounds, bound, deadline=deadline)
    if proved is not None:
        yield "DRUP", proved


def of_stores(rng: Random, problem: Problem, most: int) -> Iterator[OneStore | Volume]:
    """What a store shows, at two instants and by its volume: the greatest bounds up to ``most``."""
    store = rng.randrange(len(problem.stores))
    claims: tuple[OneStore | Volume, ...] = (
        Volume(store=store, bound=0),
        OneStore(
            resource=rng.randrange(len(problem.resources)),
            store=store,
            bound=0,
            begin=rng.randint(0, 3),
            end=rng.randint(0, 3),
        ),
    )
    for claim in claims:
        for bound in range(most, 0, -1):
            if check_certificate(problem, replace(claim, bound=bound)).ok:
                yield replace(claim, bound=bound)
                break


def _of_windows(rng: Random, problem: Problem) -> Iterator[MicrobatchWindows]:
    """Windows of a lifecycle, as many as there are microbatches for, by what bounds an excerpt."""
    order = index_order(problem)
    for life in order.lifecycles[:1]:
        count, ranks = rng.choice((1, 1, 2)), tuple(range(problem.num_ranks))
        short = Excerpts(problem, life.first, life.store).of(count, ranks)
        if isinstance(short, str):
            continue
        room, have = order.limit(life), len(order.row_of[life.first])
        times = 1 if not room else 1 + (have - count) // (count - 1 + room)
        proof = lower_bounds(short).best
        window = MicrobatchWindow(count=count, ranks=ranks, proof=proof, times=times)
        claim = MicrobatchWindows(
            first=life.first, store=life.store, windows=(window,), bound=times * proof.bound
        )
        if check_certificate(problem, claim).ok:
            yield claim


def _case_of_choices(rng: Random, number: int) -> Iterator[Case]:
    """The floor of a small pipeline with choices: it must bound each of them."""
    pipeline = Pipeline(
        num_ranks=2,
        num_microbatches=2,
        forward=rng.randint(1, 2),
        backward=rng.randint(1, 3),
        activation=rng.randint(1, 2),
        capacity=rng.randint(2, 4),
        latency=rng.randint(0, 1),
    )
    allowed = rng.choice(
        (
            AllowedChoices(
                recompute=AllowedRecompute(stages=(0, 1), per_microbatch=rng.random() < 0.5)
            ),
            AllowedChoices(evict=AllowedEvictions(pairs=((0, 1),), duration=1)),
            AllowedChoices(offload=AllowedOffloads(stages=(0,), offload=1, reload=1)),
        )
    )
    variants = PipelineVariants(pipeline, allowed).variants
    optima = [
        found for c in choices_of(variants) if (found := _optimum(variants.taken(c))) is not None
    ]
    result = solve_variants(variants, SolveOptions(threads=1, time_limit=SECONDS))
    if optima and result.floor_certificate is not None:
        yield Case(
            kind="options",
            name=f"{number} options",
            problem=result.floor,
            certificate=result.floor_certificate,
            optimum=min(optima),
        )


def _of_another(rng: Random, case: Case) -> Certificate | None:
    """A certificate, true of a problem that is harder in one thing, so that its bound is higher."""
    problem, task = case.problem, rng.randrange(case.problem.num_tasks)
    duration, edges = problem.duration.copy(), problem.edges
    match rng.randrange(3):
        case 0:
            duration[task] += 1
        case 1 if len(edges):
            lag = edges.lag.copy()
            lag[rng.randrange(len(lag))] += 2
            edges = Edges(before=edges.before, after=edges.after, lag=lag)
        case _:
            caps = (store.capacity for store in problem.stores if store.capacity is not None)
            problem = problem.with_capacity(max(0, min(caps, default=1) - 1))
    harder = replace(problem, duration=duration, edges=edges)
    bounds = lower_bounds(harder)
    if bounds.is_cyclic:
        return None
    found = improve(harder, bounds, case.optimum + 3, time.perf_counter() + SECONDS)
    return found or bounds.best


def damaged(rng: Random, problem: Problem, certificate: Certificate) -> Certificate:
    if isinstance(certificate, OneMachine):
        return _damaged_machine(rng, problem, certificate)
    if isinstance(certificate, Volume | Crossings):
        return replace(certificate, store=rng.randrange(len(problem.stores)))
    if isinstance(certificate, OneStore):
        return _damaged_store(rng, problem, certificate)
    if isinstance(certificate, TickPrices):
        return _damaged_prices(rng, problem, certificate)
    if isinstance(certificate, MicrobatchWindows):
        return _damaged_windows(rng, problem, certificate)
    if not certificate.lemmas or rng.random() < 0.15:
        return rng.choice(
            (
                replace(certificate, rank=rng.randrange(problem.num_ranks)),
                replace(certificate, bound=certificate.bound + 1),
                replace(certificate, lemmas=(*certificate.lemmas, _random_lemma(rng, problem))),
            )
        )
    return replace(certificate, lemmas=_damaged_lemmas(rng, problem, certificate))


def _damaged_machine(rng: Random, problem: Problem, certificate: OneMachine) -> OneMachine:
    tasks = list(certificate.tasks)
    match rng.randrange(4):
        case 0 if tasks:
            tasks.pop(rng.randrange(len(tasks)))
        case 1:
            tasks.append(rng.randrange(problem.num_tasks))
        case 2:
            users = problem.occupancy.task[problem.occupancy.resource == certificate.resource]
            tasks = users.tolist()
        case _:
            resource = rng.randrange(len(problem.resources))
            return replace(certificate, resource=resource)
    return replace(certificate, tasks=tuple(tasks))


def _damaged_store(rng: Random, problem: Problem, certificate: OneStore) -> OneStore:
    match rng.randrange(4):
        case 0:
            return replace(certificate, begin=certificate.begin + rng.choice((-1, 1, 2)))
        case 1:
            return replace(certificate, end=certificate.end + rng.choice((-1, 1, 2)))
        case 2:
            return replace(certificate, resource=rng.randrange(len(problem.resources)))
        case _:
            return replace(certificate, store=rng.randrange(len(problem.stores)))


def _damaged_prices(rng: Random, problem: Problem, certificate: TickPrices) -> TickPrices:
    key, count = rng.choice(
        (("resources", len(problem.resources)), ("stores", len(problem.stores)))
    )
    tariffs: list[Tariff] = list(getattr(certificate, key))
    at = rng.randrange(len(tariffs)) if tariffs else 0
    steps = list(tariffs[at].steps) if tariffs else []
    match rng.randrange(5):
        case 0 if tariffs:
            tariffs.pop(at)
        case 1 if tariffs:
            tariffs[at] = replace(tariffs[at], of=rng.randrange(count))
        case 2 if steps:
            row = rng.randrange(len(steps))
            tick, price = steps[row]
            price = rng.choice((0, -price, 2 * price, price + 1))
            steps[row] = (tick, price)
        case 3 if steps:
            row = rng.randrange(len(steps))
            steps[row] = (steps[row][0] + rng.choice((-1, 1)), steps[row][1])
        case _:
            tariffs.append(Tariff(of=rng.randrange(count), steps=((rng.randint(0, 3), 1),)))
            steps = []
    if steps and tariffs and at < len(tariffs):
        tariffs[at] = replace(tariffs[at], steps=tuple(steps))
    if key == "resources":
        return replace(certificate, resources=tuple(tariffs))
    return replace(certificate, stores=tuple(tariffs))


def _damaged_windows(
    rng: Random, problem: Problem, certificate: MicrobatchWindows
) -> MicrobatchWindows:
    windows = list(certificate.windows)
    at = rng.randrange(len(windows)) if windows else 0
    if not windows or rng.random() < 0.2:
        return rng.choice(
            (
                replace(certificate, first=rng.randrange(problem.num_tasks)),
                replace(certificate, store=rng.randrange(len(problem.stores))),
                replace(certificate, windows=certificate.windows * 2),
            )
        )
    window, more = windows[at], rng.choice((-1, 1))
    match rng.randrange(5):
        case 0:
            windows[at] = replace(window, count=window.count + more)
        case 1:
            windows[at] = replace(window, times=window.times + more)
        case 2:
            windows[at] = replace(window, ranks=window.ranks[1:])
        case 3:
            windows[at] = replace(window, proof=replace(window.proof, bound=window.proof.bound + 1))
        case _:
            proof = damaged(rng, problem, window.proof)
            if not isinstance(proof, MicrobatchWindows):
                windows[at] = replace(window, proof=proof)
    return replace(certificate, windows=tuple(windows))


def _damaged_lemmas(rng: Random, problem: Problem, certificate: Drup) -> tuple[Lemma, ...]:
    lemmas = list(certificate.lemmas)
    at = rng.randrange(len(lemmas))
    lemma = lemmas[at]
    match rng.randrange(7):
        case 0:
            lemmas.pop(at)
        case 1:
            lemmas.insert(at, _random_lemma(rng, problem))
        case 2:
            other = rng.randrange(len(lemmas))
            lemmas[at], lemmas[other] = lemmas[other], lemmas[at]
        case 3 if lemma.literals:  # one literal less says more
            gone = rng.randrange(len(lemma.literals))
            lemmas[at] = replace(lemma, literals=lemma.literals[:gone] + lemma.literals[gone + 1 :])
        case 4 if lemma.literals:
            gone = rng.randrange(len(lemma.literals))
            relation, first, second = lemma.literals[gone]
            step = {">=": 1, "<=": -1}.get(relation, 0)
            changed = (relation, first, second + step) if step else (relation, second, first)
            literals = (*lemma.literals[:gone], changed, *lemma.literals[gone + 1 :])
            lemmas[at] = replace(lemma, literals=literals)
        case 5:
            task = rng.randrange(problem.num_tasks)
            lemmas[at] = replace(lemma, full=None if lemma.full == task else task)
        case _:
            rule = rng.choice(("lemma", "suppose", "absurd"))
            crowd = tuple(rng.sample(range(problem.num_tasks), min(3, problem.num_tasks)))
            lemmas[at] = (
                replace(lemma, crowd=crowd) if rng.random() < 0.5 else replace(lemma, rule=rule)
            )
    return tuple(lemmas)


def _random_lemma(rng: Random, problem: Problem) -> Lemma:
    task, other = (rng.randrange(problem.num_tasks) for _ in range(2))
    literal = rng.choice(
        ((">=", task, rng.randint(0, 9)), ("<=", task, rng.randint(0, 9)), ("<", task, other))
    )
    return Lemma(
        literals=() if rng.random() < 0.2 else (literal,),
        full=rng.choice((None, task)),
        crowd=rng.choice(((), (task, other))),
        rule=rng.choice(("lemma", "lemma", "suppose", "absurd")),
    )


if __name__ == "__main__":
    sys.stdout.write(f"{sweep(int(sys.argv[1]) if len(sys.argv) > 1 else 500)}\n")
