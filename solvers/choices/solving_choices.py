"""Solving with choices: the best schedule over everything that is left open.

``solvers.choices.choices_search`` tells the steps. The concrete problem of what was chosen is built
anew from the pipeline, and the checker judges the schedule there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from bubbleproof.solvers.choices.choices_search import ChoicesSearch, VariantsResult
from bubbleproof.solvers.choices.pipeline_variants import PipelineVariants
from bubbleproof.solvers.choices.variants import Variants
from bubbleproof.solvers.options import SolveOptions
from bubbleproof.solvers.result import Result
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.allowed import AllowedChoices
from bubbleproof.theory.pipelines.choices_aloud import read_aloud
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify.candidates.cases import Cases
from bubbleproof.verify.certificates.certificate_rule import Certificate


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChoiceResult:
    """``result`` holds on ``problem``, which is ``pipeline.problem()``; ``chosen`` tells in words.

    Of ``asked``, the pipeline without choices, what is ``allowed`` was open.

    ``floor_certificate`` proves ``result.lower_bound`` on ``floor`` (``solvers.choices.variants``),
    unless ``cases`` does.
    """

    asked: Pipeline
    allowed: AllowedChoices
    result: Result
    pipeline: Pipeline
    problem: Problem
    chosen: tuple[str, ...]
    floor: Problem
    floor_certificate: Certificate | None
    cases: Cases | None = None


def solve_choices(
    pipeline: Pipeline,
    allowed: AllowedChoices,
    options: SolveOptions | None = None,
    starts: Iterable[tuple[str, Program]] = (),
) -> ChoiceResult:
    """The best schedule and the choices that it needs.

    ``starts`` are named programs of the plain pipeline to begin from. Raises ``ValueError`` for
    another objective than the makespan, another engine than CP-SAT, and what ``PipelineVariants``
    refuses.
    """
    given = PipelineVariants(pipeline, allowed)
    found = solve_variants(
        given.variants, options, starts, problem_of=lambda taken: given.chosen(taken).problem()
    )
    chosen = given.chosen(found.taken)
    return ChoiceResult(
        asked=pipeline,
        allowed=allowed,
        result=found.result,
        pipeline=chosen,
        problem=found.problem,
        chosen=read_aloud(chosen) or ("nothing",),
        floor=found.floor,
        floor_certificate=found.floor_certificate,
    )


def solve_variants(
    variants: Variants,
    options: SolveOptions | None = None,
    starts: Iterable[tuple[str, Program]] = (),
    *,
    problem_of: Callable[[Collection[int]], Problem] | None = None,
) -> VariantsResult:
    """The best schedule of any of the variants.

    ``problem_of`` builds the concrete problem of a choice, ``variants.taken`` unless given; its
    tasks are named as in the whole problem. Raises ``ValueError`` as ``solve_choices`` does.
    """
    options = options or SolveOptions()
    if options.objective != "makespan":
        raise ValueError(f"choices are made for the makespan, got {options.objective!r}")
    if options.engine not in ("auto", "cpsat"):
        raise ValueError(f"choices are made by engine cpsat (or auto), got {options.engine!r}")
    return ChoicesSearch(variants, options, problem_of or variants.taken).run(tuple(starts))
