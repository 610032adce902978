"""The program of Coq's extracted checkers: made in a folder, and asked in its own words.

``proofs/judge.ml`` says what it reads. It is made with coqc and ocamlopt, by ``make -C proofs
checker``; where one of them is missing, ``missing`` says so.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from bubbleproof.formats.coq.coq_theorem import edges_in_order
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.verify.certificates.one_machine import OneMachine

PROOFS = Path(__file__).resolve().parents[2] / "proofs"
SECONDS = 600  # for one call
Edge = tuple[int, int, int]


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


def own_edges(problem: Problem) -> list[Edge]:
    """The problem's precedences: before, after, lag."""
    edges = problem.edges
    columns = edges.before.tolist(), edges.after.tolist(), edges.lag.tolist()
    return list(zip(*columns, strict=True))


def certificate_edges(problem: Problem) -> list[Edge]:
    """These and what identical microbatches and memory allow, in an order for one pass."""
    return edges_in_order(problem)


def problem_words(problem: Problem, edges: Sequence[Edge]) -> str:
    """The problem with these edges."""
    return " ".join(map(str, ("P", *_tasks(problem), *_edges(edges), *_stores(problem))))


def _tasks(problem: Problem) -> Iterator[int]:
    homes: list[list[int]] = [[] for _ in range(problem.num_tasks)]
    occupancy = problem.occupancy
    for task, place in zip(occupancy.task.tolist(), occupancy.resource.tolist(), strict=True):
        homes[task].append(place)
    yield problem.num_tasks
    for ticks, home in zip(problem.duration.tolist(), homes, strict=True):
        yield from (ticks, len(home), *home)


def _edges(edges: Sequence[Edge]) -> Iterator[int]:
    yield len(edges)
    for before, after, lag in edges:
        yield from (before + 1, after + 1, lag)


def _stores(problem: Problem) -> Iterator[int]:
    found: list[list[tuple[int, int, int]]] = [[] for _ in problem.stores]
    events = problem.events
    columns = events.task, events.at_end, events.store, events.delta
    for task, at_end, store, delta in np.stack(columns, axis=1).tolist():
        found[store].append((task + 1, at_end, delta))
    yield len(problem.stores)
    for store, changes in zip(problem.stores, found, strict=True):
        capacity = () if store.capacity is None else (store.capacity,)
        yield from (store.base, len(capacity), *capacity, len(changes))
        for change in changes:
            yield from change


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
    return " ".join(map(str, ("C", *numbers)))
