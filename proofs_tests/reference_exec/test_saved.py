"""Live bytes count each storage once, for as long as it lives; footprints match them."""

from __future__ import annotations

import gc
import itertools

import pytest
import torch
from torch.autograd.graph import saved_tensors_hooks

from bubbleproof.reference_exec.births import Births
from bubbleproof.reference_exec.broken import BrokenProgram
from bubbleproof.reference_exec.ledger import Hold, Ledger, storage_key
from bubbleproof.reference_exec.models.footprint import footprint
from bubbleproof.reference_exec.models.linear import WeightGradStore
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.models.reference import (
    Stage,
    microbatch_input,
    microbatch_loss,
    microbatch_target,
)
from bubbleproof.reference_exec.saved import SavedTensors

SHAPES = [  # (hidden, heads, sequence, batch, layers)
    (8, 2, 4, 2, 1),
    (8, 2, 4, 2, 3),
    (12, 3, 5, 1, 2),
    (6, 1, 3, 2, 1),
    (4, 2, 1, 3, 1),
    (4, 1, 1, 1, 2),
]
SPECS = [
    ModelSpec(kind=kind, dtype=dtype, hidden=d, heads=h, sequence=t, batch=b, layers=n)
    for (d, h, t, b, n), kind, dtype in itertools.product(
        SHAPES, ("mlp", "transformer"), ("float64", "float32")
    )
]


def test_a_storage_counts_once_until_its_last_owner_is_gone() -> None:
    ledger, tensor = Ledger(), torch.zeros(10, dtype=torch.float64)
    whole, part = Hold(ledger, tensor), Hold(ledger, tensor[2:4])
    del tensor
    assert ledger.live_bytes == 80  # 10 elements of 8 bytes, a view of them included
    del whole
    assert ledger.live_bytes == 80
    del part
    assert ledger.live_bytes == 0


def test_parameters_do_not_count() -> None:
    ledger, weight = Ledger(), torch.nn.Parameter(torch.zeros(3, 4))
    ledger.exclude([weight])
    held = Hold(ledger, weight.t())
    assert ledger.live_bytes == 0
    del held
    assert ledger.live_bytes == 0


def test_the_graph_owns_what_it_saved() -> None:
    ledger, x = Ledger(), torch.ones(5, dtype=torch.float64, requires_grad=True)
    with SavedTensors(ledger):
        y = x.exp().exp()  # each exp saves its own result, 40 bytes
    assert ledger.live_bytes == 80
    torch.autograd.backward(y.sum())
    assert ledger.live_bytes == 40  # y, which is still here, and which its exp had saved
    with SavedTensors(ledger):
        y = x.exp()
    assert ledger.live_bytes == 40
    del y  # never run backward: nothing may keep the graph alive
    assert ledger.live_bytes == 0


def test_the_output_and_the_input_count_while_they_live() -> None:
    ledger, x = Ledger(), torch.ones(5, dtype=torch.float64, requires_grad=True)
    with SavedTensors(ledger) as saved:
        y = x + 1  # saves nothing
    assert ledger.live_bytes == 0
    saved.end_with(y, x)
    assert ledger.live_bytes == 80
    y = y.detach()  # the graph's output is gone, the storage lives on
    assert ledger.live_bytes == 80
    del x
    assert ledger.live_bytes == 40
    part = y.numpy()[1:]
    del y
    assert ledger.live_bytes == 40
    del part
    assert ledger.live_bytes == 0


def test_what_somebody_takes_out_of_a_graph_counts_until_it_is_let_go() -> None:
    ledger, x = Ledger(), torch.ones(5, dtype=torch.float64, requires_grad=True)
    with SavedTensors(ledger) as saved:
        y = x.exp().exp()
    saved.end_with(y, x)
    taken = saved.tensors()[0].detach()  # that of the inner exp
    del x, y
    assert ledger.live_bytes == 40
    del taken
    assert ledger.live_bytes == 0


def test_forwards_that_save_one_storage_count_it_once() -> None:
    ledger, x = Ledger(), torch.ones(5, dtype=torch.float64, requires_grad=True)
    outputs = []
    for _ in range(2):
        with SavedTensors(ledger):
            outputs.append(x.cos())  # saves x
    del x
    assert ledger.live_bytes == 40
    outputs.pop()
    assert ledger.live_bytes == 40
    outputs.pop()
    assert ledger.live_bytes == 0


def test_a_forward_that_fails_leaves_nothing() -> None:
    ledger, x = Ledger(), torch.ones(5, dtype=torch.float64, requires_grad=True)
    with pytest.raises(RuntimeError, match="must match"), SavedTensors(ledger):
        x.exp() + torch.ones(4)
    assert ledger.live_bytes == 0
    assert x.exp().grad_fn is not None  # the hooks are gone


def test_a_key_is_given_to_no_other_storage_while_the_ledger_knows_it() -> None:
    """Storages are told apart by address, which would be given out again."""
    unknown = {storage_key(torch.zeros(3)) for _ in range(1000)}
    assert len(unknown) < 1000  # so it is where nobody follows one
    ledger = Ledger()
    place = Hold(ledger, torch.zeros(3))._key
    assert all(storage_key(torch.zeros(3)) != place for _ in range(1000))
    assert ledger.live_bytes == 0
    later = [torch.zeros(3) for _ in range(1000)]
    held = [Hold(ledger, tensor) for tensor in later]
    assert ledger.live_bytes == 12_000
    del held, later
    assert ledger.live_bytes == 0


def test_a_storage_counts_with_the_bytes_that_it_has() -> None:
    ledger, tensor = Ledger(), torch.zeros(4, dtype=torch.float64)
    held = Hold(ledger, tensor)
    del held
    assert ledger.live_bytes == 32
    tensor.untyped_storage().resize_(8)
    assert ledger.live_bytes == 8
    held = Hold(ledger, tensor)
    tensor.untyped_storage().resize_(16)
    assert ledger.live_bytes == 16
    del held, tensor
    assert ledger.live_bytes == 0


def test_what_is_elsewhere_counts_only_when_it_is_there_no_more() -> None:
    ledger, tensor = Ledger(), torch.zeros(4, dtype=torch.float64)
    ready = [tensor]
    ledger.elsewhere.append(lambda: ready)
    ledger.find([tensor.untyped_storage()])
    assert ledger.live_bytes == 0
    ready.clear()
    assert ledger.live_bytes == 32
    ready.append(tensor)
    held = Hold(ledger, tensor)
    assert ledger.live_bytes == 32  # what is needed is, wherever else
    del held
    assert ledger.live_bytes == 0


def test_a_circle_of_references_keeps_nothing() -> None:
    ledger, circle = Ledger(), list[object]()
    circle += [circle, tensor := torch.zeros(4)]
    ledger.find([tensor.untyped_storage()])
    del tensor, circle
    assert ledger._unneeded()
    assert ledger.live_bytes == 0


def test_constants_that_die_make_no_room_for_uncounted_storages() -> None:
    ledger, constant = Ledger(), torch.zeros(3)
    ledger.exclude_storages([constant.untyped_storage()])
    place = storage_key(constant)
    del constant
    assert all(storage_key(torch.zeros(3)) != place for _ in range(1000))


@pytest.mark.parametrize("is_early", [False, True], ids=["at the end", "collected meanwhile"])
def test_what_an_action_leaves_behind_is_found(*, is_early: bool) -> None:
    ledger, births = Ledger(), Births()
    old = torch.zeros(2)
    with births.watched():
        births.forget()
        kept: list[object] = [torch.zeros(4), torch.zeros(5).untyped_storage(), old.detach()[1:]]
        torch.zeros(1000)  # comes and goes
        if is_early:
            gc.collect()
        births.leave_to(ledger)
        assert ledger.live_bytes == 16 + 20 + 8  # a view of what was there before is found too
        kept.append(torch.zeros(6))
        births.leave_to(ledger)
        assert ledger.live_bytes == 44 + 24
        kept.clear()
        assert ledger.live_bytes == 8  # of ``old``
    assert births._called not in gc.callbacks


def test_a_constant_counts_with_what_it_grows_and_what_it_shows_instead() -> None:
    ledger, constant = Ledger(), torch.zeros(4)
    ledger.exclude_storages([constant.untyped_storage()])
    ledger.follow([constant])
    assert ledger.live_bytes == 0
    constant.resize_(6)
    assert ledger.live_bytes == 2 * 4
    constant.untyped_storage().resize_(8)  # smaller than at first: nothing beyond
    assert ledger.live_bytes == 0
    first = constant.data
    constant.data = torch.zeros(5)
    assert ledger.live_bytes == 5 * 4
    constant.data = first
    assert ledger.live_bytes == 0


@pytest.mark.parametrize("is_thawed", [False, True])
def test_what_is_hidden_from_the_collector_is_told(*, is_thawed: bool) -> None:
    births = Births()
    gc.freeze()  # what was so before is no fault
    try:
        with births.watched():
            births.forget()
            births.leave_to(Ledger())
            kept = torch.zeros(4)
            gc.freeze()
            if is_thawed:
                gc.unfreeze()
                gc.collect()  # nor does a collection make up for it
            with pytest.raises(BrokenProgram, match="hid what was made"):
                births.leave_to(Ledger())
            assert kept.numel() == 4
    finally:
        gc.freeze()


def saved_bytes(spec: ModelSpec, stage: int, num_stages: int) -> int:
    """Bytes that autograd saves plus the root, counted by a list of storages and no ledger."""
    module = Stage(spec, stage)
    storages: dict[int, torch.UntypedStorage] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        storages[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage()
        return tensor

    x = microbatch_input(spec, 0).requires_grad_()
    with saved_tensors_hooks(pack, lambda tensor: tensor):
        root = module(x, WeightGradStore(Ledger()))
        if stage == num_stages - 1:
            root = microbatch_loss(spec, root, microbatch_target(spec, 0), 1)
    pack(root)
    for parameter in module.parameters():
        storages.pop(parameter.untyped_storage().data_ptr(), None)
    return sum(storage.nbytes() for storage in storages.values())


@pytest.mark.parametrize("spec", SPECS, ids=str)
@pytest.mark.parametrize("stage", [0, 1], ids=["first", "last"])
def test_footprint_is_what_autograd_saves(spec: ModelSpec, stage: int) -> None:
    assert footprint(spec, stage, 2).activation_bytes == saved_bytes(spec, stage, 2)


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_footprint_is_what_the_store_holds_after_the_input_backward(spec: ModelSpec) -> None:
    ledger, module = Ledger(), Stage(spec, 0)
    ledger.exclude(module.parameters())
    store = WeightGradStore(ledger)
    store.is_deferring = True
    with SavedTensors(ledger):
        y = module(microbatch_input(spec, 0).requires_grad_(), store)
    y.backward(microbatch_target(spec, 0))
    del y
    assert ledger.live_bytes == footprint(spec, 0, 2).weight_bytes
    store.run()
    assert ledger.live_bytes == 0


def test_views_of_parameters_do_not_count() -> None:
    ledger, linear = Ledger(), torch.nn.Linear(3, 2, bias=False)
    ledger.exclude(linear.parameters())
    x = torch.ones(5, 4, 3)
    with SavedTensors(ledger) as saved:
        y = linear(x)  # saves x and a transposed weight
    assert ledger.live_bytes == 5 * 4 * 3 * 4
    assert {storage_key(tensor) for tensor in saved.tensors()} == {storage_key(x)}
    del y
