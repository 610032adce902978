"""Each hypothesis of ``index_order`` is needed: some problem disproves the lemma without it.

The lemma is applied by hand: its edges are added to the problem, and the exhaustive walk finds that
the best schedules are gone. Our code does not add them, solves the problem, and its checker refuses
the bound that they would prove.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest

from bubbleproof.solvers import SolveOptions, Status, solve
from bubbleproof.solvers.bounds import lower_bounds
from bubbleproof.solvers.memory_rules import exact_stores
from bubbleproof.theory.model.problem import Edges, Problem, Resource, Store
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify.candidates.certified_distance import check_certificate
from bubbleproof.verify.certificates.index_order import index_order, sure_edges
from proofs_tests.solvers.differences import with_edges
from proofs_tests.solvers.exhaustive import Exhaustive
from proofs_tests.solvers.small import Task, by_hand, split
from proofs_tests.theory.test_forced_order import workspace

RANKS = tuple(Resource(name=f"rank {r}", rank=r) for r in range(3))
Event = tuple[str, bool, int, int]


@dataclass(frozen=True, kw_only=True, eq=False)
class Control:
    """``claimed``: the edges (before, after) of the lemma; ``best``: the optimum, ``with_them``:
    the optimum under them (None: no schedule is left)."""

    name: str
    problem: Problem
    claimed: tuple[tuple[str, str], ...]
    best: int
    with_them: int | None


def built(
    tasks: Sequence[Task],
    edges: Sequence[tuple[str, str, int]] = (),
    events: Sequence[Event] = (),
    store: Store | None = None,
) -> Problem:
    return by_hand(tasks, edges, resources=RANKS, stores=[store] if store else [], events=events)


def each(m: int, *texts: str) -> list[str]:
    """The texts with ``*`` for each microbatch."""
    return [text.replace("*", str(j)) for j in range(m) for text in texts]


def f_and_b(
    m: int, ticks: tuple[int, int], ranks: tuple[int, int], lag: int, store: Store, *events: Event
) -> Problem:
    """F then B per microbatch, the same events in each (``*`` for its number)."""
    rows = [(f"0{kind}{j}", ticks[n], (ranks[n],)) for j in range(m) for n, kind in enumerate("FB")]
    changes = [
        (text.replace("*", str(j)), at_end, at, delta)
        for j in range(m)
        for text, at_end, at, delta in events
    ]
    return built(rows, [(f"0F{j}", f"0B{j}", lag) for j in range(m)], changes, store)


FORWARDS, BACKWARDS = ("0F0", "0F1"), ("0B0", "0B1")
TWO = [("0F0", 1, (0,)), ("0F1", 1, (0,))]
INTERCHANGEABLE = (
    Control(  # F1 0-2, B1 2-7 beside F0 2-4, B0 7-8; in order B1 starts at 4.
        name="durations differ",
        problem=built(
            [("0F0", 2, (0,)), ("0F1", 2, (0,)), ("0B0", 1, (1,)), ("0B1", 5, (1,))],
            [("0F0", "0B0", 0), ("0F1", "0B1", 0)],
        ),
        claimed=(FORWARDS, BACKWARDS),
        best=8,
        with_them=9,
    ),
    Control(  # F1 0-2, F0 2-4, B0 4-5, B1 8-9; in order F1 ends at 4, B1 starts at 10.
        name="lags differ",
        problem=built(
            [("0F0", 2, (0,)), ("0F1", 2, (0,)), ("0B0", 1, (0,)), ("0B1", 1, (0,))],
            [("0F0", "0B0", 0), ("0F1", "0B1", 6)],
        ),
        claimed=(FORWARDS, BACKWARDS),
        best=9,
        with_them=11,
    ),
    Control(
        name="resources differ",
        problem=built([("0F0", 1, (0,)), ("0F1", 1, (1,))]),
        claimed=(FORWARDS,),
        best=1,
        with_them=2,
    ),
    Control(  # 0F1 gives back what 0F0 takes.
        name="memory events differ",
        problem=built(
            TWO,
            (),
            [("0F0", False, 0, 1), ("0F1", False, 0, -1)],
            Store(name="memory", base=1, capacity=1),
        ),
        claimed=(FORWARDS,),
        best=2,
        with_them=None,
    ),
    Control(
        name="one microbatch waits for another",
        problem=built(TWO, [("0F1", "0F0", 0)]),
        claimed=(FORWARDS,),
        best=2,
        with_them=None,
    ),
    Control(  # A tail of 9 ticks follows microbatch 1 alone: it goes first.
        name="one microbatch has a task more",
        problem=built([("0F0", 2, (0,)), ("0F1", 2, (0,)), ("1F1", 9, (1,))], [("0F1", "1F1", 0)]),
        claimed=(FORWARDS,),
        best=11,
        with_them=13,
    ),
)
ROOM = Store(name="memory", capacity=1)
LIFECYCLES = (
    # Sorted by kind, with starts before ends, the levels are 2, 3, 4, 2, 0: K = (5 - 2) div 2 + 1.
    Control(
        name="moments in another order than their kinds'", problem=workspace(),
        claimed=(("0W0#1", "0F2"),), best=13, with_them=14,
    ),
    # After a negative lag I may run long before F: see ``overtaking``. Taken for F, I, W the levels
    # are 3, 1, 0: K = (3 - 3) div 1 + 1.
    Control(
        name="moments in no order", problem=by_hand(
            [(f"0F{j}", 2, (0,)) for j in range(2)] + [(f"0I{j}", 1, (1,)) for j in range(2)]
            + [(f"0W{j}", 1, (2,)) for j in range(2)],
            [(f"0F{j}", f"0I{j}", -6) for j in range(2)]
            + [(f"0I{j}", f"0W{j}", 5) for j in range(2)],
            resources=RANKS, stores=[Store(name="memory", base=4, capacity=7)],
            events=[e for j in range(2) for e in (
                (f"0F{j}", False, 0, 3), (f"0I{j}", True, 0, -2), (f"0W{j}", True, 0, -1))],
        ),
        claimed=(("0W0", "0F1"),), best=8, with_them=10,
    ),
    # F acquires when it ends: F1 may run beside B0. F 0-2 and 2-4, B 2-3 and 4-5.
    Control(
        name="begins at an end",
        problem=f_and_b(2, (2, 1), (0, 1), 0, ROOM, ("0F*", True, 0, 1), ("0B*", True, 0, -1)),
        claimed=(("0B0", "0F1"),), best=5, with_them=6,
    ),
    # B releases when it starts: F 0-1 and 1-2, B 1-3 and 3-5.
    Control(
        name="ends at a start",
        problem=f_and_b(2, (1, 2), (0, 1), 0, ROOM, ("0F*", False, 0, 1), ("0B*", False, 0, -1)),
        claimed=(("0B0", "0F1"),), best=5, with_them=6,
    ),
    # Nothing is held between F and B: F 0-1 and 1-2, B 3-4 and 4-5. One after the other: 8.
    Control(
        name="nothing held between",
        problem=f_and_b(
            2, (1, 1), (0, 0), 2, ROOM, ("0F*", False, 0, 1), ("0F*", True, 0, -1),
            ("0B*", False, 0, 1), ("0B*", True, 0, -1)),
        claimed=(("0B0", "0F1"),), best=5, with_them=8,
    ),
    # Each B gives back 2 for 1, so after B0 there is room for two: F 0-1, 4-5, 5-6; B 3-4, 7-8,
    # 8-9. K = (5 - 4 - 1) div 1 + 1 would let them run one by one.
    Control(
        name="more given back than taken",
        problem=f_and_b(
            3, (1, 1), (0, 0), 2, Store(name="memory", base=4, capacity=5),
            ("0F*", False, 0, 1), ("0B*", True, 0, -2)),
        claimed=(("0B0", "0F1"), ("0B1", "0F2")), best=9, with_them=12,
    ),
    # Stage 1 gives back 2 units of the base load, which lets both F of stage 0 in: 1F0 0-1, 0F0
    # 1-2, 0F1 2-3, and 0B1 ends 1 + 3 + 1 later. One after the other: 2 (1 + 3 + 1).
    Control(
        name="another use lowers the load",
        problem=by_hand(
            [(text, 1, (0,)) for text in each(2, "1F*", "0F*", "0B*")],
            [(f"0F{j}", f"0B{j}", 3) for j in range(2)], resources=RANKS,
            stores=[Store(name="memory", base=4, capacity=5)],
            events=[e for j in range(2) for e in (
                (f"1F{j}", True, 0, -2), (f"0F{j}", False, 0, 1), (f"0B{j}", True, 0, -1))],
        ),
        claimed=(("0B0", "0F1"),), best=7, with_them=10,
    ),
)  # fmt: skip

SORTS = (  # three sorts taken for one, or what one sort does taken to hold for another
    # F1 0-2, B1 2-7, then B0 and B2 to 9; in order B1 waits for F0 and B0: 4-9, and B2 ends at 10.
    Control(
        name="one of three is longer",
        problem=built(
            [(text, 2, (0,)) for text in each(3, "0F*")]
            + [("0B0", 1, (1,)), ("0B1", 5, (1,)), ("0B2", 1, (1,))],
            [(f"0F{j}", f"0B{j}", 0) for j in range(3)],
        ),
        claimed=(("0F0", "0F1"), ("0F1", "0F2"), ("0B0", "0B1"), ("0B1", "0B2")),
        best=9,
        with_them=10,
    ),
    # Both 0F at once and then both 1F; in order one rank waits where the other works.
    Control(
        name="one goes the other way",
        problem=built(
            [("0F0", 1, (0,)), ("1F0", 1, (1,)), ("0F1", 1, (1,)), ("1F1", 1, (0,))],
            [("0F0", "1F0", 0), ("0F1", "1F1", 0)],
        ),
        claimed=(("0F0", "0F1"), ("1F0", "1F1")),
        best=2,
        with_them=4,
    ),
    # The STEP of 9 ticks waits for 0F1 alone, which goes first.
    Control(
        name="what is outside waits for one alone",
        problem=built(
            [("0F0", 2, (0,)), ("0F1", 2, (0,)), ("0STEP", 9, (1,))], [("0F1", "0STEP", 0)]
        ),
        claimed=(FORWARDS,),
        best=11,
        with_them=13,
    ),
    # Microbatch 0 holds 2 and fills the store, 1 and 2 hold 1 and fit together: F1 0-1, F2 1-2, B1
    # 4-5, B2 5-6, F0 6-7, B0 10-11. With the K of microbatch 0 for all, (2 - 2) div 2 + 1, one
    # after the other: 3 (1 + 3 + 1).
    Control(
        name="K of one sort for another",
        problem=built(
            [(text, 1, (0,)) for text in each(3, "0F*", "0B*")],
            [(f"0F{j}", f"0B{j}", 3) for j in range(3)],
            [
                e
                for j, held in enumerate((2, 1, 1))
                for e in ((f"0F{j}", False, 0, held), (f"0B{j}", True, 0, -held))
            ],
            Store(name="memory", capacity=2),
        ),
        claimed=(("0B0", "0F1"), ("0B1", "0F2")),
        best=11,
        with_them=15,
    ),
    # Microbatch 2 gives back 2 of the base load, which lets 0F0 and 0F1 in together: 0F0 0-1, 0F2
    # 1-2, 0F1 2-3, 0B1 6-7. With K = (5 - 4 - 1) div 1 + 1 for the other two: 2 (1 + 3 + 1).
    Control(
        name="another sort lowers the load",
        problem=built(
            [(text, 1, (0,)) for text in [*each(2, "0F*", "0B*"), "0F2"]],
            [(f"0F{j}", f"0B{j}", 3) for j in range(2)],
            [
                ("0F2", True, 0, -2),
                *(e for j in range(2) for e in ((f"0F{j}", False, 0, 1), (f"0B{j}", True, 0, -1))),
            ],
            Store(name="memory", base=4, capacity=5),
        ),
        claimed=(("0B0", "0F1"),),
        best=7,
        with_them=10,
    ),
)


@pytest.mark.parametrize("control", INTERCHANGEABLE + LIFECYCLES + SORTS, ids=lambda c: c.name)
def test_without_the_hypothesis_the_lemma_lies_and_it_is_not_used(control: Control) -> None:
    problem = control.problem
    claimed = by_name(problem, control.claimed)
    assert Exhaustive(problem).optimum() == control.best
    assert Exhaustive(with_edges(problem, claimed)).optimum() == control.with_them
    sure = sure_edges(problem, index_order(problem))
    pairs = set(zip(sure.before.tolist(), sure.after.tolist(), strict=True))
    assert not pairs & set(zip(claimed.before.tolist(), claimed.after.tolist(), strict=True))
    for options in (SolveOptions(threads=1), SolveOptions(threads=1, engine="cpsat")):
        result = solve(problem, options)
        assert (result.status, result.makespan) == (Status.OPTIMAL, control.best)
    if control.with_them is not None:
        false = lower_bounds(with_edges(problem, claimed)).best
        beyond = replace(false, bound=control.best + 1)
        assert not check_certificate(problem, beyond).ok


def by_name(problem: Problem, pairs: Sequence[tuple[str, str]]) -> Edges:
    before, after = (np.array([problem.task(pair[side]) for pair in pairs]) for side in (0, 1))
    return Edges(before=before, after=after, lag=np.zeros_like(before))


def test_what_is_released_at_the_instant_of_the_acquisition_hides_it() -> None:
    # F and I take no time: of the 2 units acquired, 1 may go at the same instant, and 1 fits. Were
    # the acquisition believed to be held by itself, not one microbatch would fit. Two W take 2.
    pipeline = split(1, 2, 1, (0, 0, 1), part=True)
    problem = pipeline.problem()
    assert Exhaustive(problem).optimum() == 2
    result = solve(problem, SolveOptions(threads=1))
    assert (result.status, result.makespan) == (Status.OPTIMAL, 2)
    # With a tick for I nothing hides it any more.
    slow = pipeline.with_changes(input_backward=1).problem()
    assert Exhaustive(slow).optimum() is None
    assert solve(slow, SolveOptions(threads=1)).status is Status.INFEASIBLE


@pytest.mark.parametrize(
    "problem",
    [
        # Two chunks share the store: one microbatch of each fits, and not one of both.
        Pipeline(num_ranks=1, num_microbatches=2, num_chunks=2, activation=2, capacity=3).problem(),
        # F holds 3, and B 2 of its own: K = (6 - 3) div 3 + 1 = 2 may be open, and no B fits then.
        f_and_b(
            2,
            (2, 1),
            (0, 0),
            1,
            Store(name="memory", capacity=6),
            ("0F*", False, 0, 3),
            ("0B*", False, 0, 2),
            ("0B*", True, 0, -5),
        ),
    ],
    ids=["two uses", "more than two moments"],
)
def test_edges_alone_do_not_keep_other_stores(problem: Problem) -> None:
    order = index_order(problem)
    assert order.lifecycles
    assert exact_stores(order) == frozenset()
    freed = with_edges(problem.with_capacity(None), order.order_edges, order.memory_edges)
    held, free = Exhaustive(problem).optimum(), Exhaustive(freed).optimum()
    assert free is not None
    assert held is None or held > free
