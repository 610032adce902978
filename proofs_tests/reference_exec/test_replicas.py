"""Replicas of any schedule: every family on two of them, at every ZeRO level.

What PipeMesh's own collectives do is tested in ``test_data_parallel``, ``test_shards`` and
``test_collective_faults``; here schedules come without collectives and get theirs
(and lose them in ``test_replica_faults``).
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from bubbleproof.reference_exec.drivers.virtual import run_virtual
from bubbleproof.reference_exec.evidence.replay_report import ReplayReport
from bubbleproof.reference_exec.plans.training import Training
from bubbleproof.reference_exec.runtime import updates
from bubbleproof.reference_exec.runtime.transport import BlockedAction
from bubbleproof.theory.families import families
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.activation_offload import ActivationOffload
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.recompute import Recompute
from bubbleproof.theory.pipelines.timing import left_shift
from bubbleproof.theory.pipelines.transfers import Eviction
from bubbleproof.verify import USUAL
from proofs_tests.reference_exec.cases import TINY, Case, family_case, random_case
from proofs_tests.reference_exec.replica_cases import (
    LEVELS,
    SPEC,
    TURN,
    of_family,
    placed,
    run,
)
from proofs_tests.sized import sampled, sized


def whole_and_equal(report: ReplayReport) -> None:
    """Everything that a replay promises, asked one by one."""
    assert report.gradients_equal
    assert report.max_relative_error <= 1e-12
    assert report.peak_bytes.measured == report.peak_bytes.predicted
    assert report.state_bytes.measured == report.state_bytes.predicted
    assert all(trace.predicted for trace in report.traces)
    assert [trace.num_differing for trace in report.traces] == [0] * len(report.traces)
    assert report.ok, str(report)


@pytest.mark.sweep
@pytest.mark.parametrize("name", sampled(sorted(families()), every=5))
def test_a_registered_family_runs_on_two_whole_replicas(name: str) -> None:
    case = of_family(name)
    report = run(case, None, semantics=USUAL[len(name) % 4], seed=len(name))
    whole_and_equal(report)
    assert (report.data_parallel, report.zero) == (2, "")
    assert len(report.traces) == 2 * case.problem.num_ranks


@pytest.mark.sweep
@pytest.mark.parametrize("name", sampled(sorted(set(families()) - {"toffload"}), every=4))
def test_a_registered_family_runs_sharded(name: str) -> None:
    levels = TURN[name]
    report = run(of_family(name), levels)
    whole_and_equal(report)
    assert report.zero == levels
    assert all(report.state_bytes.measured)


@pytest.mark.sweep
@pytest.mark.parametrize("levels", sampled(LEVELS, every=2))
def test_more_families_and_levels(levels: str | None) -> None:
    # split backwards; both directions; slices with parts of W; recomputation; evictions
    names = ("zb-v", "dualpipe", "svpp-w", "trecomp", "bpipe")
    for name in sized(names[LEVELS.index(levels) :][:1], full=names):
        spec = replace(SPEC, kind="llama", hidden=8, dtype="float32", seed=3)
        report = run(of_family(name), levels, data_parallel=3, spec=spec)
        assert report.ok, f"{name}: {report}"


@pytest.mark.sweep
def test_random_programs_with_parts_of_w_run_sharded() -> None:
    pipeline = Pipeline(
        num_ranks=2,
        num_microbatches=3,
        num_chunks=2,
        num_slices=2,
        split_backward=True,
        weight_parts=((1, 1), (), (1, 1), (1,)),
        weight_backward=(2, 1, 2, 1),
    )
    for seed in range(sized(2, full=3)):
        case = random_case(pipeline, seed)
        whole_and_equal(run(case, ("3", "2,bias=3", "1")[seed], seed=seed))


def chosen(choice: random.Random) -> Pipeline:
    """Samples recomputed, evicted or off-loaded by chance; links and engines take a tick or two."""
    stages, m = 4, 3
    samples = [(g, j) for g in range(stages) for j in range(m)]
    picks = {sample: choice.choice(("", "", "R", "EVICT", "OFFLOAD")) for sample in samples}
    return Pipeline(
        num_ranks=2,
        num_microbatches=m,
        num_chunks=2,
        split_backward=tuple(tuple(choice.random() < 0.5 for _ in range(m)) for _ in range(stages)),
        forward=choice.randint(1, 2),
        backward=choice.randint(1, 3),
        recompute=Recompute(samples=tuple(s for s in samples if picks[s] == "R")),
        evictions=tuple(
            Eviction(stage=g, microbatch=j, source=g % 2, target=1 - g % 2, duration=1)
            for g, j in samples
            if picks[g, j] == "EVICT"
        ),
        offloads=tuple(
            ActivationOffload(stage=g, microbatch=j, offload=1, reload=2)
            for g, j in samples
            if picks[g, j] == "OFFLOAD"
        ),
    )


@pytest.mark.sweep
def test_random_choices_and_directions_run_sharded() -> None:
    choice = random.Random(0)
    for seed in range(sized(3, full=200)):
        pipeline = chosen(choice)
        if seed % 3 == 2:
            pipeline = Pipeline(
                num_ranks=2, num_microbatches=4, placement="bidirectional", split_backward=True
            )
        levels = f"{choice.randint(1, 3)},norm={choice.randint(1, 3)},up={choice.randint(1, 3)}"
        report = run(random_case(pipeline, seed), levels, data_parallel=1 + seed % 3, seed=seed)
        assert report.ok, f"{seed} {levels}: {report}"
        assert [trace.num_differing for trace in report.traces] == [0] * len(report.traces)


def test_computations_of_no_time_are_told_apart_from_their_collectives() -> None:
    case = family_case("zb-h1", p=2, m=3, tW=0)
    assert (case.problem.duration == 0).any()
    whole_and_equal(run(case, "3"))
    evicting = family_case("bpipe", p=4, m=5, tF=0)
    with pytest.raises(ValueError, match="need computations of 1 tick or more; 0F0 takes none"):
        run(evicting, "1")


# What lies where, for how long


def test_live_bytes_of_a_split_backward_by_hand() -> None:
    # One rank, one stage of 156 weights: w = 1248 bytes; F holds 728 bytes and I 960 (see TINY:
    # 10 N d elements of N = 3 tokens, d = 4, 8 bytes each). All of level 3. The first I makes room
    # for the gradient before it runs, and is sampled twice; W needs no parameters any more.
    pipeline = Pipeline(num_ranks=1, num_microbatches=2, split_backward=True)
    problem = pipeline.problem()
    order = ["0F0", "0F1", "0I0", "0W0", "0I1", "0W1"]
    schedule = left_shift(problem, Program.from_orders([order]))
    case = Case(pipeline=pipeline, problem=problem, schedule=schedule, lowered=schedule.program)
    _, plan = placed(case, "3", TINY)
    assert [str(a) for a in plan.order(0)] == [
        "0UNSHARD",
        "0UNSHARD",
        "0F0",
        "0F1",
        "0RESHARD",
        "0UNSHARD.1",
        "0UNSHARD.1",
        "0I0",
        "0W0",
        "0I1",
        "0RESHARD.1",
        "0W1",
        "0REDUCE_GRAD.2",
        "0REDUCE_GRAD.2",
    ]
    w, held, left = 1248, 728, 960
    changes = [w, 0, held, held, -w, w, 0, w, left - held, -left, left - held, -w, -left, 0, -w]
    expected = np.cumsum(changes).tolist()
    for result in run_virtual(plan):
        assert list(result.live_bytes) == expected
        assert (
            result.states[-1][0].without_optimizer == 2 * 78 * 8
        )  # half of 156 weights and of their gradients


def test_both_ranks_of_a_stage_hold_its_shards() -> None:
    # two ranks, each with both stages of 156 weights: shards of weights and of gradients
    report = run(of_family("chimera"), "3")
    assert report.state_bytes.measured == (2 * 2 * 78 * 8,) * 4
    assert report.num_updated_stages == 2


# Sums and steps


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("name", "levels", "optimizer"),
    [
        ("zb-h1", None, "adam"),
        ("zb-v", "3", "momentum"),
        ("chimera", None, "sgd"),
        ("chimera", "2", "adam"),
        ("dualpipe", "3,norm=1", "momentum"),
        ("toffload", None, "momentum"),
    ][:: sized(2, full=1)],
)
def test_replicas_train_for_several_steps(name: str, levels: str | None, optimizer: str) -> None:
    training = Training(optimizer=optimizer, steps=3, has_barrier=optimizer == "sgd")
    report = run(of_family(name), levels, training=training)
    whole_and_equal(report)
    assert (report.steps, report.weights_equal) == (3, True)
    assert report.max_weight_error <= report.tolerance


def test_both_ranks_of_a_stage_step_with_one_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    # without the swap each would step with what its own microbatches gave
    case = of_family("chimera")
    assert run(case, "2").weights_equal

    def alone(self: updates.Updates) -> Iterator[BlockedAction]:
        for stage in self._shards:
            self._step_shards(stage)
        yield from ()

    monkeypatch.setattr(updates.Updates, "step_shards", alone)
    report = run(case, "2")
    assert report.gradients_equal
    assert not report.weights_equal


def test_the_host_steps_with_the_sum_of_all_replicas() -> None:
    report = run(of_family("toffload"), None)
    whole_and_equal(report)
    assert report.weights_equal
    assert report.num_updated_stages == 2
    assert len(report.host_peak_bytes.measured) == 4
    assert report.host_peak_bytes.measured == report.host_peak_bytes.predicted
    with pytest.raises(ValueError, match=r"the host updates stages \(2, 3\) with whole gradients"):
        run(of_family("toffload"), "1")


def test_tied_embeddings_train_on_whole_replicas() -> None:
    spec = replace(SPEC, kind="transformer", vocabulary=5, tied=True)
    report = run(of_family("1f1b"), None, spec=spec, training=Training(optimizer="sgd", steps=2))
    whole_and_equal(report)
    assert report.weights_equal
    with pytest.raises(ValueError, match="tied embeddings cannot be sharded"):
        run(of_family("1f1b"), "1", spec=spec)


def test_one_replica_may_be_sharded() -> None:
    whole_and_equal(run(of_family("zb-v"), "3", data_parallel=1))
    assert run(of_family("zb-v"), None, data_parallel=1).zero == ""
