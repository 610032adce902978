"""The cases of PipeMesh's claims; parameters as in ``pipemesh_schedules``, letters as printed."""

from __future__ import annotations

from bubbleproof.theory.claims.claim import Domain, grid, size
from bubbleproof.theory.claims.pipemesh_schedules import is_filled, sequences

SMALL = {"p": range(1, 4), "v": range(1, 4), "m": range(1, 7), "e": range(1, 7), "d": range(1, 7)}
FILLED = grid("P <= 3, M <= 3, B <= 6, filled", where=is_filled, **SMALL)
STAGES = grid("P <= 3, M <= 3, B <= 6, filled, all ranks",
              where=lambda at: is_filled(at) and at["r"] < at["p"],
              **SMALL, r=range(3))  # fmt: skip
HALVES = Domain(
    text="P <= 16, M <= 3, B in {2P, 4P}, two halves, (tF, tB) in {(1,1), (1,2), (2,1)}",
    points=tuple(sorted(
        ({"p": p, "v": v, "m": 2 * n * p, "e": n * p, "d": n * p, "tF": ticks[0], "tB": ticks[1]}
         for p in range(1, 17) for v in (1, 2, 3) for n in (1, 2)
         for ticks in ((1, 1), (1, 2), (2, 1))),
        key=size,
    )),
)  # fmt: skip
DEPTH_FIRST = grid("P <= 8, M <= 4, B in {2P, 3P}, rank 0",
                   where=lambda at: at["m"] in (2 * at["p"], 3 * at["p"]),
                   p=range(1, 9), v=range(1, 5), m=range(2, 25), r=(0,))  # fmt: skip
COLLECTIVES = grid("P <= 3, M <= 3, B <= 5, filled, C_DP in {1, 4}", where=is_filled,
                   **{**SMALL, "m": range(1, 6), "e": range(1, 6), "d": range(1, 6)},
                   C=(1, 4))  # fmt: skip
LINKS = grid("P <= 3, M <= 3, B <= 6, filled, C_PP = 1, tF = 2, tB = 4", where=is_filled,
             **SMALL, tF=(2,), tB=(4,), c=(1,))  # fmt: skip
WIDE = grid("P <= 3, M <= 3, B <= 8, every element at least 2P, C_PP = 1 or 2, tF = 3, tB = 5",
            where=lambda at: max(at["e"], at["d"]) <= at["m"]
            and min(map(min, sequences(at))) >= 2 * at["p"],
            p=range(1, 4), v=range(1, 4), m=range(1, 9), e=range(1, 9), d=range(1, 9),
            tF=(3,), tB=(5,), c=(1, 2))  # fmt: skip
SHORT = grid("2 <= P <= 4, M in {2, 3}, B <= 7, an element below P",
             where=lambda at: max(at["e"], at["d"]) <= at["m"] and not is_filled(at),
             p=range(2, 5), v=(2, 3), m=range(1, 8), e=range(1, 8), d=range(1, 8))  # fmt: skip
SHORT_ENDS = grid("2 <= P <= 4, M in {2, 3}, B <= 7, e_1 or d_S below P",
                  where=lambda at: max(at["e"], at["d"]) <= at["m"]
                  and min(at["e"], sequences(at)[1][-1]) < at["p"],
                  p=range(2, 5), v=(2, 3), m=range(1, 8), e=range(1, 8), d=range(1, 8))  # fmt: skip
SHARED = grid("P <= 3, M <= 3, B <= 6, filled, 3 C_DP <= tF min(e) and tB min(d)",
              where=lambda at: is_filled(at) and 3 * at["C"] <= min(sequences(at)[0])
              and 3 * at["C"] <= 2 * min(sequences(at)[1]), **SMALL, C=(1, 2))  # fmt: skip
HIDDEN = grid("P <= 3, M <= 3, B <= 6, filled, C_DP <= tF min(e) and tB min(d)",
              where=lambda at: is_filled(at) and at["C"] <= min(sequences(at)[0])
              and at["C"] <= 2 * min(sequences(at)[1]), **SMALL, C=(1, 2, 3))  # fmt: skip
VISITS = grid("P <= 3, M in {2, 3}, B <= 6, filled", where=is_filled, **{**SMALL, "v": (2, 3)})
CHUNKS = grid("M <= 4, chunk k, one rank, B = 2, two operations of one",
              where=lambda at: at["k"] <= at["v"],
              v=range(2, 5), k=range(1, 5), p=(1,), m=(2,), e=(1,), d=(1,))  # fmt: skip
