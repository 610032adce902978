"""What Python in a page or a notebook shows, made again.

It uses the standard library alone, so that it runs where only the package is installed:
``python -P proofs_tests/shown.py README.md examples/researcher/first-steps.ipynb`` ends with 0 if
each file shows what it says; ``--write`` puts what the cells of the notebooks show now into them.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import difflib
import io
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

PYTHON = re.compile(r"```python\n(>>> .*?)```", re.DOTALL)
_STATEMENT = re.compile(r"^>>> .*\n(?:\.\.\.(?: .*)?\n)*", re.MULTILINE)
SMALL = re.compile(r"\d\.\de-\d\d")
SECONDS = re.compile(r"\d+\.\d+ s")
Cell = dict[str, Any]  # of a notebook, as JSON has it


def normal(text: str) -> str:
    """A text without what differs between machines: rounding and seconds."""
    return SECONDS.sub("<seconds>", SMALL.sub("<small>", text))


def run(code: str, names: dict[str, object]) -> tuple[str, object]:
    """What ``code`` prints, and the value of an expression at its end (else None)."""
    printed, value = io.StringIO(), None
    body = ast.parse(code).body
    with contextlib.redirect_stdout(printed):
        last = body.pop() if isinstance(body[-1], ast.Expr) else None
        exec(compile(ast.Module(body, []), "<shown>", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "<shown>", "eval"), names)
    return printed.getvalue(), value


def session(text: str, names: dict[str, object] | None = None) -> str:
    """The ``>>>`` statements of a Python block, each with what it prints now.

    ``...`` goes on with the statement above it. ``names`` are those of the blocks before, to which
    this one's are added.
    """
    names = {} if names is None else names
    lines: list[str] = []
    for statement in _STATEMENT.findall(text):
        code = "\n".join(line[4:] for line in statement.splitlines())
        printed, value = run(code, names)
        shown = printed if value is None else f"{printed}{value!r}\n"
        lines += [*statement.splitlines(), *(each.rstrip() for each in shown.splitlines())]
    return "\n".join(lines) + "\n"


def executed(notebook: dict[str, Any]) -> dict[str, Any]:
    """A notebook (nbformat 4) with what its code cells show now, run in order."""
    names: dict[str, object] = {}
    cells = [dict(cell) for cell in notebook["cells"]]
    for count, cell in enumerate(code_cells({"cells": cells}), 1):
        printed, value = run("".join(cell["source"]), names)
        cell["execution_count"], cell["outputs"] = count, []
        if printed:
            stream = {"name": "stdout", "output_type": "stream", "text": _lines(printed)}
            cell["outputs"].append(stream)
        if value is not None:
            shown = {"data": _bundle(value), "execution_count": count, "metadata": {}}
            cell["outputs"].append({**shown, "output_type": "execute_result"})
    return {**notebook, "cells": cells}


def code_cells(notebook: dict[str, Any]) -> list[Cell]:
    """The cells that run."""
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def texts(notebook: dict[str, Any]) -> str:
    """Each code cell and the text that it shows."""
    parts = []
    for cell in code_cells(notebook):
        parts.append("".join(cell["source"]))
        for output in cell["outputs"]:
            parts.append("".join(output.get("text", output.get("data", {}).get("text/plain", ""))))
    return "\n".join(parts) + "\n"


def _bundle(value: object) -> dict[str, object]:
    """What a notebook keeps of a value: of one that displays itself all the text that it gives."""
    own = getattr(value, "_repr_mimebundle_", None)
    shown = own() if callable(own) else {"text/plain": repr(value)}
    words = {kind: text for kind, text in shown.items() if isinstance(text, str)}  # no live widget
    return {kind: _lines(text) for kind, text in sorted(words.items())}


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def _differences(path: Path) -> list[str]:
    """What a file shows against what it would show now, as a diff."""
    text = path.read_text("utf-8")
    if path.suffix == ".ipynb":
        notebook = json.loads(text)
        pairs = [(texts(notebook), texts(executed(notebook)))]
    else:
        names: dict[str, object] = {}
        pairs = [(block, session(block, names)) for block in PYTHON.findall(text)]
    return [
        line
        for was, now in pairs
        for line in difflib.unified_diff(
            normal(was).splitlines(), normal(now).splitlines(), str(path), "now", lineterm=""
        )
    ]


def rewrite(path: Path) -> None:
    """Put what its cells show now into a notebook."""
    done = executed(json.loads(path.read_text("utf-8")))
    path.write_text(json.dumps(done, indent=1, ensure_ascii=False) + "\n", "utf-8")


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--write", action="store_true", help="rewrite the notebooks")
    given = parser.parse_args(words)
    if given.write:
        for path in given.files:
            rewrite(path)
        return 0
    found = [line for path in given.files for line in _differences(path)]
    sys.stdout.write("".join(f"{line}\n" for line in found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
