"""No test's outcome depends on how fast the machine is: what tests ask of clocks, by their syntax.

An assertion that reads a clock, or a duration that a clock told, fails on a loaded machine; so does
a search that is given a few seconds for what the test then wants of it. A limit of at most
``CUT_SHORT`` seconds is there to be reached, one of ``PATIENCE`` never is.
"""

from __future__ import annotations

import ast
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from proofs_tests.patience import PATIENCE, ended
from proofs_tests.structure import statements

TESTS = Path(__file__).parent
CLOCKS = {"perf_counter", "monotonic", "process_time", "time", "perf_counter_ns", "monotonic_ns"}
DURATIONS = {"seconds", "elapsed"}  # what results call them
SUMS = {"max", "min", "round", "abs", "sum"}
LIMITS = {"time_limit", "timeout_ms", "deadline"}
CUT_SHORT = 1.0
ASKED = re.compile("|".join(CLOCKS | DURATIONS | LIMITS))  # without any nothing can be at fault
ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def is_clock(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    called = node.func
    name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
    return name in CLOCKS and not node.args


def is_told(node: ast.AST) -> bool:
    """Whether a clock or a duration is named here: where none is no assertion reads one."""
    return getattr(node, "attr", getattr(node, "id", "")) in CLOCKS | DURATIONS


def tells_time(node: ast.AST, timed: set[str]) -> bool:
    """Whether a value is a clock's, or computed of one; a deadline that a call is given is not."""
    if is_clock(node) or (isinstance(node, ast.Name) and node.id in timed):
        return True
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") not in SUMS:
        return False
    return any(tells_time(inner, timed) for inner in ast.iter_child_nodes(node))


def names_of_times(scope: ast.AST) -> set[str]:
    """The names that a clock's time, or what is computed of it, is given to."""
    timed: set[str] = set()
    for node in ast.walk(scope):
        if isinstance(node, ast.Assign) and tells_time(node.value, timed):
            timed |= {
                n.id for target in node.targets for n in ast.walk(target) if isinstance(n, ast.Name)
            }
    return timed


def compares_duration(node: ast.AST) -> bool:
    return isinstance(node, ast.Compare) and any(
        isinstance(order, ORDERS) and (named(left) or named(right))
        for order, left, right in zip(
            node.ops, [node.left, *node.comparators], node.comparators, strict=False
        )
    )


def named(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in DURATIONS


def number(node: ast.AST) -> float | None:
    is_number = isinstance(node, ast.Constant) and type(node.value) in (int, float)
    return float(node.value) if is_number else None  # type: ignore[attr-defined]  # a Constant


def short_limits(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Limits of a search, in seconds, that a loaded machine may reach against the test's will."""
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg in LIMITS:
            value = number(node.value)
            seconds = value if value is None or node.arg != "timeout_ms" else value / 1000
        elif isinstance(node, ast.BinOp) and is_clock(node.left):
            seconds = number(node.right)
        else:
            continue
        if seconds is not None and CUT_SHORT < seconds < PATIENCE:
            yield node.lineno, f"a limit of {seconds:g} s decides"


def timed_asserts(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Of each function by itself, if it names a clock or a duration; of a text without any, all."""
    scopes: list[ast.AST] = [n for n in statements(tree) if isinstance(n, ast.FunctionDef)]
    for scope in scopes or [tree]:
        nodes = list(ast.walk(scope))
        if not any(is_told(node) for node in nodes):
            continue
        timed = names_of_times(scope)
        for node in nodes:
            if isinstance(node, ast.Assert) and (
                tells_time(node.test, timed) or any(map(compares_duration, ast.walk(node.test)))
            ):
                yield node.lineno, "an assertion reads a clock"


def faults(source: str) -> list[str]:
    """What a test file asks of clocks; programs that it holds as text are read too."""
    if not ASKED.search(source):
        return []
    tree = ast.parse(source)
    found = {*timed_asserts(tree), *short_limits(tree)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and "assert " in str(node.value):
            try:
                inner = ast.parse(str(node.value))
            except SyntaxError:
                continue
            found |= {(node.lineno, text) for _, text in timed_asserts(inner)}
    return [f"line {line}: {text}" for line, text in sorted(found)]


@pytest.mark.parametrize(
    "folder",
    sorted({path.parent for path in TESTS.rglob("*.py")}),
    ids=lambda folder: str(folder.relative_to(TESTS)),
)
def test_no_outcome_depends_on_the_clock(folder: Path) -> None:
    found = {path.name: faults(path.read_text(encoding="utf-8")) for path in folder.glob("*.py")}
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


@pytest.mark.parametrize(
    "source",
    [
        "def f():\n  begun = time.monotonic()\n  g()\n  ASSERT time.monotonic() - begun < 5",
        "def f():\n  b = perf_counter()\n  g()\n  took = perf_counter() - b\n  ASSERT took < 5",
        "def f():\n  ASSERT solve(problem).seconds < 60",
        "def f():\n  ASSERT result.status == 1 and 2 > result.elapsed",
        "def f():\n  run('result = solve()\\nASSERT result.seconds < 60')",
        "solve(problem, SolveOptions(time_limit=20))",
        "prove(theorem, timeout_ms=2000)",
        "improve(problem, bounds, None, time.perf_counter() + 60)",
        "Budget(deadline=30)",
    ],
)
def test_what_depends_on_the_clock_is_found(source: str) -> None:
    assert len(faults(source.replace("ASSERT", "assert"))) == 1


@pytest.mark.parametrize(
    "source",
    [
        "def f():\n  begun = time.monotonic()\n  ASSERT g() == 3",
        "def f():\n  ASSERT stage.seconds == (10, 12, 11)",
        "solve(problem, SolveOptions(time_limit=1e-6))",
        "improve(problem, bounds, None, time.perf_counter() + 0.2)",
        "solve(problem, SolveOptions(time_limit=PATIENCE))",
        "run(words, timeout=300)",  # a guard against hanging
    ],
)
def test_what_does_not_is_let_be(source: str) -> None:
    assert faults(source.replace("ASSERT", "assert")) == []


def test_a_call_that_fails_or_hangs_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ended(lambda: 3) == 3
    with pytest.raises(ZeroDivisionError):
        ended(lambda: 1 // 0)
    monkeypatch.setattr("proofs_tests.patience.PATIENCE", 0.01)
    with pytest.raises(AssertionError, match="the call hangs"):
        ended(threading.Event().wait)
