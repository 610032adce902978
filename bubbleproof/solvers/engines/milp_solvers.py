"""HiGHS and CBC for a PuLP program: run until done, out of time or told to stop.

PuLP writes the model and takes the values; its own runners are not used, since they call HiGHS
stopped without a schedule optimal, pass it no first schedule, load it into this process (see
``highs_child``), and cannot stop CBC. HiGHS reports its dual bound. With CBC a bound is known only
when the search is complete.
"""

from __future__ import annotations

import signal
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bubbleproof.solvers.engines.engine import Budget
from bubbleproof.solvers.engines.highs_process import ask_highs
from bubbleproof.solvers.engines.pulp_alone import CBC, pulp

Solver = Literal["HiGHS", "CBC"]
Values = Mapping[pulp.LpVariable, int]
POLL = 0.05  # seconds between looks at a running CBC
GRACE = 5.0  # seconds that CBC gets to write down what it has


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Values of a solution, if any, stand in the variables; ``bound`` is the dual bound."""

    has_values: bool = False
    is_infeasible: bool = False
    bound: float | None = None


def run(solver: Solver, program: pulp.LpProblem, known: Values | None, budget: Budget) -> Answer:
    """Minimise the program, from the known values if there are any."""
    if budget.seconds <= 0:
        return Answer()
    runner = _run_highs if solver == "HiGHS" else _run_cbc
    return runner(program, known, budget)


def _run_highs(program: pulp.LpProblem, known: Values | None, budget: Budget) -> Answer:
    with tempfile.TemporaryDirectory() as folder:
        model = str(Path(folder, "in.mps"))
        variables, names, _, _ = program.writeMPS(model, rename=1)
        first = None if known is None else {names[v.name]: known[v] for v in variables}
        reply = ask_highs(model, first, budget)
    if reply is None:
        return Answer()
    values, bound = reply["values"], reply["bound"]
    if isinstance(values, dict):
        program.assignVarsVals({v.name: values[names[v.name]] for v in variables})
    return Answer(
        has_values=values is not None,
        is_infeasible=bool(reply["is_infeasible"]),
        bound=bound if isinstance(bound, float) else None,
    )


def _run_cbc(program: pulp.LpProblem, known: Values | None, budget: Budget) -> Answer:
    solver = pulp.COIN_CMD(path=CBC, msg=False)
    with tempfile.TemporaryDirectory() as folder:
        model, first, found = (str(Path(folder, name)) for name in ("in.mps", "in.mst", "out.sol"))
        variables, names, rows, _ = program.writeMPS(model, rename=1)
        command = [CBC, model, "-timeMode", "elapsed", "-sec", str(budget.seconds)]
        command += ["-randomSeed", str(budget.seed)]
        if known is not None:
            for variable, value in known.items():
                variable.setInitialValue(value)
            solver.writesol(first, program, variables, names, rows)
            command += ["-mips", first]
        _wait_for([*command, "-solve", "-solution", found], folder, budget)
        if not Path(found).is_file():
            return Answer()
        status, values, *_, kind = solver.readsol_MPS(found, program, variables, names, rows)
    program.assignVarsVals(values)
    if status == pulp.LpStatusInfeasible:
        return Answer(is_infeasible=True)
    is_complete = kind == pulp.LpSolutionOptimal
    return Answer(
        has_values=is_complete or kind == pulp.LpSolutionIntegerFeasible,
        bound=pulp.value(program.objective) if is_complete else None,
    )


def _wait_for(command: list[str], folder: str, budget: Budget) -> None:
    """Run the command; at the end of the budget ask it to finish, and in the end make it."""
    process = subprocess.Popen(
        command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        while budget.seconds > 0:
            with suppress(subprocess.TimeoutExpired):
                process.wait(POLL)
                return
        process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            process.wait(GRACE)
    finally:
        process.kill()
        process.wait()
