"""What FSDP adds to an iteration, against torch itself and against sums written out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import distributed, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import (
    FullyShardedDataParallel,
    MixedPrecision,
    MixedPrecisionPolicy,
    fully_shard,
)
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

from bubbleproof.costs import Deployment, transformer
from bubbleproof.costs.times.card_files import card
from bubbleproof.costs.times.constants import starts
from bubbleproof.costs.times.profiles import software
from bubbleproof.costs.times.replicas import passes, replicas
from bubbleproof.costs.times.work import work
from bubbleproof.costs.weights import layer_weights
from proofs_tests.costs.test_torch_layers import GPT, GptLayer
from proofs_tests.own_process import run_alone

FSDP = software("torch")
MODEL = transformer("gpt", layers=4, hidden=1024, heads=16, vocabulary=50304)
SIDE, RANKS = 64, 8
COPIES = ("cat", "_to_copy", "div_", "split_with_sizes_copy", "chunk_cat")


class Copied(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch's stub
    """Bytes that copies of whole weights or gradients read and write, for each of their numbers."""

    total = 0.0

    def __torch_dispatch__(
        self, operation: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        made = operation(*args, **(kwargs or {}))
        weights = 2 * SIDE * SIDE
        out = (kwargs or {}).get("out", made)
        whole = [sum(t.numel() * t.itemsize for t in _tensors(some)) for some in (args[0], out)]
        if operation.__name__.split(".")[0] in COPIES and max(whole) >= 2 * weights:
            self.total += sum(whole) / weights
        return made


def _tensors(some: object) -> list[torch.Tensor]:
    found = list(some) if isinstance(some, (list, tuple)) else [some]
    return [each for each in found if isinstance(each, torch.Tensor)]


def two_linears() -> nn.Module:
    """Weights of ``2 SIDE SIDE`` numbers."""
    return nn.Sequential(nn.Linear(SIDE, SIDE, bias=False), nn.Linear(SIDE, SIDE, bias=False))


def copied_by(model: nn.Module) -> float:
    """What one forward and backward copies."""
    found: Any = Copied()  # type: ignore[no-untyped-call]  # torch's stub
    with found:
        model(torch.randn(4, SIDE)).sum().backward()
    return float(found.total)


def ranks_that_are_none() -> None:
    """A group of eight of which one rank runs; its collectives move nothing."""
    from torch.testing._internal.distributed.fake_pg import FakeStore

    distributed.init_process_group("fake", rank=0, world_size=RANKS, store=FakeStore())


def flat_parameters_copy() -> None:
    """FSDP with gradients reduced in 32 bits, and all in 16."""
    ranks_that_are_none()
    for reduced, name in ((torch.float32, "torch"), (torch.bfloat16, "llm-foundry-pure")):
        types = MixedPrecision(param_dtype=torch.bfloat16, reduce_dtype=reduced)
        model = FullyShardedDataParallel(
            two_linears(), mixed_precision=types, device_id=torch.device("cpu")
        )
        assert copied_by(model) == software(name).copied


def parameters_apart_copy() -> None:
    """FSDP2."""
    ranks_that_are_none()
    mesh = init_device_mesh("cpu", (RANKS,))
    types = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    layer = two_linears()
    model = nn.Sequential(layer)
    for each in (layer, model):
        fully_shard(each, mesh=mesh, mp_policy=types)
    assert copied_by(model) == software("torchtitan").copied == software("automodel").copied


@pytest.mark.parametrize("work", [flat_parameters_copy, parameters_apart_copy])
def test_fsdp_copies_so_many_bytes_of_a_parameter(work: Any) -> None:
    run_alone(work)


def test_a_recomputed_layer_ends_before_its_last_product() -> None:
    """By torch's counter, and as counted; where a product in 8 bits keeps, it has run."""
    layer = GptLayer(GPT, 0.0)
    x = torch.randn(2, 5, GPT.hidden, requires_grad=True)
    with FlopCounterMode(display=False) as forward:
        layer.whole(x)
    with FlopCounterMode(display=False) as plain:
        layer(x).sum().backward()
    with FlopCounterMode(display=False) as again:
        checkpoint(layer, x, use_reentrant=False).sum().backward()
    left_out = 2 * 10 * GPT.hidden * GPT.feed_forward
    more = again.get_total_flops() - plain.get_total_flops()
    assert more == forward.get_total_flops() - left_out
    at = Deployment(micro_batch=2, sequence=5, scope="full", accounting="fused")
    made = work(GPT, at, FSDP, 8)
    assert float((1 - made.again_products) * made.half) == pytest.approx(left_out)
    for runs in (FSDP.computing_in("fp8"), software("megatron-core")):
        assert float(work(GPT, at, runs, 8).again_products) == 1


def test_an_older_kernel_of_the_attention_has_its_own_limit() -> None:
    """Whatever slows large products; a slower one has a part of it, one for the card none."""
    h100 = card("h100")
    for slowed in (h100, replace(h100, reached=0.6)):
        assert starts(slowed, FSDP)["attention"] == 258
        assert starts(slowed, software("llm-foundry"))["attention"] == pytest.approx(0.7 * 258)
        assert starts(slowed, software("megatron-core"))["attention"] > 258
    assert starts(card("h20"), FSDP)["attention"] < 100
    plain = starts(card("a100-80gb"), software("megatron-core"))["attention"]
    assert starts(card("a100-80gb"), FSDP)["attention"] == plain


def test_shards_are_copied_and_go_from_card_to_card() -> None:
    """Sixteen ranks of two nodes: all bytes hidden, not the ring's fifteen steps, nor copies."""
    at = Deployment(micro_batch=1, sequence=512, data=16, zero=3, accounting="fused")
    weights = layer_weights(MODEL, at)
    of = replicas(weights, at, FSDP, 8)
    constants = {**starts(card("h100"), FSDP), "exposed_shard": 1e-12, "straggler": 1e-12}
    constants |= {"collective": 50.0, "memory": 2000.0, "factor": 1.0}
    found = passes(np.array(1e3), np.array(2e3), np.array(1e3), of, constants)
    ring = 0.08 * 15 * 0.05
    assert float(found.forward) == pytest.approx(1e3 + ring, abs=1e-6)
    assert float(found.input_backward) == pytest.approx(1e3 + ring, abs=1e-6)
    copied = 18 * float(weights.dense) / 2000e6
    assert float(found.weight_backward) == pytest.approx(1e3 + ring + copied, abs=1e-6)
    alone = replicas(weights, at.with_changes(zero=1), FSDP, 8)
    assert float(alone.copied) == float(alone.steps) == 0
