"""Where tensors lie: replays on torch's ``meta`` device, which refuses to mix with the cpu.

``meta`` has shapes and no data, so an operation that takes one tensor of the runtime's device and
one of the host's ends in torch's own error, as it would on a GPU. What has to come back to the
host (``cpu``, a copy into the host's memory) is let through without its data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any  # what torch's functions take

import pytest
import torch
from torch.overrides import TorchFunctionMode

from bubbleproof.reference_exec.drivers.virtual import run_virtual
from bubbleproof.reference_exec.evidence.profiling import profile_stages
from bubbleproof.reference_exec.evidence.training_oracle import matched_training
from bubbleproof.reference_exec.models.layers import TransformerLayer
from bubbleproof.reference_exec.models.own import build
from bubbleproof.reference_exec.plans.replay_plan import ReplayPlan
from bubbleproof.reference_exec.plans.training import Training
from bubbleproof.reference_exec.runtime import replica_collectives
from bubbleproof.reference_exec.runtime.device import CpuDevice
from bubbleproof.reference_exec.runtime.rank_messages import RankMessages
from proofs_tests.reference_exec import meshes
from proofs_tests.reference_exec.cases import TINY, family_case, own
from proofs_tests.reference_exec.training_cases import training_plan
from proofs_tests.sized import paired, sampled, sized

META = torch.device("meta")


class MetaDevice(CpuDevice):
    """A device without data."""

    torch_device = META

    def put(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.to(META)


class WithoutData(TorchFunctionMode):
    """Copies from ``meta`` to the host bring nothing; all else is torch's."""

    def __torch_function__(
        self,
        func: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        del types
        if func is torch.Tensor.cpu and args[0].is_meta:
            return torch.zeros_like(args[0], device="cpu")
        if func is torch.Tensor.copy_ and args[1].is_meta and not args[0].is_meta:
            return args[0]
        return func(*args, **(kwargs or {}))


def run(plan: ReplayPlan) -> None:
    with WithoutData():
        run_virtual(plan, device=MetaDevice())
        matched_training(plan, MetaDevice())


def plan_of(name: str, training: Training | None = None, **spec: object) -> ReplayPlan:
    params = {"bpipe": {"p": 4, "m": 4}, "svpp": {"p": 2, "m": 2, "s": 2}}
    case = family_case(name, **params.get(name, {"p": 2, "m": 2}))
    model = replace(TINY, **spec)  # type: ignore[arg-type]  # fields
    if training is None:
        return case.plan(model.on(case.pipeline.num_stages))
    return training_plan(case, training, model)


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("name", "kind"),
    sampled(
        paired(
            ["1f1b", "zb-v", "bpipe", "svpp", "trecomp", "toffload", "chimera"],
            ["mlp", "transformer", "llama"],
        ),
        every=2,
    ),
)
def test_nothing_mixes_host_and_device(name: str, kind: str) -> None:
    run(plan_of(name, kind=kind, dtype="float32"))


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("name", "optimizer"), paired(["1f1b", "chimera", "toffload"], ["sgd", "momentum", "adam"])
)
def test_steps_stay_where_their_weights_are(name: str, optimizer: str) -> None:
    run(plan_of(name, Training(optimizer=optimizer, steps=2, has_barrier=True)))


@pytest.mark.sweep
@pytest.mark.parametrize("tied", sized([True], full=[False, True]))
def test_words_are_on_the_device(tied: bool) -> None:
    run(plan_of("1f1b", Training(steps=2), kind="llama", vocabulary=5, tied=tied))


@pytest.mark.sweep
@pytest.mark.parametrize("zero", sized([3], full=[1, 2, 3]))
def test_shards_are_on_the_device(zero: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # members look at each other's headers, which need their data: these stay on the host here
    monkeypatch.setattr(replica_collectives, "handed_over", lambda values, _: values)
    run(meshes.plan_of(meshes.mesh(zero, m=2), replicas=2, levels=str(zero)))


@pytest.mark.parametrize(
    ("name", "levels"),
    sized(
        [("chimera", "2"), ("toffload", None)],
        full=[("zb-v", "3"), ("chimera", "2"), ("toffload", None), ("svpp", None)],
    ),
)
def test_replicas_are_on_the_device(
    name: str, levels: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replica_collectives, "handed_over", lambda values, _: values)
    case = family_case(name, p=2, m=2)
    run(meshes.plan_of((case.pipeline, case.schedule), replicas=2, levels=levels))


def test_a_users_model_is_on_the_device() -> None:
    spec = own("plain")
    stages = len(build(spec).stages)
    run(family_case("1f1b", p=stages, m=2).plan(spec.on(stages)))


def test_a_profile_is_of_the_device() -> None:
    with WithoutData():
        found = profile_stages(TINY, 2, device=MetaDevice(), warmup=1, repeats=1)
    assert len(found) == 2


def _data_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MetaDevice, "put", lambda _, tensor: tensor)


def _masks_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    def register(self: TransformerLayer, name: str, value: torch.Tensor, **_: bool) -> None:
        setattr(self, name, value)

    monkeypatch.setattr(TransformerLayer, "register_buffer", register)


def _messages_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        RankMessages, "_buffer", lambda _, shape: torch.zeros(shape, dtype=torch.float64)
    )


@pytest.mark.parametrize("fault", [_data_stay, _masks_stay, _messages_stay])
def test_what_stays_on_the_host_is_refused(
    fault: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_of("1f1b", kind="transformer")
    fault(monkeypatch)
    with pytest.raises(RuntimeError, match="device"):
        run(plan)
