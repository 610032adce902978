"""The table of ``docs/guide/design.md``: how much code each sentence of a verdict rests on.

    python -m proofs_tests.trusted_table

writes it between the two marks of the page.
"""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.markdown import markdown_table
from proofs_tests.structure import (
    CERTIFICATES,
    KERNEL,
    SENTENCES,
    lines_of,
    model,
    rests_on,
    sentence_rests_on,
)

PAGE = Path(__file__).resolve().parents[1] / "docs" / "guide" / "design.md"
BEGIN, END = "<!-- trusted table -->\n", "<!-- end of the table -->\n"


def rows() -> list[tuple[str, str, int, int]]:
    """Each sentence: what it rests on, how many modules and lines that is."""
    kernel = rests_on(KERNEL)
    found = [("this schedule keeps rules 1 to 5 and 8", f"`{KERNEL}`, all of it", kernel)]
    for name in CERTIFICATES:
        kind = name.rpartition(".")[2].replace("_", " ")
        told = f"no schedule is below this bound (kind: {kind})"
        found.append((told, f"`{name}` beyond the model", rests_on(name) - model()))
    for sentence, roots in SENTENCES.items():
        names = ", ".join(f"`{root}`" for root in roots)
        found.append((sentence, f"{names} beyond the model", sentence_rests_on(sentence)))
    return [(told, what, len(names), lines_of(names)) for told, what, names in found]


def table() -> str:
    """The rows as Markdown."""
    header = ("sentence", "rests on", "modules", "lines")
    return markdown_table(header, ((*head, f"{lines:,}") for *head, lines in rows()))


def main() -> int:
    """Write the table into the page."""
    head, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    _, mark, tail = rest.partition(END)
    PAGE.write_text(f"{head}{BEGIN}\n{table()}\n{mark}{tail}", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
