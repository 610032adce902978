"""Collectives: what ZeRO adds to a problem, and PipeMesh against equations (1) to (5)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from bubbleproof.theory.families.parameters import make_parameters
from bubbleproof.theory.families.pipemesh import Computations, PipeMesh
from bubbleproof.theory.model.actions import NONE, Action, ActionTable, Kind
from bubbleproof.theory.model.measures import measure
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.programs.lowering import lower
from bubbleproof.theory.pipelines.sharding import Sharding, Visit, visits
from bubbleproof.verify import Rule, check, check_communication
from proofs_tests.sized import sized
from proofs_tests.theory.test_pipemesh import Parts, filled

Shape = tuple[int, int, int, Parts, Parts]
SHAPES: list[Shape] = list(filled(range(1, 4), 6))
SOME = sized(SHAPES[::17], full=SHAPES[::4])
OF_PEAKS = sized(SHAPES[::11], full=SHAPES[::4])


def sharded(shape: Shape, sharding: Sharding, **changes: int) -> tuple[PipeMesh, Pipeline]:
    p, chunks, m, e, d = shape
    family = PipeMesh(e, d)
    pipeline = family.pipeline(make_parameters({"p": p, "m": m, "v": chunks}))
    return family, family.sharded(pipeline.with_changes(**changes), sharding)


def run(shape: Shape, sharding: Sharding, **changes: int) -> tuple[Problem, Schedule]:
    family, pipeline = sharded(shape, sharding, **changes)
    problem = pipeline.problem()
    return problem, family.schedule(pipeline, problem)


def iteration(shape: Shape, sharding: Sharding) -> int:
    """T_iter: from time 0, when the first gather starts, to the end of the last reduction."""
    problem, schedule = run(shape, sharding)
    ticks = problem.duration[problem.locate(schedule.program.actions)]
    return int((schedule.start + ticks).max())


def late(shape: Shape, sharding: Sharding) -> int:
    """T_DP of equation (1): T_iter less computation and bubble, (M m + p - 1)(tF + tB), at 1, 2."""
    p, chunks, m, _, _ = shape
    return iteration(shape, sharding) - (chunks * m + p - 1) * 3


@pytest.mark.parametrize("zero", [1, 2, 3])
def test_every_rule_holds_with_collectives(zero: int) -> None:
    for shape in sized(SHAPES[::61], full=SHAPES[::7]):
        for ticks in (0, 2, 9):
            sharding = Sharding(
                zero=zero,
                gather=ticks,
                reduce=ticks + 1,
                regather=ticks // 2,
                parameter=3,
                gradient=2,
            )
            problem, schedule = run(shape, sharding)
            verdict = check(problem, schedule)
            assert verdict.ok, f"{shape} {sharding}\n{verdict}"
            assert check_communication(problem, lower(problem, schedule)).ok


def test_small_operations_and_other_durations_are_free_of_deadlock() -> None:
    sharding = Sharding(zero=3, gather=3, reduce=2)
    for e, d in (((1, 1, 2), (2, 1, 1)), ((4,), (1, 3)), ((1, 3), (4,))):
        for ticks in ((1, 2), (0, 1), (5, 1)):
            problem, schedule = run(
                (3, 2, 4, e, d), sharding, forward=ticks[0], backward=ticks[1], latency=1
            )
            assert check(problem, schedule).ok


def test_the_collectives_of_one_rank_by_hand() -> None:
    # One rank, M = 2, e = (1, 2), d = (3). ZeRO-3: forward visits (chunk 0, chunk 1) twice and
    # backward visits (chunk 1, chunk 0), each gathered and freed; S = 1: one reduction per chunk.
    problem, _ = run((1, 2, 3, (1, 2), (3,)), Sharding(zero=3, gather=5, reduce=7, regather=4))
    actions = problem.actions
    mine = actions.microbatch == NONE
    found = {
        (Kind(kind).name, stage, slice_): ticks
        for kind, stage, slice_, ticks in zip(
            actions.kind[mine].tolist(),
            actions.stage[mine].tolist(),
            actions.slice[mine].tolist(),
            problem.duration[mine].tolist(),
            strict=True,
        )
    }
    assert found == {
        ("UNSHARD", 0, 0): 5, ("UNSHARD", 1, 0): 5, ("UNSHARD", 0, 1): 4, ("UNSHARD", 1, 1): 4,
        ("UNSHARD", 1, 2): 0, ("UNSHARD", 0, 2): 4,
        ("RESHARD", 0, 0): 0, ("RESHARD", 1, 0): 0, ("RESHARD", 0, 1): 0, ("RESHARD", 1, 1): 0,
        ("RESHARD", 1, 2): 0, ("RESHARD", 0, 2): 0,
        ("REDUCE_GRAD", 1, 2): 7, ("REDUCE_GRAD", 0, 2): 7,
    }  # fmt: skip


@pytest.mark.parametrize(("zero", "count"), [(1, 4), (2, 8), (3, 26)])
def test_how_many_collectives_each_zero_stage_needs(zero: int, count: int) -> None:
    # M = 2, R = 2, S = 3 on one rank. ZeRO-1: M gathers and M reductions. ZeRO-2: M gathers, S M
    # reductions. ZeRO-3: (R + S) M gathers, as many frees, and S M reductions.
    problem, _ = run((1, 2, 6, (3, 3), (2, 2, 2)), Sharding(zero=zero, gather=1, reduce=1))
    assert int((problem.actions.microbatch == NONE).sum()) == count


def test_visits_go_through_the_chunks_operation_by_operation() -> None:
    listed = visits((0, 1, 0, 1), (2, 1), (3,))
    mine = [(v.is_forward, v.operation, v.stage, v.first, v.end) for v in listed if v.rank == 1]
    assert mine == [
        (True, 0, 1, 0, 2), (True, 0, 3, 0, 2), (True, 1, 1, 2, 3), (True, 1, 3, 2, 3),
        (False, 0, 3, 0, 3), (False, 0, 1, 0, 3),
    ]  # fmt: skip


def gradient_windows(shape: Shape) -> Iterator[int]:
    """Ticks of the backward visit after each of the (S-1) M reductions that are not the last."""
    _, chunks, _, _, d = shape
    sizes = [size for size in d for _ in range(chunks)]
    yield from (2 * size for size in sizes[1 : (len(d) - 1) * chunks + 1])


def test_the_lower_bound_of_section_iv_holds() -> None:
    # (M B + P - 1) C + T_PP + 2 C_DP, here with T_PP = 0.
    for zero in (1, 2, 3):
        for shape in sized(SHAPES[::17], full=SHAPES[::5]):
            assert late(shape, Sharding(zero=zero, gather=4, reduce=4)) >= 8


def weightless_peak(shape: Shape, sharding: Sharding) -> int:
    """The highest load of any rank where activations weigh nothing."""
    return max(measure(*run(shape, sharding, activation=0)).peak_memory)


def test_sharded_parameters_lie_twice_in_each_direction_at_most() -> None:
    # One stage in use and the next on its way, forwards and backwards: 4 stages of 10 units, which
    # are M_p's 8/M psi_p bytes at 2 bytes each.
    peaks = [
        weightless_peak(shape, Sharding(zero=3, gather=2, reduce=2, parameter=10))
        for shape in OF_PEAKS
    ]
    assert max(peaks) == 40


def test_units_may_differ_by_stage() -> None:
    # One rank, M = 2, one operation each way: collective 0 is the forwards', 1 the backwards'.
    shape: Shape = (1, 2, 2, (2,), (2,))
    sharding = Sharding(zero=3, gather=1, reduce=1, parameter=(100, 7), gradient=(10, 1))
    problem, _ = run(shape, sharding, activation=0)
    events, actions = problem.events, problem.actions
    found = {
        (str(actions[t]), delta)
        for t, delta in zip(events.task.tolist(), events.delta.tolist(), strict=True)
    }
    assert found == {
        ("0UNSHARD", 100),
        ("0RESHARD", -100),
        ("1UNSHARD", 7),
        ("1RESHARD", -7),
        ("0UNSHARD.1", 100),
        ("0RESHARD.1", -100),
        ("1UNSHARD.1", 7),
        ("1RESHARD.1", -7),
        ("0B0", 10),
        ("0REDUCE_GRAD.1", -10),
        ("1B0", 1),
        ("1REDUCE_GRAD.1", -1),
    }
    with pytest.raises(ValueError, match=r"parameter must be one number or one per stage \(2\)"):
        run(shape, Sharding(zero=3, gather=1, reduce=1, parameter=(1, 2, 3)))


def test_gradients_lie_twice_at_most() -> None:
    # One stage accumulates while the one before is reduced: M_g's 4/M psi_g at 2 bytes each.
    peaks = [
        weightless_peak(shape, Sharding(zero=2, gather=2, reduce=9, gradient=10))
        for shape in OF_PEAKS
    ]
    assert max(peaks) == 20


@pytest.mark.parametrize(
    ("kind", "stage", "slice_", "shift"),
    [(Kind.UNSHARD, 0, 0, 1), (Kind.REDUCE_GRAD, 1, 2, -1), (Kind.RESHARD, 1, 0, -1)],
)
def test_a_collective_at_the_wrong_time_is_found(
    kind: Kind, stage: int, slice_: int, shift: int
) -> None:
    problem, schedule = run((1, 2, 3, (1, 2), (3,)), Sharding(zero=3, gather=5, reduce=7))
    action = Action(stage=stage, kind=kind, slice=slice_)
    task = problem.locate(ActionTable.from_actions([action]))
    assert task[0] != NONE
    own = problem.locate(schedule.program.actions) == task
    moved = Schedule(program=schedule.program, start=schedule.start + shift * own)
    assert Rule.DEPENDENCIES in check(problem, moved).broken


def test_two_collectives_at_once_on_one_nic_are_found() -> None:
    problem, schedule = run((1, 2, 3, (1, 2), (3,)), Sharding(zero=1, gather=5, reduce=7))
    second = problem.locate(ActionTable.from_actions([Action(stage=1, kind=Kind.UNSHARD)]))
    own = problem.locate(schedule.program.actions) == second
    together = Schedule(program=schedule.program, start=np.where(own, 4, schedule.start))
    assert check(problem, together).broken == (Rule.EXCLUSIVE,)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"zero": 0, "gather": 1, "reduce": 1}, "zero must be 1, 2 or 3, got 0"),
        ({"zero": 1, "gather": -1, "reduce": 1}, "gather of a sharding must be 0 or more, got -1"),
        (
            {"zero": 3, "gather": 1, "reduce": 1, "parameter": (3, -2)},
            "parameter of a sharding must be 0 or more, got -2",
        ),
    ],
)
def test_what_is_no_sharding(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        Sharding(**given)
    assert str(caught.value) == message


def test_collectives_and_order_must_follow_the_same_sequences() -> None:
    _, pipeline = sharded((2, 2, 4, (4,), (2, 2)), Sharding(zero=1, gather=1, reduce=1))
    with pytest.raises(ValueError, match=r"the collectives follow e, d = \(\(4,\), \(2, 2\)\)"):
        PipeMesh((2, 2), (2, 2)).schedule(pipeline)
    with pytest.raises(ValueError, match="e must be numbers of 1 or more that add up to the 4"):
        PipeMesh((3,)).sharded(pipeline, Sharding(zero=1, gather=1, reduce=1))


def test_forwards_go_by_slice_and_backwards_the_other_way() -> None:
    problem = Pipeline(num_ranks=1, num_microbatches=2, num_slices=2).problem()
    computations = Computations(problem)
    for is_forward, expected in (
        (True, ["0F0.0", "0F0.1", "0F1.0", "0F1.1"]),
        (False, ["0B0.1", "0B0.0", "0B1.1", "0B1.0"]),
    ):
        visit = Visit(rank=0, number=0, is_forward=is_forward, operation=0, stage=0, first=0, end=2)
        assert [problem.label(task) for task in computations.of(visit).tolist()] == expected
