"""The mutants of a file: every small change of every function's body."""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType

Function = ast.FunctionDef | ast.AsyncFunctionDef
Change = tuple[int, int]  # the place of a node in its function's walk, and which of its changes

COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
COMPUTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.Pow: ast.Mult,
}
NOTED = "_noted_by_mutate"  # the builtin set of (file, line) of statements that have run
SWAPPED = {"min": "max", "max": "min", "any": "all", "all": "any"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """``text`` is the change in words, ``function`` its qualified name in ``file``.

    The file is relative to the package; ``place`` finds the function and the change again, and
    ``line`` is where the statement begins that is changed or has the change in it.
    """

    file: str
    function: str
    text: str
    place: tuple[int, Change]
    line: int

    @property
    def key(self) -> tuple[str, str, str]:
        """What the mutant is known by, whatever its line is."""
        return self.file, self.function, self.text


def mutants(file: str, source: str) -> list[Mutant]:
    """All mutants of a file in its order; equal changes of a function are numbered."""
    found: list[Mutant] = []
    seen: Counter[tuple[str, str]] = Counter()
    for number, (name, function) in enumerate(functions(ast.parse(source))):
        lines = _lines(function)
        for at, node in enumerate(_nodes(function)):
            for which, changed in enumerate(changes(node)):
                text = f"{_said(node)} -> {_said(changed)}"
                seen[name, text] += 1
                count = seen[name, text]
                text += f" (no. {count})" if count > 1 else ""
                place, line = (number, (at, which)), lines[node]
                found.append(Mutant(file=file, function=name, text=text, place=place, line=line))
    return found


def functions(tree: ast.Module) -> list[tuple[str, Function]]:
    """The outermost functions and methods with their qualified names."""
    found: list[tuple[str, Function]] = []

    def visit(body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, ast.ClassDef):
                visit(node.body, f"{prefix}{node.name}.")
            elif isinstance(node, Function):
                found.append((prefix + node.name, node))

    visit(tree.body, "")
    return found


def mutated(source: str, filename: str, mutant: Mutant) -> CodeType:
    """The code of the mutated function."""
    tree = ast.parse(source)
    number, (at, which) = mutant.place
    function = functions(tree)[number][1]
    node = list(_nodes(function))[at]
    changed = list(changes(node))[which]
    _Replacing(node, changed).visit(tree)
    code = compile(ast.fix_missing_locations(tree), filename, "exec")
    return next(c for c in inner(code) if is_of(c, mutant.function))


def noting(source: str, filename: str, file: str, lines: set[int]) -> dict[str, CodeType]:
    """The code of every outermost function, by name, where each statement of the ``lines`` notes in
    ``NOTED`` that it runs."""
    tree = ast.parse(source)
    names = {name for name, _ in functions(tree)}
    for node in list(ast.walk(tree)):
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            if isinstance(block, list) and not isinstance(node, ast.Module | ast.ClassDef):
                setattr(node, field, _noted(block, file, lines))
    code = compile(ast.fix_missing_locations(tree), filename, "exec")
    return {each.co_qualname: each for each in inner(code) if each.co_qualname in names}


def _noted(block: list[ast.stmt], file: str, lines: set[int]) -> list[ast.stmt]:
    """The statements, with a note before each that begins on one of the lines."""
    found: list[ast.stmt] = []
    for statement in block:
        if statement.lineno in lines:
            found += ast.parse(f"{NOTED}.add({(file, statement.lineno)!r})").body
        found.append(statement)
    return found


def _lines(function: Function) -> dict[ast.AST, int]:
    """The line of the innermost statement of each node."""
    found: dict[ast.AST, int] = {}
    for statement in ast.walk(function):
        if isinstance(statement, ast.stmt):
            found.update(dict.fromkeys(ast.walk(statement), statement.lineno))
    return found


def inner(code: CodeType) -> Iterator[CodeType]:
    """The code objects within one."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from inner(constant)


def is_of(code: CodeType, function: str) -> bool:
    """Whether the code is that of an outermost function."""
    return code.co_qualname == function


class _Replacing(ast.NodeTransformer):
    def __init__(self, node: ast.AST, by: ast.AST) -> None:
        self.node, self.by = node, by

    def visit(self, node: ast.AST) -> ast.AST:
        if node is self.node:
            return ast.copy_location(self.by, node)
        result: ast.AST = self.generic_visit(node)
        return result


def _nodes(function: Function) -> Iterator[ast.AST]:
    """What may be changed: the body without its docstring, annotations, messages of errors, and
    what is only asserted (``strict`` of a zip is)."""
    todo: list[ast.AST] = [*function.body[_has_docstring(function) :][::-1]]
    while todo:
        node = todo.pop()
        yield node
        skipped = {id(getattr(node, "annotation", None)), id(getattr(node, "returns", None))}
        if isinstance(node, ast.Raise | ast.JoinedStr | ast.Assert) or _is_strict(node):
            continue
        todo += [child for child in ast.iter_child_nodes(node) if id(child) not in skipped][::-1]


def _is_strict(node: ast.AST) -> bool:
    return isinstance(node, ast.keyword) and node.arg == "strict"


def _has_docstring(function: Function) -> bool:
    first = function.body[0]
    return isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)


def changes(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that may stand in a node's place."""
    if isinstance(node, ast.expr):
        yield from _of_expression(node)
    elif isinstance(node, ast.If | ast.While):
        yield _with(node, test=ast.UnaryOp(op=ast.Not(), operand=node.test))
    elif isinstance(node, ast.Return) and node.value is not None and not _is_none(node.value):
        yield ast.Return(value=ast.Constant(None))
    elif isinstance(node, ast.AugAssign) and type(node.op) in COMPUTED:
        yield _with(node, op=COMPUTED[type(node.op)]())
    if isinstance(node, ast.AugAssign | ast.Raise | ast.Continue | ast.Break) or _is_call(node):
        yield ast.Pass()


def _of_expression(node: ast.expr) -> Iterator[ast.AST]:
    if isinstance(node, ast.Compare):
        for at, op in enumerate(node.ops):
            yield _with(node, ops=[*node.ops[:at], COMPARED[type(op)](), *node.ops[at + 1 :]])
    elif isinstance(node, ast.BinOp) and type(node.op) in COMPUTED:
        yield _with(node, op=COMPUTED[type(node.op)]())
    elif isinstance(node, ast.BoolOp):
        yield _with(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
    elif isinstance(node, ast.UnaryOp):
        yield node.operand
    elif isinstance(node, ast.IfExp):
        yield _with(node, test=ast.UnaryOp(op=ast.Not(), operand=node.test))
    elif isinstance(node, ast.Constant) and isinstance(node.value, int):
        is_flag = isinstance(node.value, bool)
        yield ast.Constant(not node.value if is_flag else node.value + 1)
    elif isinstance(node, ast.Call) and (name := getattr(node.func, "id", "")) in SWAPPED:
        yield _with(node, func=ast.Name(SWAPPED[name], ast.Load()))


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_call(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)


def _with(node: ast.AST, **fields: object) -> ast.AST:
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed


def _said(node: ast.AST) -> str:
    """The node on one line; of a compound statement its head."""
    if isinstance(node, ast.If | ast.While):
        word = "if" if isinstance(node, ast.If) else "while"
        return f"{word} {ast.unparse(node.test)}"
    return " ".join(ast.unparse(node).split())
