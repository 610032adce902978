"""Rule 6 for WAIT_SEND_F and WAIT_SEND_B: a rank goes on only when a SEND of its own has ended.

PyTorch 2.15 posts its SENDs and waits for each by name (``_PipelineScheduleRuntime``). A program
that waits for any of its SENDs must wait for each exactly once, on its rank and after it: the
runtime keeps what is sent until then, and ends with an error where one is left. When a SEND has
ended is the semantics' matter (``semantics``); under ``buffered`` no wait ever lasts, under the
others it lasts until the message has been received.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bubbleproof.theory.model.actions import Action, Kind
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.programs.messages import as_kind
from bubbleproof.verify.explain.programs import ProgramFault

SEND_OF = {Kind.WAIT_SEND_F: Kind.SEND_F, Kind.WAIT_SEND_B: Kind.SEND_B}


class SendWaits:
    """The waits among the rows of a program; ``edges`` are (SEND, wait) where nothing is wrong."""

    def __init__(self, program: Program) -> None:
        self._actions = actions = program.actions
        self._sends: dict[tuple[int, Action], list[int]] = {}  # where there are waits
        self._waits: dict[tuple[int, Action], list[int]] = {}
        for row in np.flatnonzero(actions.is_kind(*SEND_OF)).tolist():
            sent = as_kind(actions[row], SEND_OF[actions[row].kind])
            self._waits.setdefault((program.resource.item(row), sent), []).append(row)
        sends = np.flatnonzero(actions.is_kind(*SEND_OF.values())) if self._waits else ()
        for row in map(int, sends):
            self._sends.setdefault((program.resource.item(row), actions[row]), []).append(row)

    @property
    def edges(self) -> list[tuple[int, int]]:
        """(SEND, wait): rows that wait and what for. Precondition: there are no ``faults``."""
        return [(self._sends[key][0], rows[0]) for key, rows in self._waits.items()]

    def faults(self) -> Iterator[ProgramFault]:
        """Waits without a SEND, before it or repeated; SENDs without one where others have one."""
        for key, rows in self._waits.items():
            rank, sent = key
            wait = self._actions[rows[0]]
            if key not in self._sends:
                yield f"{wait} on rank {rank} waits for {sent}, which is not sent there", rows
            elif len(rows) > 1:
                yield f"{wait} stands {len(rows)} times on rank {rank}, must stand once", rows
            elif rows[0] < self._sends[key][0]:
                places = [rows[0], self._sends[key][0]]
                yield f"{wait} on rank {rank} waits for {sent} before it is posted", places
        for (rank, sent), rows in self._sends.items():
            if (rank, sent) not in self._waits:
                yield f"{sent} on rank {rank} is never waited for, where other SENDs are", rows
