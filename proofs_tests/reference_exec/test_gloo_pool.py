"""A pool of processes: what a plan gives there is what it gives in new ones, whatever it had."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch

from bubbleproof.reference_exec.bits import are_equal
from bubbleproof.reference_exec.drivers.gloo import GlooPool, RankFailed, run_gloo
from bubbleproof.reference_exec.evidence.oracle import order_matched, single_threaded
from bubbleproof.reference_exec.plans.replay_plan import ReplayPlan
from bubbleproof.reference_exec.plans.run_options import ReplayOptions
from bubbleproof.reference_exec.plans.training import Training
from bubbleproof.reference_exec.replaying import replay
from bubbleproof.reference_exec.runtime.rank import RankResult
from bubbleproof.theory.model.schedule import Program
from proofs_tests.reference_exec import watchful
from proofs_tests.reference_exec.cases import (
    RECEIVER,
    SENDER,
    SWAPPED_SENDS,
    TINY,
    family_case,
    gradients_of,
    own,
)
from proofs_tests.reference_exec.meshes import mesh, plan_of
from proofs_tests.reference_exec.training_cases import training_plan

GPT = replace(TINY, kind="transformer", dtype="float32")
LLAMA = replace(TINY, kind="llama", hidden=8, seed=7)


def plans() -> dict[str, ReplayPlan]:
    """Plans of two to six processes that have little in common."""
    training = Training(optimizer="adam", steps=2)
    return {
        "four ranks": family_case("1f1b", p=4, m=4).plan(TINY),
        "two, another model and type": family_case("zb-v", p=2, m=4).plan(GPT),
        "groups for transfers": family_case("bpipe", p=4, m=5).plan(GPT),
        "replicas": plan_of(mesh(3), replicas=2, levels="3,norm=1"),
        "three ranks more": family_case("gpipe", p=6, m=2).plan(LLAMA),
        "slices": family_case("svpp", p=2, m=2, s=2, v=2).plan(LLAMA),
        "a host's steps": family_case("toffload", p=2, m=3).plan(TINY),
        "ranks that exchange": training_plan(family_case("chimera", p=2, m=2), training),
    }


@pytest.fixture
def pool() -> Iterator[GlooPool]:
    with GlooPool() as opened:
        yield opened


def pids() -> set[int]:
    return {process.pid for process in multiprocessing.active_children() if process.pid}


def assert_same(found: list[RankResult], expected: list[RankResult]) -> None:
    """All that does not depend on the clock is equal, to the bit."""
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        for name in ("gradients", "losses", "updated"):
            one, other = getattr(ours, name), getattr(theirs, name)
            assert one.keys() == other.keys()
            assert all(torch.equal(one[key], other[key]) for key in one), name
        for name in ("live_bytes", "host_live_bytes", "born_bytes", "states"):
            assert getattr(ours, name) == getattr(theirs, name), name


def test_every_plan_gives_what_it_gives_in_processes_of_its_own(pool: GlooPool) -> None:
    made = plans()
    alone = {name: run_gloo(plan) for name, plan in made.items()}
    seen: set[int] = set()
    for name in [*made, *list(made)[4::-2]]:  # some once more, after another one than before
        assert_same(pool.run(made[name]), alone[name])
        assert seen <= pids()  # those of earlier plans have stayed
        seen = pids()
    assert pool.num_processes == len(seen) == 6


def test_a_plan_that_was_changed_gives_other_gradients_than_before(pool: GlooPool) -> None:
    # what is compared above could come from a plan that ran before; so let only the seed differ
    case = family_case("1f1b", p=2, m=2)
    found = [gradients_of(pool.run(case.plan(replace(TINY, seed=seed)))) for seed in (0, 1, 0)]
    assert are_equal(found[0], found[2])
    assert not any(torch.equal(found[0][key], found[1][key]) for key in found[0])
    with single_threaded():
        assert are_equal(found[1], order_matched(case.plan(replace(TINY, seed=1)))[0])


def test_messages_that_crossed_in_one_plan_do_not_in_the_next(pool: GlooPool) -> None:
    case = family_case("gpipe", p=2, m=2)
    with single_threaded():
        right, _ = order_matched(case.plan())
    for orders, is_right in ((SWAPPED_SENDS, False), (SENDER, True)):
        plan = case.plan(program=Program.from_orders([orders, RECEIVER]))
        assert are_equal(gradients_of(pool.run(plan)), right) == is_right


def test_no_plan_leaves_anything_in_its_processes() -> None:
    made = [plan for plan in plans().values() if plan.num_processes <= 4]
    with GlooPool(worker=watchful.looks) as pool:
        for plan in [*made, made[0]]:  # who comes looks at what the one before has left
            assert pool.run(plan)


def test_what_a_plan_leaves_is_seen_there() -> None:
    plan = family_case("1f1b", p=2, m=2).plan()
    with GlooPool(worker=watchful.litters) as pool:
        pool.run(plan)
        with pytest.raises(RankFailed, match="left by an earlier plan: ") as caught:
            pool.run(plan)
    for name in ("threads", "random numbers", "tensors"):
        assert f"{name} " in str(caught.value)


def test_a_user_s_own_model_runs_in_processes_of_its_own(pool: GlooPool) -> None:
    case = family_case("1f1b", p=2, m=2)
    theirs = own("plain")
    for _ in range(2):
        assert replay(
            case.pipeline, case.schedule, theirs, ReplayOptions(backend="gloo"), pool=pool
        ).ok
        assert pids() == set()  # before any other plan they are the pool's, and end
    assert replay(case.pipeline, case.schedule, TINY, ReplayOptions(backend="gloo"), pool=pool).ok
    ours = pids()
    assert replay(case.pipeline, case.schedule, theirs, ReplayOptions(backend="gloo"), pool=pool).ok
    assert pids() == ours


def test_what_is_not_verified_leaves_no_process_for_the_next(pool: GlooPool) -> None:
    case = family_case("gpipe", p=2, m=2)
    crossed = Program.from_orders([SWAPPED_SENDS, RECEIVER])

    def replayed(program: Program | None, *, unsafe: bool) -> bool:
        options = ReplayOptions(unsafe=unsafe, backend="gloo")
        return replay(case.pipeline, case.schedule, TINY, options, program=program, pool=pool).ok

    assert replayed(None, unsafe=True)  # and is verified all the same
    first = pids()
    assert len(first) == 2
    assert not replayed(crossed, unsafe=True)
    assert pids() == set()
    assert replayed(None, unsafe=False)
    assert len(pids()) == 2
    assert not pids() & first


def test_a_pool_is_for_gloo() -> None:
    case = family_case("1f1b", p=2, m=2)
    with pytest.raises(ValueError, match="replay on virtual takes no pool of processes"):
        replay(case.pipeline, case.schedule, TINY, pool=GlooPool())
