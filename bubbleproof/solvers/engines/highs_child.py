"""A process for HiGHS alone: a JSON request per line in, a JSON answer per line out.

HiGHS and OR-tools each bring a shared library of the same name and another version, and one process
can load only one of them. So this file is run by its path and imports nothing of ours.

Request: ``number``, ``model`` (an MPS file), ``seconds``, ``threads``, ``seed`` and ``known``
(value by column, or null). ``{"stop": number}`` ends that request early with what it has. Answer:
``is_infeasible``, ``values`` (by column, or null) and ``bound`` (the dual bound, or null).
"""

from __future__ import annotations

import json
import sys
import threading
from queue import SimpleQueue
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING or __name__ == "__main__":  # never in the process of whoever imports this file
    import highspy


class Request(TypedDict):
    """What is asked for."""

    number: int
    model: str
    seconds: float
    threads: int
    seed: int
    known: dict[str, int] | None


class Answer(TypedDict):
    """What is known at the end."""

    is_infeasible: bool
    values: dict[str, float] | None
    bound: float | None


class Child:
    """The requests to come and the last one that was to stop."""

    def __init__(self) -> None:
        self.requests: SimpleQueue[Request | None] = SimpleQueue()
        self.stopped = self.threads = -1

    def listen(self) -> None:
        """Read until the other side is gone."""
        for line in sys.stdin:
            message = json.loads(line)
            if "stop" in message:
                self.stopped = message["stop"]
            else:
                self.requests.put(message)
        self.requests.put(None)

    def serve(self) -> None:
        """Answer request after request."""
        threading.Thread(target=self.listen, daemon=True).start()
        while (request := self.requests.get()) is not None:
            sys.stdout.write(json.dumps(self.answer(request)) + "\n")
            sys.stdout.flush()

    def answer(self, request: Request) -> Answer:
        """Solve one model."""
        if request["threads"] != self.threads:
            highspy.Highs.resetGlobalScheduler(True)
            self.threads = request["threads"]
        highs = highspy.Highs()  # type: ignore[no-untyped-call]  # half annotated
        options = {"output_flag": False, "threads": request["threads"], "mip_rel_gap": 0.0,
                   "random_seed": request["seed"], "time_limit": request["seconds"]}  # fmt: skip
        for name, value in options.items():
            highs.setOptionValue(name, value)
        highs.readModel(request["model"])
        self._stoppable(highs, request["number"])
        names = highs.getLp().col_names_
        known = request["known"]
        if known is not None:
            first = highspy.HighsSolution()
            first.col_value = [float(known[name]) for name in names]
            highs.setSolution(first)
        highs.run()
        return outcome(highs, names)

    def _stoppable(self, highs: highspy.Highs, number: int) -> None:
        def look(_kind: object, _text: str, _out: object, order: object, _data: object) -> None:
            if self.stopped == number:
                order.user_interrupt = True  # type: ignore[attr-defined]  # an untyped record

        kinds = highspy.cb.HighsCallbackType
        highs.setCallback(look, None)
        for kind in (kinds.kCallbackMipInterrupt, kinds.kCallbackSimplexInterrupt):
            highs.startCallback(kind)


def outcome(highs: highspy.Highs, names: list[str]) -> Answer:
    """What a finished or stopped search knows; every variable is bounded."""
    status, info = highs.getModelStatus(), highs.getInfo()
    kinds = highspy.HighsModelStatus
    if status in (kinds.kInfeasible, kinds.kUnboundedOrInfeasible):
        return Answer(is_infeasible=True, values=None, bound=None)
    values = None
    if info.primal_solution_status == int(highspy.SolutionStatus.kSolutionStatusFeasible):
        values = dict(zip(names, highs.getSolution().col_value, strict=True))
    bound = float(info.mip_dual_bound)
    is_finite = abs(bound) < highspy.kHighsInf
    return Answer(is_infeasible=False, values=values, bound=bound if is_finite else None)


if __name__ == "__main__":
    Child().serve()
