"""Table 2 on the page of BPipe: which deployments fit, by two readings of what weights take."""

from __future__ import annotations

from functools import lru_cache
from itertools import product

from benchmarks.bpipe_settings import NAMES
from benchmarks.markdown import markdown_table
from benchmarks.paper_numbers import Number, number_table
from bubbleproof.papers.bpipe.bpipe_grid import (
    GIGA,
    NEAREST,
    PRINTED,
    Fit,
    GridPoint,
    bandwidth,
    forward_seconds,
    grid,
    least_recomputed,
    link,
)
from bubbleproof.papers.bpipe.node_places import DeviceMesh, in_order, pair_adjacent
from bubbleproof.papers.bpipe.pair_placement import least_crossing, pair_placement

# Table 2: (t, p, microbatch) and the scope; the ones that Table 7 marks BPipe.
TABLE_2 = {
    "GPT-3 96B": (
        "1 16 1 full, 2 8 1 full, 2 8 2 full, 4 4 1 attention, 4 4 2 full, 8 2 1 attention, "
        "8 2 2 full, 8 2 4 full, 2 16 1 attention, 2 16 2 full, 2 16 4 full, 4 8 1 attention, "
        "4 8 2 attention, 4 8 4 full, 4 8 8 full, 8 4 1 attention, 8 4 2 attention, 8 4 4 full, "
        "8 4 8 full"
    ),
    "GPT-3 134B": (
        "2 12 1 full, 2 12 2 full, 4 6 1 attention, 4 6 2 full, 4 6 4 full, 8 3 1 attention, "
        "8 3 2 full, 8 3 4 full, 4 12 1 attention, 4 12 2 attention, 4 12 4 full, 8 6 1 attention, "
        "8 6 2 attention, 8 6 4 full, 8 6 8 full"
    ),
}
MARKED = (("GPT-3 96B", 2, 16, 1), ("GPT-3 96B", 4, 8, 2), ("GPT-3 134B", 4, 12, 2))  # Table 7
GRID = """
## Table 2: the grid

Under the printed constraints a point is (t, p, microbatch); d is what is left of the GPUs. Table 2
has powers of two for the microbatch: for a batch of 192 the constraints admit 3 and 6 as well. What
fits is decided by memory, Eq. 1 with Eq. 4 to 6, and BPipe's by Eq. 10 to 12 as well: pairs of
t = 8 stand on two nodes, whose 800 Gbit/s eight GPUs share; within a node a GPU sends 300 GB/s
(an A100's NVLink; not printed). The paper does not print how W_0 is counted, so two readings stand
beside the table: its own 20 bytes a weight, and the usual 18 with what else a GPU holds. Neither
agrees with every point, and none can whose W_0 is that of the layers alone: GPT-3 96B with t = 4,
p = 4, one sample and attention recomputed is listed and keeps 4 * 3.24 = 12.95 GiB beside W_0 (Eq.
1 and 5); with t = 1, p = 16, two samples and layers recomputed it is not listed and keeps
16 * 0.38 = 6.09 GiB (Eq. 6) beside the same W_0, t p and d being the same.

"""


PAIRS = """
## Section 3.5: pairs on one node

Groups of t GPUs on nodes of g, p stages and d replicas: where can every pair that moves activations
share a node? *Exists* is exact (a node of c = floor(g/t) places takes floor(c/2) pairs, and
`papers/bpipe/pair_placement.py` proves that no more is needed); *BPipe's order* is 0, p-1, 1,
p-2, ... replica after replica. Where none exists the planner places as few pairs on two nodes as
any placement must, the inner ones. Of 4 <= p <= 16 and d <= 4:

"""


def grid_section() -> str:
    """The sections on deployments."""
    grid_part = f"{GRID}{number_table(grid_numbers())}\n{grid_table()}"
    return f"{grid_part}{PAIRS}{pair_table()}"


def pair_table() -> str:
    """For each (g, t): of how many (p, d) a pair-adjacent placement exists, and what reaches it."""
    rows = []
    for node, tensor in product((4, 6, 8, 16), (1, 2, 4, 8)):
        if tensor > node:
            continue
        found = [_placed(p, d, tensor, node) for p in range(4, 17) for d in range(1, 5)]
        exists, own, ours = (sum(column) for column in zip(*found, strict=True))
        rows.append((node, tensor, len(found), exists, own, ours))
    return markdown_table(("g", "t", "(p, d)", "exists", "BPipe's order", "ours"), rows)


def _placed(p: int, d: int, tensor: int, node: int) -> tuple[bool, bool, bool]:
    """Whether every pair can share a node, does in BPipe's order, and does in ours."""
    mesh = DeviceMesh(stages=p, tensor=tensor, replicas=d, node=node)
    ours = pair_placement(mesh, 2 * p)
    own = in_order(mesh, pair_adjacent(p))
    cut = [own[r, s] != own[r, p - 1 - s] for r in range(d) for s in ours.pairs]
    return not least_crossing(mesh, len(ours.pairs)), not any(cut), not ours.crossing


def cells(name: str) -> dict[tuple[int, int, int], str]:
    """Table 2's scope of each (t, p, microbatch)."""
    rows = (text.split() for text in TABLE_2[name].split(", "))
    return {(int(t), int(p), int(b)): scope for t, p, b, scope in rows}


@lru_cache
def compared(name: str) -> tuple[tuple[GridPoint, str, Fit | None, Fit | None], ...]:
    """Each point of the grid: the printed scope (empty: none), and what runs by both readings."""
    setting, printed = NAMES[name], cells(name)
    found = []
    for point in grid(setting):
        key = (point.tensor, point.pipeline, point.micro_batch)
        plain, nearest = (least_recomputed(setting, point, one) for one in (PRINTED, NEAREST))
        found.append((point, printed.get(key, ""), plain, nearest))
    return tuple(found)


def _scope(fit: Fit | None) -> str:
    return "" if fit is None else fit.scope


def grid_numbers() -> list[Number]:
    """On how many points the readings of W_0 agree with Table 2, and with Table 7's marks."""
    found = []
    for name in TABLE_2:
        rows = compared(name)
        listed = [row for row in rows if row[1]]
        for which, text in ((2, _PRINTED_TEXT), (3, _NEAREST_TEXT)):
            for kind, of in (("listed in Table 2", listed), ("of the grid", rows)):
                same = sum(row[1] == _scope((row[2], row[3])[which - 2]) for row in of)
                found.append(
                    Number(
                        name=f"{name}: points {kind} as printed",
                        printed=str(len(of)),
                        ours=same,
                        why=text,
                    )
                )
    ours = {
        (name, point.tensor, point.pipeline, point.micro_batch)
        for name in TABLE_2
        for point, _, _, nearest in compared(name)
        if nearest is not None and nearest.is_balanced
    }
    marked = Number(
        name="configurations that Table 7 marks BPipe, which need transfers in ours",
        printed=str(len(MARKED)),
        ours=len({*MARKED} & ours),
        why=f"the second reading; by it {len(ours - {*MARKED})} others need them that ran without",
    )
    return [*found, marked]


_PRINTED_TEXT = "20 bytes a weight (section 1), stages alike, all of 80 GiB"
_NEAREST_TEXT = (
    "18 bytes a weight (16-bit training with 32-bit gradients), the embedding, room for one layer "
    "made again, 2 GiB for libraries"
)


def grid_table() -> str:
    """Table 2 beside both readings, and the points that differ outside of it."""
    header = (
        "model",
        "t",
        "p",
        "d",
        "microbatch",
        "printed",
        "20 bytes",
        "18 bytes and the rest",
        "with transfers",
        "GB/s needed, of",
    )
    rows = [_grid_row(name, *row) for name in TABLE_2 for row in compared(name) if any(row[1:])]
    return markdown_table(header, rows)


def _grid_row(
    name: str, point: GridPoint, printed: str, plain: Fit | None, nearest: Fit | None
) -> tuple[str, ...]:
    setting = NAMES[name]
    shape = (point.tensor, point.pipeline, point.data, point.micro_batch)
    told = (printed, _scope(plain), _scope(nearest))
    scopes = (each.replace("full", "layer") or "out of memory" for each in told)
    if nearest is None or not nearest.is_balanced or setting.pace is None:
        return (name, *map(str, shape), *scopes, "", "")
    forward = forward_seconds(setting.pace, point)
    needed = bandwidth(setting, point, nearest.scope, forward, is_relaxed=True)
    need = f"{float(needed):.1f} of {float(link(setting, point) / GIGA):.1f}"
    return (name, *map(str, shape), *scopes, "yes", need)
