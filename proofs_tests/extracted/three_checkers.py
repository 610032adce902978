"""Three checkers of the same rules: the definition, the fast one, and the one Coq extracted.

Right schedules of every family and random problems, and mutants of them by the operators of
``proofs_tests.verify.mutations``, are judged by ``verify.spec``, ``verify.check`` and the program
of ``proofs/AllRules.v``. A verdict is which of rules 1 to 5 are kept. Two rules are compared as far
as their conventions are one: rules 1 and 2 together (in Coq a row on a wrong resource also leaves
its own empty), and rule 3 where these two are kept (in Coq each row of a task that is listed twice
has to wait, in Python the first). Rules 4, 5 and "right or not" are compared always.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from time import perf_counter

from bubbleproof.formats.coq.coq_words import own_edges
from bubbleproof.theory.families import families
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.verify.check import findings
from bubbleproof.verify.finding import Finding, Rule
from proofs_tests.cases import shapes
from proofs_tests.extracted.judge import answers, problem_words, schedule_words
from proofs_tests.verify.mutations import OPERATORS
from proofs_tests.verify.plain import breaches_of
from proofs_tests.verify.random_schedules import random_specimen
from proofs_tests.verify.tables import Specimen

RULES = (Rule.COMPLETE, Rule.PLACED, Rule.DEPENDENCIES, Rule.EXCLUSIVE, Rule.MEMORY)
JUDGES = ("spec", "fast", "extracted")
DAMAGED = ", damaged"  # after the name of what a mutant comes from
AT_ONCE = 200  # schedules in one call
MOST_TASKS = 700  # in Coq's checker each row looks at each other one
Verdict = tuple[bool, ...]  # whether each rule is kept
Named = tuple[str, Specimen]


@dataclass(slots=True, kw_only=True)
class Agreement:
    """Schedules by what they come from, right ones, what was broken, seconds, disagreements."""

    schedules: Counter[str] = field(default_factory=Counter)
    valid: int = 0
    most_tasks: int = 0
    broken: Counter[Rule] = field(default_factory=Counter)
    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(JUDGES, 0.0))
    wrong: list[str] = field(default_factory=list)


def family_specimens(most_ranks: int) -> Iterator[Named]:
    """A right schedule of every family on 2 to ``most_ranks`` ranks, m = p or 2p, v up to 2."""
    for name, family in families().items():
        for ranks in range(2, most_ranks + 1):
            for pipeline in shapes(family, (ranks,), (ranks, 2 * ranks), most=2):
                problem = pipeline.problem()
                if problem.num_tasks <= MOST_TASKS:
                    yield name, Specimen.of(problem, family.schedule(pipeline))


def random_specimens(count: int, seed: int = 0) -> Iterator[Named]:
    """Right schedules of small problems with all kinds of tasks, edges and memory events."""
    for number in range(count):
        yield "random problems", random_specimen(Random(f"{seed} {number}"))


def with_mutants(named: Iterable[Named], each: int, seed: int = 0) -> Iterator[Named]:
    """Each specimen, and ``each`` mutants of it by operators drawn anew."""
    useful = [one for one in OPERATORS if one.rules & {rule.name for rule in RULES}]
    for number, (name, specimen) in enumerate(named):
        yield name, specimen
        random, made = Random(f"{seed} mutants {number}"), 0
        for operator in random.sample(useful, len(useful)):
            mutant = operator.apply(random, specimen) if made < each else None
            if mutant is not None:
                made += 1
                yield f"{name}{DAMAGED}", mutant


def compare(agreement: Agreement, program: Path, named: Iterable[Named]) -> None:
    """Judge all of them three ways."""
    batch: list[Named] = []
    for one in named:
        batch.append(one)
        if len(batch) == AT_ONCE:
            _compare_batch(agreement, program, batch)
            batch = []
    _compare_batch(agreement, program, batch)


def _compare_batch(agreement: Agreement, program: Path, batch: list[Named]) -> None:
    schedules = [specimen.schedule() for _, specimen in batch]
    words: list[str] = []
    shown: Problem | None = None
    for (_, specimen), schedule in zip(batch, schedules, strict=True):
        if specimen.problem is not shown:
            shown = specimen.problem
            words.append(problem_words(shown, own_edges(shown)))
        words.append(schedule_words(shown, schedule))
    begun = perf_counter()
    by_coq = answers(program, words)
    agreement.seconds["extracted"] += perf_counter() - begun
    for (name, specimen), schedule, bits in zip(batch, schedules, by_coq, strict=True):
        _judge(agreement, name, specimen.problem, schedule, tuple(bit == "1" for bit in bits))


def _judge(
    agreement: Agreement, name: str, problem: Problem, schedule: Schedule, by_coq: Verdict
) -> None:
    verdicts = {"extracted": by_coq}
    for judge, judged in (("spec", breaches_of), ("fast", findings)):
        begun = perf_counter()
        found = judged(problem, schedule)
        agreement.seconds[judge] += perf_counter() - begun
        verdicts[judge] = verdict_of(found)
    definition = verdicts["spec"]
    agreement.schedules[name] += 1
    agreement.valid += all(definition)
    agreement.most_tasks = max(agreement.most_tasks, problem.num_tasks)
    agreement.broken.update(rule for rule, kept in zip(RULES, definition, strict=True) if not kept)
    if verdicts["fast"] != definition:
        agreement.wrong.append(f"{name}: spec {definition}, fast {verdicts['fast']}")
    if common(by_coq) != common(definition):
        agreement.wrong.append(f"{name}: spec {definition}, extracted {by_coq}")


def verdict_of(found: Iterable[Finding]) -> Verdict:
    """Which of rules 1 to 5 are kept."""
    broken = {finding.rule for finding in found}
    return tuple(rule not in broken for rule in RULES)


def common(verdict: Verdict) -> Verdict:
    """What the conventions of Coq and of Python have in common; see the module's text."""
    complete, placed, dependencies, exclusive, memory = verdict
    listed = complete and placed
    return listed, not listed or dependencies, exclusive, memory, all(verdict)
