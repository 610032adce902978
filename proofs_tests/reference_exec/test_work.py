"""What each action computes is what model and schedule say, in every pass; what is not is told."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
import torch

from bubbleproof.reference_exec.evidence.oracle import _AttachedPrefix
from bubbleproof.reference_exec.evidence.work_done import RankWorked, uncounted_work
from bubbleproof.reference_exec.models.examined import examined
from bubbleproof.reference_exec.models.footprint import stage_flops
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.models.reference import (
    Stage,
    microbatch_input,
    microbatch_loss,
    microbatch_target,
)
from bubbleproof.reference_exec.plans.predicted_work import ActionWork, predicted_work
from bubbleproof.reference_exec.plans.training import Training
from bubbleproof.theory.model.actions import Action
from bubbleproof.theory.pipelines.pipeline import Pipeline
from proofs_tests.reference_exec.cases import TINY, family_case, own, random_case, run
from proofs_tests.reference_exec.counted_by_torch import flops_by_torch
from proofs_tests.reference_exec.replica_cases import of_family, placed
from proofs_tests.reference_exec.replica_cases import run as run_replicas
from proofs_tests.reference_exec.training_cases import trained, training_plan
from proofs_tests.sized import sampled

LLAMA = ModelSpec(kind="llama", hidden=12, heads=6, kv_heads=3, layers=2, sequence=5, batch=2)
SPECS = {
    "mlp": ModelSpec(layers=2),
    "transformer": ModelSpec(kind="transformer", layers=(1, 3), sequence=5),
    "llama": LLAMA,
    "words": replace(LLAMA, vocabulary=7),
    "words of an mlp": ModelSpec(vocabulary=5),
}


def _of_plain_torch(spec: ModelSpec, stage: int, num_slices: int) -> list[int]:
    """The operations of each slice forth, and of all slices back, by torch's own counter."""
    module, found, ends = Stage(spec, stage), [], []
    prefixes = [_AttachedPrefix() for _ in range(spec.layers_of(stage))]
    for k in range(num_slices):
        x = microbatch_input(spec, 0, k, num_slices)
        if stage:
            x = torch.ones(*x.shape[:2], spec.hidden, dtype=torch.float64, requires_grad=True)

        def forward(x: torch.Tensor = x, k: int = k) -> None:
            y = module(x, None, prefixes if num_slices > 1 else None)
            if stage:
                y = microbatch_loss(spec, y, microbatch_target(spec, 0, k, num_slices), 1)
            ends.append(y.sum())

        found.append(flops_by_torch(forward))
    return [*found, flops_by_torch(lambda: torch.autograd.backward(ends))]


@pytest.mark.parametrize(
    ("name", "stage", "num_slices"), sampled([*product(SPECS, [0, 1], [1, 2, 3])], every=5)
)
def test_the_closed_form_is_what_torch_counts_of_plain_torch(
    name: str, stage: int, num_slices: int
) -> None:
    spec = SPECS[name].on(2)
    *forth, back = _of_plain_torch(spec, stage, num_slices)
    formula = [
        stage_flops(spec, stage, slice_index=k, num_slices=num_slices) for k in range(num_slices)
    ]
    assert [each.forward for each in formula] == forth
    assert sum(each.input_backward + sum(each.gemms) for each in formula) == back
    assert sum(each.backward for each in formula) == back


def test_the_closed_form_of_an_mlp_by_hand() -> None:
    # 2 samples of 4 tokens, 8 hidden and 32 inner: two GEMMs of 2 x 8 x 8 x 32 each
    flops = stage_flops(ModelSpec(), 0)
    assert (flops.forward, flops.input_backward, flops.gemms) == (8192, 8192, (4096, 4096))
    assert flops.backward == 16384


def test_the_predicted_work_by_hand() -> None:
    # a stage has two norms' and two biases' gradients beside those of its two GEMMs
    case = family_case("zb-h1", p=2, m=2)
    plan = case.plan(ModelSpec())
    named = {
        "F": ActionWork(8192, 0),
        "I": ActionWork(8192, 4),
        "W": ActionWork(8192, 2),
    }
    for rank, row in enumerate(predicted_work(plan)):
        *of_actions, after = row
        for action, work in zip(plan.order(rank), of_actions, strict=True):
            assert work == named.get(action.kind.name, ActionWork())
        assert after == ActionWork()


def test_parts_of_a_w_share_its_gemms() -> None:
    pipeline = Pipeline(
        num_ranks=1,
        num_microbatches=1,
        split_backward=True,
        weight_backward=3,
        weight_parts=(1, 1, 1),
    )
    case = random_case(pipeline, 0)
    plan = case.plan(replace(TINY, kind="transformer", hidden=8))
    (row,) = predicted_work(plan)
    by_part = {a.part: work for a, work in zip(plan.order(0), row, strict=False) if a.part >= 0}
    # 3 tokens of 8: down and up take 2 x 3 x 8 x 32 each, the four of attention 2 x 3 x 8 x 8
    up, square = 2 * 3 * 8 * 32, 2 * 3 * 8 * 8
    assert by_part == {
        0: ActionWork(2 * up, 2),
        1: ActionWork(2 * square, 2),
        2: ActionWork(2 * square, 2),
    }
    assert run(case, replace(TINY, kind="transformer", hidden=8)).ok


def test_every_action_of_every_pass_does_what_is_predicted() -> None:
    training = Training(optimizer="adam", steps=3)
    report = trained(family_case("zb-v", p=2, m=3), training)
    assert report.ok, report.failures
    assert [len(rank.passes) for rank in report.work] == [3, 3]
    for rank in report.work:
        assert all(done == rank.predicted for done in rank.passes)
        assert len(rank.predicted) == len(rank.actions) + 1
    measured, predicted = report.flops
    assert measured == predicted
    assert min(measured) > 0


@pytest.mark.parametrize("levels", [None, "1", "3,norm=1,up=2"])
def test_replicas_and_shards_do_what_is_predicted(levels: str | None) -> None:
    report = run_replicas(of_family("zb-h1"), levels)
    assert report.ok, report.failures
    assert len(report.work) == 4
    _, plan = placed(of_family("zb-h1"), levels)
    rank = report.work[0]
    told = {
        str(a): work.gradients for a, work in zip(plan.order(0), rank.passes[0], strict=False)
    }  # of what stands twice, its end
    assert (told["0F0"], told["0I0"], told["0W0"]) == (0, 4, 2)
    last = max(action for action in told if "REDUCE_GRAD" in action)
    assert told[last] == (6 if levels is None else 0)


def test_weights_that_come_from_a_host_bring_room_for_their_gradients() -> None:
    report = run(family_case("toffload", p=2, m=2))
    assert report.ok, report.failures
    found = [
        (str(action), work.gradients)
        for rank in report.work
        for action, work in zip(rank.actions, rank.passes[0], strict=False)
        if "RELOAD" in str(action)
    ]
    assert [count for _, count in found] == [6, 0] * (len(found) // 2)


def test_work_that_is_not_counted_is_not_asked_for() -> None:
    report = run(family_case("zb-h1", p=2, m=2), count_work=False)
    assert report.ok
    assert (report.work, report.flops.measured, report.not_counted_work) == ((), (), ())


def _worked(*passes: tuple[ActionWork, ...]) -> RankWorked:
    actions = (Action.parse("0F0"), Action.parse("0I0"))
    predicted = (ActionWork(8), ActionWork(8, 2), ActionWork())
    return RankWorked(
        name="rank 0",
        actions=actions,
        predicted=predicted,
        passes=passes,
        num_passes=max(len(passes), 1),
    )


RIGHT = (ActionWork(8), ActionWork(8, 2), ActionWork())


@pytest.mark.parametrize(
    ("passes", "flops", "gradients"),
    [
        ([RIGHT], "", ""),
        (
            [(ActionWork(16), *RIGHT[1:])],
            "0F0 (action 0) did 16 floating-point operations, 8 were",
            "",
        ),
        (
            [RIGHT, (ActionWork(8), ActionWork(9, 3), ActionWork(1))],
            "0I0 (action 1) of pass 1 did 9 floating-point operations, 8 were predicted; 2 actions",
            "0I0 (action 1) of pass 1 added to 3 gradients, 2 were predicted",
        ),
        (
            [(*RIGHT[:2], ActionWork(4))],
            "the rank, after its last action, did 4 floating-point",
            "",
        ),
        ([], "0F0 (action 0) did None floating-point", "0F0 (action 0) added to None"),
        ([RIGHT[:1]], "0I0 (action 1) did None", "0I0 (action 1) added to None"),
    ],
)
def test_what_differs_is_named(
    passes: list[tuple[ActionWork, ...]], flops: str, gradients: str
) -> None:
    worked = _worked(*passes)
    assert flops in worked.told("flops")
    assert gradients in worked.told("gradients")
    assert bool(flops) == bool(worked.told("flops"))
    assert bool(gradients) == bool(worked.told("gradients"))


def test_the_work_of_a_users_model_is_that_of_its_dry_run() -> None:
    # one linear of 3 rows of 4 takes 2 x 3 x 4 x 4; the first stage's input takes no gradient
    one = 2 * 3 * 4 * 4
    first, last = examined(own("plain"))
    assert (first.forward_flops, first.input_flops, first.gemm_flops) == (one, 0, (one,))
    assert (last.forward_flops, last.input_flops, last.gemm_flops) == (one, one, (one,))
    assert (first.backward_flops, last.backward_flops) == (one, 2 * one)
    assert run(family_case("zb-h1", p=2, m=3), own("plain")).ok


def test_a_stage_whose_w_does_nothing_is_told() -> None:
    case = family_case("zb-h1", p=2, m=3)
    report = run(case, own("convolved"))
    assert report.ok, report.failures
    assert report.weight_backward[0] == "stage 0: I makes all 2 gradients, W none"
    w = [
        rank.predicted[n]
        for rank in report.work
        for n, a in enumerate(rank.actions)
        if str(a).startswith("0W")
    ]
    assert w == [ActionWork(0, 0)] * 3


def test_a_stage_without_known_operations_is_told() -> None:
    report = run(family_case("zb-h1", p=2, m=3), own("normed"))
    assert report.ok, report.failures
    assert "All of stage 0: no operation there has such a formula." in report.not_counted_work


def test_a_stage_that_computes_otherwise_than_its_module_is_told() -> None:
    plan = family_case("zb-h1", p=2, m=3).plan(own("checkpointed", "own_graphs"))
    *_, first, second = uncounted_work(plan)
    assert first.startswith("Whether the split backward of stage 0 has to do ")
    assert second.startswith("Whether the split backward of stage 1 has to do ")
    assert run(family_case("zb-h1", p=2, m=3), own("checkpointed", "own_graphs")).ok


def test_work_that_depends_on_the_data_is_the_models_doing() -> None:
    case = family_case("1f1b", p=2, m=4)
    report = run(case, own("masked", "own_hoarders"), count_bytes=False)
    (failure,) = report.failures
    told = "the model's work depends on its data: stage 0 did "
    assert failure.startswith(told), failure
    assert failure.endswith("no schedule's work can be predicted with it")
    assert run(case, own("masked", "own_hoarders"), count_bytes=False, count_work=False).ok


def test_a_trainings_plan_predicts_nothing_of_its_steps() -> None:
    plan = training_plan(family_case("chimera", p=2, m=4), Training(steps=1))
    for rank, row in enumerate(predicted_work(plan)):
        added = [
            work
            for action, work in zip(plan.order(rank), row, strict=False)
            if action.kind.name in ("STEP", "REDUCE_GRAD")
        ]
        assert added == [ActionWork()] * 4  # an exchange and a STEP for each of two stages
