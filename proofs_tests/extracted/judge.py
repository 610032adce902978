"""The program of Coq's extracted checkers: made in a folder, and asked in its own words.

``proofs/judge.ml`` says what it reads. It is made with coqc and ocamlopt, by ``make -C proofs
checker``; where one of them is missing, ``missing`` says so.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import pytest

from bubbleproof.formats.coq.coq_words import Edge, certificate_edges, changes_of, homes_of
from bubbleproof.formats.coq.free_edges import LifeStop, Row, groups_of, lives_of, ways_of
from bubbleproof.formats.coq.price_list import forest_text, waits_of
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.verify.certificates.one_machine import OneMachine
from bubbleproof.verify.certificates.one_store import OneStore
from bubbleproof.verify.certificates.tick_prices import Tariff, TickPrices
from bubbleproof.verify.certificates.volume import Volume

PROOFS = Path(__file__).resolve().parents[2] / "proofs"
SECONDS = 600  # for one call

T = TypeVar("T")


def missing() -> str | None:
    """Why there is no extracted checker on this machine; None where it can be made."""
    absent = [name for name in ("coqc", "ocamlopt", "make") if shutil.which(name) is None]
    if absent:
        return f"{' and '.join(absent)} not installed, so Coq's checker is not extracted"
    return None


needs_judge = pytest.mark.skipif(missing() is not None, reason=str(missing()))


def built(folder: Path) -> Path:
    """The program, made in the folder."""
    command = ["make", "-s", "-C", str(PROOFS), "checker", f"BUILD={folder}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS)
    program = folder / "judge"
    if done.returncode or not program.exists():
        raise RuntimeError(f"the extracted checker was not made: {done.stdout}{done.stderr}")
    return program


def answers(program: Path, words: Iterable[str]) -> list[str]:
    """One line for each schedule and certificate among the words."""
    done = subprocess.run(
        [str(program)],
        input="\n".join(words),
        capture_output=True,
        text=True,
        check=True,
        timeout=SECONDS,
    )
    return done.stdout.split()


def problem_words(problem: Problem, edges: Sequence[Edge]) -> str:
    """The problem with these edges."""
    numbers = problem.num_ranks, *_tasks(problem), *_edges(edges), *_stores(problem)
    return " ".join(map(str, ("P", *numbers)))


def _tasks(problem: Problem) -> Iterator[int]:
    yield problem.num_tasks
    for ticks, home in zip(problem.duration.tolist(), homes_of(problem), strict=True):
        yield from (ticks, len(home), *home)


def _edges(edges: Sequence[Edge]) -> Iterator[int]:
    yield len(edges)
    for before, after, lag in edges:
        yield from (before + 1, after + 1, lag)


def _stores(problem: Problem) -> Iterator[int]:
    yield len(problem.stores)
    for store, changes in zip(problem.stores, changes_of(problem), strict=True):
        capacity = () if store.capacity is None else (store.capacity,)
        yield from (store.base, len(capacity), *capacity, len(changes))
        for task, at_end, delta in changes:
            yield from (task + 1, at_end, delta)


def edges_words(problem: Problem) -> str:
    """All edges that certificates use, with what justifies those that are not the problem's."""
    return " ".join(map(str, ("F", *free_words(problem), *_edges(certificate_edges(problem)))))


def schedule_words(problem: Problem, schedule: Schedule) -> str:
    """The rows; an action that is no task of the problem gets a number beyond its tasks."""
    numbers = {str(action): number + 1 for number, action in enumerate(problem.actions)}
    words: list[int] = []
    program = schedule.program
    columns = program.resource.tolist(), map(str, program.actions), schedule.start.tolist()
    for place, name, start in zip(*columns, strict=True):
        words += (place, numbers.setdefault(name, len(numbers) + 1), start)
    return " ".join(map(str, ("S", len(program), *words)))


def certificate_words(certificate: OneMachine, head: int, tail: int) -> str:
    """The certificate, with the least head and tail of its tasks."""
    tasks = [task + 1 for task in certificate.tasks]
    numbers = certificate.resource, len(tasks), *tasks, head, tail, certificate.bound
    return " ".join(map(str, (*_objective(certificate), "C", *numbers)))


def store_words(certificate: OneStore) -> str:
    """The certificate of one store."""
    numbers = certificate.resource, certificate.store, certificate.begin, certificate.end
    return " ".join(map(str, (*_objective(certificate), "O", *numbers, certificate.bound)))


def _objective(certificate: OneMachine | OneStore) -> tuple[str, ...]:
    return ("I",) if certificate.objective == "span_idle" else ()


def volume_words(problem: Problem, certificate: Volume) -> str:
    """The certificate of what a store holds, and for how long."""
    numbers = certificate.store, *ways_words(problem, certificate.store), certificate.bound
    return " ".join(map(str, ("V", *numbers)))


def forests_words(problem: Problem) -> str:
    """The longest paths of each microbatch, which certificates by prices need."""

    def tree(task: int, kids: str, beside: str) -> str:
        return f"{task + 1} {kids} {beside}"

    forests = [forest_text(waits, "0", tree) for waits in waits_of(problem)]
    return " ".join((str(len(forests)), *forests))


def price_words(certificate: TickPrices, forests: str) -> str:
    """The certificate by prices."""
    tariffs = *_tariffs(certificate.resources), *_tariffs(certificate.stores)
    return " ".join(map(str, ("M", *tariffs, forests, certificate.bound)))


def _tariffs(tariffs: Sequence[Tariff]) -> Iterator[int]:
    yield len(tariffs)
    for tariff in tariffs:
        yield from (tariff.of, len(tariff.steps))
        for step in tariff.steps:
            yield from step


def ways_words(problem: Problem, store: int) -> Iterator[int]:
    """The ways through a store's lifecycles as numbers."""
    yield from _many(ways_of(problem, store), lambda way: _many(way, _row_words))


def free_words(problem: Problem) -> Iterator[int]:
    """Groups and lifecycles as numbers."""
    groups, lives = groups_of(problem), lives_of(problem)
    yield len(groups)
    for group in groups:
        yield from _many(group, _row_words)
    yield len(lives)
    for life in lives:
        *middle, last = life.stops
        yield from (life.store, *_row_words(life.begins), life.acquired)
        yield from _many(middle, _stop_words)
        yield from (*_row_words(last.row), *_many(last.via, _row_words), last.delta)


def _many(items: Sequence[T], words: Callable[[T], Iterator[int]]) -> Iterator[int]:
    yield len(items)
    for item in items:
        yield from words(item)


def _row_words(row: Row) -> Iterator[int]:
    yield len(row)
    yield from (task + 1 for task in row)


def _stop_words(stop: LifeStop) -> Iterator[int]:
    yield from _many(stop.via, _row_words)
    yield from (*_row_words(stop.row), int(stop.at_end), stop.delta)
