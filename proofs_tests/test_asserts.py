"""What ``assert`` may do in the package: nothing that judges what comes from outside or an engine.

Asserts vanish under ``python -O``. One may only tell the type checker what our own code has settled
(``x is not None``, ``isinstance``), and never of what a judge, a file, a model or another process
has just returned. Even these are counted by room, and their number may only fall: a type that says
what is there needs none.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

import pytest

from proofs_tests.structure import files

# What these return is to be judged, by a check that stays.
JUDGED = {
    "check",
    "check_certificate",
    "value_of",
    "left_shift",
    "measured",
    "solve",
    "search",
    "refute",
    "loads",
    "recv",
    "get",
    "isend",
    "irecv",
    "post",
    "spec_from_file_location",
    "import_module",
}
MOST = {"commands": 1, "report": 1}  # asserts in a room; none anywhere else


def asserts(source: str) -> Iterator[tuple[ast.Assert, ast.AST]]:
    """Every assert with the function that it stands in, or the file."""
    if "assert " not in source:
        return
    tree = ast.parse(source)
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert):
            around = [f for f in functions if f.lineno <= node.lineno <= (f.end_lineno or 0)]
            yield node, max(around, key=lambda f: f.lineno, default=tree)


def narrowed(test: ast.expr) -> ast.expr | None:
    """What the assert tells the type of; None where it says anything else."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return narrowed(test.operand) if isinstance(test.operand, ast.Call) else None
    if isinstance(test, ast.Call) and isinstance(test.func, ast.Name):
        return test.args[0] if test.func.id == "isinstance" else None
    if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.IsNot):
        right = test.comparators[0]
        is_none = isinstance(right, ast.Constant) and right.value is None
        return test.left if is_none and len(test.ops) == 1 else None
    return None


def root(of: ast.expr) -> str:
    """The name at the beginning of ``name.field[...]``."""
    while isinstance(of, ast.Attribute | ast.Subscript | ast.Call):
        of = of.func if isinstance(of, ast.Call) else of.value
    return of.id if isinstance(of, ast.Name) else ""


def called_for(name: str, function: ast.AST) -> set[str]:
    """The functions whose results the name is assigned from."""
    assigned = [n for n in ast.walk(function) if isinstance(n, ast.Assign | ast.AnnAssign)]
    calls = []
    for node in assigned:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if name in {n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)}:
            calls += [n.func for n in ast.walk(node) if isinstance(n, ast.Call)]
    return {f.attr if isinstance(f, ast.Attribute) else getattr(f, "id", "") for f in calls}


def wrong_asserts(source: str) -> list[str]:
    """The asserts that may judge."""
    found = []
    for node, function in asserts(source):
        what = narrowed(node.test)
        if what is None or called_for(root(what), function) & JUDGED:
            found.append(ast.unparse(node.test))
    return found


def test_no_assert_judges() -> None:
    found = {
        (name, test)
        for name, path in files().items()
        for test in wrong_asserts(path.read_text(encoding="utf-8"))
    }
    assert found == set()


def test_what_is_there_is_said_by_types() -> None:
    counts = Counter(
        name.partition("/")[0]
        for name, path in files().items()
        for _ in asserts(path.read_text(encoding="utf-8"))
    )
    assert counts <= Counter(MOST)


@pytest.mark.parametrize(
    "line",
    [
        "verdict = check(problem, schedule)\n    assert verdict.ok",
        "verdict = check(problem, schedule)\n    assert verdict.measured is not None",
        "value = value_of(encoding, start)\n    assert value is not None, 'refused'",
        "work = torch.distributed.isend(message)\n    assert work is not None",
        "answer = json.loads(line)\n    assert isinstance(answer, dict)",
        "assert count == 1, 'one of them holds'",
        "assert x is not None and y",
    ],
)
def test_an_assert_that_judges_is_found(line: str) -> None:
    assert wrong_asserts(f"def f():\n    {line}\n") != []


def test_an_assert_of_a_type_is_none() -> None:
    settled = "def f(self):\n    assert self.file is not None\n    assert not isinstance(x, int)\n"
    assert wrong_asserts(settled) == []
