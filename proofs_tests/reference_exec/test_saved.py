"""Live bytes count each storage once, for as long as someone needs it; footprints match them."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch.autograd.graph import saved_tensors_hooks

from bubbleproof.reference_exec.models.footprint import footprint
from bubbleproof.reference_exec.models.linear import WeightGradStore
from bubbleproof.reference_exec.models.reference import (
    Stage,
    microbatch_input,
    microbatch_loss,
    microbatch_target,
)
from bubbleproof.reference_exec.models.spec import ModelSpec
from bubbleproof.reference_exec.saved import Hold, Ledger, SavedTensors, storage_key

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


def test_the_graph_owns_what_it_saved() -> None:
    ledger, x = Ledger(), torch.ones(5, dtype=torch.float64, requires_grad=True)
    with SavedTensors(ledger):
        y = x.exp().exp()  # each exp saves its own result, 40 bytes
    assert ledger.live_bytes == 80
    torch.autograd.backward(y.sum())
    assert ledger.live_bytes == 0
    with SavedTensors(ledger):
        y = x.exp()
    assert ledger.live_bytes == 40
    del y  # never run backward: nothing may keep the graph alive
    assert ledger.live_bytes == 0


def test_the_output_and_the_input_count_while_the_output_lives() -> None:
    ledger, x = Ledger(), torch.ones(5, dtype=torch.float64, requires_grad=True)
    with SavedTensors(ledger) as saved:
        y = x + 1  # saves nothing
    assert ledger.live_bytes == 0
    saved.end_with(y, x)
    assert ledger.live_bytes == 80
    y = y.detach()  # the storage lives on, the graph's output does not
    assert ledger.live_bytes == 0


def test_what_somebody_takes_out_of_a_graph_counts_until_it_is_let_go() -> None:
    ledger, x = Ledger(), torch.ones(5, dtype=torch.float64, requires_grad=True)
    with SavedTensors(ledger) as saved:
        y = x.exp().exp()
    saved.end_with(y, x)
    taken = saved.tensors()[:1]  # that of the inner exp
    del y
    assert ledger.live_bytes == 40
    del taken
    assert ledger.live_bytes == 0


def test_forwards_that_save_one_storage_count_it_once() -> None:
    ledger, x = Ledger(), torch.ones(5, dtype=torch.float64, requires_grad=True)
    outputs = []
    for _ in range(2):
        with SavedTensors(ledger):
            outputs.append(x.cos())  # saves x
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


def test_a_new_storage_in_the_place_of_a_dead_one_counts_with_its_own_size() -> None:
    """Storages are told apart by address, which is given out again, perhaps before a reading."""
    ledger, x = Ledger(), torch.ones(5, dtype=torch.float64, requires_grad=True)
    with SavedTensors(ledger) as saved:
        y = x.exp()
    (place,) = {storage_key(tensor) for tensor in saved.tensors()}
    del y
    others = []
    while storage_key(other := torch.zeros(3, dtype=torch.float64)) != place:
        others.append(other)
        assert len(others) < 100_000, "this allocator never gives an address out again"
    held = Hold(ledger, other)
    assert ledger.live_bytes == 24
    del held
    assert ledger.live_bytes == 0


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
