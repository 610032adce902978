"""Assertions for a test suite: a schedule or a file passes every rule, or its counterexample.

A failure is an ``AssertionError`` whose text is the verdict on each rule and the rank x time grid
around the first offences, with the offending cells marked.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike, fspath

from bubbleproof.arguments import problem_of
from bubbleproof.door_given import held, pair
from bubbleproof.formats.inputs import read_schedule_input
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.verify import USUAL, Semantics, Verdict, check_whole
from bubbleproof.verify.every_rule import check_every_rule


class InvalidSchedule(AssertionError):  # noqa: N818 - the name says what is wrong
    """A schedule that violates a rule, or one that a rule could not be decided for.

    ``verdict`` holds the violations. The text begins with the first of them in one line.
    """

    def __init__(self, verdict: Verdict) -> None:
        self.verdict = verdict
        if verdict.violations:
            first = verdict.violations[0]
            why = f"{first.rule.name.lower()}: {first.message}"
        else:
            rule, reason = verdict.undecided[0]
            why = f"{rule.name.lower()} undecided: {reason}"
        super().__init__(f"invalid schedule, {why}\n\n{verdict}")

    def __reduce__(self) -> tuple[type[InvalidSchedule], tuple[Verdict]]:
        """Another process (a runner of tests in parallel) makes it again from the verdict."""
        return type(self), (self.verdict,)


def assert_valid(
    problem: object,
    made: object = None,
    *,
    semantics: Sequence[Semantics] = USUAL,
) -> Verdict:
    """Assert that a schedule passes every rule, each task as early as it can where it has no times.

    Parameters
    ----------
    problem
        A ``Pipeline`` or ``Problem`` that ``made`` has to solve; or what holds a schedule: lists of
        actions or their texts, one a rank, a ``Program``, a path, a table, a family's member. Its
        pipeline is then inferred, where it tells none.
    made
        A ``Schedule``, or any of these, on ``problem``.
    semantics
        The rules of communication under which no deadlock may come.

    Returns
    -------
    Verdict
        With what was measured. The rules are those of ``bubbleproof verify``; a program's own SEND
        and RECV are judged where it has any.

    Raises
    ------
    InvalidSchedule
        An ``AssertionError`` with the counterexample.
    TypeError, ValueError
        For what holds no schedule.
    """
    __tracebackhide__ = True
    if made is None or not isinstance(made, Schedule | Program):
        given, more = held(problem, made, asker="assert_valid")
        if hasattr(given, "to_judge"):
            return _required(check_every_rule(given.to_judge, semantics))
        stated, made, _ = pair(given, more, asker="assert_valid")
    else:
        stated = problem_of(problem, asker="assert_valid")
    return _required(check_whole(stated, made, semantics=semantics))


def assert_valid_file(
    path: str | PathLike[str],
    *,
    problem: str | PathLike[str] | None = None,
    dialect: str | None = None,
    semantics: Sequence[Semantics] = USUAL,
) -> Verdict:
    """Assert that a schedule file (.json) or a PyTorch table (.csv) passes every rule.

    ``problem`` names a problem file to judge it by (.toml, or the one of a .json); without it a
    table is judged by the smallest pipeline that has its actions. ``dialect`` (``new`` or ``old``)
    tells what a table's ``B`` means where it does not show. Raises ``InvalidSchedule`` with the
    counterexample, and ``ValueError`` in one line for a file that cannot be read.
    """
    __tracebackhide__ = True
    given = read_schedule_input(
        [fspath(path)], dialect=dialect, problem=None if problem is None else fspath(problem)
    )
    return _required(check_every_rule(given.to_judge, semantics))


def _required(verdict: Verdict) -> Verdict:
    __tracebackhide__ = True
    if not verdict.ok:
        raise InvalidSchedule(verdict)
    return verdict
