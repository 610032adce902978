"""The index of ``docs/measured/proofs.md``: what of a theorem is proved, by what, and what is not.

    python -m proofs_tests.papers.theorem_index

writes the table between the two marks of the page, from the theorems themselves: for what sizes, by
how many obligations of Z3, by which theorems of Coq too; and what only tests looked at, with their
sizes. ``test_theorem_index.py`` makes the rows again.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from benchmarks.markdown import cell, markdown_table
from bubbleproof.papers.theorems.theorem import Theorem
from bubbleproof.papers.theorems.theorem_library import theorems
from proofs_tests.papers.theorems import (
    test_bpipe_pairs,
    test_bpipe_walk,
    test_closed_forms,
    test_interleaved_starts,
    test_interleaved_timing,
    test_svpp_frontier,
    test_zb_h1_theorem,
)
from proofs_tests.papers.theorems.compared import CASES

PAGE = Path(__file__).resolve().parents[2] / "docs" / "measured" / "proofs.md"
BEGIN, END = "<!-- theorem index -->\n", "<!-- end of the index -->\n"
COQ = {  # the same statement in proofs/, or a part of it
    "makespan-bound": ("pipeline_lower_bound",),
    "stages-bound": ("stages_bound",),
    "frontier": ("frontier",),
    "gpipe": ("valid_gpipe", "optimal_gpipe", "peak_gpipe"),
    "1f1b": ("valid_1f1b", "optimal_1f1b", "peak_1f1b"),
    "zb-h1": ("valid_zbh1", "optimal_zbh1"),
    "bpipe": ("no_plan_is_better", "bpipe_is_best"),
}
PARTS = {  # what Coq does not have of it
    "makespan-bound": "n = m, one stage a rank",
    "stages-bound": "whole, in whatever order",
    "frontier": "in whatever order, for any K, u = w; what rank i needs where they are 0",
    "gpipe": "whole",
    "1f1b": "whole",
    "zb-h1": "at equal durations, without the peaks",
    "bpipe": "that no plan does better, of a pair and of all schedules as fast, m >= 2p",
}
ANY_ORDER = {"stages-bound", "frontier"}  # Coq assumes no order of the microbatches
Row = tuple[str, str, str, str]


def _told(sizes: Iterable[tuple[int, ...]]) -> str:
    """The numbers of ranks among sizes (p, ...), and how many sizes there are."""
    listed_ = list(sizes)
    ranks = {size[0] for size in listed_}
    return f"p = {min(ranks)} to {max(ranks)}, {len(listed_)} sizes"


def compared() -> dict[str, tuple[str, str]]:
    """By theorem: the test that compares it with the package's schedules, and at which sizes."""
    of_each, few = list(test_closed_forms.sizes()), list(test_closed_forms.sizes(5))
    few_no_fewer = _told(size for size in few if size[1] >= size[0])
    return {
        "frontier": ("test_frontier.py", "every order of small problems; p = 1 to 5, m = 1 to 11"),
        "gpipe": ("test_closed_forms.py", _told(of_each)),
        "1f1b": ("test_closed_forms.py", _told(of_each)),
        "terapipe": ("test_closed_forms.py", f"{_told(few)} of 1 to 3 slices"),
        "bfs": ("test_closed_forms.py", f"{few_no_fewer} of 1 to 3 chunks"),
        "zb-h1": ("test_zb_h1_theorem.py", _told(test_zb_h1_theorem.SIZES)),
        "interleaved": ("test_interleaved_timing.py", _told(test_interleaved_timing.SIZES)),
        "interleaved-starts": ("test_interleaved_starts.py", _told(test_interleaved_starts.SIZES)),
        "pipemesh": ("test_pipemesh_timing.py", "60 drawn sequences"),
        "pipemesh-starts": ("test_interleaved_starts.py", _told(test_interleaved_starts.MESHES)),
        "svpp-frontier": ("test_svpp_frontier.py", _told(test_svpp_frontier.SIZES)),
        "v-half-block": ("test_all_ranks.py", "the blocks of p = 1 to 64; peaks of p = 1 to 16"),
        "v-min-block": ("test_all_ranks.py", "the blocks of p = 1 to 64; peaks of p = 1 to 16"),
        "bpipe": ("test_bpipe_walk.py", _told(test_bpipe_walk.SIZES)),
        "bpipe-printed": ("test_bpipe_pairs.py", _told(test_bpipe_pairs.SIZES)),
        **{
            name: ("test_all_ranks.py", _told((*about.sizes, *about.more)))
            for name, about in CASES.items()
        },
    }


def row(theorem: Theorem) -> Row:
    """One theorem's row: its id, for what sizes, by what, and what is not proved."""
    by = f"Z3, {len(theorem.obligations)} obligations"
    if theorem.id in COQ:
        names = ", ".join(f"`{name}`" for name in COQ[theorem.id])
        by += f"; Coq, {PARTS[theorem.id]}: {names}"
    return f"`{theorem.id}`", cell(_counts(theorem)), cell(by), cell(_of_all(theorem))


def _counts(theorem: Theorem) -> str:
    """The hypotheses about counts."""
    return f"all {', '.join(assumed for assumed in theorem.assumptions if '>=' in assumed)}"


def _of_all(theorem: Theorem) -> str:
    """What is not proved of a theorem."""
    missing = []
    ordered = any("index_order" in assumed for assumed in theorem.assumptions)
    if ordered and theorem.id not in ANY_ORDER:
        missing.append("that identical microbatches may run in the order of their numbers")
    if theorem.id in compared():
        test, sizes = compared()[theorem.id]
        missing.append(f"that the family's schedules are these: {sizes} (`{test}`)")
    return "; ".join(missing) or "nothing: it is about every schedule"


def index() -> str:
    """The section between the marks."""
    rows = [row(theorem) for theorem in theorems().values()]
    table = markdown_table(("theorem", "sizes", "proved by", "not proved, only compared"), rows)
    return (
        f"{len(rows)} theorems, each for all sizes that its hypotheses name. Made by\n"
        f"`python -m proofs_tests.papers.theorem_index`.\n\n{table}"
    )


def with_index(page: str, made: str) -> str:
    """The page with this index between its marks. ``ValueError`` where it has none."""
    head, _, rest = page.partition(BEGIN)
    _, mark, tail = rest.partition(END)
    if not mark:
        raise ValueError(f"the page must have the marks {BEGIN.strip()} and {END.strip()}")
    return f"{head}{BEGIN}\n{made.rstrip()}\n\n{END}{tail}"


def main() -> int:
    """Write the index into the page."""
    PAGE.write_text(with_index(PAGE.read_text("utf-8"), index()), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
