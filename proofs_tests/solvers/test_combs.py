"""Combs: schedules of long loops that the checker accepts, near the work of a rank."""

from __future__ import annotations

import time
from fractions import Fraction
from functools import partial
from math import inf

import pytest

from bubbleproof.solvers import SolveOptions
from bubbleproof.solvers.engines import Budget
from bubbleproof.solvers.engines.cpsat_block import search
from bubbleproof.solvers.engines.cycle import Block
from bubbleproof.solvers.lists import combs
from bubbleproof.solvers.lists.combs import Combs, comb_schedules, line_of
from bubbleproof.solvers.lists.modulo_lists import ModuloLists
from bubbleproof.solvers.search import Search
from bubbleproof.theory.pipelines.pipeline import Pipeline
from proofs_tests.judged import accepted
from proofs_tests.patience import in_time

SIZES = {"forward": 2, "backward": 4, "latency": 1, "capacity": 20}


def loop(num_ranks: int = 16, num_microbatches: int = 40, **changes: object) -> Pipeline:
    """F of 2 ticks, B of 4, links of 1, room for 20 activations, but for the changes."""
    given = {**SIZES, **changes, "num_ranks": num_ranks, "num_microbatches": num_microbatches}
    return Pipeline(**given)  # type: ignore[arg-type]  # any field may change


def chunked(**changes: object) -> Pipeline:
    return loop(**{"num_chunks": 2, "capacity": 35, **changes})  # type: ignore[arg-type]  # any field may change


def split(num_microbatches: int = 40, capacity: int = 14) -> Pipeline:
    return Pipeline(
        num_ranks=16,
        num_microbatches=num_microbatches,
        split_backward=True,
        forward=10,
        input_backward=11,
        weight_backward=8,
        latency=1,
        capacity=capacity,
    )


EDGES = {
    "instants": loop(forward=0),
    "nothing but instants": loop(forward=0, backward=0, latency=0),
    "bytes": chunked(activation=1 << 40, capacity=35 << 40),
    "one activation": loop(capacity=1),
    "no capacity": chunked(capacity=None),
    "uneven": loop(forward=tuple(2 + r % 3 for r in range(16))),
    "coarse": loop(forward=2 << 40, backward=4 << 40, latency=1 << 40),
    "long links": chunked(latency=500),
}


def budget(work: float = 0.1) -> Budget:
    return Budget(deadline=in_time(), threads=1, work=work)


def lined(pipeline: Pipeline, work: float = 0.1) -> Combs:
    lists = ModuloLists(pipeline.problem())
    line = line_of(lists)
    assert line is not None
    return Combs(lists, line, budget(work))


@pytest.mark.parametrize("pipeline", [loop(), split(), chunked()])
def test_lanes_are_a_schedule(pipeline: Pipeline) -> None:
    found = [accepted(pipeline.problem(), s).makespan for s in lined(pipeline).schedules()]
    assert found
    # Every rank works on 40 microbatches, of 6 ticks a chunk or of 29.
    work = 40 * (29 if pipeline.split_backward else 6 * pipeline.num_chunks)
    assert work < min(found) < 2 * work


@pytest.mark.parametrize("name", EDGES)
def test_at_the_edges_it_is_right_or_finds_nothing(name: str) -> None:
    problem = EDGES[name].problem()
    for schedule in comb_schedules(ModuloLists(problem), budget()):
        accepted(problem, schedule)


@pytest.mark.parametrize(
    "pipeline",
    [
        chunked(placement="wave"),
        loop(num_ranks=1),
        loop(num_ranks=3),
        loop(num_microbatches=15),  # fewer than ranks
        loop(latency=(1 << 40) + 1),  # no unit makes the numbers small
        chunked(forward=(2,) * 16 + (3,) * 16),  # chunks that differ
        loop(message=2, bandwidth=2),  # links that are resources
    ],
)
def test_it_steps_aside(pipeline: Pipeline) -> None:
    assert not list(comb_schedules(ModuloLists(pipeline.problem()), budget()))


def test_a_memory_that_binds_asks_for_longer_periods() -> None:
    # The work of two chunks is 12 ticks, the shortest way down and up 8 ticks a rank: at 12 ticks a
    # microbatch room for (8 + 16) * 8 / 12 = 16 is full, and every wait takes more. Lists repeat
    # every 15 1/3 ticks. Two microbatches in 14 ticks a chunk wait for nothing but that.
    pipeline = chunked(num_ranks=8, num_microbatches=128, capacity=16)
    lists = ModuloLists(pipeline.problem())
    list(lists.schedules(is_brief=True))
    assert lists.rate is not None
    found = [accepted(pipeline.problem(), s).makespan for s in comb_schedules(lists, budget())]
    assert found
    assert 12 * 128 < min(found) < lists.rate * 128


def test_a_tighter_memory_leaves_lanes_empty() -> None:
    def makespan(capacity: int) -> int:
        tight = lined(loop(capacity=capacity))
        pattern = tight.pattern(3, 20)
        assert pattern is not None
        start = tight.within_memory(pattern)
        assert start is not None
        assert tight.is_within(start)
        return int(start.max())

    # In this period a microbatch moves on by 10 ticks a rank: 16 * 10 / (20 / 3) = 24 are held.
    assert makespan(25) < makespan(20) < makespan(16)


def test_long_loops_take_five_microbatches_and_ranks_at_once() -> None:
    """Five F and five B fit ten tasks; of F, I and W three each do, whatever the ranks."""
    several = lined(chunked(num_ranks=32, num_microbatches=40, capacity=64))
    assert (several.most_count, several.size) == (5, 5)
    assert (lined(chunked()).most_count, lined(chunked()).size) == (4, 4)
    assert (lined(split()).most_count, lined(split()).size) == (3, 3)


def test_the_rate_is_that_of_the_period_or_of_the_memory() -> None:
    ample, tight = (lined(loop(capacity=room)) for room in (40, 4))
    pattern = ample.pattern(3, 20)
    assert pattern is not None
    assert ample.rate(pattern) == Fraction(20, 3)
    assert tight.rate(pattern) > Fraction(20, 3)


def four_chunks(num_ranks: int = 32, work: float = 4.0) -> Combs:
    room = 115 * num_ranks // 32
    return lined(chunked(num_ranks=num_ranks, num_chunks=4, capacity=room), work)


def test_the_first_chunk_waits_for_the_others() -> None:
    """In 24 ticks a rank works on four chunks of a microbatch and is never idle. A hop is 3 ticks
    down and 5 up. If every lane waited 4 more, as the best that are alike do, the chunks would hold
    12 (1 + 2 + 3 + 4) ticks a hop; here the first waits for most."""
    several = four_chunks()
    pattern = several.pattern(4, 24, unlike=4)
    assert pattern is not None
    down = pattern.starts[1:, 0] - pattern.starts[:-1, 0] - 3
    up = pattern.starts[:-1, 1] - pattern.starts[1:, 1] - 5
    first, *others = (down + up).sum(axis=0).tolist()
    assert min(down.min(), up.min()) >= 0
    assert sum(others) < first / 2
    assert several.rate(pattern) < Fraction(12 * 31 * 10, 115)
    start = several.within_memory(pattern)
    assert start is not None
    assert several.is_within(start)


def test_lanes_of_unlike_chunks_are_a_schedule() -> None:
    several = four_chunks()
    pattern = several.pattern(4, 26, unlike=4)
    assert pattern is not None
    (schedule,) = several._told(pattern)
    assert accepted(several.problem, schedule).makespan > 40 * 24


def test_lanes_are_unlike_where_ranks_and_chunks_are_many() -> None:
    assert four_chunks()._unlike() == [(4, 4)]
    assert four_chunks(num_ranks=16)._unlike() == []
    assert lined(chunked(num_ranks=32, capacity=64))._unlike() == []


def test_chunks_that_come_round_wait_for_no_own_forward() -> None:
    """Two last ranks, 20 ticks a period. The second chunk's B follows its own F: 10 ticks on rank 0
    and 2 behind it. The first one's F goes 3 ticks down, and its B 5 up, whenever that comes."""
    block = Block(
        ticks=((2, 4), (2, 4)),
        down=(1, 0),
        up=(1, 0),
        count=2,
        below=None,
        is_first=True,
        chunks=2,
    )
    found = search(block, 20, budget(), 1.0)
    assert found is not None
    (first, second), (last, turned) = (found[:, 1] - found[:, 0]).tolist()
    assert (first - last, second, turned) == (8, 10, 2)
    assert block.shares == [1, 2]


def test_a_block_is_the_least_for_its_period() -> None:
    # Two last ranks, F 2, B 4, links of 1 tick, one microbatch in 20 ticks: rank 0 waits for
    # F 2, link 1, F 2, B 4, link 1: B starts 10 ticks after F.
    block = Block(
        ticks=((2, 4), (2, 4)), down=(1, 0), up=(1, 0), count=1, below=None, is_first=True
    )
    found = search(block, 20, budget(), 1.0)
    assert found is not None
    assert (found[:, 1] - found[:, 0]).ravel().tolist() == [10, 2]
    assert search(block, 5, budget(), 1.0) is None  # 6 ticks of work


def test_blocks_behind_equal_combs_are_solved_once(monkeypatch: pytest.MonkeyPatch) -> None:
    solved: list[Block] = []

    def counted(block: Block, ticks: int, given: Budget) -> object:
        solved.append(block)
        return search(block, ticks, given, 1.0)

    monkeypatch.setattr(combs, "_solved", counted)
    assert lined(loop(num_ranks=64, num_microbatches=64)).pattern(1, 6) is not None
    assert len(solved) < 64 // 4  # ranks of a block


def test_nothing_is_sought_once_the_time_is_over() -> None:
    late = Budget(deadline=time.perf_counter() - 1)
    assert not list(comb_schedules(ModuloLists(split().problem()), late))


def test_a_search_takes_them_once() -> None:
    told: list[str] = []
    options = SolveOptions(work=2.0, progress=lambda who, *_: told.append(who))
    search = Search(split(num_microbatches=100, capacity=13).problem(), options)
    search.take(search._try_repeating, search._try_combs)
    assert told.count("combs") >= 1
    assert search.best is not None
    assert search.best.origin == "combs"
    before = list(told)
    search._try_combs()
    assert told == before


@pytest.mark.parametrize(("num_chunks", "comes"), [(1, 0), (2, 1)])
def test_of_one_forward_and_backward_a_rank_lists_come_before_combs(
    monkeypatch: pytest.MonkeyPatch, num_chunks: int, comes: int
) -> None:
    monkeypatch.setattr("bubbleproof.solvers.search.MOST_BOUNDED_FIRST", 100)
    monkeypatch.setattr("bubbleproof.solvers.search.MOST_TURNS", 100)
    loops = Pipeline(num_ranks=4, num_microbatches=40, num_chunks=num_chunks, capacity=3)
    search = Search(loops.problem(), SolveOptions(work=1.0, time_limit=inf))
    methods: list[str] = []
    for name in ("_try_combs", "_try_lists"):
        monkeypatch.setattr(search, name, partial(methods.append, name))
    search.begin(())
    assert methods[comes] == "_try_lists"
