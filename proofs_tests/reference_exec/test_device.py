"""Devices: on a GPU the lanes wait for each other as promised; a cpu needs no waiting.

No GPU is needed for the first: ``Streams`` stands for ``torch.cuda`` and keeps, for each stream,
the set of what has run before its next operation. Where there is a GPU, real replays run too.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
import torch

from bubbleproof.reference_exec.evidence.profiling import profile_stages
from bubbleproof.reference_exec.evidence.training_oracle import stepped_on
from bubbleproof.reference_exec.plans.run_options import ReplayOptions
from bubbleproof.reference_exec.plans.training import Training
from bubbleproof.reference_exec.replaying import replay
from bubbleproof.reference_exec.runtime.cuda import CudaDevice, allow_waiting_kernels, open_device
from bubbleproof.reference_exec.runtime.device import CPU, DeviceLane
from bubbleproof.theory.model.actions import Kind
from proofs_tests.reference_exec.cases import TINY, family_case

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU here")


class Stream:
    """A stream: what has happened before its next operation."""

    def __init__(self) -> None:
        self.past: set[str] = set()

    def wait_stream(self, other: Stream) -> None:
        self.past |= other.past

    def synchronize(self) -> None:
        pass


class Event:
    """An event that knows what had happened on its stream."""

    ends = True

    def __init__(self, *, enable_timing: bool = False) -> None:
        self.is_timed = enable_timing
        self.past: set[str] = set()

    def record(self, stream: Stream) -> None:
        self.past = set(stream.past)

    def query(self) -> bool:
        return self.ends

    def elapsed_time(self, later: Event) -> float:
        assert self.is_timed
        assert later.is_timed
        return 1000.0 * len(later.past - self.past)  # a second for each operation in between


class Streams:
    """The part of ``torch.cuda`` that a device uses."""

    def __init__(self) -> None:
        self.Stream = Stream
        self.current = Stream()
        self.chosen: int | None = None
        self.Event = type("Event", (Event,), {})

    def set_device(self, index: int) -> None:
        self.chosen = index

    def current_stream(self) -> Stream:
        return self.current

    @contextmanager
    def stream(self, stream: Stream) -> Iterator[None]:
        outer, self.current = self.current, stream
        try:
            yield
        finally:
            self.current = outer

    def get_device_name(self, index: int) -> str:
        return f"card {index}"

    def run(self, operation: str) -> set[str]:
        """Queue an operation on the current stream; what has run before it."""
        before = set(self.current.past)
        self.current.past.add(operation)
        return before


@pytest.fixture
def api() -> Streams:
    return Streams()


@pytest.fixture
def gpu(api: Streams) -> CudaDevice:
    return CudaDevice(3, api)


def test_a_gpu_is_the_one_of_its_index(api: Streams, gpu: CudaDevice) -> None:
    assert api.chosen == 3
    assert gpu.torch_device == torch.device("cuda", 3)
    assert gpu.description.startswith("card 3, CUDA")


@pytest.mark.parametrize("lane", [DeviceLane.SENDS, DeviceLane.TRANSFERS])
def test_what_is_sent_or_moved_has_been_computed(
    api: Streams, gpu: CudaDevice, lane: DeviceLane
) -> None:
    api.run("0F0")
    with gpu.on(lane):
        assert api.run("send 0F0") == {"0F0"}
    assert api.run("0F1") == {"0F0"}  # computation does not wait for it


def test_a_receive_does_not_wait_for_computation(api: Streams, gpu: CudaDevice) -> None:
    api.run("1F0")
    with gpu.on(DeviceLane.SENDS):
        api.run("send")
    with gpu.on(DeviceLane.RECEIVES):
        assert api.run("receive") == set()


@pytest.mark.parametrize("lane", [DeviceLane.SENDS, DeviceLane.RECEIVES, DeviceLane.TRANSFERS])
def test_computation_waits_for_a_lane_it_joins(
    api: Streams, gpu: CudaDevice, lane: DeviceLane
) -> None:
    with gpu.on(lane):
        api.run("other")
    assert api.run("before") == set()
    gpu.join(lane)
    assert api.run("after") == {"other", "before"}


def test_finishing_waits_for_every_lane(api: Streams, gpu: CudaDevice) -> None:
    for lane in DeviceLane:
        with gpu.on(lane):
            api.run(str(lane))
    assert gpu.finish(1.0)
    assert api.run("end") == {str(lane) for lane in DeviceLane}


def test_a_device_that_never_ends_is_told_of(api: Streams, gpu: CudaDevice) -> None:
    api.Event.ends = False  # type: ignore[attr-defined]  # made in Streams
    assert not gpu.finish(0.01)


def test_marks_take_the_time_of_computation_alone(api: Streams, gpu: CudaDevice) -> None:
    begin = gpu.mark()
    api.run("0F0")
    with gpu.on(DeviceLane.SENDS):
        api.run("send")
    api.run("0F1")
    assert gpu.seconds(begin, gpu.mark()) == 2.0  # two computations, not the send


def test_kernels_that_wait_are_allowed_for_unless_someone_knows_better(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = ("CUDA_MODULE_LOADING", "CUDA_DEVICE_MAX_CONNECTIONS", "NCCL_LAUNCH_ORDER_IMPLICIT")
    for name in names:  # set, so that what it was is restored
        monkeypatch.setenv(name, "")
        del os.environ[name]
    monkeypatch.setenv("CUDA_DEVICE_MAX_CONNECTIONS", "16")
    allow_waiting_kernels()
    assert [os.environ[name] for name in names] == ["EAGER", "16", "1"]


def test_a_cpu_has_done_all_when_it_returns() -> None:
    tensor = torch.ones(2)
    assert CPU.put(tensor) is tensor
    assert CPU.use(tensor) is tensor
    assert CPU.finish(0.0)
    assert CPU.allocated_bytes() is None
    begin = CPU.mark()
    assert CPU.seconds(begin, CPU.mark()) >= 0
    assert CPU.host_buffer((2, 3), torch.float32).shape == (2, 3)


def test_devices_that_are_not_there_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match="device must be one of cpu, cuda, got 'tpu'"):
        open_device("tpu")
    with pytest.raises(ValueError, match="cuda was asked for, torch sees no GPU"):
        open_device("cuda")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with pytest.raises(ValueError, match="GPU 2 was asked for, torch sees 2"):
        open_device("cuda", 2)


@needs_gpu
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("1f1b", {"p": 4, "m": 8}),
        ("zb-v", {"p": 2, "m": 4}),
        ("bpipe", {"p": 4, "m": 6}),
        ("svpp", {"p": 2, "m": 2, "s": 3}),
        ("trecomp", {"p": 2, "m": 3}),
        ("toffload", {"p": 2, "m": 3}),
        ("chimera", {"p": 4, "m": 4}),
    ],
)
def test_families_replay_on_one_gpu(name: str, params: dict[str, int], dtype: str) -> None:
    case = family_case(name, **params)
    spec = replace(TINY, kind="transformer", dtype=dtype)
    report = replay(case.pipeline, case.schedule, spec, ReplayOptions(device="cuda"))
    assert report.ok, str(report)
    (peak,) = report.allocator_peak_bytes
    assert peak >= max(report.peak_bytes.measured)


def test_the_oracle_steps_a_stage_where_the_schedule_does(gpu: CudaDevice) -> None:
    case = family_case("toffload", p=2, m=3)
    by_host = {task.stage for task in case.problem.actions if task.kind is Kind.STEP}
    assert 0 < len(by_host) < 4
    for stage in range(4):
        home = stepped_on(case.plan(), stage, gpu).type
        assert home == ("cpu" if stage in by_host else "cuda")
        assert stepped_on(case.plan(), stage, CPU).type == "cpu"


@needs_gpu
@pytest.mark.parametrize("optimizer", ["momentum", "adam"])
def test_a_training_that_the_host_steps_replays_on_one_gpu(optimizer: str) -> None:
    case = family_case("toffload", p=2, m=3)
    training = Training(optimizer=optimizer, steps=3)
    report = replay(
        case.pipeline, case.schedule, TINY, ReplayOptions(device="cuda", training=training)
    )
    assert report.ok, str(report)


@needs_gpu
def test_a_profile_takes_a_gpus_own_times() -> None:
    (stage,) = profile_stages(TINY, 1, device=open_device("cuda"), repeats=3)
    assert stage.forward.median > 0
