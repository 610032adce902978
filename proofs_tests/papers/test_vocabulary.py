"""Vocabulary parallelism: what its problem says, and its order, by the source's code and figure."""

from __future__ import annotations

from collections import Counter
from itertools import product

import pytest

from bubbleproof.papers.field.vocabulary import vocabulary_order, with_output_layer
from bubbleproof.solvers.bounds import lower_bounds
from bubbleproof.theory.model.measures import measure
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.timing import left_shift
from bubbleproof.verify import check
from bubbleproof.verify.required_table import stated

# Figure 10, p=4 m=8, by device, without the input layer's passes; S and T of the output layer.
FIGURE = {
    2: """F1 F2 F3 F4 S1 F5 T1 S2 F6 T2 S3 T3 S4 B1 T4 S5 F7 B2 T5 S6 F8 B3 T6 S7 B4 T7 S8 B5 T8
          B6 B7 B8
          F1 F2 F3 S1 F4 T1 S2 F5 T2 S3 B1 T3 S4 F6 B2 T4 S5 F7 B3 T5 S6 F8 B4 T6 S7 B5 T7 S8 B6
          T8 B7 B8
          F1 F2 S1 F3 T1 S2 F4 T2 S3 B1 T3 S4 F5 B2 T4 S5 F6 B3 T5 S6 F7 B4 T6 S7 F8 B5 T7 S8 B6
          T8 B7 B8
          F1 S1 F2 T1 S2 F3 B1 T2 S3 F4 B2 T3 S4 F5 B3 T4 S5 F6 B4 T5 S6 F7 B5 T6 S7 F8 B6 T7 S8
          B7 T8 B8""",
    1: """F1 F2 F3 F4 S1 F5 T1 S2 T2 S3 B1 T3 S4 F6 B2 T4 S5 F7 B3 T5 S6 F8 B4 T6 S7 B5 T7 S8 B6 T8
          B7 B8
          F1 F2 F3 S1 F4 T1 S2 B1 T2 S3 F5 B2 T3 S4 F6 B3 T4 S5 F7 B4 T5 S6 F8 B5 T6 S7 B6 T7 S8
          B7 T8 B8
          F1 F2 S1 F3 T1 S2 B1 T2 S3 F4 B2 T3 S4 F5 B3 T4 S5 F6 B4 T5 S6 F7 B5 T6 S7 F8 B6 T7 S8
          B7 T8 B8
          F1 S1 F2 B1 T1 S2 F3 B2 T2 S3 F4 B3 T3 S4 F5 B4 T4 S5 F6 B5 T5 S6 F7 B6 T6 S7 F8 B7 T7
          S8 B8 T8""",
}
SHAPES = [*product(range(1, 6), range(1, 8), (1, 2))]
TICKS = [(1, 1), (1, 2), (2, 3), (1, 4)]


def drawn(barriers: int) -> Program:
    """The figure's order; S of device d is the F of stage 5 + d here, T its W."""
    orders: list[list[str]] = []
    for word in FIGURE[barriers].split():
        if word == "F1":
            orders.append([])
        stage, kind = len(orders) - 1, {"S": "F", "T": "W"}.get(word[0], word[0])
        orders[-1].append(f"{stage + 5 * (word[0] in 'ST')}{kind}{int(word[1:]) - 1}")
    sums = [f"10{kind}{j}" for j in range(8) for kind in "FB"[:barriers]]
    return Program.from_orders([*orders, sums])


def placed(p: int, f: int, b: int) -> tuple[list[bool], list[int]]:
    """Of each rank ``is_bsf`` and ``num_warmup_s_pass``, as the source counts them."""
    offset, is_bsf = 0, [True]
    while len(is_bsf) < p:
        if offset - f >= -b:
            offset -= f
        else:
            is_bsf.append(False)
            offset += b - f
        is_bsf.append(True)
    is_bsf = is_bsf[:p][::-1]
    warm = [0] * p
    for r in range(p - 2, -1, -1):
        warm[r] = warm[r + 1] + (not (not is_bsf[r + 1] and is_bsf[r]))
    return is_bsf, warm


def played(p: int, m: int, barriers: int, ticks: tuple[int, int], rank: int) -> list[str]:  # noqa: C901 - as the source has it
    """A rank's order as ``forward_backward_pipelining_with_vocab_parallel`` runs it.

    ``disable_backward_fusion`` is two barriers; ``lm_head_step_helper(j)`` is T of j - 1 and S of
    j, each where it is a microbatch; the input layer's steps are left out.
    """
    is_bsf, warm = placed(p, *ticks)
    unfused = barriers == 2
    order: list[str] = []
    to_score = m

    def forward(j: int) -> None:
        if j < m:
            order.append(f"{rank}F{j}")

    def head(j: int) -> None:
        nonlocal to_score
        to_score -= 1
        order.extend([f"{p + 1 + rank}W{j - 1}"] * (0 < j <= m) + [f"{p + 1 + rank}F{j}"] * (j < m))

    ahead = min(p - rank, m)
    remaining = max(0, m - ahead - 1)
    if unfused:
        remaining = max(0, remaining - 1)
    for j in range(ahead):
        forward(j)
    head(0)
    forward(ahead)
    if unfused:
        head(1)
        forward(ahead + 1)
    for i in range(warm[rank]):
        if to_score >= 1 - unfused:
            head(i + 1 + unfused)
    for i in range(remaining):
        order.append(f"{rank}B{i}")
        if is_bsf[rank]:
            head(m - to_score)
        forward(i + ahead + 1 + unfused)
        if not is_bsf[rank]:
            head(m - to_score)
    for i in range(remaining, m):
        order.append(f"{rank}B{i}")
        if to_score >= 1 - unfused:
            head(m - to_score)
    if not unfused:
        head(m)
    return order


@pytest.mark.parametrize("ticks", TICKS)
def test_the_order_is_that_of_its_source(ticks: tuple[int, int]) -> None:
    for p, m, barriers in SHAPES:
        pipeline = Pipeline(num_ranks=p, num_microbatches=m, forward=ticks[0], backward=ticks[1])
        orders = vocabulary_order(pipeline, barriers).orders(p + 1)
        for rank in range(p):
            found, last = [*map(str, orders[rank])], f"{p + 1 + rank}W{m - 1}"
            code = played(p, m, barriers, ticks, rank)
            if barriers == 1:  # its last T is the figure's
                assert code.pop() == last
                found.remove(last)
            assert found == code


@pytest.mark.parametrize("barriers", [1, 2])
def test_what_it_adds_to_a_pipeline_is_what_the_paper_says(barriers: int) -> None:
    for p, m, v, split in product(range(1, 5), range(1, 4), (1, 2), (False, True)):
        pipeline = Pipeline(
            num_ranks=p, num_microbatches=m, num_chunks=v, split_backward=split, latency=3
        )
        plain, end = stated(pipeline.problem()), p * v
        found = stated(with_output_layer(pipeline, score=5, weight=7, barriers=barriers))
        tasks, waits = plain.tasks.copy(), plain.waits.copy()
        for j, r in product(range(m), range(p)):
            s, t = f"{end + 1 + r}F{j}", f"{end + 1 + r}W{j}"
            sums = [f"{end + p + 2}F{j}", f"{end + p + 2}B{j}"][:barriers]
            tasks |= {s: (5, frozenset({f"rank {r}"})), t: (7, frozenset({f"rank {r}"}))}
            tasks |= dict.fromkeys(sums, (0, frozenset({"all-reduces"})))
            waits += Counter({(f"{end - 1}F{j}", s, 0): 1, (s, sums[0], 0): 1, (sums[0], t, 0): 1})
            waits += Counter({(t, each, 0): 1 for each in sums[1:]})
            back = f"{end - 1}{'I' if split else 'B'}{j}"
            waits += Counter({(sums[-1], back, 0): 1} if r == 0 else {})
        assert (found.tasks, found.waits) == (tasks, waits)
        assert (found.changes, found.stores) == (plain.changes, plain.stores)


@pytest.mark.parametrize("barriers", [1, 2])
def test_the_order_that_the_paper_draws_takes_and_holds_the_same(barriers: int) -> None:
    # The drawing has F 2 wide, B 4, S and T 1 each, and the input layer's passes, counted to S and
    # T here, 1 each: 8 microbatches of 10 ticks and the bubble of 1F1B, 3 x 6; with one barrier
    # device 4's last T is not waited for.
    pipeline = Pipeline(num_ranks=4, num_microbatches=8, forward=2, backward=4)
    problem = with_output_layer(pipeline, score=2, weight=2, barriers=barriers)
    for order in (drawn(barriers), vocabulary_order(pipeline, barriers)):
        schedule = left_shift(problem, order)
        assert check(problem, schedule).ok
        got = measure(problem, schedule)
        assert got.makespan == 8 * 10 + 3 * 6 - 2 * (barriers == 1)
        assert got.peak_activations == tuple(4 - rank + barriers for rank in range(4))


def test_with_two_barriers_no_order_is_shorter() -> None:
    """The last rank begins after p-1 forwards, and p-1 backwards follow whatever it ends with."""
    for p, m, barriers in SHAPES:
        pipeline = Pipeline(num_ranks=p, num_microbatches=m)
        problem = with_output_layer(pipeline, score=1, weight=1, barriers=barriers)
        schedule = left_shift(problem, vocabulary_order(pipeline, barriers))
        assert check(problem, schedule).ok
        if barriers == 2:
            least = lower_bounds(problem).best.bound
            assert least == measure(problem, schedule).makespan == 5 * m + 3 * (p - 1)
