"""What limits a search, whatever it looks for: time, work, threads and memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf
from typing import Annotated, Any, ClassVar, Self

from bubbleproof.declared import OptionNote, declared
from bubbleproof.engine_process.loss import size_text
from bubbleproof.platforms import MAX_WORKERS

LEAST_MEMORY = 64 << 20  # bytes: with less no engine can be loaded


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchLimits:
    """Seconds and units of work in all, threads of an engine, its seed, bytes that it may take.

    Raises ``ValueError`` for limits, threads or a seed that are none.
    """

    HEADING: ClassVar[str | None] = None  # of a command's help

    time_limit: Annotated[
        float,
        OptionNote(
            "Time in all (default: the file's, or 60 s; with --work none)",
            unit="seconds",
            is_in_file=True,
        ),
    ] = 60.0
    work: Annotated[
        float | None,
        OptionNote(
            "Units of work in all, about a second each: repeats exactly. The first limit met ends "
            "it."
        ),
    ] = None
    threads: Annotated[int, OptionNote("Threads of the solver.")] = 2
    seed: Annotated[int, OptionNote("Seed of the solver.")] = 1
    memory: Annotated[
        int | None,
        OptionNote('What a solver may take, such as "4 GiB".', unit="bytes", is_in_file=True),
    ] = None

    def __post_init__(self) -> None:
        if not self.time_limit > 0:
            raise ValueError(f"time limit must be above 0 seconds, got {self.time_limit}")
        if self.work is not None and not self.work > 0:
            raise ValueError(f"work must be above 0 units, got {self.work}")
        if not 0 <= self.seed < 1 << 31:
            raise ValueError(f"seed must be 0 to 2**31 - 1, got {self.seed}")
        if self.threads < 1:
            raise ValueError(f"threads must be 1 or more, got {self.threads}")
        if self.memory is not None and self.memory < LEAST_MEMORY:
            least = size_text(LEAST_MEMORY)
            raise ValueError(f"memory must be {least} or more, got {size_text(self.memory)}")
        if self.threads > MAX_WORKERS:
            raise ValueError(f"threads must be {MAX_WORKERS} or less, got {self.threads}")

    def at_most(self, most: float) -> Self:
        """With so many seconds at most, or units of work where those are limited.

        Parameters
        ----------
        most
            Seconds where no work is limited, else units of work.
        """
        if self.work is None:
            return replace(self, time_limit=min(most, self.time_limit))
        return replace(self, work=min(most, self.work))

    @classmethod
    def asked(cls, given: Mapping[str, Any], file: object = None, **more: Any) -> Self:
        """The options as ``given``, else as the ``file`` says, else their defaults.

        Where work is limited and no time is given there is no limit of time.

        Parameters
        ----------
        given
            Values by name; None for those that are not given.
        file
            What was read of a problem file, if any.
        more
            Further fields.
        """
        keys = [each.name for each in declared(cls) if each.said.is_in_file]
        told = {name: getattr(file, name, None) for name in keys}
        if given.get("work") is not None:
            told["time_limit"] = inf
        told |= {name: value for name, value in given.items() if value is not None}
        return cls(**{name: value for name, value in told.items() if value is not None}, **more)
