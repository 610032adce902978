"""Shards: what lies where, for how long; sums over members and steps of shards, with teeth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
import torch

from bubbleproof.reference_exec.drivers.virtual import run_virtual
from bubbleproof.reference_exec.plans.training import Training
from bubbleproof.reference_exec.plans.zero_levels import ZeroLevels
from bubbleproof.reference_exec.runtime import replica_collectives, stage_shards
from bubbleproof.theory.model.actions import Kind
from proofs_tests.reference_exec.cases import TINY
from proofs_tests.reference_exec.meshes import mesh, plan_of, run
from proofs_tests.reference_exec.patching import after
from proofs_tests.sized import sampled

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
        "0UNSHARD": [(w,), (0,)],
        "0UNSHARD.1": [(w,), (0,)],
        "0RESHARD": [(-w,)],
        "0RESHARD.1": [(-w,)],
        "0F0": [(728,)],
        "0F1": [(728,)],
        "0B0": [(w, -728)],
        "0B1": [(-728,)],
        "0REDUCE_GRAD.1": [(0,), (-w,)],
    }
    expected, live = [], 0
    for action in order:
        for change in changes[action].pop(0):
            live += change
            expected.append(live)
    for result in run_virtual(plan):
        assert list(result.live_bytes) == expected
        # half of 156 weights and of their gradients
        assert result.states[-1][0].without_optimizer == 2 * 78 * 8


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
    assert report.state_bytes.measured == report.state_bytes.predicted == (state * 8,) * 2


def test_what_is_freed_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    freed: list[stage_shards.Buffer] = []
    right = stage_shards.Buffer.free

    def watched(self: stage_shards.Buffer) -> None:
        assert self.flat.untyped_storage().nbytes() > 0
        right(self)
        freed.append(self)

    monkeypatch.setattr(stage_shards.Buffer, "free", watched)
    made = mesh(3)
    assert run(made, data_parallel=2).ok
    kinds = made[0].problem().actions.is_kind(Kind.RESHARD, Kind.REDUCE_GRAD)
    assert len(freed) == 2 * int(kinds.sum())
    assert all(buffer.flat.untyped_storage().nbytes() == 0 for buffer in freed)


def test_parameters_are_nowhere_between_their_collectives() -> None:
    # after the run every storage of every parameter of a sharded stage is empty
    plan = plan_of(mesh(3), replicas=2, levels="3")
    held: list[int] = []
    right = stage_shards.StageShards.step

    def looking(self: stage_shards.StageShards, totals: Mapping[int, torch.Tensor]) -> None:
        held.extend(p.untyped_storage().nbytes() for p in self._parameters.values())
        held.extend(len(self.copies) + len(self.gradients) for _ in range(1))
        right(self, totals)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stage_shards.StageShards, "step", looking)
        run_virtual(plan)
    assert len(held) > 0
    assert set(held) == {0}


# Sums and updates


def test_another_order_of_members_gives_other_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    # (g_2 + g_1) + g_0 is not (g_0 + g_1) + g_2, but just as near to the ordinary backward

    def backwards(self: replica_collectives.Collectives, *_: object) -> None:
        self._members = self._members[::-1]

    after(monkeypatch, replica_collectives.Collectives, "__init__", backwards)
    report = run(mesh(1), data_parallel=3)
    assert not report.gradients_equal
    assert report.max_relative_error <= report.tolerance
    assert run(mesh(1), data_parallel=2).gradients_equal  # a + b is b + a


def test_replicas_train_on_samples_of_their_own() -> None:
    # two replicas of two microbatches make the batch of one replica of four
    spec = replace(TINY, kind="transformer")
    two = run(mesh(2, m=2), spec, data_parallel=2)
    four = run(mesh(2, m=4), spec)
    assert two.ok
    assert four.ok
    assert two.loss == pytest.approx(four.loss, rel=1e-13)


@pytest.mark.sweep
@pytest.mark.parametrize("optimizer", sampled(["sgd", "momentum", "adam"], every=2))
def test_shards_train_for_several_steps(optimizer: str) -> None:
    training = Training(optimizer=optimizer, steps=3, has_barrier=optimizer == "adam")
    report = run(
        mesh(3), data_parallel=2, zero=ZeroLevels.parse("3,norm=1,up=2"), training=training
    )
    assert report.ok, str(report)
    assert (report.steps, report.weights_equal) == (3, True)
    assert report.max_weight_error <= report.tolerance
