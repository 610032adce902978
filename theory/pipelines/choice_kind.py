"""A kind of choice: what stands beside the type of a field of ``Choices``.

The module of a kind declares one name, ``Annotated[type, Expectation(words), ChoiceKind(...)]``,
which a field of ``Choices`` has as its annotation. With it the kind says all that a verdict rests
on: what values there are, how files tell them (the type and what stands beside it,
``value_types``), and what a value does to a problem. How it reads is ``choices_aloud``'s.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.pipelines.links import Links
from bubbleproof.theory.pipelines.stage_numbers import ActionTicks


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceSetting:
    """What a choice has to know of the pipeline around it.

    ``host_capacity`` is the memory of each rank's host, None for no limit.
    """

    links: Links
    ticks: ActionTicks
    host_capacity: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceKind:
    """What a kind of choice does; its functions are called with what is chosen of it.

    ``change`` makes of the problem so far the one with this choice; kinds change it by ``turn``,
    the lowest first, since a later one speaks of the tasks of an earlier one. A kind that
    ``adds_tasks`` adds them to those of the computation, and orders of the computation alone do not
    hold them. ``clashes`` names the choices that have no meaning beside it; where it ``omits_work``
    the step is no longer that of the pipeline without it, and no replay can train it; one
    ``is_of_stages`` that treats the microbatches of a stage alike and has no task beside theirs.
    """

    turn: int
    change: Callable[[Problem, Any, ChoiceSetting], Problem]
    adds_tasks: bool = False
    clashes: tuple[str, ...] = ()
    omits_work: bool = False
    is_of_stages: bool = False
