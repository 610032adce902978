"""How to solve: what is minimised, by whom, and for how long.

Objectives:

- ``makespan``: last end - first start over all ranks;
- ``span_idle``: the zero-bubble papers' measure, max over ranks of (rank_span - work);
- ``makespan-then-peak``: the least makespan, and among its schedules the least peak;
- ``peak``: the least peak, within a makespan where ``within`` names one.

The peak is the highest load of any rank's memory, base included.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Annotated, ClassVar, Literal, get_args

from bubbleproof.declared import OptionNote
from bubbleproof.solvers.search_limits import SearchLimits

Goal = Literal["makespan", "span_idle", "makespan-then-peak", "peak"]
COUNTED = ("auto", "cpsat", "sat")  # engines whose work is counted
OBJECTIVES: tuple[Goal, ...] = get_args(Goal)


def goal(name: str) -> Goal:
    """The objective of that name.

    Parameters
    ----------
    name
        One of ``OBJECTIVES``.

    Raises
    ------
    ValueError
        For any other name; the message lists them.
    """
    for known in OBJECTIVES:
        if known == name:
            return known
    raise ValueError(f"objective must be one of {' '.join(OBJECTIVES)}, got {name!r}")


Progress = Callable[[str, int | None, int, float], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class SolveOptions(SearchLimits):
    """How to solve: engine, objective, time limit in seconds, seed and number of threads.

    ``work`` limits what is done, in units of about a second each: status, bound and schedule are
    then the same in every run with as many threads that does not meet the time limit, which may be
    ``inf``. With choices it limits the search without them, and the search over them.

    ``auto`` calls an engine (CP-SAT) only when the bounds leave a gap. ``progress`` is called with
    (who, best value or None, lower bound, seconds) whenever something improves. ``within`` is the
    largest value wanted (for ``peak``, the largest makespan): beyond it there is no schedule.
    ``memory`` (bytes) is what each engine may take, in a process of its own; one that needs more is
    lost, and the result's ``losses`` say so.
    ``certified``: a solver's claim is not enough, and the time limit is used to replace it.
    Setting ``stop`` from another thread, or Ctrl-C, ends the search with what it has.
    """

    HEADING: ClassVar[str | None] = "Search"

    engine: Annotated[
        str,
        OptionNote("auto, or the one that decides alone: cpsat, sat, z3, pulp or pulp-cbc."),
    ] = "auto"
    objective: Annotated[
        Goal, OptionNote("makespan, span_idle, makespan-then-peak or peak.", is_in_file=True)
    ] = "makespan"
    within: Annotated[
        int | None,
        OptionNote(
            "Stop at this value (for peak: the largest makespan).",
            is_in_file=True,
        ),
    ] = None
    threads: Annotated[int, OptionNote("Threads of the solver (cpsat and pulp).")] = 2
    seed: Annotated[int, OptionNote("Seed of the solver (not sat).")] = 1
    certified: Annotated[bool, OptionNote("Require a certificate.")] = False
    progress: Progress | None = None
    stop: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        from bubbleproof.solvers.engines import require_engine  # not loaded to name options

        require_engine(self.engine)
        if self.objective not in OBJECTIVES:
            known = " ".join(OBJECTIVES)
            raise ValueError(f"objective must be one of {known}, got {self.objective!r}")
        if self.within is not None and self.within < 0:
            raise ValueError(f"within must be 0 ticks or more, got {self.within}")
        if self.work is not None and self.engine not in COUNTED:
            known = " ".join(COUNTED)
            raise ValueError(f"work is counted by engine {known}, got {self.engine!r}")
        SearchLimits.__post_init__(self)

    def __reduce__(self) -> tuple[Callable[[], SolveOptions], tuple[()]]:
        """Another process gets the options without ``progress`` and ``stop``, which stay here."""
        names = {field.name for field in fields(self)} - {"progress", "stop"}
        return partial(SolveOptions, **{name: getattr(self, name) for name in names}), ()
