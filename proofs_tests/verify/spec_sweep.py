"""The fast checker beside the definition: ``python -m proofs_tests.verify.spec_sweep``.

Random small problems (``random_schedules``), each with a valid schedule, and mutants of both: by
the operators of ``mutations``, chosen so that each rule is broken often, and by changes of memory
events, chosen so that each kind of event is changed often. Of all of them ``verify.check`` must
have the findings of ``verify.spec``, each as often: rule, tasks, time, and resource or store. The
measures must be equal too. It ends with 0 only if they are.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from random import Random

from bubbleproof.reference_exec.evidence.machine_versions import this_machine
from bubbleproof.theory.model.actions import Kind
from bubbleproof.theory.model.measures import measure
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.verify.check import findings
from bubbleproof.verify.finding import Finding, Rule
from bubbleproof.verify.spec import breaches, measures, plain_problem, plain_schedule
from proofs_tests.verify.mutations import OPERATORS
from proofs_tests.verify.random_schedules import (
    EVENT_KINDS,
    STORES,
    Event,
    memory_events,
    random_specimen,
)
from proofs_tests.verify.tables import Specimen

RULES = (Rule.COMPLETE, Rule.PLACED, Rule.DEPENDENCIES, Rule.EXCLUSIVE, Rule.MEMORY, Rule.CLAIMS)
BY_OPERATORS, BY_EVENTS = 4, 5  # mutants of one schedule
EVENTS_CHANGED = 7  # in one mutant
LISTED = 10  # disagreements

EventKind = tuple[Kind, bool, bool]  # of the task, at its end?, acquires?
Judge = Callable[[Problem, Schedule], list[Finding]]
EVENTS: tuple[EventKind, ...] = tuple(product(EVENT_KINDS, (False, True), (True, False)))


@dataclass(slots=True, kw_only=True)
class Counts:
    """What was judged: schedules, findings and mutants that break each rule, and events changed.

    ``felt`` counts the changes of events in mutants with a finding of rule 5.
    """

    schedules: int = 0
    valid: int = 0
    findings: Counter[Rule] = field(default_factory=Counter)
    broken: Counter[Rule] = field(default_factory=Counter)
    changed: Counter[EventKind] = field(default_factory=Counter)
    felt: Counter[EventKind] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [
            f"{self.schedules} schedules, {self.valid} of them right, the others with "
            f"{sum(self.findings.values())} findings: {len(self.wrong)} disagreements",
            "",
            "| rule | schedules that break it | findings |",
            "|---|--:|--:|",
        ]
        for rule in RULES:
            name = rule.name.lower()
            lines.append(f"| {name} | {self.broken[rule]} | {self.findings[rule]} |")
        lines += [
            "",
            "Events changed, by task and moment; in brackets how many of them in schedules",
        ]
        lines += ["that then break rule 5:", ""]
        ways = [(at_end, grows) for at_end in (False, True) for grows in (True, False)]
        heads = [f"{_verb(grows)} at {'end' if end else 'start'}" for end, grows in ways]
        lines += [f"| task | {' | '.join(heads)} |", f"|---|{'--:|' * len(ways)}"]
        for kind in EVENT_KINDS:
            cells = [f"{self.changed[kind, *way]} ({self.felt[kind, *way]})" for way in ways]
            lines.append(f"| {kind.name} | {' | '.join(cells)} |")
        lines += ["", *(f"- {line}" for line in self.wrong[:LISTED])]
        return "\n".join(lines).rstrip() + "\n"


def _verb(grows: bool) -> str:
    return "acquires" if grows else "releases"


def sweep(
    total: int,
    *,
    seed: int = 0,
    judge: Judge = findings,
    tell: Callable[[str], None] = lambda _: None,
) -> Counts:
    """Judge at least ``total`` schedules both ways."""
    counts = Counts()
    for number in range(-(-total // (1 + BY_OPERATORS + BY_EVENTS))):
        random = Random(f"{seed} {number}")
        specimen = random_specimen(random)
        _compare(counts, specimen, f"problem {number}", judge)
        for name, mutant in _by_operators(random, specimen, counts):
            _compare(counts, mutant, f"{name} of problem {number}", judge)
        for mutant, kinds in _by_events(random, specimen, counts):
            broken = _compare(counts, mutant, f"events of problem {number}", judge)
            counts.changed.update(kinds)
            counts.felt.update(kinds if Rule.MEMORY in broken else ())
        if number % 100 == 0:
            tell(f"{counts.schedules} of {total} schedules")
    return counts


def _compare(counts: Counts, specimen: Specimen, name: str, judge: Judge) -> set[Rule]:
    """Judge one schedule both ways; the rules that it breaks by the definition."""
    problem, schedule = specimen.problem, specimen.schedule()
    plain, rows = plain_problem(problem), plain_schedule(schedule)
    expected = Counter(breaches(plain, rows))
    found, measured = Counter(judge(problem, schedule)), measure(problem, schedule)
    by_rule = Counter(finding.rule for finding in expected.elements())
    counts.schedules += 1
    counts.valid += not expected
    counts.findings.update(by_rule)
    counts.broken.update(by_rule.keys())
    if found != expected:
        unlike = [*(expected - found).elements(), *(found - expected).elements()]
        counts.wrong.append(f"{name}: {unlike[0]}")
    numbers = measures(plain, rows.rows)
    counts.wrong += [f"{name}: {m}" for m, v in numbers.items() if getattr(measured, m) != v]
    return set(by_rule)


def _by_operators(
    random: Random, specimen: Specimen, counts: Counts
) -> Iterator[tuple[str, Specimen]]:
    """Mutants by operators that may break the rule which the fewest schedules have broken."""
    for _ in range(BY_OPERATORS):
        rarest = min(RULES, key=lambda rule: counts.broken[rule])
        useful = [operator for operator in OPERATORS if rarest.name in operator.rules]
        for operator in random.sample(useful, len(useful)):
            mutant = operator.apply(random, specimen)
            if mutant is not None:
                yield operator.name, mutant
                break


def _by_events(
    random: Random, specimen: Specimen, counts: Counts
) -> Iterator[tuple[Specimen, list[EventKind]]]:
    """Mutants with a few memory events changed, those of the rarest kinds first."""
    problem = specimen.problem
    columns = problem.events
    events: list[Event] = list(
        zip(
            columns.task.tolist(),
            columns.at_end.tolist(),
            columns.store.tolist(),
            columns.delta.tolist(),
            strict=True,
        )
    )
    kinds = [
        (Kind(int(problem.actions.kind[task])), at_end, delta > 0)
        for task, at_end, _, delta in events
    ]
    known = [number for number, kind in enumerate(kinds) if kind in EVENTS]
    for _ in range(BY_EVENTS):
        mixed = random.sample(known, len(known))
        chosen = sorted(mixed, key=lambda number: counts.changed[kinds[number]])[:EVENTS_CHANGED]
        kept = [event for number, event in enumerate(events) if number not in chosen]
        for number in chosen:
            kept += _changed(random, events[number])
        changed = replace(problem, events=memory_events(kept))
        yield replace(specimen, problem=changed), [kinds[number] for number in chosen]


def _changed(random: Random, event: Event) -> list[Event]:
    """The event gone, doubled, heavier, lighter, turned round, at the other moment or elsewhere."""
    task, at_end, store, delta = event
    return random.choice(
        (
            [],
            [event, event],
            [(task, at_end, store, delta + 1)],
            [(task, at_end, store, delta - 1)],
            [(task, at_end, store, -delta)],
            [(task, not at_end, store, delta)],
            [(task, at_end, (store + 1) % STORES, delta)],
        )
    )


def page(counts: Counts, seconds: float, words: Sequence[str]) -> str:
    """The counts as a page."""
    command = " ".join(["python -m proofs_tests.verify.spec_sweep", *words])
    return (
        "# The fast checker beside the definition\n\n"
        f"Generated by `{command}` in {seconds:.0f} s on {this_machine()}; not edited.\n\n"
        "`verify/check.py` must have the findings of `verify/spec.py`:\n"
        "rule, tasks, time, and resource or store, each as often; and the same measures.\n\n"
        f"{counts}"
    )


def _tell(line: str) -> None:
    sys.stderr.write(f"\r{line[:78]:<78}")
    sys.stderr.flush()


def main(arguments: Sequence[str]) -> int:
    """Run the sweep, print the table, and write it where asked; 1 where anything disagreed."""
    parser = argparse.ArgumentParser(prog="python -m proofs_tests.verify.spec_sweep")
    parser.add_argument("--schedules", type=int, default=100_000, help="at least so many")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the counts as a page")
    given = parser.parse_args(arguments)
    began = time.perf_counter()
    counts = sweep(given.schedules, seed=given.seed, tell=_tell)
    _tell("")
    sys.stdout.write(str(counts))
    if given.write is not None and not counts.wrong:
        given.write.write_text(page(counts, time.perf_counter() - began, arguments), "utf-8")
    return 1 if counts.wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
