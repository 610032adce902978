"""Forwards alone: no backward, nothing held between forwards, and what is refused."""

from __future__ import annotations

from collections import Counter
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import bubbleproof as bp
from bubbleproof.formats import ScheduleFile
from bubbleproof.theory.families import families, family
from bubbleproof.theory.model.actions import Kind
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.recompute import Recompute
from bubbleproof.verify.required import differences
from proofs_tests.theory.pipeline_rows import edges, events
from proofs_tests.theory.test_families import literal_megatron

TWO = Pipeline(
    num_ranks=2,
    num_microbatches=1,
    forward=3,
    activation=4,
    message=2,
    bandwidth=1,
    latency=1,
    frozen_stages=(0, 1),
)
NUMBERS: dict[str, dict[str, object]] = {
    "plain": {},
    "links": {"message": 2, "bandwidth": 1, "latency": 3},
    "split": {"split_backward": True, "weight_backward": 2, "weight_parts": (1, 1)},
    "upward": {"placement": "bidirectional"},
    "sliced": {"num_slices": 2},
    "wave": {"placement": "wave", "num_chunks": 2, "weight_workspace": 3, "activation": 5},
}


def alone(**given: object) -> Pipeline:
    """A pipeline in which no stage is trained."""
    made = Pipeline(**{"num_ranks": 4, "num_microbatches": 4, **given})  # type: ignore[arg-type]  # fields by name
    return made.with_changes(frozen_stages=tuple(range(made.num_stages)))


def test_the_tasks_and_the_memory_of_forwards_alone_by_hand() -> None:
    made = TWO.problem()
    ticks = {made.label(task): int(made.duration[task]) for task in range(made.num_tasks)}
    assert ticks == {"0F0": 3, "1F0": 3, "0SEND_F0": 2}
    # The message of 2 units at 1 a tick is there 1 tick later; so is the F, 2 + 1 after the first.
    assert edges(made) == Counter(
        [("0F0", "1F0", 3), ("0F0", "0SEND_F0", 0), ("0SEND_F0", "1F0", 1)]
    )
    held = {(f"{g}F0", moment, g, sign * 4) for g in (0, 1) for moment, sign in
            (("start", 1), ("end", -1))}  # fmt: skip
    assert events(made) == Counter(held)


@pytest.mark.parametrize("name", NUMBERS)
def test_what_is_required_is_stated_twice(name: str) -> None:
    pipeline = alone(**NUMBERS[name])
    assert differences(pipeline, pipeline.problem()) == []
    for others in ((), (0,)):
        trained = pipeline.with_changes(frozen_stages=others)
        assert differences(pipeline, trained.problem()) != []
        assert differences(trained, pipeline.problem()) != []


@pytest.mark.parametrize("v", [1, 2, 3])
def test_the_family_by_its_closed_form(v: int) -> None:
    for p in range(1, 5):
        for m in range(1, 9):
            made = bp.family("forward")(p=p, m=m, v=v)
            assert bp.check(made.pipeline, made.schedule).ok
            found = bp.measure(made.pipeline, made.schedule)
            assert found.peak_activations == (1,) * p
            assert found.makespan >= m * v + p - 1
            if v == 1 or m % p == 0:
                assert found.makespan == m * v + p - 1
                assert bp.solve(made.pipeline).makespan == found.makespan


def test_rank_1_of_two_chunks_by_hand() -> None:
    made = bp.family("forward")(p=2, m=3, v=2)
    order = "1F0 1F1 3F0 3F1 1F2 3F2"  # groups of two microbatches, chunk by chunk
    assert " ".join(map(str, made.schedule.program.orders(2)[1])) == order


def test_with_chunks_the_order_is_that_of_megatrons_forwards() -> None:
    for p, m, v in product(range(1, 5), range(1, 9), range(1, 4)):
        orders = literal_megatron(p, m, v).orders(p)
        theirs = [[each for each in order if each.kind is Kind.F] for order in orders]
        assert bp.family("forward")(p=p, m=m, v=v).schedule.program.orders(p) == theirs


@pytest.mark.torch
def test_with_one_chunk_it_is_that_of_pytorchs_forward_only_schedule() -> None:
    """Run as it is, on a stage that notes what it is asked for."""
    schedules = pytest.importorskip("torch.distributed.pipelining.schedules")
    ran: list[int] = []
    stage = SimpleNamespace(
        stage_index=0,
        get_fwd_recv_ops=lambda _: [],
        get_fwd_send_ops=lambda _: [],
        forward_one_chunk=lambda number, *_: ran.append(number),
    )
    theirs = schedules._ScheduleForwardOnly.__new__(schedules._ScheduleForwardOnly)
    vars(theirs).update(
        _stage=stage,
        _n_microbatches=5,
        _check_inputs=lambda *_: ([()] * 5, [{}] * 5),
        _initialize_stage=lambda *_: None,
    )
    theirs._step_microbatches()
    ours = bp.family("forward")(p=2, m=5).schedule.program.orders(2)[0]
    assert ran == [each.microbatch for each in ours]


def test_no_other_family_orders_it_and_it_orders_nothing_else() -> None:
    pipeline = alone()
    assert [name for name, each in families().items() if each.refusal(pipeline) is None] == [
        "forward"
    ]
    trained = pipeline.with_changes(frozen_stages=())
    why = "forward trains nothing (frozen_stages = all 4 stages)"
    assert family("forward").refusal(trained) == why
    assert family("forward").refusal(family("forward").fitted(trained)) == why  # drops no work


def test_a_table_of_forwards_alone_is_one(tmp_path: Path) -> None:
    path = tmp_path / "evaluation.csv"
    path.write_text("0F0,0F1,0F2,\n,1F0,1F1,1F2\n")
    file = bp.read(path)
    assert isinstance(file, ScheduleFile)
    assert file.pipeline == Pipeline(
        num_ranks=2, num_microbatches=3, placement=(0, 1), frozen_stages=(0, 1)
    )
    assert bp.check(file).ok
    path.write_text("0F0,0F1,0F2,,\n,1F0,1F1,1F2,1B0\n")  # one backward, and it is a training
    assert not bp.check(bp.read(path)).ok


def test_a_wrong_forward_is_found() -> None:
    made = bp.family("forward")(p=2, m=2)
    moved = made.schedule.start.copy()
    moved[np.flatnonzero(made.schedule.program.actions.stage == 1)[0]] = (
        0  # before it has its input
    )
    early = made.schedule.__class__(program=made.schedule.program, start=moved)
    found = bp.check(made.pipeline, early)
    assert {one.rule.name for one in found.violations} == {
        "DEPENDENCIES",
        "DATAFLOW",
        "COMMUNICATION",
    }
    trained = bp.Pipeline(num_ranks=2, num_microbatches=2)
    assert {one.rule.name for one in bp.check(trained, made.schedule).violations} >= {"COMPLETE"}


def test_what_it_refuses() -> None:
    for given, why in (
        ({"recompute": Recompute(stages=(0,))}, "0F0 has no backward of its own"),
        ({"overlaps": (((0, 0), (0, 0)),)}, "overlap needs 0F0 and 0B0 as tasks of one rank"),
    ):
        with pytest.raises(ValueError, match=why):
            alone(**given)
    with pytest.raises(ValueError, match="forward takes no parameter tB, got tB=2"):
        bp.family("forward")(p=2, m=2, tB=2)
    kinds = {action.kind for action in bp.family("forward")(p=2, m=2).problem.actions}
    assert kinds == {Kind.F}
