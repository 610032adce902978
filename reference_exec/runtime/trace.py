"""Traces: what each rank did when, and the bytes that it held then, beside the model's.

Times are nanoseconds of the machine's monotonic clock, which all processes of one machine share,
from the first rank's first action on. An action lasts from ``begin`` to ``end``; for ``waited`` of
that it stood still, at its beginning, for a message that had not come (on ``virtual`` others ran
meanwhile, since all ranks take turns in one process). An action has as many byte counts as samples
are taken while it runs: one, or two where a forward is dropped again or runs with a backward, one
more where it makes room for a gradient, none for SEND and RECV.

Loads no torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from bubbleproof.theory.model.actions import Action

Samples = tuple[int, ...]  # the bytes live at each sample of one action


class TraceRow(NamedTuple):
    """One action as its rank notes it: absolute nanoseconds, and its rows of ``live_bytes``."""

    begin: int
    waited: int
    end: int
    first_sample: int
    num_samples: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The bytes that one memory held at each sample of each action, beside the model's.

    ``name`` says whose memory it is; ``predicted`` is empty where the model says nothing.
    """

    name: str
    actions: tuple[Action, ...]
    live_bytes: tuple[Samples, ...]
    predicted: tuple[Samples, ...] = ()

    @property
    def differing(self) -> tuple[int, ...]:
        """The numbers of the actions whose bytes differ from the predicted ones."""
        if not self.predicted:
            return ()
        pairs = zip(self.live_bytes, self.predicted, strict=True)
        return tuple(n for n, (measured, expected) in enumerate(pairs) if measured != expected)

    def beyond(self, number: int) -> int:
        """The bytes held beyond the predicted at an action, at its sample that is furthest off."""
        pairs = zip(self.live_bytes[number], self.predicted[number], strict=False)
        return max((measured - expected for measured, expected in pairs), key=abs, default=0)

    def told(self) -> str:
        """What differs: the first action, and the one that is furthest off; empty where none."""
        off = self.differing
        if not off:
            return ""
        worst = max(off, key=lambda number: abs(self.beyond(number)))
        count = f"{self.name}: the bytes of {len(off)} actions are not the model's"
        furthest = "" if worst == off[0] else f"; {self._at(worst)} at most"
        return f"{count}: {self._at(off[0])}{furthest}"

    def _at(self, number: int) -> str:
        found, expected = len(self.live_bytes[number]), len(self.predicted[number])
        if found != expected:
            where = f"{self.actions[number]} (action {number})"
            return f"{found} samples in the place of {expected} at {where}"
        beyond = self.beyond(number)
        word = "beyond" if beyond > 0 else "short of"
        return f"{abs(beyond)} bytes {word} them at {self.actions[number]} (action {number})"


@dataclass(frozen=True, slots=True, kw_only=True)
class RankTrace:
    """One process's actions in one pass, in order; all columns have one length.

    ``name`` says which rank it is, and of which replica where there are several.
    ``predicted`` is what the memory model says of the same samples; empty where it says nothing.
    ``host_live_bytes`` and ``host_predicted`` are those of the rank's host, empty where no host has
    a part in the schedule.
    """

    name: str
    actions: tuple[Action, ...]
    begin: tuple[int, ...]
    waited: tuple[int, ...]
    end: tuple[int, ...]
    live_bytes: tuple[Samples, ...]
    predicted: tuple[Samples, ...] = ()
    host_live_bytes: tuple[Samples, ...] = ()
    host_predicted: tuple[Samples, ...] = ()

    def account(self, moment: str = "", *, of_host: bool = False) -> Account:
        """What the rank held, or its host; ``moment`` follows the name."""
        held, predicted = self.live_bytes, self.predicted
        if of_host:
            held, predicted = self.host_live_bytes, self.host_predicted
        return Account(
            name=f"{'the host of ' if of_host else ''}{self.name}{moment}",
            actions=self.actions,
            live_bytes=held,
            predicted=predicted,
        )

    @property
    def num_differing(self) -> int:
        """The actions whose bytes differ from the predicted ones, on the rank or on its host."""
        return len({*self.account().differing, *self.account(of_host=True).differing})
