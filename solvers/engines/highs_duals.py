"""Duals of a linear program by HiGHS: its interior-point method on one thread, with crossover.

The rows are handed over as arrays; PuLP would write and read each as text. Constants are those of
``highs_c_api.h``.
"""

from __future__ import annotations

from contextlib import closing
from ctypes import POINTER, c_double, c_int

import numpy as np
from numpy.typing import NDArray

from bubbleproof.solvers.engines.engine import Budget
from bubbleproof.solvers.engines.highs import Highs

Reals = NDArray[np.float64]
BY_ROWS, MAXIMIZE, OPTIMAL = 2, -1, 7
INFINITE = 1e30


def maximize_last(
    columns: int,
    rows: tuple[NDArray[np.int64], NDArray[np.int64], Reals],
    most: Reals,
    budget: Budget,
) -> tuple[float, Reals] | None:
    """The greatest last variable, and a dual per row; None out of time or told to stop.

    All variables are 0 or more. ``rows`` are (row, column, factor) of what is not 0, rows rising;
    row i is at most ``most[i]``.

    Parameters
    ----------
    columns
        How many variables there are, 1 or more.
    """
    row, column, factor = rows
    count = len(most)
    cost = np.zeros(columns)
    cost[-1] = 1.0
    places = np.ascontiguousarray(column, dtype=np.int32)
    starts = np.searchsorted(row, np.arange(count)).astype(np.int32)
    with closing(Highs()) as highs:
        highs.set("output_flag", False)
        highs.set("threads", 1)
        highs.call("setStringOptionValue", b"solver", b"ipm")
        highs.call(
            "passLp",
            *(c_int(columns), c_int(count), c_int(len(row)), c_int(BY_ROWS), c_int(MAXIMIZE)),
            c_double(0.0),
            *(_doubles(x) for x in (cost, np.zeros(columns), np.full(columns, INFINITE))),
            *(_doubles(x) for x in (np.full(count, -INFINITE), most)),
            *(_ints(x) for x in (starts, places)),
            _doubles(factor),
        )
        highs.run(budget)
        if highs.library.Highs_getModelStatus(highs.handle) != OPTIMAL:
            return None
        values, duals = np.zeros(columns), np.zeros(count)
        highs.call("getSolution", _doubles(values), None, None, _doubles(duals))
    return float(values[-1]), np.abs(duals)


def _doubles(column: Reals) -> object:
    return column.ctypes.data_as(POINTER(c_double))


def _ints(column: NDArray[np.int32]) -> object:
    return column.ctypes.data_as(POINTER(c_int))
