"""Traces made of runs whose times are known: what ``bubbleproof trace`` has to find.

``MadeRun`` runs a family's orders on ranks of one thread each: an action begins when the one before
it on its rank has ended and ``host`` nanoseconds more; a computation's work begins when the data of
its messages are there too, ``flight`` after their SEND has ended; SEND and RECV take ``post``. The
truth (``waits``) is noted while it runs and not read from the traces.

With ``blocking`` a RECV ends when its data are there, and computations wait for nothing; with
``sends_wait`` a SEND ends no sooner than its RECV was posted. What ranks waited in all is
``waited``. With ``beside`` each direction has a communicator and a thread of its own: spans of
communication lie beside computations, and ``waited`` is what computations waited. An action that is
``retried`` has two spans. A clock that ``drifts`` gains so many nanoseconds in a million.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bubbleproof.theory.families import family, parse_parameters
from bubbleproof.theory.model.actions import Action
from bubbleproof.theory.pipelines.programs.lowering import lower
from bubbleproof.theory.pipelines.programs.messages import messages
from bubbleproof.traces.traced_steps import COMPUTE

BASE = 1_790_000_000_000_000_000  # ns
Lasting = Callable[[Action, int], int]  # of an action in a step, ns


class _Needs:
    """By computation its RECVs; by SEND its RECV, and what made the data."""

    def __init__(
        self,
        inputs: Mapping[Action, list[Action]],
        sends: Mapping[Action, Action],
        made_by: Mapping[Action, Action],
    ) -> None:
        self.inputs, self.sends, self.made_by = inputs, sends, made_by
        self.received = {*sends.values()}

    def own(self, action: Action, done: Mapping[Action, int]) -> list[Action]:
        """What a rank itself has done before an action, on another thread."""
        made = [self.made_by[action]] if action in self.made_by else []
        return [each for each in (*self.inputs.get(action, []), *made) if each in done]


@dataclass(slots=True, kw_only=True)
class MadeRun:
    """Spans by rank as (name, category, begin, end) in ns from ``BASE``, and the truth.

    ``waits[step, action]`` are the begin of an action, the end of its latest SEND, the begin of its
    work and its end.
    """

    name: str
    params: Mapping[str, int]
    lasting: Lasting
    steps: int = 3
    host: int = 1_000
    post: int = 2_000
    flight: int = 30_000
    receipts: bool = True
    blocking: bool = False
    sends_wait: bool = False
    beside: bool = False
    retried: Callable[[Action, int], bool] = lambda _action, _step: False
    waited: int = 0
    spans: list[list[tuple[str, str, int, int]]] = field(default_factory=list)
    waits: dict[tuple[int, Action], tuple[int, int, int, int]] = field(default_factory=dict)

    def run(self) -> MadeRun:
        """Run all steps, one after another on every rank."""
        words = [f"{key}={value}" for key, value in self.params.items()]
        member = family(self.name).member(parse_parameters(words))
        orders = lower(member.problem, member.schedule).orders(member.problem.num_ranks)
        inputs: dict[Action, list[Action]] = {}
        actions = list(member.problem.actions)
        for message in messages(member.problem):
            inputs.setdefault(actions[message.consumer], []).append(message.recv)
        made_by = {m.send: actions[m.producer] for m in messages(member.problem)}
        sends = {m.send: m.recv for m in messages(member.problem)}
        threads = [
            (rank, *part) for rank, order in enumerate(orders) for part in self._threads(order)
        ]
        self.spans = [[] for _ in orders]
        free = [0] * len(orders)
        for step in range(self.steps):
            ends = self._step(step, threads, _Needs(inputs, sends, made_by), free)
            free = [
                max(end for (r, _), end in ends.items() if r == rank) for rank in range(len(free))
            ]
        return self

    def _threads(self, order: list[Action]) -> list[tuple[int, list[Action]]]:
        """What each thread of a rank runs: one all or, with ``beside``, one each direction's."""
        if not self.beside:
            return [(0, order)]
        of: dict[int, list[Action]] = {}
        for action in order:
            number = 0 if action.kind in COMPUTE else 1 + action.kind.name.endswith("_B")
            of.setdefault(number, []).append(action)
        return sorted(of.items())

    def _step(
        self,
        step: int,
        threads: list[tuple[int, int, list[Action]]],
        needs: _Needs,
        began: list[int],
    ) -> dict[tuple[int, int], int]:
        """Run a step whose ranks began so; when each thread of a rank has done its part."""
        at = [0] * len(threads)
        free = {(rank, number): began[rank] for rank, number, _ in threads}
        done: dict[Action, int] = {}
        left: dict[Action, int] = {}  # by RECV: when its SEND ended
        posted: dict[Action, int] = {}
        while any(place < len(order) for place, (_, _, order) in zip(at, threads, strict=True)):
            moved = False
            for thread, (rank, number, order) in enumerate(threads):
                while at[thread] < len(order):
                    action = order[at[thread]]
                    if not self._may_run(action, needs, left, posted, done):
                        break
                    ready = free[rank, number] + self.host
                    begin = max([ready, *(done[each] for each in needs.own(action, done))])
                    if action in needs.made_by or action in needs.received:
                        end = self._end_of(action, begin, needs.sends.get(action), left, posted)
                        self.waited += 0 if self.beside else end - begin - self.post
                    else:
                        end = self._computed(step, rank, action, begin, needs, left, posted)
                        self.waited += begin - ready
                    self._note(step, rank, action, begin, end)
                    free[rank, number], at[thread], moved = end, at[thread] + 1, True
                    done[action] = end
            assert moved, "the orders wait for each other"
        return free

    def _computed(
        self,
        step: int,
        rank: int,
        action: Action,
        begin: int,
        needs: _Needs,
        left: Mapping[Action, int],
        posted: Mapping[Action, int],
    ) -> int:
        """The end of a computation, and what it waited for until its work began."""
        waits = [] if self.blocking else needs.inputs.get(action, [])
        sent = max([left[recv] for recv in waits], default=begin)
        work = max([begin, *(left[recv] + self.flight for recv in waits)])
        end = work + self.lasting(action, step)
        self.waits[step, action] = begin, sent, work, end
        self.waited += work - begin
        self._receive(rank, waits, left, posted, begin)
        return end

    def _note(self, step: int, rank: int, action: Action, begin: int, end: int) -> None:
        """The span of an action or, where it was tried twice, both."""
        middle = begin + (end - begin) // 4
        ends = (
            [(begin, middle), (middle + 100, end)] if self.retried(action, step) else [(begin, end)]
        )
        for first, last in ends:
            self.spans[rank].append((f"PP:{action}", "user_annotation", first, last))

    def _may_run(
        self,
        action: Action,
        needs: _Needs,
        left: Mapping[Action, int],
        posted: Mapping[Action, int],
        done: Mapping[Action, int],
    ) -> bool:
        """Whether all that an action waits for is known by now."""
        if action in needs.made_by and needs.made_by[action] not in done:
            return False
        if self.sends_wait and action in needs.sends:
            return needs.sends[action] in posted
        if self.blocking and action in needs.received:
            return action in left
        return all(recv in left and recv in done for recv in needs.inputs.get(action, []))

    def _end_of(
        self,
        action: Action,
        begin: int,
        recv: Action | None,
        left: dict[Action, int],
        posted: dict[Action, int],
    ) -> int:
        """The end of a SEND, of this RECV, or of a RECV (None)."""
        end = begin + self.post
        if recv is not None:
            if self.sends_wait:
                end = max(end, posted[recv] + self.post)
            left[recv] = end
            return end
        posted[action] = begin + 1_000
        return max(end, left[action] + self.flight) if self.blocking else end

    def _receive(
        self,
        rank: int,
        needs: list[Action],
        left: Mapping[Action, int],
        posted: Mapping[Action, int],
        begin: int,
    ) -> None:
        for recv in needs if self.receipts else ():
            there = max(begin, left[recv] + self.flight)
            self.spans[rank].append(("gloo:recv", "user_annotation", posted[recv], there))

    def content(
        self, rank: int, *, shift: int = 0, drift: int = 0, host: str = "one"
    ) -> dict[str, Any]:
        """The trace of a rank whose clock is ``shift`` ns ahead and drifts, as Kineto writes it."""
        events = [
            {
                "ph": "X",
                "cat": category,
                "name": name,
                "pid": 1,
                "tid": 1,
                "ts": (begin + shift + begin * drift // 1_000_000) / 1000,
                "dur": (end - begin) / 1000,
            }
            for name, category, begin, end in sorted(self.spans[rank], key=lambda row: row[2])
        ]
        return {
            "schemaVersion": 1,
            "distributedInfo": {"backend": "gloo", "rank": rank, "world_size": len(self.spans)},
            "host_name": host,
            "baseTimeNanoseconds": BASE,
            "traceEvents": [{"ph": "M", "name": "process_name", "args": {}}, *events],
            "traceName": "made",
        }

    def write(
        self,
        folder: Path,
        shifts: Mapping[int, int] | None = None,
        drifts: Mapping[int, int] | None = None,
    ) -> list[str]:
        """Write all traces; their paths."""
        paths = []
        for rank in range(len(self.spans)):
            path = folder / f"rank{rank}.json"
            shift, drift = (shifts or {}).get(rank, 0), (drifts or {}).get(rank, 0)
            host = f"host{rank}" if shift or drift else "one"
            content = self.content(rank, shift=shift, drift=drift, host=host)
            path.write_text(json.dumps(content), encoding="utf-8")
            paths.append(str(path))
        return paths
