"""The race detector on programs made by hand: each fault is found, and nothing else.

The right form of each program and a faulty one differ in the one thing that the test is named for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import methodcaller

import pytest
import torch

from proofs_tests.reference_exec.races.machine import MARKED, CudaStream, Machine, StandInDevice
from proofs_tests.reference_exec.races.memory import Place
from proofs_tests.reference_exec.races.recorder import Recorder


class Program:
    """A machine with a second stream, and a recorder of what is run on it."""

    def __init__(self) -> None:
        self.machine = Machine()
        self.recorder = Recorder(self.machine)
        self.device = StandInDevice(self.machine)
        self.main = self.machine.current_stream()
        self.side: CudaStream = self.machine.Stream("side")

    def ones(self) -> torch.Tensor:
        return torch.ones(4, device=MARKED)

    def pinned(self) -> torch.Tensor:
        return self.device.host_buffer((4,), torch.float32)

    @property
    def found(self) -> set[tuple[str, str]]:
        """The pairs of timelines that race."""
        return {
            (race.first.timeline.name, race.second.timeline.name)
            for race in self.recorder.races.values()
        }


@pytest.fixture
def program() -> Iterator[Program]:
    made = Program()
    with made.recorder:
        yield made


@pytest.mark.parametrize("waits", [True, False])
def test_a_stream_has_to_wait_for_what_it_reads(program: Program, waits: bool) -> None:
    x = program.ones()
    if waits:
        program.side.wait_stream(program.main)
    with program.machine.stream(program.side):
        x + 1
    assert program.found == (set() if waits else {("compute", "side")})
    (race,) = program.recorder.races.values() or [None]
    if race is not None:
        assert str(race) == (
            "race: ones in the start [compute] and add in the start [side] on ones of the start "
            "(device)"
        )


@pytest.mark.parametrize("waits", [True, False])
def test_a_write_has_to_wait_for_reads(program: Program, waits: bool) -> None:
    x = program.ones()
    program.side.wait_stream(program.main)
    with program.machine.stream(program.side):
        x + 1
    if waits:
        program.main.wait_stream(program.side)
    x.zero_()
    assert program.found == (set() if waits else {("side", "compute")})


def test_two_reads_need_no_order(program: Program) -> None:
    x = program.ones()
    program.side.wait_stream(program.main)
    with program.machine.stream(program.side):
        x + 1
    x + 2
    assert not program.found


@pytest.mark.parametrize("begin", [1, 2])
def test_disjoint_parts_of_a_buffer_need_no_order(program: Program, begin: int) -> None:
    x = program.ones()
    program.side.wait_stream(program.main)
    with program.machine.stream(program.side):
        x[begin:] = 2.0
    x[:2] = 3.0
    assert program.found == (set() if begin == 2 else {("side", "compute")})


def test_an_event_orders_what_came_before_it_and_no_more(program: Program) -> None:
    x, y = program.ones(), program.ones()
    event = program.main.record_event()
    y += 1
    program.side.wait_event(event)
    with program.machine.stream(program.side):
        x + 1
        assert not program.found
        y + 1
    assert program.found == {("compute", "side")}


@pytest.mark.parametrize("seen", [True, False])
def test_an_event_that_has_come_orders_what_the_host_issues_then(
    program: Program, seen: bool
) -> None:
    x = program.ones()
    program.machine.lateness = 0.0 if seen else 1.0
    assert program.main.record_event().query() == seen
    with program.machine.stream(program.side):
        x + 1
    assert bool(program.found) != seen


def _recorded(tensor: torch.Tensor, program: Program) -> None:
    tensor.record_stream(program.side)  # type: ignore[arg-type]  # the stand-in's


def _joined(tensor: torch.Tensor, program: Program) -> None:
    del tensor
    program.main.wait_stream(program.side)


def _neither(tensor: torch.Tensor, program: Program) -> None:
    del tensor, program


@pytest.mark.parametrize("guard", [_recorded, _joined, _neither])
@pytest.mark.parametrize("frees", ["dies", "is resized"])
def test_memory_in_use_elsewhere_is_not_given_out_again(
    program: Program, guard: Callable[[torch.Tensor, Program], None], frees: str
) -> None:
    x = program.ones()
    program.side.wait_stream(program.main)
    with program.machine.stream(program.side):
        x + 1
    guard(x, program)
    if frees == "dies":
        del x
    else:
        x.untyped_storage().resize_(0)
    program.ones()
    assert program.found == ({("side", "compute")} if guard is _neither else set())
    assert all(race.is_reuse for race in program.recorder.races.values())


def test_a_record_guards_only_what_was_queued_before_the_free(program: Program) -> None:
    # the reader waits for the side stream, which is recorded, and for nothing of its own
    x, third = program.ones(), program.machine.Stream("third")
    third.wait_stream(program.main)
    with program.machine.stream(third):
        x + 1
    _recorded(x, program)
    del x
    program.ones()
    assert program.found == {("third", "compute")}


def test_memory_of_another_stream_can_be_used_once_that_is_waited_for(program: Program) -> None:
    # allocated here, written there: the block's last user here must have been waited for
    x = program.ones()
    del x
    y = torch.empty(4, device=MARKED)
    with program.machine.stream(program.side):
        y.zero_()
    assert program.found == {("compute", "side")}


@pytest.mark.parametrize("waits", [True, False])
def test_the_host_sees_what_it_has_waited_for(program: Program, waits: bool) -> None:
    with program.machine.stream(program.side):
        room = program.pinned().copy_(program.ones(), non_blocking=True)
    if waits:
        program.side.synchronize()
    room.tolist()
    assert program.found == (set() if waits else {("side", "host")})


@pytest.mark.parametrize("method", ["item", "cpu", "tolist"])
def test_asking_for_a_value_waits_for_the_current_stream_alone(
    program: Program, method: str
) -> None:
    ask = methodcaller(method)
    x = torch.ones(1, device=MARKED)
    ask(x)
    assert not program.found
    with program.machine.stream(program.side):
        y = torch.ones(1, device=MARKED)
    ask(y)
    assert program.found == {("side", "compute")}


@pytest.mark.parametrize(
    ("buffer", "non_blocking"), [("pinned", False), ("pageable", True), ("pageable", False)]
)
def test_other_copies_to_the_host_wait(program: Program, buffer: str, non_blocking: bool) -> None:
    room = program.pinned() if buffer == "pinned" else torch.empty(4)
    room.copy_(program.ones(), non_blocking=non_blocking)
    room.tolist()
    assert not program.found


@pytest.mark.parametrize("waits", [True, False])
def test_a_pinned_buffer_stays_as_it_is_while_a_copy_is_queued(
    program: Program, waits: bool
) -> None:
    source = program.pinned().fill_(1.0)
    torch.empty(4, device=MARKED).copy_(source, non_blocking=True)
    if waits:
        program.main.synchronize()
    source.fill_(2.0)
    assert program.found == (set() if waits else {("compute", "host")})


def test_a_pinned_buffer_can_be_freed_while_a_copy_is_queued(program: Program) -> None:
    room = program.pinned().copy_(program.ones(), non_blocking=True)
    del room
    program.pinned().fill_(1.0)
    assert not program.found


@pytest.mark.parametrize("waits", [True, False])
def test_a_backward_runs_on_the_stream_of_its_forward(program: Program, waits: bool) -> None:
    x = program.ones().requires_grad_()
    program.side.wait_stream(program.main)
    with program.machine.stream(program.side):
        y = x.sin()
        total = y.sum()
    if waits:
        program.main.wait_stream(program.side)
    total.backward()  # type: ignore[no-untyped-call]  # torch's stub
    assert x.grad is not None
    x.grad + 1  # the caller's stream waits at the end
    assert not program.found
    saved = program.recorder.life_of(x)
    assert {stream.name for stream, _ in saved.reads} == {"side"}  # cos(x), in the backward too
    x.detach().zero_()
    assert not program.found


def test_host_and_device_do_not_mix(program: Program) -> None:
    program.ones() + torch.ones(4)
    assert program.recorder.misplaced == ["add in the start on device, host"]
    program.recorder.misplaced.clear()
    program.ones() + torch.tensor(1.0)  # a number of no dimension may come from the host
    assert not program.recorder.misplaced


def test_places_follow_what_is_asked_for(program: Program) -> None:
    place = {
        Place.DEVICE: [program.ones(), torch.ones(2).to(MARKED), program.ones() * 2],
        Place.PINNED: [program.pinned()],
        Place.PAGEABLE: [torch.ones(2), program.ones().cpu(), torch.tensor([1])],
    }
    for expected, tensors in place.items():
        assert {program.recorder.life_of(tensor).place for tensor in tensors} == {expected}
    with pytest.raises(TypeError, match="device tensor"):
        program.ones().numpy()


def test_torch_is_as_it_was_afterwards() -> None:
    before = (torch.Tensor.cpu, torch.Tensor.record_stream, torch.UntypedStorage.resize_)
    with Recorder(Machine()):
        assert torch.Tensor.cpu is not before[0]
    assert (torch.Tensor.cpu, torch.Tensor.record_stream, torch.UntypedStorage.resize_) == before
