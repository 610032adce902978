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
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Literal, get_args

from bubbleproof.engine_process.loss import size_text
from bubbleproof.parallel import MAX_WORKERS
from bubbleproof.solvers.engines import require_engine

Goal = Literal["makespan", "span_idle", "makespan-then-peak", "peak"]
COUNTED = ("auto", "cpsat", "sat")  # engines whose work is counted
LEAST_MEMORY = 64 << 20  # bytes: with less no engine can be loaded
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


def require_memory(memory: int | None) -> None:
    """Raise ``ValueError`` for so few bytes that no engine can be loaded.

    Parameters
    ----------
    memory
        Bytes; None for no limit.

    Raises
    ------
    ValueError
        For fewer than an engine needs to be loaded.
    """
    if memory is not None and memory < LEAST_MEMORY:
        least = size_text(LEAST_MEMORY)
        raise ValueError(f"memory must be {least} or more, got {size_text(memory)}")


Progress = Callable[[str, int | None, int, float], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class SolveOptions:
    """How to solve: engine, objective, time limit in seconds, seed and number of threads.

    ``work`` limits what is done, in units of about a second each: status, bound and schedule are
    then the same in every run with as many threads that does not meet the time limit, which may be
    ``inf``. With choices it limits the search without them, and the search over them.

    ``auto`` calls an engine (CP-SAT) only when the bounds leave a gap. ``progress`` is called with
    (who, best value or None, lower bound, seconds) whenever something improves. ``within`` is the
    largest value wanted (for ``peak``, the largest makespan): beyond it there is no schedule.
    ``memory`` (bytes) is what each engine may take, in a process of its own; one that needs more is
    lost, and the result's ``losses`` say so.
    ``certified``: an engine's word is not enough, and the time limit is used to replace it.
    Setting ``stop`` from another thread, or Ctrl-C, ends the search with what it has.
    """

    engine: str = "auto"
    objective: Goal = "makespan"
    within: int | None = None
    time_limit: float = 60.0
    work: float | None = None
    seed: int = 1
    threads: int = 2
    certified: bool = False
    memory: int | None = None
    progress: Progress | None = None
    stop: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        require_engine(self.engine)
        if self.objective not in OBJECTIVES:
            known = " ".join(OBJECTIVES)
            raise ValueError(f"objective must be one of {known}, got {self.objective!r}")
        if self.within is not None and self.within < 0:
            raise ValueError(f"within must be 0 ticks or more, got {self.within}")
        if not self.time_limit > 0:
            raise ValueError(f"time limit must be above 0 seconds, got {self.time_limit}")
        if self.work is not None and not self.work > 0:
            raise ValueError(f"work must be above 0 units, got {self.work}")
        if self.work is not None and self.engine not in COUNTED:
            known = " ".join(COUNTED)
            raise ValueError(f"work is counted by engine {known}, got {self.engine!r}")
        if not 0 <= self.seed < 1 << 31:
            raise ValueError(f"seed must be 0 to 2**31 - 1, got {self.seed}")
        if self.threads < 1:
            raise ValueError(f"threads must be 1 or more, got {self.threads}")
        require_memory(self.memory)
        if self.threads > MAX_WORKERS:
            raise ValueError(f"threads must be {MAX_WORKERS} or less, got {self.threads}")

    def at_most(self, most: float) -> SolveOptions:
        """With so many seconds at most, or units of work where those are limited.

        Parameters
        ----------
        most
            Seconds where no work is limited, else units of work.
        """
        if self.work is None:
            return replace(self, time_limit=min(most, self.time_limit))
        return replace(self, work=min(most, self.work))

    def __reduce__(self) -> tuple[Callable[[], SolveOptions], tuple[()]]:
        """Another process gets the options without ``progress`` and ``stop``, which stay here."""
        names = {field.name for field in fields(self)} - {"progress", "stop"}
        return partial(SolveOptions, **{name: getattr(self, name) for name in names}), ()
