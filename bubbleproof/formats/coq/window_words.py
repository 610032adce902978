"""Certificates by windows in the words of ``proofs/Windows.v`` and ``proofs/WindowRows.v``.

Coq is told of each window where the tasks of its short problem lie, by which paths of the problem
its precedences are kept, what of a store's uses it has, and how what counts lies between its front
and its rear. Tasks of microbatch i of the short problem are those of i and the window's first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bubbleproof.formats.coq.certificate_words import free_text, shown_text
from bubbleproof.formats.coq.coq_words import (
    changes_of,
    edge_text,
    homes_of,
    lines_text,
    list_text,
    own_edges,
    stores_text,
    table_text,
    task_text,
)
from bubbleproof.formats.coq.free_edges import lives_of, path_between
from bubbleproof.theory.model.actions import Ints
from bubbleproof.theory.model.problem import Problem
from bubbleproof.verify.certificates.microbatch_windows import (
    Excerpts,
    MicrobatchWindow,
    MicrobatchWindows,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortProblem:
    """An excerpt, and of each of its tasks the row of the group and the microbatch, from 0 on."""

    problem: Problem
    rows: tuple[int, ...]
    numbers: tuple[int, ...]


class WindowWords:
    """A certificate's short problems, and its windows one after another.

    Precondition: the checker of Python accepts the certificate.
    """

    def __init__(self, problem: Problem, certificate: MicrobatchWindows) -> None:
        self.problem, self.certificate = problem, certificate
        self.excerpts = Excerpts(problem, certificate.first, certificate.store)
        life = self.excerpts.life
        if life is None:
            raise ValueError("no lifecycle of that store begins with that task")
        self.life, order = life, self.excerpts.order
        self.limit = order.limit(life) or 0
        self.group: Ints = next(each for each in order.groups if life.first in each[:, 0])
        self.row_of = {int(row[0]): number for number, row in enumerate(self.group)}
        self.lives = lives_of(problem)

    def definitions(self) -> str:
        """The definitions ``free``, ``shorts``, ``proofs`` and ``windows``."""
        shorts = [self._short(window) for window in self.certificate.windows]
        pairs = list(zip(shorts, self.certificate.windows, strict=True))
        texts = (_short_text(short, window.proof.bound) for short, window in pairs)
        proofs = (shown_text(short.problem, window.proof) for short, window in pairs)
        return f"""
Definition justified : free := {free_text(self.problem)}.

Definition shorts : list short := [
  {lines_text([*texts])}].

Definition short_proofs : list shown := [
  {lines_text([*proofs])}].

Definition windows : row_of_windows := [
  {lines_text([*self._windows(shorts)])}].
"""

    def _short(self, window: MicrobatchWindow) -> ShortProblem:
        problem = self.excerpts.of(window.count, window.ranks)
        if isinstance(problem, str):
            raise ValueError(problem)
        kept = np.flatnonzero(np.isin(self.problem.rank_of_task[self.group[:, 0]], window.ranks))
        tasks = self.group[kept, : window.count]
        places = np.argsort(tasks, axis=None)
        return ShortProblem(
            problem=problem,
            rows=tuple(kept[places // window.count].tolist()),
            numbers=tuple((places % window.count).tolist()),
        )

    def _windows(self, shorts: list[ShortProblem]) -> Iterator[str]:
        first = 0
        for which, (short, window) in enumerate(zip(shorts, self.certificate.windows, strict=True)):
            for _ in range(window.times):
                yield f"({which}%nat, {self._placing(short, window.count, first)})"
                first += window.count - 1 + self.limit

    def _placing(self, short: ShortProblem, count: int, first: int) -> str:
        def task(row: int, number: int) -> int:
            return int(self.group[row, first + number])

        ends = self.row_of[self.life.first], self.row_of[self.life.last]
        front, rear = task(ends[0], 0), task(ends[1], count - 1)
        images = [task(*place) for place in zip(short.rows, short.numbers, strict=True)]
        pairs = (f"({task_text(at)}, {task_text(each)})" for at, each in enumerate(images))
        vias = (self._way(images[a], images[b]) for a, b, _ in own_edges(short.problem))
        homes = homes_of(self.problem)
        shared = min(set(homes[self.life.first]) & set(homes[self.life.last]))
        return "\n    ".join(
            (
                f"Placing {list_text(pairs)}",
                f"{task_text(front)} {task_text(rear)} {shared}",
                list_text(_tasks(way) for way in vias),
                list_text(self._between(short, ends, count, first)),
                list_text(self._parts(short, first)),
                "[]",
            )
        )

    def _between(
        self, short: ShortProblem, ends: tuple[int, int], count: int, first: int
    ) -> Iterator[str]:
        """Of each task that counts the ways from the window's front and to its rear."""
        begins, finishes = (self.group[row, first : first + count].tolist() for row in ends)
        for at, (row, i) in enumerate(zip(short.rows, short.numbers, strict=True)):
            if row in ends:
                inside = [begins[i], *self._way(begins[i], finishes[i]), finishes[i]]
                before = begins[:i] + inside[: inside.index(int(self.group[row, first + i]))]
                behind = inside[inside.index(int(self.group[row, first + i])) + 1 :]
                after = behind + finishes[i + 1 :]
                ways = f"({_tasks(before[1:])}, {_tasks(after[:-1])})"
                yield f"({task_text(at)}, {ways})"

    def _way(self, before: int, after: int) -> list[int]:
        """The tasks on the longest path between two of one microbatch."""
        if before == after:
            return []
        number = int(np.flatnonzero((self.group == before).any(axis=0))[0])
        alike = np.isin(np.arange(self.problem.num_tasks), self.group[:, number])
        return path_between(self.problem, before, after, alike)

    def _parts(self, short: ShortProblem, first: int) -> Iterator[str]:
        for store, changes in enumerate(changes_of(short.problem)):
            rows = set(short.rows) if changes else set[int]()
            lives = [life for life in self.lives if life.store == store]
            uses = (
                f"({at}%nat, {first + number}%nat)"
                for at, life in enumerate(lives)
                if self.row_of.get(life.begins[0]) in rows
                for number in sorted(set(short.numbers))
            )
            yield f"PartOf {store}%nat {list_text(uses)}"


def _short_text(short: ShortProblem, least: int) -> str:
    problem = short.problem
    return "\n    ".join(
        (
            f"Short {list_text(table_text(problem))}",
            list_text(map(edge_text, own_edges(problem))),
            f"{list_text(stores_text(problem))} 0 1 ({least})",
        )
    )


def _tasks(tasks: list[int]) -> str:
    return list_text(map(task_text, tasks))
