"""The searches of docs/paper/frontier.md: what no theorem says, and where it was looked at.

    python -m benchmarks.frontier_search

solves every small pipeline of three kinds, holds its least makespan against a formula, and writes
the table into the note. What is not proved optimal within its seconds is counted as undecided.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import bubbleproof as bp
from benchmarks.markdown import markdown_table
from bubbleproof.report.memory_price import MemoryPrice
from bubbleproof.solvers import Status
from bubbleproof.theory.pipelines.pipeline import Pipeline

NOTE = Path(__file__).resolve().parents[1] / "docs" / "paper" / "frontier.md"
BEGIN, END = "<!-- searched -->\n", "<!-- end of what was searched -->\n"
SECONDS = 60.0
HEADER = ("statement", "searched", "pipelines", "differ", "undecided")
Case = tuple[Pipeline, int]  # with the makespan that is stated of it


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """A statement, the range that it was looked at in, and the pipelines of that range."""

    statement: str
    searched: str
    cases: Callable[[], Iterator[Case]]


def halves(p: int, m: int, capacity: int) -> Pipeline:
    """Split backwards, every task of one tick, an activation held until W."""
    return Pipeline(
        num_ranks=p,
        num_microbatches=m,
        split_backward=True,
        forward=1,
        input_backward=1,
        weight_backward=1,
        capacity=capacity,
    )


def odd() -> Iterator[Case]:
    """Two activations, an odd number of microbatches."""
    for p, m in product(range(2, 6), range(3, 11, 2)):
        yield halves(p, m, 2), (p + 1) * m + 1 + max(0, p - (m + 1) // 2)


def three() -> Iterator[Case]:
    """Three activations on two ranks, or on three."""
    for p, m in product((2, 3), range(3, 10)):
        yield halves(p, m, 3), 3 * m + p - 1


def between_steps() -> Iterator[Case]:
    """Links whose ticks there and back are no multiple of P."""
    pairs = ((1, 1), (1, 2), (2, 1), (2, 3))
    for p, m, (forward, backward), latency in product((2, 3, 4), range(2, 7), pairs, (1, 2)):
        if 2 * latency % (forward + backward) == 0:
            continue
        for most in range(1, min(m, 4) + 1):
            pipeline = Pipeline(
                num_ranks=p,
                num_microbatches=m,
                forward=forward,
                backward=backward,
                latency=latency,
                capacity=most,
            )
            yield pipeline, MemoryPrice(pipeline=pipeline, rooms=(most,) * p).least()


SEARCHES = (
    Search(
        statement="split backwards, K = 2, odd m: (p + 1) m + 1 + max(0, p - (m + 1)/2)",
        searched="p = 2 to 5, m = 3, 5, 7, 9",
        cases=odd,
    ),
    Search(
        statement="split backwards, K = 3, p = 2 and 3: as without a cap, 3m + p - 1",
        searched="m = 3 to 9",
        cases=three,
    ),
    Search(
        statement="the bound of theorem 1 is met for every l, 2l no multiple of P",
        searched="p = 2 to 4, m = 2 to 6, K = 1 to 4, l = 1 and 2, (tF, tB) = (1,1), (1,2), (2,1), "
        "(2,3)",
        cases=between_steps,
    ),
)


def outcome(case: Case) -> str:
    """Whether the least makespan of the pipeline is the one that is stated."""
    pipeline, stated = case
    found = bp.solve(pipeline, time_limit=SECONDS)
    if found.status is not Status.OPTIMAL:
        return "undecided"
    return "alike" if found.value == stated else "differ"


def table() -> str:
    """What each search found."""
    rows = []
    for search in SEARCHES:
        counts = Counter(map(outcome, search.cases()))
        told = (sum(counts.values()), counts["differ"], counts["undecided"])
        rows.append((search.statement, search.searched, *told))
    return markdown_table(HEADER, rows)


def with_table(note: str, made: str) -> str:
    """The note with this table. ``ValueError`` where it has no marks."""
    head, _, rest = note.partition(BEGIN)
    _, mark, tail = rest.partition(END)
    if not mark:
        raise ValueError(f"the note must have the marks {BEGIN.strip()} and {END.strip()}")
    return f"{head}{BEGIN}\n{made}\n{END}{tail}"


def main() -> int:
    """Write the table into the note."""
    NOTE.write_text(with_table(NOTE.read_text("utf-8"), table()), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
