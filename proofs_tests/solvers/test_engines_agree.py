"""All engines agree on random small problems, with brute force where that is small enough.

Each engine runs alone: no schedule to begin from, no limit, its own bound against its own schedule,
which the checker judges. A disagreement prints the Python that builds the smallest problem found.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args

import pytest
from hypothesis import given, settings

from bubbleproof.solvers import ProofOrigin, SolveOptions, Status, solve
from bubbleproof.solvers.bounds import lower_bounds
from bubbleproof.solvers.encoding import Encoding, Objective
from bubbleproof.solvers.engines import ENGINES, Budget, EngineOutcome, engine
from bubbleproof.solvers.engines.pulp_milp import Solver, search_with
from bubbleproof.solvers.gate import checked_value
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.pipelines.pipeline import Pipeline
from proofs_tests.patience import PATIENCE, in_time
from proofs_tests.sized import sized
from proofs_tests.solvers.agreement_cases import Linked, Source, sources
from proofs_tests.solvers.brute_force import brute_force, least_span_idle

EXAMPLES = sized(8, full=300)  # of each objective
MOST_MILP_TASKS = {"makespan": 16, "span_idle": 10}  # MILPs are slow on larger problems
INFEASIBLE = "infeasible"
Search = Callable[[Encoding, Budget], EngineOutcome]


def alone(name: str) -> Search:
    """A registered engine without a schedule to begin from."""
    run = engine(name)
    return lambda encoding, budget: run(encoding, None, budget)


def as_milp(solver: Solver) -> Search:
    """The MILP engine with a given solver."""
    return lambda encoding, budget: search_with(solver, encoding, None, budget)


def searches(problem: Problem, objective: Objective) -> dict[str, Search]:
    """Every registered engine, and the MILP engine on each solver where it is quick enough."""
    found = {name: alone(name) for name in ENGINES if not name.startswith("pulp")}
    if problem.num_tasks > MOST_MILP_TASKS[objective]:
        return found
    for solver in get_args(Solver):
        found[f"pulp {solver}"] = as_milp(solver)
    return found


def answer_of(search: Search, problem: Problem, objective: Objective) -> str:
    """What an engine says: a value that its bound meets, infeasible, or what is wrong with it."""
    encoding = Encoding(problem, lower_bounds(problem), objective=objective)
    outcome = search(encoding, Budget(deadline=in_time(), threads=1))
    if outcome.is_refuted:
        return INFEASIBLE if outcome.start is None else "refutes what it found"
    if outcome.start is None:
        return f"nothing found, bound {outcome.bound}"
    value = checked_value(encoding, outcome.start)
    if value is None:
        return "a schedule that the checker refuses"
    return str(value) if value == outcome.bound else f"{value}, bound {outcome.bound}"


def answers(problem: Problem, objective: Objective) -> dict[str, str]:
    """Who says what; the truth among them where brute force can tell it."""
    result = solve(problem, SolveOptions(objective=objective, threads=1, time_limit=PATIENCE))
    found = {"auto": INFEASIBLE if result.value is None else str(result.value)}
    if result.status is Status.FEASIBLE:
        found["auto"] += f", bound {result.best_bound}"
    if result.status is not Status.INFEASIBLE or result.proof is ProofOrigin.ENGINE:
        # Otherwise a contradiction stands in the problem itself, and no engine is ever asked.
        for name, search in searches(problem, objective).items():
            found[name] = answer_of(search, problem, objective)
    return found | true_answer(problem, objective, result.value)


def true_answer(problem: Problem, objective: Objective, claimed: int | None) -> dict[str, str]:
    """Brute force's answer; of a claimed ``span_idle`` only whether any is less."""
    transfers = (problem.rank_of_task < 0).any()
    if problem.num_tasks > (9 if transfers else 12):
        return {}
    if objective == "makespan" or claimed is None:
        best = brute_force(problem, every_tick=bool(transfers))
        if best is None or objective == "makespan":
            return {"brute force": INFEASIBLE if best is None else str(best.makespan)}
        return {"brute force": "feasible"}
    if problem.num_tasks > 9:
        return {}
    less = least_span_idle(problem, most=claimed - 1)
    return {"brute force": str(claimed if less is None else less)}


def require_agreement(source: Source, objective: Objective) -> None:
    """Fail, showing the problem, where two answers differ."""
    found = answers(source.problem(), objective)
    if len(set(found.values())) > 1:
        lines = [f"  {name}: {answer}" for name, answer in found.items()]
        pytest.fail("\n".join([f"engines disagree on the {objective} of", f"  {source!r}", *lines]))


@pytest.mark.sweep
@settings(max_examples=EXAMPLES)
@given(sources())
def test_all_engines_agree_on_the_makespan(source: Source) -> None:
    require_agreement(source, "makespan")


@pytest.mark.sweep
@settings(max_examples=EXAMPLES)
@given(sources())
def test_all_engines_agree_on_span_idle(source: Source) -> None:
    require_agreement(source, "span_idle")


def test_a_disagreement_shows_the_python_that_builds_the_problem(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = Pipeline(num_ranks=2, num_microbatches=2)
    require_agreement(source, "makespan")
    monkeypatch.setitem(globals(), "true_answer", lambda *_: {"brute force": "8"})
    with pytest.raises(pytest.fail.Exception) as failure:
        require_agreement(source, "makespan")
    first, shown, *lines = str(failure.value).splitlines()
    assert first == "engines disagree on the makespan of"
    assert eval(shown) == source  # the text is Python that anyone can run
    # 1F1B's (m + p - 1)(tF + tB) = 3 * 3.
    assert {"  auto: 9", "  cpsat: 9", "  z3: 9", "  pulp CBC: 9", "  brute force: 8"} <= set(lines)


@pytest.mark.parametrize(("is_duplex", "optimum"), [(True, 13), (False, 14)])
def test_unary_links_of_either_kind(is_duplex: bool, optimum: int) -> None:
    # 0F 1, messages 1..4 and 4..7, 1F1 and 1B1 7..9, its message 9..12, 0B1 12..13. One link for
    # both ways: 0F 1, four messages of 3, 0B1 1.
    source = Linked(
        num_ranks=2,
        num_microbatches=2,
        forward=1,
        backward=1,
        message=3,
        is_duplex=is_duplex,
        capacity=2,
    )
    assert set(answers(source.problem(), "makespan").values()) == {str(optimum)}
