"""From what ranks recorded to why they stand still: one finding, its cell and who waits for whom.

In this order, as each of the first is a reason of its own, whatever else waits behind it:

1. a call whose other end differs in size, type or operation (``MISMATCH``);
2. a call whose other end its rank never issues: it waits for nobody, or its program has no such
   action (``NEVER_ISSUED``), or it stands in another communicator (``COMMUNICATOR``);
3. a cycle of certain waits (``recorded_waits``), under the weakest semantics that has one
   (``CYCLE``); where only uncertain waits close it, a cycle that may be (``PERHAPS``, as all is
   that rests on the calls of a rank which lost its first ones);
4. nothing of these, but somebody waits: for what is not recorded (``UNKNOWN``), or in a
   transfer of which both ends have started (``UNDER_WAY``).

A rank that *departs* from its program (``DEPARTURE``) is told before all that: its calls are not
what they are called by their order, so the rest is said without the program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from bubbleproof.theory.pipelines.timing import find_cycle
from bubbleproof.verify.communication.called_actions import CalledActions
from bubbleproof.verify.communication.hang_words import (
    HangCell,
    HangFinding,
    HangKind,
    HangWords,
    ranks_told,
)
from bubbleproof.verify.communication.recorded_calls import (
    RecordedCall,
    RecordedRun,
    difference,
)
from bubbleproof.verify.communication.recorded_waits import (
    CallNode,
    RecordedWaits,
    StepOfCall,
    end_of,
)
from bubbleproof.verify.communication.semantics import Semantics

WEAKEST_FIRST = (
    Semantics.BUFFERED,
    Semantics.PAIR_STREAM,
    Semantics.LAUNCH_ORDER,
    Semantics.RANK_STREAM,
    Semantics.RENDEZVOUS,
)


def why_it_hangs(run: RecordedRun, actions: CalledActions | None = None) -> HangFinding:
    """Judge a run; ``actions`` are its calls as those of the program that it ran."""
    judge = _Judge(run, actions)
    if not any(run.pending.values()):
        return judge.nobody_waits()
    if (departure := judge.departure()) is not None:
        return departure
    found = judge.finding()
    told_of = {cell.rank for cell in found.cells} | {node.rank for node in found.nodes}
    if found.is_decided and not told_of.isdisjoint(run.lost):
        return replace(found, kind=HangKind.PERHAPS, sentence=f"it seems that {found.sentence}")
    return found


class _Judge:
    """The findings of one run."""

    def __init__(self, run: RecordedRun, actions: CalledActions | None) -> None:
        self.run, self.actions = run, actions
        self.weakest = RecordedWaits(run, Semantics.BUFFERED, actions)
        self.words = HangWords(self.weakest, actions)

    def finding(self) -> HangFinding:
        tries: list[Callable[[], HangFinding | None]] = [
            self.mismatch,
            self.never_issued,
            self.other_communicator,
            self.circle,
            lambda: self.circle(perhaps=True),
            self.awaits_the_unknown,
            self.under_way,
        ]
        return next(found for attempt in tries if (found := attempt()) is not None)

    def nobody_waits(self) -> HangFinding:
        unknown = sorted({*self.run.missing, *self.run.lost})
        if unknown:
            return HangFinding(
                kind=HangKind.UNKNOWN,
                sentence="no call that is recorded waits for another; not all is known of "
                + ranks_told(unknown),
            )
        return HangFinding(kind=HangKind.NONE, sentence="no rank waits for another")

    def departure(self) -> HangFinding | None:
        """The first call that is not what the program of its rank has there."""
        if self.actions is None:
            return None
        found = [
            (*departed, record.rank)
            for record in self.run.records.values()
            if (departed := self.actions.departure(record)) is not None
        ]
        if not found:
            return None
        call, action, rank = min(found, key=lambda each: (each[0].number, each[2]))
        told = f"rank {rank} departs from its program: it has {action} where {call} was issued"
        waits = _Judge(self.run, None).finding()
        return replace(
            waits,
            kind=HangKind.DEPARTURE,
            sentence=f"{told}; {waits.sentence}",
            cells=(HangCell(rank=rank, call=call, action=action), *waits.cells),
        )

    def mismatch(self) -> HangFinding | None:
        """The first two ends, in the order of their channel, that differ."""
        pairs = [*self._messages(), *self._collectives()]
        for one, other in sorted(pairs, key=lambda pair: (pair[0].number, pair[1].number)):
            what = difference(one, other)
            if what is None:
                continue
            if one.is_message:
                told = f"{self.words.name(one)} sends {one.tensor}, {self.words.name(other)} takes "
                told += other.tensor
            else:
                told = f"{self.words.name(one)} has {one.tensor}, "
                told += f"{self.words.name(other)} {other.tensor}"
            crossed = self._crossed(one, other)
            return HangFinding(
                kind=HangKind.MISMATCH,
                sentence=f"two ends differ in {what}: {told}{crossed}",
                cells=(self.words.cell(one), self.words.cell(other)),
            )
        return None

    def _crossed(self, send: RecordedCall, recv: RecordedCall) -> str:
        """What the program says of two ends that meet and are not of one message."""
        if self.actions is None or not send.is_message:
            return ""
        sent, taken = self.actions.action(send), self.actions.action(recv)
        if sent is None or taken is None:
            return ""
        is_one = (sent.microbatch, sent.slice) == (taken.microbatch, taken.slice)
        is_one &= sent.kind.name[-1] == taken.kind.name[-1] and abs(sent.stage - taken.stage) == 1
        return "" if is_one else f"; they are crossed, {sent} meets {taken}"

    def _messages(self) -> Iterator[tuple[RecordedCall, RecordedCall]]:
        for pairs in self.run.ends.values():
            for send, recv in pairs:
                if send is None or recv is None:
                    break
                if not (send.is_completed and recv.is_completed):
                    yield send, recv
                    break  # later ones of the channel wait behind it, or follow from it

    def _collectives(self) -> Iterator[tuple[RecordedCall, RecordedCall]]:
        for entered in self.run.collectives.values():
            first, *others = [call for _, call in sorted(entered.items())]
            if not any(call.is_completed for call in (first, *others)):
                yield from ((first, other) for other in others)

    def never_issued(self) -> HangFinding | None:
        """The first call whose other end is not there and does not come."""
        for call in self._pending():
            for issue in self._issues(call):
                if issue.rank not in self.run.records or self._elsewhere(call, issue.rank):
                    continue
                is_idle = not self.run.pending[issue.rank]
                if not (is_idle or self.weakest.is_never_issued(issue)):
                    continue
                action = self.words.action_of_issue(issue)
                why = "it waits for no rank" if is_idle else "its program has none left"
                last = [*self.run.records[issue.rank].calls][-1:]
                after = f" after {self.words.name(last[0])}" if last else ", nor anything else"
                return HangFinding(
                    kind=HangKind.NEVER_ISSUED,
                    sentence=f"{self.words.waiting(issue)}, which rank {issue.rank} has not "
                    f"issued{after}: {why}",
                    cells=(
                        HangCell(rank=issue.rank, call=None, action=action),
                        self.words.cell(call),
                    ),
                    nodes=(end_of(call), issue),
                )
        return None

    def other_communicator(self) -> HangFinding | None:
        for call in self._pending():
            for issue in self._issues(call):
                other = self._elsewhere(call, issue.rank)
                if other is not None:
                    return HangFinding(
                        kind=HangKind.COMMUNICATOR,
                        sentence=f"{self.words.name(call)} is in {call.communicator}, "
                        f"{self.words.name(other)} in {other.communicator}",
                        cells=(self.words.cell(call), self.words.cell(other)),
                    )
        return None

    def _elsewhere(self, call: RecordedCall, rank: int) -> RecordedCall | None:
        """The call of another rank that would be the other end if communicators were one."""
        if call.peer is None:
            return None
        record = self.run.records.get(rank)
        for other in record.calls if record else ():
            is_end = other.peer == call.rank and other.is_send != call.is_send
            is_alone = is_end and self.run.partner.get(other.place, other) is None
            if is_alone and other.communicator != call.communicator:
                return other
        same = self.weakest.counterpart(call)
        return same if same and same.communicator != call.communicator else None

    def circle(self, *, perhaps: bool = False) -> HangFinding | None:
        """A cycle of waits under the weakest semantics that has one.

        Where all ranks are recorded and their program is known, some semantics explains the
        standstill, and a weaker one has no cycle but true ones; so the weakest is right. Else a
        circle is believed under the streams that torch has on NCCL, and a guess beyond them.
        """
        is_all_known = self.actions is not None and not self.run.missing
        for semantics in WEAKEST_FIRST if perhaps or is_all_known else WEAKEST_FIRST[:2]:
            waits = RecordedWaits(self.run, semantics, self.actions)
            nodes = self._cycle(waits, perhaps=perhaps)
            if nodes:
                return self._told(waits, nodes, perhaps=perhaps)
        return None

    def _cycle(self, waits: RecordedWaits, *, perhaps: bool) -> list[CallNode]:
        number: dict[CallNode, int] = {}
        edges: list[tuple[int, int]] = []
        todo = [end_of(call) for call in self._pending()]
        for node in todo:
            number.setdefault(node, len(number))
        while todo:
            node = todo.pop()
            for wait in waits.waits(node):
                if not (wait.is_certain or perhaps):
                    continue
                if wait.on not in number:
                    number[wait.on] = len(number)
                    todo.append(wait.on)
                edges.append((number[wait.on], number[node]))
        if not edges:
            return []
        before, after = np.array(edges, dtype=np.int64).T
        nodes = list(number)
        return [nodes[step] for step in find_cycle(len(nodes), before, after)]

    def _told(self, waits: RecordedWaits, nodes: list[CallNode], *, perhaps: bool) -> HangFinding:
        """The cycle in words, from its earliest call on."""
        ends = [node for node in nodes if node.step is not StepOfCall.ISSUE]
        first = min(ends, key=lambda node: (node.call.number, node.rank))
        at = nodes.index(first)
        nodes = [*nodes[at:], *nodes[:at]]
        lines, streams = [], False
        for node, on in zip(nodes, [*nodes[1:], nodes[0]], strict=True):
            wait = next(w for w in waits.waits(node) if w.on == on)
            streams |= wait.why not in ("input", "other end", "starts first", "not issued")
            told = self.words.hop(node, on, wait.why)
            if told:
                lines.append(told)
        calls = list(
            dict.fromkeys(node.call for node in nodes if node.step is not StepOfCall.ISSUE)
        )
        ranks = list(dict.fromkeys(node.rank for node in nodes))
        is_known = not perhaps or streams
        kind = HangKind.PERHAPS if perhaps else HangKind.CYCLE
        verb = "seem to wait" if perhaps else "wait"
        chain = " waits for ".join([*map(self.words.name, calls), self.words.name(calls[0])])
        return HangFinding(
            kind=kind,
            sentence=f"{ranks_told(sorted(ranks))} {verb} for each other: {chain}",
            cells=tuple(self.words.cell(call) for call in calls),
            cycle=tuple(lines),
            semantics=waits.semantics if is_known else None,
            nodes=tuple(nodes),
        )

    def awaits_the_unknown(self) -> HangFinding | None:
        """The first wait of each rank for one without a record."""
        first: dict[int, CallNode] = {}
        for call in self._pending():
            for issue in self._issues(call):
                if issue.rank not in self.run.records:
                    first.setdefault(call.rank, issue)
        if not first:
            return None
        issues = [issue for _, issue in sorted(first.items())]
        told = [f"{self.words.waiting(issue)} of rank {issue.rank}" for issue in issues]
        if len(told) == 1:
            sentence = f"{told[0]}, whose dump is missing"
        else:
            missing = sorted({issue.rank for issue in issues})
            whose = "whose dump is missing" if len(missing) == 1 else "whose dumps are missing"
            verb = f"{ranks_told(sorted(first))} wait for {ranks_told(missing)}"
            sentence = f"{verb}, {whose}: {'; '.join(told)}"
        cells: list[HangCell] = []
        for issue in issues:
            action = self.words.action_of_issue(issue)
            cells.append(HangCell(rank=issue.rank, call=None, action=action))
            cells.append(self.words.cell(issue.call))
        return HangFinding(
            kind=HangKind.UNKNOWN,
            sentence=sentence,
            cells=tuple(dict.fromkeys(cells)),
            nodes=tuple(node for issue in issues for node in (end_of(issue.call), issue)),
        )

    def under_way(self) -> HangFinding:
        call = next(self._pending())
        return HangFinding(
            kind=HangKind.UNDER_WAY,
            sentence=f"nothing that is recorded keeps {self.words.name(call)}: its other end is "
            "there, so it is under way, or held by what is not recorded",
            cells=(self.words.cell(call),),
        )

    def _pending(self) -> Iterator[RecordedCall]:
        """The calls that are not complete, those first that their ranks issued first."""
        calls = [call for calls in self.run.pending.values() for call in calls]
        yield from sorted(calls, key=lambda call: (call.number, call.rank))

    def _issues(self, call: RecordedCall) -> Iterator[CallNode]:
        for rank, other in self.run.others(call).items():
            if other is None:
                yield CallNode(step=StepOfCall.ISSUE, call=call, rank=rank)
