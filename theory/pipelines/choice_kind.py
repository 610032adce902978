"""A kind of choice: what stands beside the type of a field of ``Choices``.

The module of a kind declares one name, ``Annotated[type, Expectation(words), ChoiceKind(...)]``,
which a field of ``Choices`` has as its annotation. With it the kind says all there is to know of
it: what values there are, how files tell them (the type and what stands beside it,
``value_types``), what a value does to a problem, and how it reads aloud.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
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
    num_chunks: int = 1
    num_slices: int = 1

    def names(self, samples: Collection[tuple[int, int]]) -> str:
        """(microbatch, slice) pairs as people write them: ``0 1 2``, or ``0.0 0.1``.

        Parameters
        ----------
        samples
            (microbatch, slice) pairs in any order.
        """
        is_sliced = self.num_slices > 1
        return " ".join(f"{j}.{k}" if is_sliced else str(j) for j, k in sorted(samples))


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceKind:
    """What a kind of choice does; its functions are called with what is chosen of it.

    ``change`` makes of the problem so far the one with this choice; kinds change it by ``turn``,
    the lowest first, since a later one speaks of the tasks of an earlier one. A kind that
    ``adds_tasks`` adds them to those of the computation, and orders of the computation alone do not
    hold them. ``lines`` say the choice in sentences, and ``listed`` as values under names of their
    own, which are told also of what is not chosen where ``is_always_listed``. ``clashes`` names the
    choices that have no meaning beside it; where it ``omits_work`` the step is no longer that of
    the pipeline without it; one ``is_of_stages`` that treats the microbatches of a stage alike and
    has no task beside theirs; ``why_no_replay`` tells, if anything, why no replay can run it.
    """

    turn: int
    change: Callable[[Problem, Any, ChoiceSetting], Problem]
    adds_tasks: bool = False
    lines: Callable[[Any, ChoiceSetting], list[str]] | None = None
    listed: Callable[[Any], dict[str, object]] | None = None
    is_always_listed: bool = False
    clashes: tuple[str, ...] = ()
    omits_work: bool = False
    is_of_stages: bool = False
    why_no_replay: str = ""
