"""What a page of ``serve`` has asked for and been shown: the last views, each under its number.

One question is judged at a time, whichever thread asks; the solver works beside it. A view stays
while its files may still be fetched: the last ``KEPT``. What is opened is offered from then on.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from threading import Event, Lock, Thread

from bubbleproof.commands.serving.judged_view import (
    JudgedView,
    asked_schedule,
    judged_view,
    order_texts,
)
from bubbleproof.commands.serving.offered_schedules import OfferedSchedule, offer, opened_schedules
from bubbleproof.commands.serving.view_request import (
    FileRequest,
    SolveRequest,
    ViewRequest,
    read_request,
)
from bubbleproof.formats import ScheduleFile
from bubbleproof.solvers.options import SolveOptions
from bubbleproof.solvers.result import Result
from bubbleproof.solvers.solving import solve

KEPT = 16
MOST_OFFERED = 200


class ServedViews:
    """The views of one server, whose page begins with what is ``offered``."""

    def __init__(self, offered: Sequence[OfferedSchedule]) -> None:
        self._offered = tuple(offered)
        self._views: dict[int, JudgedView] = {}
        self._number = 0
        self._lock = Lock()
        self._job: SolvingJob | None = None

    def judge(self, text: str) -> dict[str, object]:
        """Answer a question (JSON): what is told of the view, and its ``number``.

        Raises ``ValueError`` in one line for what cannot be judged, as the others do.
        """
        with self._lock:
            view = judged_view(read_request(text, ViewRequest), self._offered)
            self._number += 1
            self._views[self._number] = view
            self._views.pop(self._number - KEPT, None)
            return {"number": self._number, **view.told}

    def view(self, number: int) -> JudgedView:
        """The view of that number. Raises ``KeyError`` for one that is not kept."""
        return self._views[number]

    def open(self, text: str) -> dict[str, object]:
        """Offer the schedules of a file: where they begin in the list, and the controls of each."""
        with self._lock:
            found = opened_schedules(read_request(text, FileRequest))
            if len(self._offered) + len(found) > MOST_OFFERED:
                raise ValueError(f"at most {MOST_OFFERED} schedules are offered; start serve anew")
            first = len(self._offered)
            self._offered += tuple(found)
            return {"first": first, "offers": [offer(one) for one in found]}

    def solve(self, text: str) -> dict[str, object]:
        """Begin to look for a shorter schedule; how far that is."""
        with self._lock:
            asked = read_request(text, SolveRequest)
            given = asked_schedule(asked.view, self._offered)
            self.stop()
            self._job = SolvingJob(given, asked.seconds)
            return self._job.told()

    def progress(self) -> dict[str, object]:
        """How far the solver is. Raises ``ValueError`` where none was asked to begin."""
        if self._job is None:
            raise ValueError("nothing is being solved")
        return self._job.told()

    def stop(self) -> dict[str, object]:
        """End the solver's work, where there is any, with what it has."""
        if self._job is None:
            return {}
        self._job.stop()
        return self._job.told()


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
