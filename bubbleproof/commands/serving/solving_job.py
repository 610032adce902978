"""The solver at work for the page of ``serve``, from the orders there on, for a time.

It runs in a thread beside the server; the page asks how far it is. A new job ends the one before.
What it finds are orders, which the page asks to be judged like any other.
"""

from __future__ import annotations

import time
from threading import Event, Thread

from bubbleproof.commands.serving.judged_view import order_texts
from bubbleproof.formats import ScheduleFile
from bubbleproof.solvers.options import SolveOptions
from bubbleproof.solvers.result import Result
from bubbleproof.solvers.solving import solve


class SolvingJob:
    """One search: begun when it is made, ended by its limit or by ``stop``."""

    def __init__(self, given: ScheduleFile, seconds: int) -> None:
        self._given, self._began = given, time.monotonic()
        self._stop = Event()
        self._told: dict[str, object] = {"best": None, "bound": 0}
        options = SolveOptions(time_limit=seconds, progress=self._note, stop=self._stop)
        self._thread = Thread(target=self._run, args=(options,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the search with what it has."""
        self._stop.set()

    def told(self) -> dict[str, object]:
        """How far it is: ``running``, seconds, best makespan and bound; at the end its orders."""
        running = self._thread.is_alive()  # before what it says last
        return {"seconds": self._seconds(), **self._told, "running": running}

    def wait(self, seconds: float | None = None) -> None:
        """Until it has ended."""
        self._thread.join(seconds)

    def _seconds(self) -> float:
        return round(time.monotonic() - self._began, 1)

    def _note(self, who: str, best: int | None, bound: int, seconds: float) -> None:
        self._told = {"who": who, "best": best, "bound": bound, "since": round(seconds, 1)}

    def _run(self, options: SolveOptions) -> None:
        given = self._given
        try:
            found = solve(given.problem, options, [("these orders", given.compute)])
        except (ValueError, OverflowError, MemoryError) as error:
            line = " ".join(str(error).split()) or "more than the memory here"
            self._told = {**self._told, "said": line, "orders": None}
            return
        self._told = self._ended(found)

    def _ended(self, found: Result) -> dict[str, object]:
        ends = {"best": found.makespan, "bound": found.best_bound, "seconds": self._seconds()}
        said = f"{found.statement}. {found.reason}".rstrip(". ")
        if found.schedule is None:
            return {**ends, "said": said, "orders": None}
        made = ScheduleFile.of(self._given.problem, found.schedule, pipeline=self._given.pipeline)
        return {**ends, "said": said, "orders": order_texts(made)}
