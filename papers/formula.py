"""Formulas as a paper writes them: text over the parameters of a case, exact.

A formula is a value, ``(p-1)/(m+p-1)``, a condition, ``m >= p and m % 2 == 0``, or the values of a
parameter, ``range(1, 4*p + 1)``. It is a Python expression over the parameters and ``FUNCTIONS`` in
which ``/`` gives a ``Fraction`` and 0.1 is a tenth, so that no float comes in. The texts stand in
this room's modules; none is read from a file or a command line.

>>> Formula("(p-1)/(m+p-1)")({"p": 3, "m": 4}), Formula("m % p == 0")({"p": 3, "m": 4})
(Fraction(1, 3), False)
>>> sorted(Formula("0.1*m + ceil(p/2)").parameters)
['m', 'p']
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Mapping
from fractions import Fraction
from math import ceil, floor
from types import FunctionType

FUNCTIONS = {
    "Fraction": Fraction,
    "abs": abs,
    "ceil": ceil,
    "floor": floor,
    "max": max,
    "min": min,
    "range": range,
}

OFFERED: dict[str, object] = {}  # what papers have for the formulas of their claims


def offer(module: str) -> None:
    """Let the formulas of claims call the functions of a paper's module, by its full name."""
    for name, each in vars(sys.modules[module]).items():
        if isinstance(each, FunctionType) and each.__module__ == module:
            OFFERED[name] = each


class Formula:
    """The expression ``text``, called with the parameters of a case.

    ``more`` are functions that it may name besides, such as a paper's own formulas.
    """

    def __init__(self, text: str, more: Mapping[str, object] | None = None) -> None:
        tree = _Exact().visit(ast.parse(text, mode="eval"))
        self.text, self._known = text, {**FUNCTIONS, **(more or {})}
        self._code = compile(ast.fix_missing_locations(tree), text, "eval")
        self.parameters = frozenset(self._code.co_names) - self._known.keys()

    def __call__(self, at: Mapping[str, int | Fraction]) -> object:
        found: object = eval(self._code, self._known, at)
        return found


class _Exact(ast.NodeTransformer):
    """Quotients and decimals as fractions."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        left, right = self.visit(node.left), self.visit(node.right)
        if isinstance(node.op, ast.Div):
            return _fraction(left, right)
        return ast.BinOp(left, node.op, right)

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        return _fraction(ast.Constant(str(node.value))) if type(node.value) is float else node


def _fraction(*args: ast.expr) -> ast.expr:
    return ast.Call(ast.Name("Fraction", ast.Load()), list(args), [])
