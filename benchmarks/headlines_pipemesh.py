"""PipeMesh's headlines: its gain over Megatron in four configurations, and 48 cells of memory.

An iteration is the sum of a row of Table IV. *Schedules* sums ours: Megatron's printed computation
(and PipeMesh's recomputation in it), the bubble, and what gathers and messages add to built
schedules where each link has its nominal bandwidth. A second row lets collectives reach the one
share of it that Megatron's and Fold3D's printed times ask for. *Paper* sums the printed times.
"""

from __future__ import annotations

from fractions import Fraction
from statistics import median

from benchmarks.headlines import Headline
from benchmarks.paper_numbers import Number
from benchmarks.pipemesh_files import CONFIGURATIONS, Configuration
from benchmarks.pipemesh_page import rows_of
from benchmarks.pipemesh_tables import SYSTEMS, TABLE

PRINTED = {
    "gpt3-58b-a100": "20.1 %",
    "gpt3-58b-v100": "23.8 %",
    "llama2-55b-v100": "33.5 %",
    "falcon-66b-v100": "23.4 %",
}
MEGATRON, PIPEMESH, FOLD3D = (SYSTEMS.index(name) for name in ("Megatron", "PipeMesh", "Fold3D"))
COMPUTED = ("T_comp fwd", "T_comp bwd")
MOVED = ("T_bubble", "T_DP crit", "T_PP crit")
CELLS = ("M_a", "M_g", "M_p")
WHY = (
    "direction and order are the schedules'; the size is not: contention, which nothing printed "
    "tells, makes the measured collectives longer"
)
REACHED = "links reach {share:.2f} of nominal in collectives (an inference: see below)"
Rows = tuple[list[Number], ...]


def headlines() -> list[Headline]:
    """The gains, and memory."""
    rows = {each.name: rows_of(each) for each in CONFIGURATIONS}
    share = reached(rows)
    found = []
    for given in CONFIGURATIONS:
        own = rows[given.name]
        whole = {system: _sum(given, own, system) for system in (MEGATRON, PIPEMESH)}
        slow = {system: _sum(given, own, system, share) for system in (MEGATRON, PIPEMESH)}
        printed = [TABLE[given.row + system]["total"] for system in (MEGATRON, PIPEMESH)]
        found += [
            Headline(
                name=f"throughput over Megatron, {given.name}",
                printed=PRINTED[given.name],
                schedules=100 * (whole[MEGATRON] / whole[PIPEMESH] - 1),
                paper=100 * (printed[0] / printed[1] - 1),
                why=WHY,
            ),
            Headline(
                name=f"the same, {given.name}, with slower collectives",
                printed=PRINTED[given.name],
                schedules=100 * (slow[MEGATRON] / slow[PIPEMESH] - 1),
                why=REACHED.format(share=float(share)),
            ),
        ]
    return found


def memory() -> str:
    """How many cells of M_a, M_g and M_p stand beside ours, and how far the farthest is off."""
    rows = {each.name: rows_of(each) for each in CONFIGURATIONS}
    cells = [
        (abs(one.deviation), f"{one.name} of {SYSTEMS[system]}, {name}")
        for name, own in rows.items()
        for system, listed in enumerate(own)
        for one in listed
        if one.name in CELLS and one.deviation is not None
    ]
    worst, where = max(cells)
    return (
        f"Of Table IV's cells of memory (M_a, M_g and M_p of four systems in four configurations) "
        f"{len(cells)} stand beside ours; the farthest, {where}, is {float(worst):.1f} % off."
    )


def reached(rows: dict[str, Rows]) -> Fraction:
    """The median of ours over printed T_DP, in rows of PipeMesh and Fold3D."""
    shares = [
        Fraction(one.ours) / one.value
        for own in rows.values()
        for system in (PIPEMESH, FOLD3D)
        for one in own[system]
        if one.name == "T_DP crit" and one.ours is not None and one.value
    ]
    return median(shares)


def _sum(given: Configuration, rows: Rows, system: int, share: Fraction | None = None) -> Fraction:
    """Milliseconds of an iteration."""
    ours = {one.name: one.ours for one in rows[system]}
    printed = TABLE[given.row + MEGATRON]
    total = printed["forward"] + printed["backward"]
    if system == PIPEMESH:
        total = sum((Fraction(ours[name] or 0) for name in COMPUTED), Fraction(0))
    for name in MOVED:
        slower = 1 if share is None or name != "T_DP crit" else share
        total += Fraction(ours[name] or 0) / slower
    return total
