"""Hangs found from dumps: ``python -m proofs_tests.verify.hangs --hangs 1000 --write PAGE``.

Random programs of every family, changed at random, are run to where they stand still
(``standing_runs``), and written as Flight Recorder dumps (``recorder_dumps``). Of each hang

- with the schedule that was run, the answer must be decided, every cell it names be the action that
  stands there, and every wait it tells be one of the run;
- without a schedule, from some ranks only, and from the last calls of each, whatever it decides
  must be true likewise (where the run had the streams that torch has on NCCL, or none matter);
- under the semantics that it names, rule 6 must refuse the program.

Where no rank waits, that must be the answer. The command ends with 0 only if all of it is so.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from bubbleproof.formats.flight_recorder import read_dumps
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.programs.lowering import lower
from bubbleproof.theory.pipelines.programs.messages_in_programs import without_messages
from bubbleproof.verify.communication.called_actions import CalledActions
from bubbleproof.verify.communication.hang_finding import why_it_hangs
from bubbleproof.verify.communication.hang_words import HangFinding, HangKind
from proofs_tests.cases import Case, all_family_cases
from proofs_tests.verify.hang_truth import StandingSpecimen, faults, takes_streams_for_granted
from proofs_tests.verify.program_mutations import PROGRAM_OPERATORS, Orders, mutate
from proofs_tests.verify.recorder_dumps import write_dumps
from proofs_tests.verify.standing_runs import ProgramRow, StandingRun, rows_of
from proofs_tests.verify.token_simulator import Wiring

SEMANTICS = ("buffered", "rendezvous", "pair-stream", "launch-order", "rank-stream")
UNUSED = (  # what a real run cannot do, or what no dump can show
    "receive_of_another_microbatch",
    "send_of_another_microbatch",
    "send_of_another_stage",
    "send_in_the_other_direction",
    "send_on_another_rank",
    "wait_for_what_another_sends",
    "duplicate_wait",
    "drop_a_wait",
    "wait_before_its_send",
    "swapped_computations",
)
OPERATORS = [operator for operator in PROGRAM_OPERATORS if operator.name not in UNUSED]
Change = Callable[[Random, list[list[ProgramRow]]], None]
Judge = Callable[..., HangFinding]
MODES = (
    "with the schedule",
    "without a schedule",
    "some ranks, with the schedule",
    "last calls, with the schedule",
)
LAST_CALLS = 6
LISTED = 10


@dataclass(slots=True, kw_only=True)
class HangCounts:
    """What was judged, by mode and kind of answer, and what was wrong."""

    hangs: int = 0
    quiet: int = 0
    answers: Counter[tuple[str, str]] = field(default_factory=Counter)
    semantics: Counter[str] = field(default_factory=Counter)
    perhaps_true: int = 0
    without_streams: int = 0  # answers that take streams for granted which the run had not
    without_streams_true: int = 0
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [
            f"{self.hangs} hangs and {self.quiet} runs to the end: {len(self.wrong)} wrong answers",
            "",
            f"| answer | {' | '.join(MODES)} |",
            f"|---|{'--:|' * len(MODES)}",
        ]
        for kind in HangKind:
            cells = [str(self.answers[mode, kind.name]) for mode in MODES]
            lines.append(f"| {kind.value} | {' | '.join(cells)} |")
        total = sum(self.answers[mode, "PERHAPS"] for mode in MODES)
        lines += [
            "",
            f"Of {total} answers that only seem so, {self.perhaps_true} are right all the same.",
            f"Of {self.without_streams} answers that rest on one stream for each pair of ranks, in "
            f"runs that had none, {self.without_streams_true} are right.",
            "",
            "Hangs by the semantics of the run: "
            + ", ".join(f"{name} {self.semantics[name]}" for name in SEMANTICS),
            "",
            *(f"- {line}" for line in self.wrong[:LISTED]),
        ]
        return "\n".join(lines).rstrip() + "\n"


@cache
def cases() -> list[Case]:
    made = all_family_cases((2, 3, 4), (2, 3, 4), 2)
    return [case for found in made.values() for case in found]


def specimen(number: int, seed: int = 0) -> StandingSpecimen | None:
    """A random program, changed and run; None where the change found nothing to change."""
    random = Random(f"{seed} {number}")
    case = random.choice(cases())
    wiring = Wiring.of(case.problem)
    names = [random.choice(OPERATORS).name for _ in range(random.choice((1, 1, 2)))]
    orders = _changed(names, f"{seed} {number}", case, wiring)
    if orders is None:
        return None
    semantics, steps = random.choice(SEMANTICS), random.choice((1, 1, 2))
    rows = rows_of(wiring, orders, steps)
    _set_sizes(random, rows)
    has_collectives = random.random() < 0.3
    if has_collectives:
        for row in rows:
            row.append(ProgramRow(rank=row[0].rank, operation="all_reduce"))
    for change in (change for change in CHANGES if random.random() < 0.04):
        change(random, rows)
        names.append(change.__name__)
    ahead = 0 if semantics == "rendezvous" else random.choice((0, 0, 1, 3, 10**6))
    run = StandingRun(rows, semantics, ahead=ahead)
    name = f"{number}: {', '.join(names)} of {case.name}, {semantics}, {steps} steps, ahead {ahead}"
    return StandingSpecimen(
        name=name, problem=case.problem, orders=orders, run=run, has_collectives=has_collectives
    )


def _changed(names: Sequence[str], seed: str, case: Case, wiring: Wiring) -> Orders | None:
    """The lowered program after the operators; None where one leaves nothing for the next."""
    orders = lower(case.problem, case.schedule).orders(case.problem.num_ranks)
    for operator in (each for name in names for each in OPERATORS if each.name == name):
        try:
            changed = mutate(operator, seed, wiring, orders)
        except (StopIteration, IndexError, AssertionError, ValueError):
            return None
        if changed is None:
            return None
        orders = changed
    return orders


def _set_sizes(random: Random, rows: list[list[ProgramRow]]) -> None:
    """All tensors alike, by direction, or each message with a size of its own."""
    way = random.randrange(3)
    for row in (row for order in rows for row in order if row.token):
        assert row.token is not None
        letter, stage, microbatch, slice_ = row.token
        numbers = [4, 4 if letter == "F" else 8, 1 + 3 * microbatch + stage + 50 * slice_]
        row.size = (2, numbers[way])


def _some_call(random: Random, rows: list[list[ProgramRow]]) -> ProgramRow | None:
    calls = [row for order in rows for row in order if row.is_call]
    return random.choice(calls) if calls else None


def other_size(random: Random, rows: list[list[ProgramRow]]) -> None:
    if call := _some_call(random, rows):
        call.size = (*call.size, 3)


def other_type(random: Random, rows: list[list[ProgramRow]]) -> None:
    if call := _some_call(random, rows):
        call.dtype = "BFloat16"


def other_communicator(random: Random, rows: list[list[ProgramRow]]) -> None:
    if call := _some_call(random, rows):
        call.group = "1"


def skipped_collective(random: Random, rows: list[list[ProgramRow]]) -> None:
    """A rank does not enter the last collective, or enters another."""
    order = random.choice(rows)
    if order[-1].operation == "all_reduce":
        if random.random() < 0.5:
            order.pop()
        else:
            order[-1].operation = "barrier"


CHANGES: tuple[Change, ...] = (other_size, other_type, other_communicator, skipped_collective)


def sweep(
    total: int,
    *,
    seed: int = 0,
    judge: Judge = why_it_hangs,
    tell: Callable[[str], object] = lambda _: None,
) -> HangCounts:
    """Judge ``total`` hangs, and the runs to the end that come between, at most as many."""
    counts = HangCounts()
    number = 0
    with TemporaryDirectory() as folder:
        while counts.hangs < total:
            found = specimen(number, seed)
            number += 1
            if found is None or not (found.run.hangs or counts.quiet < total):
                continue
            counts.hangs += found.run.hangs
            counts.quiet += not found.run.hangs
            counts.semantics[found.run.semantics] += found.run.hangs
            _judge(counts, found, Path(folder), Random(number), judge)
            if counts.hangs % 100 == 0:
                tell(f"{counts.hangs} of {total} hangs")
    return counts


def _judge(
    counts: HangCounts, found: StandingSpecimen, folder: Path, random: Random, judge: Judge
) -> None:
    problem = without_messages(found.problem)
    program = Program.from_orders(found.orders)
    ranks = range(problem.num_ranks)
    hidden = frozenset(random.sample(ranks, random.randint(1, max(1, len(ranks) - 1))))
    for mode in MODES:
        without = hidden if mode.startswith("some") else frozenset()
        for path in folder.iterdir():
            path.unlink()
        last = LAST_CALLS if mode.startswith("last") else None
        paths = write_dumps(found.run, folder, random, without=without, last=last)
        recorded = read_dumps(paths)
        actions = CalledActions(problem, program, recorded) if "with the" in mode else None
        answer = judge(recorded, actions)
        counts.answers[mode, answer.kind.name] += 1
        wrong = faults(found, recorded, answer, has_schedule=actions is not None)
        if answer.kind is HangKind.PERHAPS:
            counts.perhaps_true += not wrong
            wrong = ["not decided"] if mode == MODES[0] else []
        elif mode != MODES[0] and takes_streams_for_granted(found, answer):
            counts.without_streams += 1
            counts.without_streams_true += not wrong
            wrong = []
        counts.wrong += [f"{found.name}, {mode}: {why} ({answer.sentence})" for why in wrong]


def main(words: Sequence[str] | None = None) -> int:
    """Sweep; write the page where nothing is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hangs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", type=Path)
    given = parser.parse_args(words)
    counts = sweep(given.hangs, seed=given.seed, tell=lambda line: sys.stderr.write(line + "\n"))
    sys.stdout.write(str(counts))
    if counts.wrong:
        return 1
    if given.write is not None:
        command = f"python -m proofs_tests.verify.hangs --hangs {given.hangs} --write"
        title = "# Hangs found from Flight Recorder dumps"
        given.write.write_text(f"{title}\n\nWritten by `{command}`.\n\n{counts}", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
