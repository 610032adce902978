"""The work of one rank, action by action: what it computes, and which gradients it adds to.

Floating-point operations are counted as they run (``flop_count``), whoever asks for them, from the
end of the action before to the end of the action itself. A gradient was added to where it is
another tensor then, or a newer version of the same; of a sharded stage, whose gradients are parts
of flat buffers, the buffers' versions say how often. Nothing is taken from what the runtime thinks
it does.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import TypeVar

from bubbleproof.reference_exec.flop_count import FlopCount
from bubbleproof.reference_exec.plans.predicted_work import ActionWork
from bubbleproof.reference_exec.runtime.compute import Compute

T = TypeVar("T")
Versions = dict[Hashable, tuple[int, int]]  # by gradient: which tensor, and its version


class RankWorkAccount:
    """The account of one rank; ``passes`` has the work of each action of each pass so far.

    At the end of a pass stands what was done after its last action.
    """

    def __init__(self, compute: Compute) -> None:
        self.passes: list[list[ActionWork]] = []
        parameters = {p for stage in compute.stages.values() for p in stage.parameters()}
        self._parameters = [(id(parameter), parameter) for parameter in parameters]
        self._shards = compute.shards
        self._count = FlopCount()
        self._flops = 0
        self._before: Versions = {}

    def counted(self, events: Iterator[T]) -> Iterator[T]:
        """The same events, with all that runs between them counted."""
        while True:
            with self._count:
                try:
                    event = next(events)
                except StopIteration:
                    return
            yield event
            del event  # it keeps its message

    def begin_pass(self) -> None:
        """Begin a pass, the gradients being what they are."""
        self.passes.append([])
        self._before = self._versions()

    def end_action(self) -> None:
        """Note what was done since this was called before."""
        flops, versions = self._count.flops, self._versions()
        before, gradients = self._before, 0
        if versions != before:
            changed = [(before.get(key), now) for key, now in versions.items()]
            gradients = sum(self._additions(old, now) for old, now in changed if old != now)
        self.passes[-1].append(ActionWork(flops - self._flops, gradients))
        self._flops, self._before = flops, versions

    def _versions(self) -> Versions:
        found: Versions = {
            key: (id(gradient), gradient._version)
            for key, parameter in self._parameters
            if (gradient := parameter.grad) is not None
        }
        for stage, shards in self._shards.items():
            for key, buffer in shards.gradients.items():
                found[stage, *key] = _FLAT, buffer.flat._version
        return found

    @staticmethod
    def _additions(before: tuple[int, int] | None, now: tuple[int, int]) -> int:
        """How many gradients were added to; of a flat buffer as many as its versions say."""
        if now[0] != _FLAT:
            return before != now
        return now[1] - (0 if before is None else before[1])


_FLAT = 0  # no tensor's id
