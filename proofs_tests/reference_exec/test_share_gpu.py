"""Ranks that share a GPU over NCCL, on stand-ins (``shared_gpu``); no GPU has run this."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import torch

from bubbleproof.reference_exec.drivers.place import ProcessPlace
from bubbleproof.reference_exec.drivers.torchrun import open_backend
from bubbleproof.reference_exec.runtime import cuda
from proofs_tests.reference_exec.launched import Start, free_port, launched, variables
from proofs_tests.reference_exec.shared_gpu import NCCL, HostAsGpu, stand_in

pytestmark = pytest.mark.torch


def two(*words: str, **more: str) -> list[Start]:
    """Two ranks of 1F1B over NCCL."""
    port, schedule = free_port(), ("1f1b", "p=2", "m=4", "--backend", "nccl", *words)
    return [
        Start(words=schedule, variables=variables(rank, 2, port, **more), setup=stand_in)
        for rank in (0, 1)
    ]


def test_two_ranks_on_one_gpu(tmp_path: Path) -> None:
    with launched(tmp_path, two("--share-gpu", "--json")) as ranks:
        assert ranks.statuses() == [0, 0], ranks.errors(0)
        report = json.loads(ranks.output(0))
    assert report["ok"] is True
    assert (report["backend"], report["device"]) == ("nccl", "stand-in for GPU 0")
    assert report["measured_peak_bytes"] == report["predicted_peak_bytes"]
    assert report["semantics"] == "launch-order"
    assert "NCCL 2.30.7 starts communicators in the order" in report["semantics_why"]


def test_without_the_option_each_rank_has_a_gpu(tmp_path: Path) -> None:
    with launched(tmp_path, two()) as ranks:
        assert ranks.statuses() == [2, 2]
        assert "GPU 1 was asked for, torch sees 1 on this machine" in ranks.errors(0)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({NCCL: "2.29.3"}, "--share-gpu needs NCCL 2.30 or newer, got 2.29.3"),
        ({"NCCL_MULTI_RANK_GPU_ENABLE": "0"}, "needs NCCL_MULTI_RANK_GPU_ENABLE=1, it is 0"),
    ],
)
def test_where_nccl_lets_no_rank_share_it_is_refused(
    tmp_path: Path, more: dict[str, str], why: str
) -> None:
    with launched(tmp_path, two("--share-gpu", **more)) as ranks:
        assert ranks.statuses() == [2, 2]
        assert why in ranks.errors(0)


def test_ranks_go_round_the_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*cuda._FOR_WAITING_KERNELS, *cuda._FOR_SHARED_GPUS):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(cuda, "CudaDevice", HostAsGpu)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    monkeypatch.setattr(torch.distributed, "is_nccl_available", lambda: True)
    found = []
    for number in range(5):
        place = ProcessPlace(rank=number, world_size=5, local_rank=number)
        found.append(open_backend("nccl", place, shares=True).description[-1])
    assert "".join(found) == "01201"
    assert os.environ["NCCL_MULTI_RANK_GPU_ENABLE"] == "1"
    assert os.environ["NCCL_NVLS_ENABLE"] == "0"
    with pytest.raises(ValueError, match="--share-gpu is for ranks on GPUs"):
        open_backend("gloo", place, shares=True)
