"""A page of the theorems: each with its hypotheses, what proves it, and what is only compared.

What proves a theorem is read from ``docs/measured/proofs.md``, which
``python -m proofs_tests.papers.theorem_index`` makes and a test keeps.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from bubbleproof.papers.theorems.theorem import Theorem
from bubbleproof.papers.theorems.theorem_library import theorems

INDEX = Path(__file__).resolve().parents[1] / "docs" / "measured" / "proofs.md"
_ROW = re.compile(r"^\| `([\w-]+)` \| (.*?) \| (.*?) \| (.*?) \|$", re.MULTILINE)


def theorem_page() -> dict[str, str]:
    """The page by its place."""
    return {"theorems/index.md": "\n".join(_lines()) + "\n"}


def _lines() -> Iterator[str]:
    rows = {name: (sizes, by, only) for name, sizes, by, only in _ROW.findall(_index())}
    yield "# Theorems\n"
    yield (
        "What holds for all sizes that a theorem's hypotheses name, not only where it was looked "
        "at. `bubbleproof prove ID` proves one anew; [what is proved, and by what]"
        "(../guide/formal.md) says what Z3 and Coq have of each.\n"
    )
    for name in theorems():
        yield f"## {name}\n"
        yield from _all_sizes(theorems()[name])
        sizes, by, only = rows[name]
        yield f"Sizes\n: {sizes}\n"
        yield f"Proved by\n: {by}\n"
        yield f"Not proved, only compared\n: {only}\n"


def _index() -> str:
    return INDEX.read_text("utf-8").partition("<!-- theorem index -->")[2]


def _all_sizes(theorem: Theorem) -> Iterator[str]:
    yield f"> {_plain(theorem.statement)}\n"
    yield "Hypotheses\n" + "".join(f": {_plain(each)}\n" for each in theorem.assumptions)
    yield f"Letters\n: {_plain(theorem.symbols)}\n"
    yield f"Argument\n: {_plain(theorem.argument)}\n"
    names = "; ".join(_plain(each.name) for each in theorem.obligations)
    yield f"Obligations\n: {names}\n"


def _plain(text: str) -> str:
    """The text as Markdown shows it."""
    return text.replace("*", "\\*").replace("<", "&lt;").replace("_", "\\_")
