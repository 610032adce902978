"""Traces made of runs whose times are known: what ``bubbleproof trace`` has to find.

``MadeRun`` runs a family's orders on ranks of one thread each: an action begins when the one before
it on its rank has ended and ``host`` nanoseconds more; a computation's work begins when the data of
its messages are there too, ``flight`` after their SEND has ended; SEND and RECV take ``post``. The
truth (``waits``) is noted while it runs and not read from the traces.
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
        posted: dict[Action, int] = {}
        while any(place < len(order) for place, order in zip(at, orders, strict=True)):
            moved = False
            for rank, order in enumerate(orders):
                while at[rank] < len(order):
                    action = order[at[rank]]
                    needs = inputs.get(action, [])
                    if any(recv not in left for recv in needs):
                        break
                    begin = free[rank] + self.host
                    if "SEND" in action.kind.name or "RECV" in action.kind.name:
                        end = begin + self.post
                        if action in sends:
                            left[sends[action]] = end
                        else:
                            posted[action] = begin + 1_000
                    else:
                        sent = max([left[recv] for recv in needs], default=begin)
                        work = max([begin, *(left[recv] + self.flight for recv in needs)])
                        end = work + self.lasting(action, step)
                        self.waits[step, action] = begin, sent, work, end
                        self._receive(rank, needs, left, posted, begin)
                    self.spans[rank].append((f"PP:{action}", "user_annotation", begin, end))
                    free[rank], at[rank], moved = end, at[rank] + 1, True
            assert moved, "the orders wait for each other"

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

    def content(self, rank: int, *, shift: int = 0, host: str = "one") -> dict[str, Any]:
        """The trace of a rank whose clock is ``shift`` ns ahead, as Kineto writes it."""
        events = [
            {
                "ph": "X",
                "cat": category,
                "name": name,
                "pid": 1,
                "tid": 1,
                "ts": (begin + shift) / 1000,
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

    def write(self, folder: Path, shifts: Mapping[int, int] | None = None) -> list[str]:
        """Write all traces; their paths."""
        paths = []
        for rank in range(len(self.spans)):
            path = folder / f"rank{rank}.json"
            shift = (shifts or {}).get(rank, 0)
            path.write_text(json.dumps(self.content(rank, shift=shift)), encoding="utf-8")
            paths.append(str(path))
        return paths
