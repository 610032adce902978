"""Replicas: equal bits and predicted bytes with parameters at mixed ZeRO levels, and teeth."""

from __future__ import annotations

import os
import random
from dataclasses import replace

import numpy as np
import pytest
import torch

from bubbleproof.reference_exec import collectives, shards
from bubbleproof.reference_exec.broken import BrokenProgram
from bubbleproof.reference_exec.data_parallel import in_replicas
from bubbleproof.reference_exec.plan import Plan
from bubbleproof.reference_exec.prepared import lowered_program, replay_plan
from bubbleproof.reference_exec.replay import NotVerified, replay
from bubbleproof.reference_exec.report import ReplayReport
from bubbleproof.reference_exec.spec import ModelSpec
from bubbleproof.reference_exec.step import training_step
from bubbleproof.reference_exec.training import Training
from bubbleproof.reference_exec.virtual import ReplayStalled, run_virtual
from bubbleproof.reference_exec.zero_levels import ZeroLevels
from bubbleproof.theory.actions import Action, Kind
from bubbleproof.theory.collectives import Sharding
from bubbleproof.theory.families.parameters import make_parameters
from bubbleproof.theory.families.pipemesh import PipeMesh
from bubbleproof.theory.pipeline import Pipeline
from bubbleproof.theory.problem import Problem
from bubbleproof.theory.schedule import Schedule
from bubbleproof.theory.sharded import ShardedPipeline
from bubbleproof.verify.communication import Semantics
from proofs_tests.reference_exec.cases import TINY, family_case
from proofs_tests.reference_exec.swapped import swapped
from proofs_tests.theory.test_pipemesh import filled
from proofs_tests.verify.dataflow.samples import without

FULL = os.environ.get("BUBBLEPROOF_SWEEP") == "full"
Made = tuple[Problem, Schedule]


def sharded(
    zero: int,
    *,
    p: int = 2,
    v: int = 2,
    m: int = 4,
    e: tuple[int, ...] | None = None,
    d: tuple[int, ...] | None = None,
    ticks: Sharding | None = None,
    **changes: int,
) -> tuple[PipeMesh, ShardedPipeline]:
    """PipeMesh with the collectives of a ZeRO level, of 1 tick each unless ``ticks`` says more."""
    family = PipeMesh(e, d)
    pipeline = family.pipeline(make_parameters({"p": p, "m": m, "v": v})).with_changes(**changes)
    sharding = Sharding(zero=zero, gather=1, reduce=1) if ticks is None else ticks
    return family, family.sharded(pipeline, replace(sharding, zero=zero))


def mesh(zero: int, **options: object) -> Made:
    """The problem and the schedule of ``sharded``."""
    family, pipeline = sharded(zero, **options)  # type: ignore[arg-type]  # handed on
    problem = pipeline.problem()
    return problem, family.schedule(pipeline, problem)


def run(made: Made, spec: ModelSpec = TINY, **options: object) -> ReplayReport:
    return replay(*made, spec, **options)  # type: ignore[arg-type]  # tests pass what they mean


def plan_of(made: Made, spec: ModelSpec = TINY, *, replicas: int, levels: str) -> Plan:
    problem, schedule = made
    step = training_step(problem)
    step, parallel = in_replicas(step, spec, replicas, ZeroLevels.parse(levels))
    lowered = lowered_program(problem, step, schedule, spec)
    return replay_plan(problem, step, schedule, lowered, spec, parallel)


@pytest.mark.parametrize("zero", [1, 2, 3])
@pytest.mark.parametrize("replicas", [1, 2, 3])
def test_every_level_replays_on_any_number_of_replicas(zero: int, replicas: int) -> None:
    seed = 3 * zero + replicas
    spec = replace(TINY, kind=("mlp", "llama")[seed % 2], hidden=8, seed=seed)
    semantics = list(Semantics)[seed % 4]
    report = run(mesh(zero), spec, data_parallel=replicas, seed=seed, semantics=semantics)
    assert report.ok, str(report)
    assert (report.data_parallel, report.zero) == (replicas, str(zero))
    assert len(report.measured_peak_bytes) == len(report.measured_state_bytes) == 2 * replicas
    assert report.num_updated_stages == 4


@pytest.mark.parametrize("levels", ["3,norm=1", "2,up=3,norm=1", "1,weight=3", "3,bias=2,down=1"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_mixed_levels_replay(levels: str, dtype: str) -> None:
    spec = replace(TINY, layers=(1, 2, 1, 3), dtype=dtype)
    report = run(mesh(3), spec, data_parallel=2, zero=ZeroLevels.parse(levels))
    assert report.ok, str(report)


def test_lower_levels_replay_on_the_collectives_of_higher_ones() -> None:
    for zero, levels in ((3, "2"), (3, "1"), (2, "1,norm=2")):
        report = run(mesh(zero), data_parallel=2, zero=ZeroLevels.parse(levels))
        assert report.ok, str(report)


@pytest.mark.sweep
def test_random_shapes_ticks_and_levels_replay() -> None:
    choice = random.Random(0)
    shapes = list(filled(range(1, 4), 6))
    for seed in range(300 if FULL else 5):
        p, v, m, e, d = choice.choice(shapes)
        zero = choice.randint(1, 3)
        ticks = Sharding(
            zero=zero,
            gather=choice.choice((0, 1, 4, 9)),
            reduce=choice.choice((0, 1, 3, 7)),
            regather=choice.choice((None, 0, 2)),
            rereduce=choice.choice((None, 0, 2)),
        )
        made = mesh(
            zero, p=p, v=v, m=m, e=e, d=d, ticks=ticks,
            forward=choice.randint(1, 3), backward=choice.randint(1, 5),
            latency=choice.choice((0, 0, 2)),
        )  # fmt: skip
        levels = [choice.randint(1, zero) for _ in range(3)]
        spec = replace(TINY, layers=tuple(choice.randint(1, 2) for _ in range(p * v)), seed=seed)
        report = run(
            made, spec, data_parallel=choice.randint(1, 3), seed=seed,
            zero=ZeroLevels(
                default=levels[0], exceptions=(("norm", levels[1]), ("up", levels[2]))
            ),
        )  # fmt: skip
        assert report.ok, f"{p, v, m, e, d} {ticks} {levels}: {report}"


# What lies where, for how long


def test_live_bytes_of_each_action_by_hand() -> None:
    # One rank, one stage of 156 weights: w = 1248 bytes; one sample holds 728 (see TINY). All of
    # level 3. The first B of the visit makes room for the gradient before it runs, so it is sampled
    # twice; the last REDUCE_GRAD gives it back.
    made = mesh(3, p=1, v=1, m=2, e=(2,), d=(2,))
    plan = plan_of(made, replicas=2, levels="3")
    order = [str(action) for action in plan.order(0)]
    assert order.count("0UNSHARD") == order.count("0REDUCE_GRAD.1") == 2
    assert order.count("0RESHARD") == order.count("0RESHARD.1") == 1
    w = 1248
    changes: dict[str, list[tuple[int, ...]]] = {
        "0UNSHARD": [(w,), (0,)], "0UNSHARD.1": [(w,), (0,)], "0RESHARD": [(-w,)],
        "0RESHARD.1": [(-w,)], "0F0": [(728,)], "0F1": [(728,)], "0B0": [(w, -728)],
        "0B1": [(-728,)], "0REDUCE_GRAD.1": [(0,), (-w,)],
    }  # fmt: skip
    expected, live = [], 0
    for action in order:
        for change in changes[action].pop(0):
            live += change
            expected.append(live)
    for result in run_virtual(plan):
        assert list(result.live_bytes) == expected
        # half of 156 weights and of their gradients
        assert result.state_bytes == 2 * 78 * 8


@pytest.mark.parametrize(
    ("levels", "state"),
    [
        # TINY: 64 + 64 weights of GEMMs, 16 + 4 biases, 8 of the norm: 156. Two members.
        ("1", 2 * 78 + 156 + 156),  # shards; whole parameters; whole gradients
        ("2", 2 * 78 + 156),
        ("3", 2 * 78),
        ("3,norm=1", 2 * (74 + 4) + 8 + 8),
        ("3,norm=2", 2 * (74 + 4) + 8),
    ],
)
def test_state_bytes_by_hand(levels: str, state: int) -> None:
    made = mesh(3, p=1, v=1, m=2, e=(2,), d=(2,))
    report = run(made, data_parallel=2, zero=ZeroLevels.parse(levels))
    assert report.measured_state_bytes == report.predicted_state_bytes == (state * 8,) * 2


def test_what_is_freed_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    freed: list[shards.Buffer] = []
    right = shards.Buffer.free

    def watched(self: shards.Buffer) -> None:
        assert self.flat.untyped_storage().nbytes() > 0
        right(self)
        freed.append(self)

    monkeypatch.setattr(shards.Buffer, "free", watched)
    made = mesh(3)
    assert run(made, data_parallel=2).ok
    kinds = made[0].actions.is_kind(Kind.RESHARD, Kind.REDUCE_GRAD)
    assert len(freed) == 2 * int(kinds.sum())
    assert all(buffer.flat.untyped_storage().nbytes() == 0 for buffer in freed)


def test_parameters_are_nowhere_between_their_collectives() -> None:
    # after the run every storage of every parameter of a sharded stage is empty
    plan = plan_of(mesh(3), replicas=2, levels="3")
    held: list[int] = []
    right = shards.StageShards.step

    def looking(self: shards.StageShards) -> None:
        held.extend(p.untyped_storage().nbytes() for p in self._parameters.values())
        held.extend(len(self.copies) + len(self.gradients) for _ in range(1))
        right(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shards.StageShards, "step", looking)
        run_virtual(plan)
    assert len(held) > 0
    assert set(held) == {0}


def test_buffers_that_stay_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards.Buffer, "free", lambda _: None)
    kept = []
    right = shards.StageShards.free_copy

    def hoarding(self: shards.StageShards, number: int) -> None:
        kept.append(self.copies[number])
        right(self, number)

    monkeypatch.setattr(shards.StageShards, "free_copy", hoarding)
    with pytest.raises(
        BrokenProgram, match=r"rank [01] of replica [01], action .* bytes still held"
    ):
        run(mesh(3), data_parallel=2)


# Sums and updates


def test_another_order_of_members_gives_other_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    # (g_2 + g_1) + g_0 is not (g_0 + g_1) + g_2, but just as near to the ordinary backward
    right = collectives.Collectives.__init__

    def backwards(self: collectives.Collectives, *args: object, **options: object) -> None:
        right(self, *args, **options)  # type: ignore[arg-type]  # handed on as they came
        self._members = self._members[::-1]

    monkeypatch.setattr(collectives.Collectives, "__init__", backwards)
    report = run(mesh(1), data_parallel=3)
    assert not report.gradients_equal
    assert report.max_relative_error <= report.tolerance
    assert run(mesh(1), data_parallel=2).gradients_equal  # a + b is b + a


def test_a_member_left_out_of_a_sum_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    right = shards.StageShards.add_reduced

    def halved(
        self: shards.StageShards, level: int, gradient: shards.Buffer, total: torch.Tensor
    ) -> None:
        right(self, level, gradient, total / 2 if self.stage == 1 else total)

    monkeypatch.setattr(shards.StageShards, "add_reduced", halved)
    report = run(mesh(2), data_parallel=2)
    assert not report.gradients_equal
    assert not report.weights_equal
    assert report.max_relative_error > 0.1


def test_replicas_train_on_samples_of_their_own() -> None:
    # two replicas of two microbatches make the batch of one replica of four
    spec = replace(TINY, kind="transformer")
    two = run(mesh(2, m=2), spec, data_parallel=2)
    four = run(mesh(2, m=4), spec)
    assert two.ok
    assert four.ok
    assert two.loss == pytest.approx(four.loss, rel=1e-13)


@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "adam"])
def test_shards_train_for_several_steps(optimizer: str) -> None:
    training = Training(optimizer=optimizer, steps=3, has_barrier=optimizer == "adam")
    report = run(
        mesh(3), data_parallel=2, zero=ZeroLevels.parse("3,norm=1,up=2"), training=training
    )
    assert report.ok, str(report)
    assert (report.steps, report.weights_equal) == (3, True)
    assert report.max_weight_error <= report.tolerance


def test_a_step_on_a_wrong_shard_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    right = shards.StageShards.step

    def once_more(self: shards.StageShards) -> None:
        right(self)
        if self.member == 1:
            right(self)

    monkeypatch.setattr(shards.StageShards, "step", once_more)
    report = run(mesh(3), data_parallel=2)
    assert report.gradients_equal
    assert report.failures == ("updated weights differ from a step with the expected gradients",)


# Faults


@pytest.mark.parametrize("zero", [1, 2, 3])
@pytest.mark.parametrize("kind", [Kind.UNSHARD, Kind.RESHARD, Kind.REDUCE_GRAD])
def test_a_dropped_collective_is_refused_and_shows_when_forced(zero: int, kind: Kind) -> None:
    problem, schedule = mesh(zero, m=4, e=(2, 2), d=(2, 2))
    dropped = [str(a) for a in schedule.program.actions if a.kind is kind and a.stage == 1]
    assert bool(dropped) == (kind is not Kind.RESHARD or zero == 3)
    for text in dropped:
        poorer = without(schedule, text)
        with pytest.raises(NotVerified, match="replay refuses what is not verified"):
            run((problem, poorer), data_parallel=2)
        report = run((problem, poorer), data_parallel=2, unsafe=True)
        assert not report.ok
        assert "complete" in report.broken_rules
        assert report.stopped.startswith("BrokenProgram: rank 1 of replica ")
    last = {"UNSHARD": "not here", "RESHARD": "never freed", "REDUCE_GRAD": "never reduced"}
    if dropped:
        assert last[kind.name] in report.stopped
        assert "dataflow" in report.broken_rules


def test_without_any_reduction_the_run_ends_too() -> None:
    problem, schedule = mesh(2, m=2, e=(2,), d=(2,))
    poorer = without(schedule, "0REDUCE_GRAD.1", "1REDUCE_GRAD.1")
    report = run((problem, poorer), data_parallel=2, unsafe=True)
    assert not report.ok
    assert {"complete", "dataflow"} <= set(report.broken_rules)
    assert "never reduced" in report.stopped


def test_replicas_that_differ_in_order_end_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of(mesh(1), replicas=2, levels="1")
    right = Plan.order

    def differing(self: Plan, process: int) -> list[Action]:
        order = right(self, process)
        return swapped(order) if self.seat(process)[0] == 1 else order

    monkeypatch.setattr(Plan, "order", differing)
    for seed in range(4):
        with pytest.raises(BrokenProgram) as caught:
            run_virtual(plan, seed=seed)
        assert "must issue their collectives in one order" in str(caught.value)
        assert "UNSHARD met " in str(caught.value)


def test_a_replica_without_a_collective_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    # the last collective of its rank: there is nothing later that could be mistaken for it
    plan = plan_of(mesh(1), replicas=2, levels="1")
    right = Plan.order
    last = [a for a in right(plan, 0) if a.kind is Kind.REDUCE_GRAD][-1]

    def shorter(self: Plan, process: int) -> list[Action]:
        order = right(self, process)
        return [a for a in order if a != last] if process == 2 else order

    monkeypatch.setattr(Plan, "order", shorter)
    with pytest.raises((ReplayStalled, BrokenProgram)) as caught:
        run_virtual(plan)
    stalled = f"rank 0 of replica 0: {last} waits for {last} with replica 1"
    assert stalled in str(caught.value) or "never reduced" in str(caught.value)


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        (["0UNSHARD", "0UNSHARD", "0UNSHARD"], "0UNSHARD runs twice"),
        (["0F0"], "the ZeRO-3 parameters of stage 0 are not here; UNSHARD 0 has not brought them"),
        (["0UNSHARD", "0F0"], "parameters of stage 0 are not here"),
        (["0UNSHARD", "0RESHARD"], "copy 0 of stage 0 is not here to be freed"),
        (["0RESHARD"], "copy 0 of stage 0 is not here to be freed"),
        (["0REDUCE_GRAD.1"], "stage 0 has no ZeRO-3 gradient for REDUCE_GRAD 1"),
        (["0UNSHARD"], "left over: 0UNSHARD not waited for"),
        (["0UNSHARD", "0UNSHARD"], "left over: 0UNSHARD.0 never freed"),
        (["0UNSHARD", "0UNSHARD", "0F0", "0RESHARD", "0B0"], "UNSHARD 1 has not brought them"),
    ],
)
def test_what_no_rank_can_run(actions: list[str], message: str) -> None:
    plan = plan_of(mesh(3, p=1, v=1, m=2, e=(2,), d=(2,)), replicas=1, levels="3")
    program = replace(
        plan.program,
        actions=type(plan.program.actions).from_actions(map(Action.parse, actions)),
        resource=np.zeros(len(actions), dtype=np.int64),
    )
    with pytest.raises(BrokenProgram, match=message):
        run_virtual(replace(plan, program=program))


# What is read back, and what is refused


def test_visits_are_read_back_from_what_collectives_wait_for() -> None:
    for p, v, m, e, d in list(filled(range(1, 4), 6))[::9]:
        for zero in (1, 2, 3):
            _, pipeline = sharded(zero, p=p, v=v, m=m, e=e, d=d)
            step = training_step(pipeline.problem())
            assert isinstance(step, ShardedPipeline)
            if zero == 3:
                assert (step.enqueue, step.sharding.zero) == (e, 3)
            if zero >= 2:
                assert (len(step.enqueue), step.dequeue) == (len(e), d)
            # with one dequeue ZeRO-1 and ZeRO-2 are the same tasks
            assert step.sharding.zero == zero or (zero, len(d), step.sharding.zero) == (1, 1, 2)


@pytest.mark.parametrize(
    ("replicas", "levels", "message"),
    [
        (0, "2", "data parallelism must have 1 replica or more, got 0"),
        (2, "3", "ZeRO level 3 needs more collectives than the schedule has"),
        (2, "2,gain=1", "ZeRO level 1 is for parameters named 'gain'"),
    ],
)
def test_what_is_refused(replicas: int, levels: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        run(mesh(2), data_parallel=replicas, zero=ZeroLevels.parse(levels))


def test_replicas_need_collectives() -> None:
    case = family_case("1f1b", p=2, m=2)
    for replicas, levels in ((2, None), (1, ZeroLevels.parse("1"))):
        with pytest.raises(ValueError, match=r"replay needs a schedule with collectives \(UNSHARD"):
            run((case.problem, case.schedule), data_parallel=replicas, zero=levels)


def test_computations_of_no_time_are_refused() -> None:
    with pytest.raises(ValueError, match="needs forwards and backwards of 1 tick or more"):
        run(mesh(3, forward=0))


def test_a_stage_without_a_reduction_is_refused() -> None:
    problem, schedule = mesh(1)
    task = problem.task("1REDUCE_GRAD.3")
    kept = np.arange(problem.num_tasks) != task
    renumbered = np.cumsum(kept) - 1
    edges, used, events = problem.edges, problem.occupancy, problem.events
    joins = (edges.before != task) & (edges.after != task)
    own = used.task != task
    happens = events.task != task
    poorer = replace(
        problem,
        actions=problem.actions.take(kept),
        duration=problem.duration[kept],
        occupancy=replace(used, task=renumbered[used.task[own]], resource=used.resource[own]),
        edges=replace(
            edges,
            before=renumbered[edges.before[joins]],
            after=renumbered[edges.after[joins]],
            lag=edges.lag[joins],
        ),
        events=replace(
            events,
            task=renumbered[events.task[happens]],
            at_end=events.at_end[happens],
            store=events.store[happens],
            delta=events.delta[happens],
        ),
    )
    with pytest.raises(ValueError, match="needs a REDUCE_GRAD of every stage; stage 1 has none"):
        run((poorer, schedule))


def test_a_step_without_collectives_stays_as_it_is() -> None:
    step = Pipeline(num_ranks=2, num_microbatches=2)
    assert in_replicas(step, TINY, 1, None) == (step, None)
