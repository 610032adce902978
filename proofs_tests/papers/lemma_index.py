"""The table of lemmas in ``docs/measured/proofs.md``: each lemma, and what shows it.

    python -m proofs_tests.papers.lemma_index

reads the lemmas of ``docs/guide/formal.md`` and their lines ``*Shown by:*``, finds each thing that
they name (a theorem of Coq that ``proofs/Assumptions.v`` asks about, a theorem of ``bubbleproof
prove``, a test, a file of code), and writes the table between the marks. Behind a theorem stands in
brackets what of the lemma it proves. What is not there is an error, so that no reference outlives
its target. ``test_lemma_index.py`` makes the table again.
"""

from __future__ import annotations

import ast
import re
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from benchmarks.markdown import markdown_table
from bubbleproof.papers.theorems.theorem_library import theorems
from proofs_tests.coq import asked

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "guide" / "formal.md"  # the lemmas
INDEX = ROOT / "docs" / "measured" / "proofs.md"
BEGIN, END = "<!-- lemma index -->\n", "<!-- end of the lemmas -->\n"
_LEMMA = re.compile(r"^\*\*Lemma (\d+) \((.+?)\)\.\*\*", re.MULTILINE)
_SHOWN = re.compile(r"^\*Shown by:\* (.+?)\.\n", re.MULTILINE | re.DOTALL)
_NAMED = re.compile(r"`([^`]+)`(?:\s+\(([^)]+)\))?")
PROVERS = ("coq", "z3")
KINDS = (*PROVERS, "test", "code")
HEADER = ("lemma", "proved by a machine (of what)", "looked at by tests", "decided by")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownLemma:
    """A lemma of the page: its number, its name, and what shows it by kind (``KINDS``).

    What shows it has a name, and says of what part ("" where a test or code leaves that out).
    """

    number: int
    name: str
    shown_by: dict[str, tuple[tuple[str, str], ...]]


def lemmas(page: str) -> list[ShownLemma]:
    """The lemmas of a page in its order.

    Raises ``ValueError`` where numbers do not go up by one, where a lemma is shown by nothing, by
    something of no known kind, or by a theorem of which no part is told.
    """
    found = []
    starts = [*_LEMMA.finditer(page)]
    ends = [*(match.start() for match in starts[1:]), len(page)]
    for number, (match, end) in enumerate(zip(starts, ends, strict=True), start=1):
        if int(match[1]) != number:
            raise ValueError(f"lemma {match[1]} ({match[2]}) stands where lemma {number} should")
        shown = _SHOWN.search(page, match.end(), end)
        if shown is None:
            raise ValueError(f"lemma {number} ({match[2]}) has no line *Shown by:*")
        found.append(ShownLemma(number=number, name=match[2], shown_by=_kinds(shown[1], number)))
    return found


def _kinds(text: str, number: int) -> dict[str, tuple[tuple[str, str], ...]]:
    """What a line names, by kind: ``coq `a` (the bound), `b` (the peak); test `c` ``."""
    by_kind: dict[str, tuple[tuple[str, str], ...]] = {}
    for part in text.split(";"):
        kind, names = [*part.split(maxsplit=1), ""][:2]
        if kind not in KINDS or kind in by_kind:
            raise ValueError(f"lemma {number}: {kind!r} must be one of {', '.join(KINDS)}, once")
        by_kind[kind] = tuple((a, " ".join(of.split())) for a, of in _NAMED.findall(names))
        if bare := [name for name, of in by_kind[kind] if kind in PROVERS and not of]:
            raise ValueError(f"lemma {number}: {kind} `{bare[0]}` must say (of what) it is a proof")
    return by_kind


def missing(lemma: ShownLemma) -> list[str]:
    """What a lemma names that is not there."""
    is_there = {"coq": _in_coq, "z3": _in_z3, "test": _is_test, "code": _is_code}
    return [
        f"lemma {lemma.number}: {kind} {name}"
        for kind, names in lemma.shown_by.items()
        for name, _ in names
        if not is_there[kind](name)
    ]


def _in_coq(name: str) -> bool:
    return name in asked()


def _in_z3(name: str) -> bool:
    return name in theorems()


def _is_test(name: str) -> bool:
    path, _, test = name.partition("::")
    return (ROOT / path).is_file() and test in _tests_of(path)


@cache
def _tests_of(path: str) -> frozenset[str]:
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


def _is_code(name: str) -> bool:
    return (ROOT / name).is_file()


def table(page: str) -> str:
    """The section between the marks. ``ValueError`` for a reference to what is not there."""
    found = lemmas(page)
    if wrong := [each for lemma in found for each in missing(lemma)]:
        raise ValueError(f"the page names what is not there: {'; '.join(wrong)}")
    by_machine = sum(bool({*PROVERS} & lemma.shown_by.keys()) for lemma in found)
    return "\n".join(
        (
            f"{by_machine} of {len(found)} lemmas have a theorem of Coq or Z3.",
            "It proves what stands in brackets behind it, no more. The rest of a lemma is",
            "argued on that page alone, and tests look at it. Made by",
            "`python -m proofs_tests.papers.lemma_index`.\n",
            markdown_table(HEADER, [_row(lemma) for lemma in found]),
        )
    )


def _row(lemma: ShownLemma) -> tuple[str, ...]:
    shown = lemma.shown_by
    machine = [f"{kind} `{name}` ({of})" for kind in PROVERS for name, of in shown.get(kind, ())]
    tests = [
        f"`{name.rpartition('/')[2]}`" + (f" ({of})" if of else "")
        for name, of in shown.get("test", ())
    ]
    code = [f"[{name.rpartition('/')[2]}](../../{name})" for name, _ in shown.get("code", ())]
    return (f"{lemma.number}, {lemma.name}", *map(", ".join, (machine, tests, code)))


def with_table(index: str, page: str) -> str:
    """The index with the table of a page's lemmas. ``ValueError`` where it has no marks."""
    head, _, rest = index.partition(BEGIN)
    _, mark, tail = rest.partition(END)
    if not mark:
        raise ValueError(f"the index must have the marks {BEGIN.strip()} and {END.strip()}")
    return f"{head}{BEGIN}\n{table(page).rstrip()}\n\n{END}{tail}"


def main() -> int:
    """Write the table into the index."""
    INDEX.write_text(with_table(INDEX.read_text("utf-8"), PAGE.read_text("utf-8")), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
