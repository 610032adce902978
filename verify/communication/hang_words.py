"""What is found where ranks stand still, and its words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from bubbleproof.theory.model.actions import Action
from bubbleproof.verify.communication.called_actions import CalledActions
from bubbleproof.verify.communication.recorded_calls import RecordedCall
from bubbleproof.verify.communication.recorded_waits import CallNode, RecordedWaits, StepOfCall
from bubbleproof.verify.communication.semantics import Semantics


class HangKind(Enum):
    """What keeps the ranks; a kind's value says it in general."""

    MISMATCH = "two ends of one message or collective differ"
    NEVER_ISSUED = "a call waits for one that its rank never issues"
    COMMUNICATOR = "two ends of one message stand in different communicators"
    CYCLE = "ranks wait for each other in a circle"
    PERHAPS = "what seems to keep the ranks, by waits or ends that are not certain"
    DEPARTURE = "a rank issued what its program does not have there"
    UNKNOWN = "what is not recorded is waited for, or may be"
    UNDER_WAY = "both ends of what is waited for have started"
    NONE = "no rank waits for another"


UNDECIDED = (HangKind.PERHAPS, HangKind.UNKNOWN, HangKind.UNDER_WAY, HangKind.NONE)


@dataclass(frozen=True, slots=True, kw_only=True)
class HangCell:
    """Where to look: a rank, the call there, and its action; what is never issued has no call."""

    rank: int
    call: RecordedCall | None
    action: Action | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HangFinding:
    """Why ranks stand still; ``cycle`` has one line for each wait, in order.

    ``semantics`` is the weakest under which rule 6 refuses this, None where it is no matter.
    """

    kind: HangKind
    sentence: str
    cells: tuple[HangCell, ...] = ()
    cycle: tuple[str, ...] = ()
    semantics: Semantics | None = None
    nodes: tuple[CallNode, ...] = ()

    @property
    def is_decided(self) -> bool:
        return self.kind not in UNDECIDED


class HangWords:
    """Calls and waits in words; ``actions`` names them by the schedule."""

    def __init__(self, waits: RecordedWaits, actions: CalledActions | None) -> None:
        self.waits, self.actions = waits, actions

    def hop(self, node: CallNode, on: CallNode, why: str) -> str:
        """One wait, told where it leads from one call or rank to another.

        Parameters
        ----------
        why
            Why the one waits for the other, as ``RecordedWaits`` names it.
        """
        if why == "starts first":
            return ""
        what = f"{self.name(node.call)}"
        if node.step is StepOfCall.ISSUE:
            what = f"{self.wanted(node)} on rank {node.rank}, not yet issued,"
        if on.step is StepOfCall.ISSUE:
            return f"{what} waits for {self.wanted(on)} on rank {on.rank}, not yet issued"
        because = {
            "other end": "the other end",
            "stream": "before it in its stream",
            "launch order": "launched before it",
            "input": "received before it",
            "blocking call": "the call that its rank is in",
            "not issued": "for which its rank may be waiting",
        }[why]
        return f"{what} waits for {self.name(on.call)}, {because}"

    def action_of_issue(self, issue: CallNode) -> Action | None:
        """The action that was to issue a call; None where none is known to."""
        position = self.waits.position_of_issue(issue)
        if self.actions is None or position is None or self.waits.is_never_issued(issue):
            return None
        return self.actions.action_at(issue.rank, position)

    def wanted(self, issue: CallNode) -> str:
        """The call that is not recorded, as its rank would have issued it."""
        call, action = issue.call, self.action_of_issue(issue)
        if call.peer is None:
            return f"{call.operation} number {call.sequence[0]}"
        name = f"the {'recv' if call.is_send else 'send'}"
        return name if action is None else f"{action}"

    def waiting(self, issue: CallNode) -> str:
        """The sentence of a call that was issued, and waits for its other end."""
        return f"{self.name(issue.call)} waits for {self.wanted(issue)}"

    def name(self, call: RecordedCall) -> str:
        """A call by its action where that is known, else as it was recorded."""
        action = None if self.actions is None else self.actions.action(call)
        return str(call) if action is None else f"{action} on rank {call.rank}"

    def cell(self, call: RecordedCall) -> HangCell:
        """What a table shows of a call."""
        action = None if self.actions is None else self.actions.action(call)
        return HangCell(rank=call.rank, call=call, action=action)


def ranks_told(ranks: Sequence[int]) -> str:
    """``rank 1``; ``ranks 0, 1 and 2``.

    Parameters
    ----------
    ranks
        One rank or more.
    """
    *most, last = map(str, ranks)
    return f"ranks {', '.join(most)} and {last}" if most else f"rank {last}"
