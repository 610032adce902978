"""Which semantics follow from which: proved from their rules, or refuted by a small program.

Semantics A *implies* B where every program that ends under A ends under B. Here programs consist of
computations, SENDs and RECVs; EVICT and LOAD have links of their own and are left out. A program
gets stuck where the waits of its semantics have a cycle, so A implies B where each wait of B is a
path of A's waits, or makes no cycle that A has not. ``proof`` tells why, by what two rules say:

fewer
    B's rule asks for no more in each word: its streams are parts of A's, its channels hold as many
    messages or more, less blocks, ends start in order or communicators are made only if under A.
heard
    where one stream has all ends of a rank, blocking changes nothing: others hear of a computation
    by a later end of its rank alone, which waits for all earlier ends anyway. Likewise whoever
    waits for a whole batch, not for one end of it, is heard of by ends behind the batch alone.
blocked
    a rank that goes on behind each end only when it has ended has all its ends in one stream, in
    the order of the program; and the first ends of a pair of ranks are of one message (else each
    would wait for the other), so its communicator is made where that message meets.
first sent
    in batches each channel keeps its order: its k-th message leaves in no later batch than the next
    and arrives in no later one. If the next had to happen first, it would wait for the batch of its
    own receive, or one before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from random import Random
from unittest.mock import patch

from bubbleproof.theory.model.actions import Action, Kind
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.programs.messages import as_kind, messages
from bubbleproof.theory.pipelines.programs.pytorch_runtime import WAIT_OF
from bubbleproof.verify import Semantics, check_communication
from bubbleproof.verify.communication.deadlock import WEAKER
from bubbleproof.verify.communication.waiting_rules import (
    RULES,
    Batching,
    Blocking,
    Stream,
    WaitingRule,
)

Orders = tuple[tuple[Action, ...], ...]
Shape = tuple[int, int, int, str | tuple[int, ...]]  # p, v, m, placement
SHAPES: tuple[Shape, ...] = (
    (2, 1, 1, "loop"),
    (2, 1, 2, "loop"),
    (3, 1, 1, "loop"),
    (2, 2, 1, "loop"),
    (2, 2, 1, "wave"),
    (3, 1, 2, "loop"),
    (3, 1, 2, (0, 2, 1)),
    (2, 2, 2, "loop"),
    (3, 2, 1, "loop"),
    (3, 2, 2, "loop"),
    (3, 2, 2, "wave"),
)
# Programs whose batches meet one to one, which none that is drawn has: two SENDs that meet are in
# one batch each, of one flow and, in the second, of two even ranks.
MADE: tuple[tuple[Shape, tuple[str, ...]], ...] = (
    (
        (2, 2, 2, "loop"),
        (
            "0F0 0SEND_F0 0F1 0SEND_F1 2RECV_F0 2F0 2SEND_F0 2RECV_F1 2F1 2SEND_F1 2RECV_B0 2B0 "
            "2SEND_B0 2RECV_B1 2B1 2SEND_B1 0RECV_B0 0B0 0RECV_B1 0B1",
            "1RECV_F0 1F0 1SEND_F0 1RECV_F1 1F1 1SEND_F1 3RECV_F0 3F0 3B0 3RECV_F1 3SEND_B0 3F1 "
            "3B1 3SEND_B1 1RECV_B0 1B0 1SEND_B0 1RECV_B1 1B1 1SEND_B1",
        ),
    ),
    (
        (3, 1, 3, (0, 2, 1)),
        (
            "0F0 0SEND_F0 0F1 0SEND_F1 0F2 0SEND_F2 0RECV_B0 0B0 0RECV_B1 0B1 0RECV_B2 0B2",
            "2RECV_F0 2F0 2B0 2RECV_F1 2SEND_B0 2F1 2B1 2RECV_F2 2SEND_B1 2F2 2B2 2SEND_B2",
            "1RECV_F0 1F0 1SEND_F0 1RECV_F1 1F1 1SEND_F1 1RECV_B0 1B0 1SEND_B0 1RECV_F2 1F2 "
            "1SEND_F2 1RECV_B1 1B1 1SEND_B1 1RECV_B2 1B2 1SEND_B2",
        ),
    ),
)
_PARTS = {
    Stream.RANK: set(Stream),
    Stream.PAIR: {Stream.PAIR, Stream.ORDERED_PAIR},
    Stream.PARITY: {Stream.PARITY, Stream.ORDERED_PAIR},
    Stream.FLOW: {Stream.FLOW},
    Stream.ORDERED_PAIR: {Stream.ORDERED_PAIR},
}
_BLOCKING = list(Blocking)  # each blocks more than the one before


@dataclass(frozen=True, slots=True, kw_only=True)
class Counterexample:
    """A program that ends under one semantics and gets stuck under another."""

    shape: Shape
    orders: Orders
    message: str


def proof(a: Semantics, b: Semantics) -> str:
    """Which arguments show that a implies b, or nothing."""
    rule, wanted = RULES[a], RULES[b]
    if _asks_no_more(rule, wanted):
        return "fewer"
    blocks = rule.batching is Batching.SINGLE_END and rule.held == 0
    if blocks and (rule.stream is Stream.RANK or rule.blocking is not Blocking.COMPUTATIONS):
        names = ["heard"] if rule.blocking is Blocking.COMPUTATIONS else []
        strongest = {"stream": Stream.RANK, "blocking": Blocking.ALL, "starts_in_order": True}
        rule = replace(rule, **strongest, makes_communicators=True)  # type: ignore[arg-type]  # fields of several types
        if _asks_no_more(rule, wanted):
            return ", ".join([*names, "blocked"])
        if wanted.batching is Batching.OWN_BATCH:
            return "heard" if names else "blocked, heard"
    is_batch = rule.batching is not Batching.SINGLE_END and rule.stream is Stream.RANK
    if is_batch and _asks_no_more(WaitingRule(stream=Stream.ORDERED_PAIR), wanted):
        return "first sent"
    return ""


def _asks_no_more(rule: WaitingRule, wanted: WaitingRule) -> bool:
    batching = wanted.batching is rule.batching or (
        (rule.batching, wanted.batching) == (Batching.MET_BATCHES, Batching.OWN_BATCH)
    )
    holds = rule.held is not None and (wanted.held is None or wanted.held >= rule.held)
    return (
        wanted.stream in _PARTS[rule.stream]
        and (holds or wanted.held == rule.held)
        and _BLOCKING.index(wanted.blocking) <= _BLOCKING.index(rule.blocking)
        and wanted.starts_in_order <= rule.starts_in_order
        and wanted.makes_communicators <= rule.makes_communicators
        and batching
    )


def counterexamples(
    most: int, shapes: tuple[Shape, ...] = SHAPES
) -> dict[tuple[Semantics, Semantics], Counterexample]:
    """Of each pair the first program found, shapes from small to large, ``most`` of each shape.

    All programs of a shape are tried where they are no more than that, else so many drawn ones:
    one that runs under ``rendezvous``, with some rows moved, in every other one waits for SENDs.
    """
    found: dict[tuple[Semantics, Semantics], Counterexample] = {}
    for shape in shapes:
        problem = problem_of(shape)
        for orders in programs_of(problem, most, Random(str(shape))):
            _note(found, shape, problem, orders)
    for shape, texts in MADE:
        orders = tuple(tuple(map(Action.parse, text.split())) for text in texts)
        _note(found, shape, problem_of(shape), orders)
    return found


def problem_of(shape: Shape) -> Problem:
    """The problem of a shape."""
    p, v, m, placed = shape
    given = Pipeline(num_ranks=p, num_chunks=v, num_microbatches=m, placement=placed)
    return given.problem()


def _note(
    found: dict[tuple[Semantics, Semantics], Counterexample],
    shape: Shape,
    problem: Problem,
    orders: Orders,
) -> None:
    """Keep a program for each pair of which it is the first counterexample."""
    ok, told = judged(problem, orders)
    for a, b in product(Semantics, repeat=2):
        if ok[a] and not ok[b] and (a, b) not in found:
            found[a, b] = Counterexample(shape=shape, orders=orders, message=told[b])


def judged(problem: Problem, orders: Orders) -> tuple[dict[Semantics, bool], dict[Semantics, str]]:
    """Whether a program ends under each semantics, and what is told where it does not."""
    program = Program.from_orders([list(order) for order in orders])
    ok, told = {}, {}
    crossed = ""
    with patch.dict(WEAKER, clear=True):  # each looked at, whatever follows from what
        verdict = check_communication(problem, program, tuple(Semantics))
    for decision in verdict.decisions:
        semantics = Semantics(decision.detail)
        ok[semantics] = decision.ok
        crossed = next((violation.message for violation in decision.violations), crossed)
        told[semantics] = crossed
    return ok, told


def programs_of(problem: Problem, most: int, random: Random) -> Iterator[Orders]:
    """Programs in which every row stands behind what it needs on its rank."""
    ranks = [_needed(problem, rank) for rank in range(problem.num_ranks)]
    all_of = [_extensions(rows, most) for rows in ranks]
    if all(all_of):
        number = 1
        for orders in all_of:
            number *= len(orders)
        if number <= most:
            yield from product(*all_of)
            return
    rows = {row: (r, before) for r, own in enumerate(ranks) for row, before in own.items()}
    ends = {m.send: m.recv for m in messages(problem)}
    for number in range(most):
        waited = {
            as_kind(end, WAIT_OF[end.kind]): (rank, {end})
            for end, (rank, _) in rows.items()
            if end.kind in WAIT_OF and number % 2
        }
        yield _drawn(rows | waited, ends, problem.num_ranks, random)


def _needed(problem: Problem, rank: int) -> dict[Action, set[Action]]:
    """Each row of a rank, and the rows that must stand before it."""
    tasks = list(problem.actions)
    home = problem.rank_of_task
    needed: dict[Action, set[Action]] = {t: set() for i, t in enumerate(tasks) if home[i] == rank}
    pairs = zip(problem.edges.before.tolist(), problem.edges.after.tolist(), strict=True)
    for before, after in pairs:
        if home[before] == home[after] == rank:
            needed[tasks[after]].add(tasks[before])
    for message in messages(problem):
        if message.source == rank:
            needed[message.send] = {tasks[message.producer]}
        if message.target == rank:
            needed[message.recv] = set()
            needed[tasks[message.consumer]].add(message.recv)
    for action in list(needed):  # microbatches are alike: the first F runs first
        if action.kind is Kind.F and action.microbatch:
            before = Action(stage=action.stage, kind=Kind.F, microbatch=action.microbatch - 1)
            needed[action].add(before)
    return needed


def _extensions(needed: dict[Action, set[Action]], most: int) -> list[tuple[Action, ...]]:
    """All orders of a rank's rows, or none where they are more than ``most``."""
    found: list[tuple[Action, ...]] = []

    def extend(order: tuple[Action, ...]) -> None:
        if len(found) > most:
            return
        if len(order) == len(needed):
            found.append(order)
        for row in needed:
            if row not in order and needed[row] <= set(order):
                extend((*order, row))

    extend(())
    return found if len(found) <= most else []


def _drawn(
    rows: dict[Action, tuple[int, set[Action]]],
    recv_of: dict[Action, Action],
    num_ranks: int,
    random: Random,
) -> Orders:
    """A program in which each RECV stands when its SEND does, with up to four rows moved."""
    orders: list[list[Action]] = [[] for _ in range(num_ranks)]
    done: set[Action] = set()
    received = set(recv_of.values())
    while len(done) < len(rows):
        able = [
            row
            for row, (_, before) in rows.items()
            if row not in done and row not in received and before <= done
        ]
        row = random.choice(able)
        for each in (row, recv_of[row]) if row in recv_of else (row,):
            orders[rows[each][0]].append(each)
            done.add(each)
    for _ in range(random.randrange(5)):
        order = random.choice(orders)
        at, to = random.randrange(len(order)), random.randrange(len(order))
        moved = [row for row in order if row is not order[at]]
        moved.insert(to, order[at])
        if all(rows[row][1] <= set(moved[:i]) for i, row in enumerate(moved)):
            order[:] = moved
    return tuple(map(tuple, orders))


@cache
def all_counterexamples(most: int) -> dict[tuple[Semantics, Semantics], Counterexample]:
    """``counterexamples`` of every shape."""
    return counterexamples(most)
