"""The page ``deadlock.md``: which families' programs get stuck under which semantics, and where.

    python -m proofs_tests.deadlock_page --write records/deadlock.md

Every program of every family up to ``--ranks`` and ``--microbatches`` is judged by rule 6, once
with its messages where lowering puts them, of which ``every_valid_schedule_ends`` (Coq) says that
no size gets stuck, and once with each SEND right behind what makes it and each RECV right before
what needs it. The exit status is 1 where a program that the theorem is about gets stuck.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

from benchmarks.markdown import markdown_table, put_out
from bubbleproof.theory.families import families, make_parameters
from bubbleproof.theory.families.base import FamilyMember
from bubbleproof.theory.model.actions import Action
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.theory.pipelines.programs.lowering import lower
from bubbleproof.theory.pipelines.programs.messages import messages
from bubbleproof.verify import check_communication
from bubbleproof.verify.communication.semantics import USUAL

Lowering = Callable[[Problem, Schedule], Program]
OPTIONS: tuple[dict[str, int], ...] = ({}, {"v": 2}, {"s": 2})


def at_use(problem: Problem, schedule: Schedule) -> Program:
    """Each SEND right behind the computation that makes it, each RECV right before its use."""
    actions = list(problem.actions)
    sends: dict[Action, list[Action]] = {}
    recvs: dict[Action, list[Action]] = {}
    for message in messages(problem):
        sends.setdefault(actions[message.producer], []).append(message.send)
        recvs.setdefault(actions[message.consumer], []).append(message.recv)
    return Program.from_orders(
        [
            [row for each in order for row in (*recvs.get(each, ()), each, *sends.get(each, ()))]
            for order in schedule.program.orders(len(problem.resources))[: problem.num_ranks]
        ]
    )


@dataclass(slots=True)
class FamilyTally:
    """Of one family: programs judged, those the theorem is about, and the stuck by semantics."""

    judged: int = 0
    covered: int = 0
    stuck: Counter[str] = field(default_factory=Counter)
    first: dict[str, str] = field(default_factory=dict)

    def note(self, semantics: str, size: str) -> None:
        """One more program that gets stuck or whose messages cross; sizes come in order."""
        self.stuck[semantics] += 1
        self.first.setdefault(semantics, size)

    def told(self, semantics: str) -> str:
        """How many, and the smallest."""
        if not self.stuck[semantics]:
            return "none"
        return f"{self.stuck[semantics]}, first {self.first[semantics]}"


def is_covered(problem: Problem) -> bool:
    """Whether ``every_valid_schedule_ends`` is about it: one resource a task, ticks, no lag < 0."""
    occupied = Counter(problem.occupancy.task.tolist())
    is_single = max(occupied.values(), default=0) <= 1
    lags = problem.edges.lag.tolist()
    return (
        is_single and min(problem.duration.tolist(), default=1) >= 1 and min(lags, default=0) >= 0
    )


def sizes(ranks: int, microbatches: int) -> Iterator[tuple[int, int, dict[str, int]]]:
    """(p, m, options), the smallest sum of p and m first."""
    for p, m in sorted(product(range(1, ranks + 1), range(1, microbatches + 1)), key=sum):
        yield from ((p, m, options) for options in OPTIONS)


def judged(name: str, place: Lowering, ranks: int, microbatches: int) -> FamilyTally:
    """All programs of a family up to this size, with messages placed so."""
    tally, seen = FamilyTally(), set()
    for p, m, options in sizes(ranks, microbatches):
        member = _member(name, {"p": p, "m": m, **options})
        if member is None or (key := str(member.pipeline)) in seen:
            continue
        seen.add(key)
        tally.judged += 1
        tally.covered += is_covered(member.problem)
        told = " ".join(f"{k}={x}" for k, x in {"p": p, "m": m, **options}.items())
        verdict = check_communication(member.problem, place(member.problem, member.schedule))
        for decision in verdict.decisions:
            if not decision.ok:
                tally.note(decision.detail, told)
    return tally


def _member(name: str, given: dict[str, int]) -> FamilyMember | None:
    """The family's member at this size, or None where it has none."""
    try:
        return families()[name].member(make_parameters(given))
    except ValueError:
        return None


def _table(tallies: dict[str, FamilyTally]) -> str:
    header = ("family", "programs", "of them covered", *(f"`{each}`" for each in USUAL))
    return markdown_table(
        header,
        [
            (f"`{name}`", tally.judged, tally.covered, *(tally.told(each) for each in USUAL))
            for name, tally in tallies.items()
        ],
    )


def page(words: str, lowered: dict[str, FamilyTally], used: dict[str, FamilyTally]) -> str:
    """The page as Markdown."""
    judged_ = sum(tally.judged for tally in lowered.values())
    covered = sum(tally.covered for tally in lowered.values())
    stuck = sum(tally.stuck.total() for tally in lowered.values())
    return "\n".join(
        (
            "# Which families get stuck\n",
            f"Generated by `python -m proofs_tests.deadlock_page {words}`; not edited.\n",
            "Programs of every family by rule 6 under five semantics, in chunks and slices of 1",
            "and 2. A cell says how many get stuck or receive what was not sent, and the first.\n",
            "## Messages as lowering places them\n",
            "Into both programs when the producer ends. `every_valid_schedule_ends` of",
            "[Lowered.v](../../proofs/Lowered.v) says of every size that none gets stuck "
            "whose tasks",
            "have one resource each, take at least a tick and wait no negative lag: *covered*.\n",
            f"{judged_} programs, {covered} of them covered by the theorem: {stuck} stuck.\n",
            _table(lowered),
            "## Messages where they are used\n",
            "Each SEND right behind the computation that makes it, each RECV right before the one",
            "that needs it, as a loop written by hand may have it. No theorem is about these.\n",
            _table(used),
        )
    )


def main(words: Sequence[str] | None = None) -> int:
    """Write the page; 1 where a program that the theorem is about gets stuck."""
    parser = argparse.ArgumentParser(prog="proofs_tests.deadlock_page")
    parser.add_argument("--ranks", type=int, default=6, help="up to so many")
    parser.add_argument("--microbatches", type=int, default=12, help="up to so many")
    parser.add_argument("--families", nargs="*", help="default: all")
    parser.add_argument("--write", type=Path, help="the file (default: standard output)")
    given = sys.argv[1:] if words is None else list(words)
    arguments = parser.parse_args(given)
    names = arguments.families or list(families())
    size = arguments.ranks, arguments.microbatches
    lowered = {name: judged(name, lower, *size) for name in names}
    used = {name: judged(name, at_use, *size) for name in names}
    put_out(page(shlex.join(given), lowered, used), arguments.write)
    return int(any(tally.stuck for tally in lowered.values()))


if __name__ == "__main__":
    sys.exit(main())
