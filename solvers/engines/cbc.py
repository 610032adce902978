"""CBC, as PuLP brings it: a program that is run until done, out of time or told to stop.

PuLP writes the model and reads the values; its own runner cannot stop CBC. A bound is known only
when the search is complete.
"""

from __future__ import annotations

import subprocess
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from bubbleproof.engine_process.loss import loss_of
from bubbleproof.platforms import ask_to_end, limit_memory
from bubbleproof.solvers.engines.engine import Budget
from bubbleproof.solvers.engines.milp import MilpSolution, Values
from bubbleproof.solvers.engines.pulp_alone import pulp

CBC: str = pulp.apis.coin_api.pulp_cbc_path
POLL = 0.05  # seconds between looks at a running CBC
GRACE = 5.0  # seconds that CBC gets to write down what it has


def minimize(program: pulp.LpProblem, known: Values | None, budget: Budget) -> MilpSolution:
    """Minimise a program, from the ``known`` values if there are any."""
    solver = pulp.COIN_CMD(path=CBC, msg=False)
    with TemporaryDirectory() as folder:
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
            return MilpSolution()
        status, values, *_, kind = solver.readsol_MPS(found, program, variables, names, rows)
    if status == pulp.LpStatusInfeasible:
        return MilpSolution(is_infeasible=True)
    program.assignVarsVals(values)
    is_complete = kind == pulp.LpSolutionOptimal
    has_values = is_complete or kind == pulp.LpSolutionIntegerFeasible
    return MilpSolution(
        values={v: v.varValue for v in variables} if has_values else None,
        bound=pulp.value(program.objective) if is_complete else None,
    )


def _wait_for(command: list[str], folder: str, budget: Budget) -> None:
    """Run the command; at the end of the budget ask it to finish, and in the end make it.

    Where it crashes or is killed, the budget's ``losses`` tell of it.
    """
    errors = Path(folder, "errors.txt")
    with errors.open("wb") as stderr:
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            start_new_session=True,
        )
    if budget.memory is not None:
        limit_memory(budget.memory, process.pid)
    try:
        while budget.seconds > 0:
            with suppress(subprocess.TimeoutExpired):
                if process.wait(POLL) < 0:
                    said = errors.read_text("utf-8", "replace")
                    loss = loss_of("CBC", process.returncode, said, budget.memory)
                    budget.losses.append(loss)
                return
        ask_to_end(process)
        with suppress(subprocess.TimeoutExpired):
            process.wait(GRACE)
    finally:
        process.kill()
        process.wait()
