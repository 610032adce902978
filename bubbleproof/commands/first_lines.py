"""What a command says first, ten lines at most, and the tables that follow where one asks for them.

The first line is the answer, which ``--quiet`` prints alone; ``--verbose`` has the tables too, and
``--all`` every row of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from bubbleproof.commands.options.shared_options import Detail
from bubbleproof.commands.output import counted, print_table, print_text
from bubbleproof.costs import Deployment
from bubbleproof.formats.printable import on_one_line

MOST_LINES, MOST_ROWS = 10, 40  # of an answer without, and of a table with, --verbose


def print_answer(lines: Sequence[str], detail: Detail) -> bool:
    """Print the answer, its first line alone where that is asked; whether details follow it.

    Of more than ten lines the last says how many there are.
    """
    shown = [on_one_line(line) for line in lines]
    if len(shown) > MOST_LINES and not detail.has_tables:
        more = len(shown) - MOST_LINES + 1
        shown = [*shown[: MOST_LINES - 1], f"and {counted(more, 'line')} more (-v)"]
    print_text(shown[0], style="bold")
    if not detail.quiet and len(shown) > 1:
        print_text("\n".join(shown[1:]))
    return detail.has_tables


def print_rows(
    title: str, header: Sequence[str], rows: Sequence[Sequence[str]], detail: Detail
) -> None:
    """A table of the details; without ``--all`` its first rows, and how many there are."""
    shown = rows if detail.all else rows[:MOST_ROWS]
    print_table(title, header, shown)
    if len(shown) < len(rows):
        print_text(f"{counted(len(rows) - len(shown), 'row')} more (--all)")


def deployed(at: Deployment, *, chunks: int = 1) -> str:
    """A deployment as Megatron's users say it: ``TP4 PP8 DP2 · VPP 5 · micro-batch 1``."""
    degrees = {"TP": at.tensor, "PP": at.pipeline, "DP": at.data, "CP": at.context, "EP": at.expert}
    shown = [f"{name}{n}" for name, n in degrees.items() if n > 1 or name in ("TP", "PP", "DP")]
    told = [" ".join(shown), *[f"VPP {chunks}"] * (chunks > 1), f"micro-batch {at.micro_batch}"]
    told += [f"ZeRO-{at.zero}"] * bool(at.zero)
    told += [f"{at.scope} recompute"] * (at.scope != "none")
    return " · ".join(told)
