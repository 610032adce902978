"""HiGHS, called through the C interface of the library that OR-tools brings.

OR-tools' own interfaces to it cannot stop it early; PuLP's pass it no first schedule and need a
second copy of it (docs/reference/dependencies.md). The C interface does both: it
takes values to start from, and asks in a callback whether to stop. Constants are those of
``highs_c_api.h``.

Duals of a linear program come from its interior-point method on one thread, with crossover. The
rows are handed over as arrays; PuLP would write and read each as text.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import closing, suppress
from ctypes import CDLL, CFUNCTYPE, POINTER, byref, c_char_p, c_double, c_int, c_void_p
from functools import cache
from importlib.util import find_spec
from math import isinf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bubbleproof.solvers.engines.engine import Budget
from bubbleproof.solvers.engines.milp import MilpSolution, Values
from bubbleproof.solvers.engines.pulp_alone import pulp

FILE_NAMES = {"win32": "highs.dll", "darwin": "libhighs.1.dylib", "linux": "libhighs.so.1"}
INTERRUPTS = (1, 2, 6)  # callbacks that are asked for: simplex, interior point, MIP
INFEASIBLE = (8, 9)  # model statuses; the second is "or unbounded", and every variable is bounded
FEASIBLE = 2  # status of a primal solution
NO_ERROR = (0, 1)  # success, or a warning

# kind, message, what is known, what to do (it begins with "user_interrupt"), data of the caller
Callback = CFUNCTYPE(None, c_int, c_char_p, c_void_p, POINTER(c_int), c_void_p)


def minimize(program: pulp.LpProblem, known: Values | None, budget: Budget) -> MilpSolution:
    """Minimise a program, from the ``known`` values if there are any."""
    with closing(Highs()) as highs:
        highs.set("output_flag", False)
        highs.set("threads", budget.threads)
        highs.set("random_seed", budget.seed)
        highs.set("mip_rel_gap", 0.0)
        columns = highs.read(program)
        if known is not None:
            first = (c_double * len(columns))()
            for variable, column in columns.items():
                first[column] = known[variable]
            highs.call("setSolution", first, None, None, None)
        highs.run(budget)
        return highs.answer(columns)


class Highs:
    """One solver of the library, and its functions by name."""

    def __init__(self) -> None:
        self.library = library()
        self.handle = c_void_p(self.library.Highs_create())

    def call(self, name: str, *arguments: Any) -> None:  # what ctypes takes
        """Call a function. Raises ``RuntimeError`` where HiGHS reports an error.

        Parameters
        ----------
        name
            Of a function of HiGHS's C interface, without ``Highs_``.
        """
        if getattr(self.library, f"Highs_{name}")(self.handle, *arguments) not in NO_ERROR:
            raise RuntimeError(f"HiGHS reports an error in {name}")

    def set(self, option: str, value: float) -> None:
        """Set an option to a bool, an int or a float.

        Parameters
        ----------
        option
            Its name, as HiGHS has it.
        value
            Of the type that HiGHS has for it.
        """
        given = c_double(value) if isinstance(value, float) else c_int(value)
        kind = {bool: "Bool", int: "Int", float: "Double"}[type(value)]
        self.call(f"set{kind}OptionValue", option.encode(), given)

    def read(self, program: pulp.LpProblem) -> dict[pulp.LpVariable, int]:
        """Take in a program; the number of each variable's column."""
        with TemporaryDirectory() as folder:
            model = Path(folder, "in.mps")
            variables, names, _, _ = program.writeMPS(str(model), rename=1)
            self.call("readModel", str(model).encode())
        columns, found = {}, c_int()
        for variable in variables:
            self.call("getColByName", names[variable.name].encode(), byref(found))
            columns[variable] = found.value
        return columns

    def run(self, budget: Budget) -> None:
        """Search until done, out of time or told to stop."""

        def look(_kind: int, _text: bytes, _known: int, order: Any, _data: int) -> None:
            order[0] = budget.stop.is_set()

        asked = Callback(look)  # kept until the end of the run
        self.call("setCallback", asked, None)
        for kind in INTERRUPTS:
            self.call("startCallback", kind)
        self.set("time_limit", budget.seconds)
        self.call("run")

    def answer(self, columns: Mapping[pulp.LpVariable, int]) -> MilpSolution:
        """What a finished or stopped search knows."""
        if self.library.Highs_getModelStatus(self.handle) in INFEASIBLE:
            return MilpSolution(is_infeasible=True)
        status, bound, values = c_int(), c_double(), (c_double * len(columns))()
        self.call("getDoubleInfoValue", b"mip_dual_bound", byref(bound))
        self.call("getIntInfoValue", b"primal_solution_status", byref(status))
        self.call("getSolution", values, None, None, None)
        found = {variable: values[column] for variable, column in columns.items()}
        return MilpSolution(
            values=found if status.value == FEASIBLE else None,
            bound=None if isinf(bound.value) else bound.value,
        )

    def close(self) -> None:
        """Give back the memory, and the threads, whose number the next search may choose anew."""
        self.library.Highs_destroy(self.handle)
        self.library.Highs_resetGlobalScheduler(1)


def has_highs() -> bool:
    """Whether this OR-tools brings the library."""
    try:
        library()
    except ValueError:
        return False
    return True


@cache
def library() -> CDLL:
    """The shared library. Raises ``ValueError`` where this OR-tools brings none."""
    package = find_spec("ortools")
    folders = () if package is None else package.submodule_search_locations or ()
    for folder in folders:
        path = Path(folder, ".libs", FILE_NAMES.get(sys.platform, FILE_NAMES["linux"]))
        if path.is_file():
            found = CDLL(str(path))
            found.Highs_create.restype = c_void_p
            return found
    raise ValueError(
        f"engine pulp needs the HiGHS that the wheels of OR-tools bring, and there is none in "
        f"{[*folders]}; choose another engine"
    )


Reals = NDArray[np.float64]
BY_ROWS, MAXIMIZE, OPTIMAL = 2, -1, 7
INFINITE = 1e30


def maximize_last(
    columns: int,
    rows: tuple[NDArray[np.int64], NDArray[np.int64], Reals],
    most: Reals,
    budget: Budget,
) -> tuple[float, Reals] | None:
    """The greatest last variable, and a dual per row; None out of time, told to stop, or where
    HiGHS can do nothing with the numbers.

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
    with closing(Highs()) as highs, suppress(RuntimeError):
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
    return None


def _doubles(column: Reals) -> object:
    return column.ctypes.data_as(POINTER(c_double))


def _ints(column: NDArray[np.int32]) -> object:
    return column.ctypes.data_as(POINTER(c_int))
