"""``bubbleproof verify SCHEDULE``: every rule, with the counterexample where one is violated."""

from __future__ import annotations

from collections.abc import Sequence

from bubbleproof.commands.inputs import Given, read_given
from bubbleproof.commands.output import (
    console,
    print_json,
    print_table,
    rule_rows,
    status_of,
    verdict_to_json,
)
from bubbleproof.verify import Semantics, Verdict, check_whole


def run_verify(
    words: Sequence[str],
    *,
    problem: str | None,
    comm: Sequence[str],
    dialect: str | None,
    as_json: bool,
) -> int:
    """Verify one schedule and print the verdict."""
    semantics = parse_semantics(comm)
    given = read_given(words, dialect=dialect, problem=problem)
    verdict = verify_given(given, semantics)
    if as_json:
        print_json({"name": given.name, **verdict_to_json(verdict)})
    else:
        print_table(given.name, ("rule", "verdict", "statement"), rule_rows(verdict))
        for violation in verdict.violations:
            console().print(f"\n{violation}", markup=False, highlight=False, soft_wrap=True)
    return status_of(verdict)


def parse_semantics(names: Sequence[str]) -> tuple[Semantics, ...]:
    """The named communication semantics; all of them when none is named."""
    known = {semantics.value: semantics for semantics in Semantics}
    for name in names:
        if name not in known:
            raise ValueError(f"--comm must be one of {' '.join(known)}, got {name!r}")
    return tuple(known[name] for name in names) or tuple(Semantics)


def verify_given(given: Given, semantics: Sequence[Semantics]) -> Verdict:
    """Rules 1 to 5 and 8 of the schedule (or its left-shifted program), and rule 6.

    A program with its own SEND and RECV is judged as it is; others are lowered first, which needs
    every task in its place.
    """
    own = given.program if given.has_communication else None
    made = given.compute if given.schedule is None else given.schedule
    return check_whole(given.problem, made, lowered=own, semantics=semantics)
