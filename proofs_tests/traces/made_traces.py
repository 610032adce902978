"""Traces made of runs whose times are known: what ``bubbleproof trace`` has to find.

``MadeRun`` runs a family's orders on ranks of one thread each: an action begins when the one before
it on its rank has ended and ``host`` nanoseconds more; a computation's work begins when the data of
its messages are there too, ``flight`` after their SEND has ended; SEND and RECV take ``post``. The
truth (``waits``) is noted while it runs and not read from the traces.

With ``blocking`` a RECV ends when its data are there, and computations wait for nothing; with
``sends_wait`` a SEND ends no sooner than its RECV was posted. What ranks waited in all is
``waited``. A clock that ``drifts`` gains so many nanoseconds in a million.
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

BASE = 1_790_000_000_000_000_000  # ns
Lasting = Callable[[Action, int], int]  # of an action in a step, ns


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
        sends = {m.send: m.recv for m in messages(member.problem)}
        free = [0] * len(orders)
        self.spans = [[] for _ in orders]
        for step in range(self.steps):
            self._step(step, orders, inputs, sends, free)
        return self

    def _step(
        self,
        step: int,
        orders: list[list[Action]],
        inputs: Mapping[Action, list[Action]],
        sends: Mapping[Action, Action],
        free: list[int],
    ) -> None:
        at = [0] * len(orders)
        left: dict[Action, int] = {}  # by RECV: when its SEND ended
        received = {*sends.values()}
        posted: dict[Action, int] = {}
        while any(place < len(order) for place, order in zip(at, orders, strict=True)):
            moved = False
            for rank, order in enumerate(orders):
                while at[rank] < len(order):
                    action = order[at[rank]]
                    needs = inputs.get(action, [])
                    if not self._may_run(action, needs, sends, left, posted):
                        break
                    begin = free[rank] + self.host
                    if action in sends or action in received:
                        end = self._end_of(action, begin, sends.get(action), left, posted)
                        self.waited += end - begin - self.post
                    else:
                        waits = [] if self.blocking else needs
                        sent = max([left[recv] for recv in waits], default=begin)
                        work = max([begin, *(left[recv] + self.flight for recv in waits)])
                        end = work + self.lasting(action, step)
                        self.waits[step, action] = begin, sent, work, end
                        self.waited += work - begin
                        self._receive(rank, waits, left, posted, begin)
                    self.spans[rank].append((f"PP:{action}", "user_annotation", begin, end))
                    free[rank], at[rank], moved = end, at[rank] + 1, True
            assert moved, "the orders wait for each other"

    def _may_run(
        self,
        action: Action,
        needs: list[Action],
        sends: Mapping[Action, Action],
        left: Mapping[Action, int],
        posted: Mapping[Action, int],
    ) -> bool:
        """Whether all that an action waits for is known by now."""
        if self.sends_wait and action in sends:
            return sends[action] in posted
        blocks = self.blocking and action in {*sends.values()}
        return all(recv in left for recv in ([action] if blocks else needs))

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
            content = self.content(rank, shift=shift, drift=drift)
            path.write_text(json.dumps(content), encoding="utf-8")
            paths.append(str(path))
        return paths
