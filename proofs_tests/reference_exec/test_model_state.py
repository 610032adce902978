"""Model state: what is predicted of weights, gradients and optimizer state lies there."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from bubbleproof.reference_exec.evidence.replay_report import ReplayReport
from bubbleproof.reference_exec.models.footprint import parameter_tensors
from bubbleproof.reference_exec.models.reference import Stage
from bubbleproof.reference_exec.plans.state_bytes import StateBytes
from bubbleproof.reference_exec.plans.training import Training
from bubbleproof.reference_exec.plans.zero_levels import ZeroLevels
from bubbleproof.reference_exec.runtime.optimizers import optimizer_of, walked
from bubbleproof.reference_exec.runtime.updates import Updates
from proofs_tests.reference_exec.cases import TINY, family_case, own
from proofs_tests.reference_exec.meshes import mesh, run
from proofs_tests.reference_exec.training_cases import trained
from proofs_tests.sized import sampled

ADAM = Training(optimizer="adam", steps=2)
# an mlp layer of hidden 4 has 8 x 16 + 7 x 4 = 156 parameters in 6 tensors; float64
LAYER = 156 * 8


def state(weights: int, gradients: int, optimizer: int) -> StateBytes:
    return StateBytes(weights=weights, gradients=gradients, optimizer=optimizer)


def of_family(name: str, optimizer: str | None, **params: int) -> ReplayReport:
    training = None if optimizer is None else replace(ADAM, optimizer=optimizer)
    report = trained(family_case(name, **params), training)  # type: ignore[arg-type]  # no training too
    assert report.ok, str(report)
    assert report.model_state.measured == report.model_state.predicted
    assert report.host_model_state.measured == report.host_model_state.predicted
    return report


@pytest.mark.parametrize(
    ("optimizer", "kept"),
    [(None, 0), ("sgd", 0), ("momentum", LAYER), ("adam", 2 * LAYER + 6 * 4)],
)
def test_a_stage_on_its_rank_by_hand(optimizer: str | None, kept: int) -> None:
    report = of_family("1f1b", optimizer, p=2, m=2)
    assert report.model_state.measured == (state(LAYER, LAYER, kept),) * 2
    assert report.host_model_state.measured == (state(0, 0, 0),) * 2


def test_replicas_hold_both_stages_and_no_sums() -> None:
    # chimera on two ranks: each rank has both stages, and the sums with the other's are gone
    report = of_family("chimera", "momentum", p=2, m=2)
    assert report.model_state.measured == (state(2 * LAYER, 2 * LAYER, 2 * LAYER),) * 2


def test_hosts_hold_master_weights_a_copy_and_the_moments() -> None:
    # of each rank's two stages the deep one is the host's
    report = of_family("toffload", "adam", p=2, m=3)
    adam = 2 * LAYER + 6 * 4
    assert report.model_state.measured == (state(LAYER, LAYER, adam),) * 2
    assert report.host_model_state.measured == (state(2 * LAYER, 0, adam),) * 2
    report = of_family("toffload", None, p=2, m=3)
    assert report.host_model_state.measured == (state(2 * LAYER, 0, 0),) * 2


@pytest.mark.parametrize("optimizer", sampled(["sgd", "momentum", "adam"], every=2))
def test_members_hold_shards_by_hand(optimizer: str) -> None:
    # PipeMesh, two replicas, two stages of an mlp layer per rank; levels 3, norm (4 + 4) level 1,
    # up (weight 64, bias 16) level 2, so 68 elements of level 3. A member has half of each: 4, 40
    # and 34. Weights: shards 78, whole 8 + 80; gradients: shards 78, whole 8; moments: 78 each,
    # adam's counters one per level
    report = run(
        mesh(3),
        data_parallel=2,
        zero=ZeroLevels.parse("3,norm=1,up=2"),
        training=replace(ADAM, optimizer=optimizer),
    )
    assert report.ok, str(report)
    kept = {"sgd": 0, "momentum": 78 * 8, "adam": 2 * 78 * 8 + 3 * 4}[optimizer]
    one = state((78 + 88) * 8, (78 + 8) * 8, kept)
    assert report.model_state.measured == report.model_state.predicted == (one + one,) * 4


@pytest.mark.parametrize("kind", ["mlp", "transformer", "llama"])
def test_parameter_tensors_are_those_of_the_stage(kind: str) -> None:
    spec = replace(TINY, kind=kind, vocabulary=5, layers=(1, 2, 3)).on(3)
    for stage in range(3):
        assert parameter_tensors(spec, stage) == len([*Stage(spec, stage).parameters()])


def test_other_models() -> None:
    case = family_case("zb-h1", p=2, m=2)
    for spec in (own("plain"), replace(TINY, kind="llama", vocabulary=5, tied=True)):
        report = trained(case, ADAM, spec)
        assert report.ok, str(report)
        assert all(s.optimizer > 2 * s.weights for s in report.model_state.measured)


def test_a_walk_counts_storages_once_with_the_bytes_they_have() -> None:
    whole = torch.zeros(6)
    freed = torch.zeros(3)
    freed.untyped_storage().resize_(0)
    adam = optimizer_of(Training(optimizer="adam"), [whole.requires_grad_()])
    whole.grad = torch.ones(6)
    adam.step()
    found = walked([whole, whole.view(2, 3), whole[:2], freed], [whole.grad, whole], [adam])
    assert found == state(24, 24, 2 * 24 + 4)


# What must not pass.


def test_sums_that_stay_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Updates._update

    def hoard(self: Updates, stage: int) -> None:
        sums = dict(self._totals)
        right(self, stage)
        self._totals |= sums

    monkeypatch.setattr(Updates, "_update", hoard)
    report = trained(family_case("chimera", p=2, m=2), Training())
    assert report.weights_equal
    assert "rank 0 ends with 2496+4992+0 bytes of weights, gradients and" in report.failures[0]


def test_another_optimizer_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    # with AMSGrad torch keeps a third moment
    right = torch.optim.Adam

    def hungry(parameters: list[torch.Tensor], **options: object) -> torch.optim.Adam:
        return right(parameters, amsgrad=True, **options)  # type: ignore[arg-type]  # passed on

    monkeypatch.setattr(torch.optim, "Adam", hungry)
    report = trained(family_case("1f1b", p=2, m=2), Training(optimizer="adam"))
    assert f"{LAYER}+{LAYER}+{3 * LAYER + 24} bytes" in report.failures[-1]
