"""Megatron-LM's two orders with the messages of its loops, written from their definition.

Source: Megatron-LM, megatron-core 0.16.1, ``megatron/core/pipeline_parallel/schedules.py``
(``forward_backward_pipelining_without_interleaving``, ``..._with_interleaving``) and
``p2p_communication.py`` (``_batched_p2p_ops``, ``_p2p_ops``); none of its code is here.

The interleaved order takes groups of p microbatches through chunk 0, 1, ... v-1; rank r runs
2(p-r-1) + (v-1)p forwards first. After each computation the rank *exchanges* once with its
neighbours on the ring and waits for that: what it has just made, and what it needs next. Rank 0
takes the forwards of the last rank p-1 computations later, the last rank the backwards of rank 0.
An exchange is one batch in the order back, from back, on, from on (``batch_p2p_comm``); or posts
one after another in the order on, from back, back, from on of even ranks and from back, on,
from on, back of odd ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

from benchmarks.verdicts.generated import (
    BEFORE_USE,
    OWN,
    UNBATCHED,
    Generated,
    Generator,
    NotGenerated,
    waits_for,
    with_late_receives,
)
from bubbleproof.formats import infer_pipeline
from bubbleproof.frameworks import framework_named
from bubbleproof.theory.model.actions import Action, Kind
from bubbleproof.theory.model.schedule import Program
from bubbleproof.verify.communication.matching import compute_part

SOURCE = "Megatron-core 0.16.1"
Work = tuple[int, int]  # microbatch, chunk
End = Literal["back", "from back", "on", "from on"]
BATCHED: tuple[End, ...] = ("back", "from back", "on", "from on")
EVEN: tuple[End, ...] = ("on", "from back", "back", "from on")
ODD: tuple[End, ...] = ("from back", "on", "from on", "back")
Exchanged = dict[End, Action]


def megatron_generators() -> list[Generator]:
    """1F1B, and the interleaved order with 2 and 4 chunks."""
    batched, unbatched = framework_named("megatron-core", "Megatron").waits
    waits = {OWN: (batched,), UNBATCHED: (unbatched,)}
    plain = Generator(name="1F1B", source=SOURCE, make=_plain, waits=waits)
    looped = [
        Generator(
            name=f"interleaved v={v}", source=SOURCE, make=partial(_interleaved, v), waits=waits
        )
        for v in (2, 4)
    ]
    return [plain, *looped]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ring:
    """p ranks with v chunks each; what goes between them."""

    p: int
    v: int

    def stage(self, rank: int, chunk: int) -> int:
        return chunk * self.p + rank

    def sent_on(self, rank: int, work: Work) -> Exchanged:
        """The SEND of a forward, where a stage follows."""
        stage = self.stage(rank, work[1])
        is_last = stage == self.p * self.v - 1
        return {} if is_last else {"on": _end(Kind.SEND_F, stage, work)}

    def sent_back(self, rank: int, work: Work) -> Exchanged:
        """The SEND of a backward, where a stage goes before."""
        stage = self.stage(rank, work[1])
        return {} if stage == 0 else {"back": _end(Kind.SEND_B, stage, work)}

    def received_forward(self, rank: int, work: Work) -> Exchanged:
        stage = self.stage(rank, work[1])
        return {} if stage == 0 else {"from back": _end(Kind.RECV_F, stage, work)}

    def received_backward(self, rank: int, work: Work) -> Exchanged:
        stage = self.stage(rank, work[1])
        is_last = stage == self.p * self.v - 1
        return {} if is_last else {"from on": _end(Kind.RECV_B, stage, work)}


def _end(kind: Kind, stage: int, work: Work) -> Action:
    return Action(stage=stage, kind=kind, microbatch=work[0])


Posted = Callable[[int, Exchanged], list[Action]]


def _posted(rank: int, exchanged: Exchanged, *, is_batched: bool) -> list[Action]:
    """The ends of an exchange as a rank posts them, and the waits for its SENDs."""
    order = BATCHED if is_batched else (ODD if rank % 2 else EVEN)
    ends = [exchanged[end] for end in order if end in exchanged]
    return ends + waits_for(ends)


def _both(p: int, v: int, rows: Callable[[_Ring, int, Posted], list[Action]]) -> Generated:
    """The programs of all ranks, batched and not."""
    ring = _Ring(p=p, v=v)
    programs = {
        name: Program.from_orders(
            [rows(ring, rank, partial(_posted, is_batched=is_batched)) for rank in range(p)]
        )
        for name, is_batched in ((OWN, True), (UNBATCHED, False))
    }
    order = compute_part(programs[OWN])
    problem = infer_pipeline(order).problem()
    late = with_late_receives(problem, programs[OWN])
    return Generated(problem=problem, order=order, placed={**programs, BEFORE_USE: late})


def _plain(p: int, m: int) -> Generated:
    return _both(p, 1, partial(_plain_rank, m))


def _plain_rank(m: int, ring: _Ring, rank: int, posted: Posted) -> list[Action]:
    """1F1B: an exchange is of one neighbour at a time, what is received first comes first."""
    warm_up = min(ring.p - rank - 1, m)
    made: list[Action] = []

    def exchange(*parts: Exchanged) -> None:
        made.extend(posted(rank, {end: each for part in parts for end, each in part.items()}))

    def forward(j: int) -> None:
        made.append(_end(Kind.F, rank, (j, 0)))

    for j in range(warm_up):
        exchange(ring.received_forward(rank, (j, 0)))
        forward(j)
        exchange(ring.sent_on(rank, (j, 0)))
    if warm_up < m:
        exchange(ring.received_forward(rank, (warm_up, 0)))
    for j in range(m - warm_up):
        forward(j + warm_up)
        exchange(ring.sent_on(rank, (j + warm_up, 0)), ring.received_backward(rank, (j, 0)))
        made.append(_end(Kind.B, rank, (j, 0)))
        following = j + warm_up + 1
        more = ring.received_forward(rank, (following, 0)) if following < m else {}
        exchange(ring.sent_back(rank, (j, 0)), more)
    for j in range(m - warm_up, m):
        exchange(ring.received_backward(rank, (j, 0)))
        made.append(_end(Kind.B, rank, (j, 0)))
        exchange(ring.sent_back(rank, (j, 0)))
    return made


def _interleaved(v: int, p: int, m: int) -> Generated:
    if p == 1:
        raise NotGenerated("one rank runs without a pipeline")
    if m < p:
        raise NotGenerated(f"a group has {p} microbatches at least, of {m}")
    if m % p:
        raise NotGenerated(f"the last group would have {m % p} microbatches, fewer than {p}")
    return _both(p, v, partial(_interleaved_rank, m))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Turns:
    """The forwards and the backwards of a rank, in the order of the table."""

    ring: _Ring
    rank: int
    forwards: list[Work]

    @property
    def warm_up(self) -> int:
        p, v = self.ring.p, self.ring.v
        return min(2 * (p - self.rank - 1) + (v - 1) * p, len(self.forwards))

    def backward(self, k: int) -> Work:
        j, c = self.forwards[k]
        return j, self.ring.v - 1 - c

    def forward_after(self, k: int) -> Exchanged:
        """What is received after forward k: the next one's, on rank 0 what comes from the last."""
        if k + 1 >= len(self.forwards):
            return {}
        if self.rank:
            return self.ring.received_forward(self.rank, self.forwards[k + 1])
        j, c = self.forwards[max(k - (self.ring.p - 1), 0)]
        is_none = k < self.ring.p - 1 or c == self.ring.v - 1
        return {} if is_none else self.ring.received_forward(0, (j, c + 1))

    def backward_after(self, k: int) -> Exchanged:
        """What is received after backward k: the next one's, on the last rank from rank 0."""
        if k + 1 >= len(self.forwards):
            return {}
        if self.rank < self.ring.p - 1:
            return self.ring.received_backward(self.rank, self.backward(k + 1))
        j, c = self.backward(max(k - (self.ring.p - 1), 0))
        is_none = k < self.ring.p - 1 or c == 0
        return {} if is_none else self.ring.received_backward(self.rank, (j, c - 1))


def _interleaved_rank(m: int, ring: _Ring, rank: int, posted: Posted) -> list[Action]:
    p, v = ring.p, ring.v
    work = [(j, c) for first in range(0, m, p) for c in range(v) for j in range(first, first + p)]
    turns = _Turns(ring=ring, rank=rank, forwards=work)
    made = posted(rank, ring.received_forward(rank, work[0]))

    def run(kind: Kind, each: Work) -> None:
        made.append(_end(kind, ring.stage(rank, each[1]), each))

    def exchange(*parts: Exchanged) -> None:
        made.extend(posted(rank, {end: each for part in parts for end, each in part.items()}))

    first = ring.received_backward(rank, turns.backward(0))
    for k in range(turns.warm_up):
        run(Kind.F, work[k])
        is_last = turns.warm_up - 1 == k < len(work) - 1
        exchange(ring.sent_on(rank, work[k]), turns.forward_after(k), first if is_last else {})
    if turns.warm_up == len(work):
        exchange(first)
    for k in range(len(work)):
        sent = [ring.sent_back(rank, turns.backward(k)), turns.backward_after(k)]
        if (ahead := k + turns.warm_up) < len(work):
            run(Kind.F, work[ahead])
            sent += [ring.sent_on(rank, work[ahead]), turns.forward_after(ahead)]
        run(Kind.B, turns.backward(k))
        exchange(*sent)
    return made
