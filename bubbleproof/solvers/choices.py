"""Solving with choices: the best schedule over everything that a menu leaves open.

``solvers.choices_search`` tells the steps. The concrete problem of what was chosen is built anew
from the pipeline, and the checker judges the schedule there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from bubbleproof.solvers.choices_search import ChoicesSearch, MenuResult, Starts
from bubbleproof.solvers.menu import Menu
from bubbleproof.solvers.options import SolveOptions
from bubbleproof.solvers.pipeline_menu import PipelineMenu, described
from bubbleproof.solvers.result import Result
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.pipelines.allowed import Allowed
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify.certificates.certificate import Certificate


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChoiceResult:
    """``result`` holds on ``problem``, which is ``pipeline.problem()``; ``chosen`` tells in words.

    ``floor_certificate`` proves ``result.lower_bound`` on ``floor`` (``solvers.menu``).
    """

    result: Result
    pipeline: Pipeline
    problem: Problem
    chosen: tuple[str, ...]
    floor: Problem
    floor_certificate: Certificate | None


def solve_choices(
    pipeline: Pipeline,
    allowed: Allowed,
    options: SolveOptions | None = None,
    starts: Starts = (),
) -> ChoiceResult:
    """The best schedule and the choices that it needs.

    ``starts`` are named programs of the plain pipeline to begin from. Raises ``ValueError`` for
    another objective than the makespan, another engine than CP-SAT, and what ``PipelineMenu``
    refuses.
    """
    posed = PipelineMenu(pipeline, allowed)
    found = solve_menu(
        posed.menu, options, starts, problem_of=lambda taken: posed.chosen(taken).problem()
    )
    chosen = posed.chosen(found.taken)
    return ChoiceResult(
        result=found.result,
        pipeline=chosen,
        problem=found.problem,
        chosen=described(chosen),
        floor=found.floor,
        floor_certificate=found.floor_certificate,
    )


def solve_menu(
    menu: Menu,
    options: SolveOptions | None = None,
    starts: Starts = (),
    *,
    problem_of: Callable[[Collection[int]], Problem] | None = None,
) -> MenuResult:
    """The best schedule of any concrete problem of the menu.

    ``problem_of`` builds the concrete problem of a choice, ``menu.taken`` unless given; its tasks
    are named as in the menu. Raises ``ValueError`` as ``solve_choices`` does.
    """
    options = options or SolveOptions()
    if options.objective != "makespan":
        raise ValueError(f"choices are made for the makespan, got {options.objective!r}")
    if options.engine not in ("auto", "cpsat"):
        raise ValueError(f"choices are made by engine cpsat (or auto), got {options.engine!r}")
    return ChoicesSearch(menu, options, problem_of or menu.taken).run(tuple(starts))
