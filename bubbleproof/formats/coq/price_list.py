"""Prices of ticks in the words of ``proofs/Prices.v``.

A certificate's prices do not say how the checker finds what a microbatch pays: along the longest
path to each of its tasks. Coq is told these paths as forests, one a microbatch, and checks that
they are precedences of the problem.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from bubbleproof.formats.coq.coq_words import list_text, task_text
from bubbleproof.theory.model.problem import Problem
from bubbleproof.verify.certificates.chains import in_order
from bubbleproof.verify.certificates.index_order import index_order
from bubbleproof.verify.certificates.tick_prices import MicrobatchPart, Tariff, TickPrices

Waits = list[tuple[int, int | None]]  # tasks in order, each with the one it waits for longest
Tree = Callable[[int, str, str], str]  # a task, what waits for it, what stands beside it


def waits_of(problem: Problem) -> Iterator[Waits]:
    """Of each microbatch the tasks that lie between its computations, and what each waits for."""
    edges = problem.edges
    order = in_order(problem.num_tasks, edges.before.tolist(), edges.after.tolist())
    place = np.empty(problem.num_tasks, dtype=np.int64)
    place[order] = np.arange(len(order))
    for group in index_order(problem).groups:
        rows = np.argsort(place[group[:, 0]])
        part = MicrobatchPart(problem, group[rows, 0])
        inside = [row for row in range(len(rows)) if part.is_within(row)]
        parents = [part.parent(row) for row in inside]
        for tasks in group[rows].T.tolist():
            yield [
                (tasks[row], None if parent is None else tasks[parent[0]])
                for row, parent in zip(inside, parents, strict=True)
            ]


def forest_text(waits: Waits, nothing: str, tree: Tree) -> str:
    """The forest, written from its leaves on."""
    kids: dict[int | None, str] = {}
    for task, parent in reversed(waits):
        kids[parent] = tree(task, kids.pop(task, nothing), kids.get(parent, nothing))
    return kids.get(None, nothing)


def prices_text(problem: Problem, certificate: TickPrices) -> str:
    """The certificate as a ``price_list``."""
    parts = (forest_text(waits, "Nil", _tree) for waits in waits_of(problem))
    resources = list_text(map(_tariff, certificate.resources))
    stores = list_text(map(_tariff, certificate.stores))
    forests = "[\n  " + ";\n  ".join(parts) + "]"
    return f"PriceList\n  {resources}\n  {stores}\n  {forests}\n  ({certificate.bound})"


def _tree(task: int, kids: str, beside: str) -> str:
    return f"(Tree {task_text(task)} {kids} {beside})"


def _tariff(tariff: Tariff) -> str:
    return f"Tariff {tariff.of} {list_text(f'({tick}, {price})' for tick, price in tariff.steps)}"
