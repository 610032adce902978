"""No lie of an engine is returned, also where asserts are gone (``python -O``)."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache

import pytest

from bubbleproof.solvers.engines import ENGINES
from proofs_tests.own_process import ROOT
from proofs_tests.solvers.lying_engines import SEARCHES, lies_of

REFUSED = "but the checker refuses it"
# What the checker or a checked schedule contradicts, by the words of the fault.
FOUND = {
    "starts at 0": REFUSED,
    "a start too early": REFUSED,
    "a schedule of another problem": REFUSED,
    "a schedule of more tasks": "the problem has 12 tasks",
    "starts that are no integers": "a whole number of ticks each",
    "starts beyond all time": "starts beyond 2**61 ticks",
    "a bound above its schedule": "the bound 13, but the checker accepts a schedule of",
    "a bound above what is known": "the bound 19, but the checker accepts a schedule of",
    "a bound that is no integer": "the bound 12.5, but a bound is a whole number",
    "refuted what is known": "but the checker accepts a schedule of",
    "refuted its own schedule": "but the checker accepts a schedule of",
}
FAULTS = {
    "the same, where a certificate is sought": "the bound 22, but the checker accepts a schedule",
    "certificate: accepted, above a schedule": "the certificate of propagation is at fault",
    "peak: starts at 0": REFUSED,
    "peak: a schedule of more tasks": "the problem has 12 tasks",
    "peak: refuted its own schedule": "the checker accepts a schedule of 12",
    "makespan-then-peak: starts at 0": REFUSED,
    "makespan-then-peak: a schedule of more tasks": "the problem has 12 tasks",
    "makespan-then-peak: refuted its own schedule": "the checker accepts a schedule of 12",
    "makespan-then-peak: a poor first makespan": "the bound 22, but a schedule has",
    "pareto: a bound above its schedule": "the bound 99, but the checker accepts",
    "pareto: one cap called worse than another": "the bound 22 for a peak of at most 3",
    "large: starts at 0": REFUSED,
    "large: one task less": "the problem has 64 tasks",
    "large: no integers": "a whole number of ticks each",
    "choices: starts at 0": REFUSED,
    "choices: starts of another size": "the problem has 6 tasks",
    "choices: nothing taken": "but the checker refuses it (memory holds 2",
    "choices: an unknown option": "it is not one of the variants",
    "choices: a bound above its schedule": "the bound 99, but the checker accepts",
    "choices: refuted its own schedule": "it says as well that there is none",
    "choices: a bound that is no integer": "a bound is a whole number",
    "repair: starts at 0": REFUSED,
    "repair: a schedule of more tasks": "the problem has 12 tasks",
    "repair: another schedule than its places": "its schedule has them in another order",
    "repair: fewer places than it keeps": "at most 3 places to keep, but 12 are",
    "repair: refuted": "there is no schedule, but the checker accepts one of 12",
    "explain: starts at 0": REFUSED,
    "result: a value below its bound": "the bound 13, but a schedule has 12",
    "result: optimal above its bound": "12 is above the bound 11",
    "result: infeasible with a schedule": "INFEASIBLE, but a schedule was found",
    "result: optimal without a schedule": "OPTIMAL, but no schedule was found",
}
# A refused certificate proves nothing: the result stands on the others (the one-machine bound of
# 78, propagation's of 80) or on an engine's word, and its reason tells of what was refused.
WORD = "OPTIMAL 80 bound 80 ENGINE, 78 is certified; a certificate of makespan >= "
REFUSED_PROOFS = {
    "no lemma": (WORD, "79 (propagation) was refused", "do not refute makespan 78"),
    "a lemma out of nothing": (WORD, "500 (propagation) was refused", "lemma 0 does not follow"),
    "of the other objective": (WORD, "79 (propagation) was refused", "it is about span_idle"),
    "of another problem": (WORD, "90 (propagation) was refused", "do not prove a bound of 90"),
    "of the SAT engine": (WORD, "80 (sat) was refused", "do not refute makespan 79"),
    "in place of makespan's": (
        "OPTIMAL 80 bound 80 CERTIFICATE, 80 is certified; a certificate of makespan >= ",
        "79 (bounds) was refused",
        "do not prove a bound of 79",
    ),
    # Whatever is chosen, the rank computes for 1 + 1 + 2 + 2 ticks.
    "of the floor of all choices": (
        "OPTIMAL 10 bound 10 ENGINE, 6 is certified; a certificate of makespan >= ",
        "99 (bounds) was refused",
        "do not prove a bound of 99",
    ),
    # Rank 0 starts first and ends last: of 80 ticks it works 8 * (2 + 4).
    "in place of span_idle's": (
        "OPTIMAL 32 bound 32 CERTIFICATE, 32 is certified; a certificate of span_idle >= ",
        "78 (bounds) was refused",
        "it is about makespan",
    ),
}
# Nothing known contradicts these: true as far as they go, or by name the engine's word.
RETURNED = {
    "a poor schedule": "FEASIBLE 22 bound 12",
    "a poor schedule called the best": "OPTIMAL 22 bound 22 ENGINE",
    "a bound below the certified one": "OPTIMAL 12 bound 12 CERTIFICATE",
    "choices: refuted everything": "INFEASIBLE None bound 11 ENGINE",  # of 10 ticks or less
    "choices: truth": "OPTIMAL 10 bound 10 ENGINE",
    "command: status": "2",
}
PLAIN = [(what, search) for search in SEARCHES for what, _ in lies_of(search)]


@cache
def answers() -> dict[str, str]:
    """What came of every lie, in one process without asserts."""
    module = "proofs_tests.solvers.lying_engines"
    done = subprocess.run(
        [sys.executable, "-O", "-m", module], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(("lie", "search"), PLAIN)
def test_a_lie_in_a_plain_search_is_a_fault_that_names_the_engine(lie: str, search: str) -> None:
    name = search if search in ENGINES else "cpsat"
    answer = answers()[f"{search}: {lie}"]
    assert answer.startswith(f"fault: {name} is at fault: ")
    assert FOUND[lie] in answer


@pytest.mark.parametrize(("lie", "finding"), FAULTS.items(), ids=FAULTS)
def test_a_lie_in_any_other_search_is_a_fault(lie: str, finding: str) -> None:
    assert answers()[lie].startswith("fault: ")
    assert finding in answers()[lie]


@pytest.mark.parametrize(("lie", "parts"), REFUSED_PROOFS.items(), ids=REFUSED_PROOFS)
def test_a_refused_certificate_is_left_out_and_told(lie: str, parts: tuple[str, str, str]) -> None:
    begin, what, why = parts
    answer = answers()[f"certificate: {lie}"]
    assert answer.startswith(begin + what)
    assert why in answer
    assert answer.endswith("; please report this")


@pytest.mark.parametrize(("lie", "answer"), RETURNED.items(), ids=RETURNED)
def test_what_nothing_contradicts_is_called_the_engines_word(lie: str, answer: str) -> None:
    assert answers()[lie] == answer


def test_the_command_refuses_a_faulty_engine_in_one_line() -> None:
    line = answers()["command: last line"]
    assert line.startswith("bubbleproof: z3 is at fault: it gave a schedule, but the checker")
    assert line.endswith("take another engine or order, and report this")


def test_every_lie_is_judged_here() -> None:
    assert {lie for lie, _ in PLAIN} == FOUND.keys()
    assert {search for _, search in PLAIN} == {*SEARCHES}
    plain = {f"{search}: {lie}" for lie, search in PLAIN}
    refused = {f"certificate: {lie}" for lie in REFUSED_PROOFS}
    assert answers().keys() == plain | refused | FAULTS.keys() | RETURNED.keys() | {
        "command: last line"
    }
