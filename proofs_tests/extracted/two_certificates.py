"""Certificates of one resource, by ``verify`` and by the checker that Coq extracted.

Of each rank of a family's problem all tasks are a true certificate. Damaged ones claim a tick more
or less, leave a task out, name one twice, one of another rank, none, or another rank. Both checkers
must accept the same; and what they accept must be no more than the family's own schedule takes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

from bubbleproof.formats.coq.coq_words import own_edges
from bubbleproof.theory.model.problem import Problem
from bubbleproof.verify.certificates.one_machine import (
    OneMachine,
    longest_paths,
    one_machine_refusal,
    users_of,
)
from proofs_tests.extracted.judge import (
    answers,
    certificate_words,
    edges_words,
    problem_words,
)
from proofs_tests.verify.tables import Specimen

Damage = Callable[[Random, Problem, OneMachine], OneMachine]
Claims = list[tuple[str, OneMachine]]
Paths = tuple[list[int], list[int]]  # heads and tails


@dataclass(slots=True, kw_only=True)
class CertificateAgreement:
    """Certificates looked at, how many both accept, and where they disagree."""

    true: int = 0
    damaged: int = 0
    accepted: int = 0
    wrong: list[str] = field(default_factory=list)


def _more(random: Random, _: Problem, true: OneMachine) -> OneMachine:
    return replace(true, bound=true.bound + random.choice((1, 1, 2, 1 << 70)))


def _less(random: Random, _: Problem, true: OneMachine) -> OneMachine:
    return replace(true, bound=true.bound - random.choice((1, 2, 1 << 70)))


def _without(random: Random, _: Problem, true: OneMachine) -> OneMachine:
    kept = random.sample(true.tasks, random.randrange(len(true.tasks)))
    return replace(true, tasks=tuple(sorted(kept)))


def _twice(random: Random, _: Problem, true: OneMachine) -> OneMachine:
    return replace(true, tasks=(*true.tasks, random.choice(true.tasks)), bound=true.bound + 1)


def _foreign(random: Random, problem: Problem, true: OneMachine) -> OneMachine:
    task = random.randrange(problem.num_tasks + 2)
    return replace(true, tasks=tuple(sorted({*true.tasks, task})))


def _elsewhere(random: Random, problem: Problem, true: OneMachine) -> OneMachine:
    return replace(true, resource=random.randrange(problem.num_ranks + 1))


DAMAGES: tuple[Damage, ...] = (_more, _less, _without, _twice, _foreign, _elsewhere)


def compare_certificates(
    agreement: CertificateAgreement,
    program: Path,
    named: Iterable[tuple[str, Specimen]],
    each: int,
    seed: int = 0,
) -> None:
    """The true certificate of each rank, and ``each`` damaged forms of it."""
    for number, (name, specimen) in enumerate(named):
        problem = specimen.problem
        if len(problem.resources) > problem.num_ranks:
            continue
        claims = list(_claims(Random(f"{seed} certificates {number}"), problem, each))
        _compare_claims(agreement, program, name, specimen, claims)


def _claims(random: Random, problem: Problem, each: int) -> Iterator[tuple[str, OneMachine]]:
    paths = paths_of(problem)
    for rank in range(problem.num_ranks):
        tasks = tuple(users_of(problem, rank).tolist())
        head, tail = least_of(paths, tasks)
        work = int(problem.duration[list(tasks)].sum())
        true = OneMachine(resource=rank, tasks=tasks, bound=head + work + tail)
        yield "true", true
        for _ in range(each):
            yield "damaged", random.choice(DAMAGES)(random, problem, true)


def paths_of(problem: Problem, objective: str = "makespan", resource: int = 0) -> Paths:
    """The heads and the tails of the problem's tasks."""
    paths = longest_paths(problem, objective, resource)
    if paths is None:
        raise ValueError("the problem's precedences have a cycle")
    return paths


def least_of(paths: Paths, tasks: Iterable[int]) -> tuple[int, int]:
    """The least head and tail of tasks; those that the problem does not have are left out."""
    known = [task for task in tasks if task < len(paths[0])]
    heads, tails = ([column[task] for task in known] for column in paths)
    return min(heads, default=0), min(tails, default=0)


def _compare_claims(
    agreement: CertificateAgreement, program: Path, name: str, specimen: Specimen, claims: Claims
) -> None:
    problem, schedule = specimen.problem, specimen.schedule()
    words = [problem_words(problem, own_edges(problem)), edges_words(problem)]
    paths = paths_of(problem)
    words += [certificate_words(one, *least_of(paths, one.tasks)) for _, one in claims]
    ends = schedule.start + problem.duration[problem.locate(schedule.program.actions)]
    takes = int(ends.max() - schedule.start.min())
    for (kind, claim), bit in zip(claims, answers(program, words), strict=True):
        ours, coqs = one_machine_refusal(problem, claim) is None, bit == "1"
        agreement.true += kind == "true"
        agreement.damaged += kind == "damaged"
        agreement.accepted += ours and coqs
        if ours != coqs or (kind == "true" and not ours):
            agreement.wrong.append(f"{name}, {kind}: verify {ours}, Coq's {coqs}")
        if coqs and claim.bound > takes:
            agreement.wrong.append(f"{name}, {kind}: {claim.bound} of a schedule of {takes}")
