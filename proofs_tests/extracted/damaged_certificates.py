"""Certificates of small problems, true and damaged, by ``verify`` and by Coq's extracted checkers.

    python -m proofs_tests.extracted.damaged_certificates --count 1000000 --seconds 600 [--write F]

Of random problems there are certificates of every kind that has a theorem (``KINDS``), true ones
and such as claim too much; they are damaged in one way or two, by ``proofs_tests.verify.tampered``.
Coq's checker is told the problem's own precedences, and finds for itself that the edges which index
order and memory allow may be asked for. Both must accept the same.

What ``verify`` finds out about the problem alone it finds out once a problem here
(``ONCE_A_PROBLEM``), not for each of a thousand certificates.
"""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import TypeVar
from unittest.mock import patch

from benchmarks.markdown import cell, markdown_table
from bubbleproof.formats.coq.coq_words import own_edges
from bubbleproof.reference_exec.evidence.machine_versions import this_machine
from bubbleproof.solvers.bounds import lower_bounds
from bubbleproof.solvers.engines.engine import Budget
from bubbleproof.solvers.refutation.price_search import prices_beyond
from bubbleproof.theory.model.problem import Problem
from bubbleproof.verify.certificates.certificate_rule import refusal
from bubbleproof.verify.certificates.one_machine import OneMachine, users_of
from bubbleproof.verify.certificates.one_store import OneStore
from bubbleproof.verify.certificates.tick_prices import TickPrices
from bubbleproof.verify.certificates.volume import Volume
from proofs_tests.extracted.judge import (
    answers,
    built,
    certificate_words,
    edges_words,
    forests_words,
    missing,
    price_words,
    problem_words,
    store_words,
    volume_words,
)
from proofs_tests.extracted.two_certificates import Paths, least_of, paths_of
from proofs_tests.solvers.random_problems import random_problem
from proofs_tests.verify.tampered import damaged, of_stores
from proofs_tests.verify.test_tick_prices import random_prices

LISTED = 20  # disagreements
EACH = 200  # damaged forms of a certificate
AT_ONCE = 20  # problems in one call
MOST_TICKS = 10_000  # of a bound by prices: Coq's lists of ticks fill the stack of a long one
KINDS = {
    OneMachine: "one resource",
    OneStore: "one store",
    Volume: "volume",
    TickPrices: "prices",
}
OF_SPANS = "{}, span_idle"
ALL_KINDS = [*KINDS.values(), *(OF_SPANS.format(KINDS[kind]) for kind in (OneMachine, OneStore))]
CERTIFICATES = "bubbleproof.verify.certificates."
ONCE_A_PROBLEM = [  # function, and the modules that call it
    ("index_order", ("one_machine", "volume", "tick_prices")),
    ("longest_paths", ("one_machine", "one_store", "volume")),
]
Claim = OneMachine | OneStore | Volume | TickPrices
Given = tuple[Problem, list[Claim]]
Found = TypeVar("Found")


@dataclass(slots=True, kw_only=True)
class DamagedAgreement:
    """Certificates by kind, how many both accept, seconds of both checkers, disagreements."""

    looked_at: Counter[str] = field(default_factory=Counter)
    accepted: Counter[str] = field(default_factory=Counter)
    ours: float = 0.0
    coqs: float = 0.0
    problems: int = 0
    wrong: list[str] = field(default_factory=list)


def compare_damaged(
    agreement: DamagedAgreement,
    program: Path,
    count: int,
    *,
    each: int = EACH,
    seed: int = 0,
    seconds: float = float("inf"),
) -> None:
    """``count`` certificates, or as many as there is time for."""
    deadline = time.perf_counter() + seconds
    batch, left = list[Given](), count - agreement.looked_at.total()
    for given in _given(each, seed):
        batch.append((given[0], given[1][:left]))
        left -= len(batch[-1][1])
        if len(batch) == AT_ONCE or left <= 0 or time.perf_counter() > deadline:
            _compare_batch(agreement, program, batch)
            batch = []
        if left <= 0 or time.perf_counter() > deadline:
            return


def _given(each: int, seed: int) -> Iterator[Given]:
    number = seed
    while True:
        rng, number = Random(f"{number} damaged"), number + 1
        problem = random_problem(rng)
        bounds = lower_bounds(problem)
        if not bounds.is_cyclic:
            true = list(_certificates(rng, problem, bounds.best.bound))
            true += [span for claim in true for span in _of_spans(problem, claim)]
            yield problem, [claim for one in true for claim in _forms(rng, problem, one, each)]


def _certificates(rng: Random, problem: Problem, bound: int) -> Iterator[Claim]:
    """All tasks of a resource, what stores show, prices searched for and at random."""
    resource = rng.randrange(len(problem.resources))
    if len(users := users_of(problem, resource)):
        tasks = tuple(users.tolist())
        head, tail = least_of(paths_of(problem), tasks)
        work = int(problem.duration[list(tasks)].sum())
        yield OneMachine(resource=resource, tasks=tasks, bound=head + work + tail)
    yield from of_stores(rng, problem, bound)
    budget = Budget(deadline=time.perf_counter() + 1)
    yield from prices_beyond(max(1, bound - 3), problem, lower_bounds(problem), budget)
    yield random_prices(rng, problem, rng.randint(1, bound + 1))


def _of_spans(problem: Problem, claim: Claim) -> Iterator[OneMachine | OneStore]:
    """The same certificate of ``span_idle``, where its resource is a rank."""
    if isinstance(claim, OneMachine | OneStore) and claim.resource < problem.num_ranks:
        work = int(problem.duration[users_of(problem, claim.resource)].sum())
        yield replace(claim, objective="span_idle", bound=claim.bound - work)


def _forms(rng: Random, problem: Problem, one: Claim, each: int) -> Iterator[Claim]:
    for _ in range(each):
        form = one
        for _ in range(rng.choice((0, 1, 1, 2))):
            changed = damaged(rng, problem, form)
            form = changed if isinstance(changed, Claim) else form
        bound = form.bound + rng.choice((-1, 0, 0, 1, 1, 2))
        if not isinstance(form, TickPrices) or bound <= MOST_TICKS:
            yield replace(form, bound=bound)


def _compare_batch(agreement: DamagedAgreement, program: Path, batch: list[Given]) -> None:
    words: list[str] = []
    for problem, claims in batch:
        words += (problem_words(problem, own_edges(problem)), edges_words(problem))
        paths, forests = remembering(paths_of), forests_words(problem)
        words += (_words(problem, claim, paths, forests) for claim in claims)
    begun = time.perf_counter()
    bits = iter(answers(program, words))
    agreement.coqs += time.perf_counter() - begun
    agreement.problems += len(batch)
    with _found_out_once():
        for problem, claims in batch:
            for claim in claims:
                _judge(agreement, problem, claim, next(bits) == "1")


def _found_out_once() -> ExitStack:
    """Within it each function of ``ONCE_A_PROBLEM`` remembers what it gave for which arguments."""
    stack = ExitStack()
    for name, modules in ONCE_A_PROBLEM:
        function = remembering(getattr(import_module(CERTIFICATES + modules[0]), name))
        for module in modules:
            stack.enter_context(patch(f"{CERTIFICATES}{module}.{name}", function))
    return stack


def remembering(function: Callable[..., Found]) -> Callable[..., Found]:
    """The function, which works once on a problem (the same object, not an equal one)."""
    found: dict[tuple[object, ...], tuple[Problem, Found]] = {}

    def remembered(problem: Problem, *others: object) -> Found:
        key = id(problem), *others
        if key not in found:
            found[key] = problem, function(problem, *others)  # kept, so no other gets its id
        return found[key][1]

    return remembered


def kind_of(claim: Claim) -> str:
    """One of ``ALL_KINDS``."""
    kind = KINDS[type(claim)]
    return kind if claim.objective == "makespan" else OF_SPANS.format(kind)


def _words(problem: Problem, claim: Claim, paths: Callable[..., Paths], forests: str) -> str:
    if isinstance(claim, TickPrices):
        return price_words(claim, forests)
    if isinstance(claim, OneStore):
        return store_words(claim)
    if isinstance(claim, Volume):
        return volume_words(problem, claim)
    of_spans = (claim.objective, claim.resource) if claim.objective == "span_idle" else ()
    return certificate_words(claim, *least_of(paths(problem, *of_spans), claim.tasks))


def _judge(agreement: DamagedAgreement, problem: Problem, claim: Claim, coqs: bool) -> None:
    kind = kind_of(claim)
    begun = time.perf_counter()
    ours = refusal(problem, claim) is None
    agreement.ours += time.perf_counter() - begun
    agreement.looked_at[kind] += 1
    agreement.accepted[kind] += ours and coqs
    if coqs != ours:
        agreement.wrong.append(f"{kind}: verify {ours}, Coq's {coqs}: {problem!r} {claim}")


def page(head: str, agreement: DamagedAgreement) -> str:
    """The page as Markdown."""
    total, wrong = agreement.looked_at.total(), agreement.wrong
    said = f"{len(wrong)} disagreements, listed below" if wrong else "no disagreement"
    counts = agreement.looked_at, agreement.accepted
    rows = [(kind, *(count[kind] for count in counts)) for kind in ALL_KINDS]
    speed = [
        (name, f"{seconds:.1f}", f"{1000 * seconds / max(1, total):.2f}")
        for name, seconds in (
            ("`verify/certificates`", agreement.ours),
            ("extracted by Coq", agreement.coqs),
        )
    ]
    return "\n".join(
        (
            "# Damaged certificates by two checkers\n",
            f"Generated by {head}; not edited.\n",
            f"{total} certificates of {agreement.problems} random problems, nearly all damaged:",
            f"{said}. Coq's checkers are those of",
            "`proofs/FreeEdges.v` with `OneMachine.v`, `OneStore.v`, `SpanIdle.v` and `Volume.v`,",
            "and of `Prices.v`, proved sound; they are told the problem's own precedences, and",
            "look for themselves at what index order and memory allow",
            "(`proofs_tests/extracted/damaged_certificates.py`).\n",
            markdown_table(("kind", "certificates", "accepted by both"), rows),
            markdown_table(("checker", "seconds", "ms a certificate"), speed),
            "Coq's time includes starting the program, reading, and the edges of each problem;",
            "ours what is found out about a problem, once for all its certificates.",
            *(["\n## Disagreements\n"] if wrong else []),
            *(f"- {cell(line)}" for line in wrong[:LISTED]),
            "",
        )
    )


def main(words: Sequence[str] | None = None) -> int:
    """Write the page; 1 where the checkers disagreed, 2 where Coq's cannot be made."""
    parser = argparse.ArgumentParser(prog="proofs_tests.extracted.damaged_certificates")
    parser.add_argument("--count", type=int, default=1_000_000, help="certificates")
    parser.add_argument("--seconds", type=float, default=3600.0, help="stop after so many")
    parser.add_argument("--write", type=Path, help="the file (default: standard output)")
    given = sys.argv[1:] if words is None else list(words)
    arguments = parser.parse_args(given)
    if why := missing():
        parser.error(why)
    began, agreement = time.perf_counter(), DamagedAgreement()
    with TemporaryDirectory() as folder:
        program = built(Path(folder))
        compare_damaged(agreement, program, arguments.count, seconds=arguments.seconds)
    command = f"`{shlex.join(('python', '-m', parser.prog, *given))}`"
    took = f"in {time.perf_counter() - began:.0f} s on {this_machine()}"
    text = page(f"{command} {took}", agreement)
    if arguments.write is None:
        sys.stdout.write(text)
    else:
        arguments.write.write_text(text, encoding="utf-8")
    return int(bool(agreement.wrong))


if __name__ == "__main__":
    sys.exit(main())
