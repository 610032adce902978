"""Bytes from a rank's birth, in every pass, and on hosts: what is predicted, and what is seen."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import pytest
import torch

from bubbleproof.reference_exec.births import Births, settled_bytes
from bubbleproof.reference_exec.broken import BrokenProgram
from bubbleproof.reference_exec.evidence.replay_report import ReplayReport
from bubbleproof.reference_exec.ledger import Ledger
from bubbleproof.reference_exec.plans.state_bytes import StateBytes
from bubbleproof.reference_exec.plans.training import Training
from proofs_tests.reference_exec import hoarding, kept_from_birth
from proofs_tests.reference_exec.cases import TINY, family_case, own, run
from proofs_tests.reference_exec.fault_cases import CASES, WIDE
from proofs_tests.reference_exec.replica_cases import of_family
from proofs_tests.reference_exec.replica_cases import run as run_replicas
from proofs_tests.reference_exec.training_cases import trained

Cell = TypeVar("Cell")
POOL = 4 << 20
# WIDE: an mlp layer of hidden 8 has 8 x 64 + 7 x 8 = 568 parameters, 4544 bytes; an activation of 3
# tokens 192 bytes, so that 3 microbatches have 576 bytes of inputs, and of targets
WEIGHTS, DATA = 4544, 576
SHARDED = 1248  # the same of hidden 4, 156 parameters
ACTIVATION = DATA // 3

SEEN = {
    "pool_in_a_constructor": (
        rf"rank 1 held {WEIGHTS + DATA + POOL} bytes as it was made, {WEIGHTS + DATA} were",
        rf"rank 0: .*: {POOL} bytes beyond them at 0F0 \(action 0\)$",
    ),
    "pool_of_a_stage": (rf"rank 0 held {WEIGHTS + DATA + POOL} bytes as it was made, ",),
    "whole_weights_of_a_member": (
        rf"rank 1 of replica 1 held {256 + 2 * SHARDED} bytes as it was made, {256 + SHARDED} ",
        rf"rank 0 of replica 0: .*: {SHARDED} bytes beyond them at 0UNSHARD\S* \(action 0\)$",
    ),
    "weights_not_emptied": (
        rf"rank 0 of replica 1 held {256 + 2 * SHARDED} bytes as it was made, {256 + SHARDED} ",
        rf"rank 0 of replica 1 begins pass 0 with {2 * SHARDED - SHARDED // 2}\+\d+\+0 bytes",
    ),
    "off_loaded_weights_stay": (
        rf"rank 1 held {2 * WEIGHTS + 384} bytes as it was made, {WEIGHTS + 384} were",
        rf"rank 0: .* 1 actions .*: {WEIGHTS} bytes beyond them at 0F0 \(action 0\)",
    ),
    "master_weights_twice": (
        rf"the host of rank 0 held {3 * WEIGHTS} bytes as it was made, {2 * WEIGHTS} were",
        rf"the host of rank 1: .*: {WEIGHTS} bytes beyond them at \w+ \(action 0\)",
    ),
    "data_twice": (rf"rank 1 held {WEIGHTS + 2 * DATA} bytes as it was made, ",),
    "inputs_of_the_whole_batch": (rf"rank 0 held {WEIGHTS + 2 * DATA} bytes as it was made, ",),
    # a mask of 3 x 3 float64
    "masks_twice": (r"rank 0 held 2000 bytes as it was made, 1928 were predicted",),
    "bytes_in_the_first_pass": (
        r"rank 0 in pass 0: .* 1 actions .*: 64 bytes beyond them at 0F0 \(action 0\)$",
    ),
    "bytes_in_the_middle_pass": (
        r"rank 0 in pass 1: .* 1 actions .*: 64 bytes beyond them at 0F0 \(action 0\)$",
    ),
    "loss_of_the_first_pass": (r"losses differ .* alone: microbatch 1 of pass 0 differs",),
    "gradients_between_passes": (
        rf"rank 1 begins pass 1 with {WEIGHTS}\+{WEIGHTS}\+{WEIGHTS} bytes of weights, gradients "
        rf"and optimizer state, {WEIGHTS}\+0\+{WEIGHTS} were predicted",
    ),
    "optimizer_state_twice": (
        rf"rank 0 in pass 0: .* 1 actions .*: {SHARDED} bytes beyond them at 0STEP \(action 15\)",
        rf"rank 1 in pass 1: .*: {SHARDED} bytes beyond them at 1F0 ",
    ),
    "host_copy_freed_early": (
        rf"the host of rank 0: .* 1 actions .*: {WEIGHTS} bytes short of them at 2RELOAD0 ",
    ),
    "host_copy_freed_late": (
        rf"the host of rank 1: .*: {WEIGHTS} bytes beyond them at 3RELOAD0 \(action 2\)",
    ),
    "dictionary_of_a_module": (r"rank 0: .*: 192 bytes beyond them at 0F0 \(action 0\)",),
    # 64 elements of float64 beside the loss, of three microbatches
    "loss_of_a_larger_tensor": (
        r"rank 1: .*: 512 bytes beyond them at 1F0 \(action 1\); 1536 bytes beyond them at ",
    ),
    "message_of_a_larger_tensor": (r"rank 1: .*: 192 bytes beyond them at 1B0 \(action 3\)",),
    "saved_activations": (r"rank 0: .* beyond them at 0",),
    "operands": (r"rank 0: .* beyond them at 0W0",),
    "first_forwards": (r"rank 0: .* beyond them at 0F0 \(action 0\)",),
    # the tensor on the context is an output's copy
    "contexts": (rf"rank 0: .*: {ACTIVATION} bytes beyond them at 0F0 ",),
    "scratch": (
        rf"rank 0: .*: {POOL} bytes beyond them at 0F0 \(action 0\)",
        rf"rank 0: .*; {3 * POOL} bytes beyond them at 0\w+ \(.*\) at most",
    ),
    "outputs_in_a_list": (rf"rank 0: .*: {ACTIVATION} bytes beyond them at 0F0",),
    "whole_graphs": (r"rank 0: .* beyond them at 0B0",),
    "attributes": (rf"rank 0 in pass 0: .*: {ACTIVATION // 2} bytes beyond them at 0F0",),
    "hooks": (rf"rank 0: .*: {ACTIVATION} bytes beyond them at 0B0",),
    "storages": (rf"rank 0: .*: {ACTIVATION} bytes beyond them at 0F0",),
    "arrays": (rf"rank 0: .*: {ACTIVATION} bytes beyond them at 0B0",),
    "stretched": (
        r"rank 0: .*: 64 bytes beyond them at 0F0 \(action 0\)",
        r"rank 0: .*; 192 bytes beyond them at 0\w+ \(.*\) at most",
    ),
    "swapped": (r"rank 0: .*: \d+ bytes beyond them at 0F0 \(action 0\)",),
    "swollen": (r"rank 0: .*: 64 bytes beyond them at 0F0 \(action 0\)",),
    "received": (rf"rank 0: .*: {ACTIVATION} bytes beyond them at 0\w+ ",),
    "sent": (rf"rank 1: .*: {ACTIVATION} bytes beyond them at 1B1",),
    # a third of the 4176 bytes that rank 0 holds, for each of two that leave
    "evicted": (r"rank 0: .*: 1392 bytes beyond them at .*; 2784 bytes beyond them at 0EVICT3 ",),
    "off_loaded": (r"the host of rank 0: .* beyond them at ",),
    "weights_on_the_rank": (r"rank 0: .* beyond them at 2OFFLOAD",),
    "gathered": (r"rank 0 of replica 0: .* beyond them at 0RESHARD",),
    # the two GEMMs of a layer have 2 x 4 x 64 elements
    "gradient_of_a_larger_tensor": (r"rank 0: .*: 4096 bytes beyond them at 0W0 ",),
}


FAULTS = [
    fault
    for fault in (*kept_from_birth.FAULTS, *hoarding.FAULTS)
    if fault[0] is not hoarding.frozen
]


@pytest.mark.parametrize(
    ("patch", "case"), FAULTS, ids=lambda value: getattr(value, "__name__", None)
)
def test_what_is_held_is_told_by_pass_rank_and_action(
    patch: Callable[[pytest.MonkeyPatch, list[object]], None],
    case: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept: list[object] = []
    patch(monkeypatch, kept)
    report = CASES[case]()
    assert kept, "the fault was not injected"
    assert report.gradients_equal
    assert report.weights_equal
    for told in SEEN[patch.__name__]:
        assert any(re.search(f"^{told}", text) for text in report.failures), report.failures


def test_every_fault_says_what_tells_of_it() -> None:
    assert {*SEEN} == {patch.__name__ for patch, _ in FAULTS}


def test_what_is_hidden_from_the_collector_ends_the_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    hoarding.frozen(monkeypatch, [])
    why = r"^rank 0, action 0: gc\.freeze\(\) or the like hid what was made"
    try:
        with pytest.raises(BrokenProgram, match=why):
            CASES["1f1b"]()
        assert run(family_case("1f1b", p=2, m=3), WIDE, count_bytes=False).ok
    finally:
        gc.freeze()  # what the fault has shown


def born(report: ReplayReport) -> tuple[tuple[int, ...], tuple[int, ...]]:
    assert report.ok, str(report)
    assert report.born_bytes.measured == report.born_bytes.predicted
    assert report.host_born_bytes.measured == report.host_born_bytes.predicted
    return report.born_bytes.measured, report.host_born_bytes.measured


def test_births_by_hand() -> None:
    # TINY: 156 parameters of float64 are 1248 bytes; an activation of 3 x 4 elements 96
    case = family_case("1f1b", p=3, m=2)
    assert born(run(case, TINY)) == ((1248 + 2 * 96, 1248, 1248 + 2 * 96), (0, 0, 0))
    # a transformer layer has 12 x 16 + 4 x 4 parameters and a mask of 3 x 3
    middle = (208 + 9) * 8
    found, _ = born(run(case, replace(TINY, kind="transformer")))
    assert found == (middle + 192, middle, middle + 192)
    # llama: 2 x 16 + 2 x 4 x 2 + 3 x 4 x 11 + 2 x 4 parameters; cosines and sines of 3 positions
    # and a head of 2. Words of 8 bytes: an embedding of 5 x 4; a head of as many, with a norm of 4
    middle = (188 + 9 + 2 * 6) * 8
    found, _ = born(run(case, replace(TINY, kind="llama", vocabulary=5)))
    assert found == (middle + 20 * 8 + 48, middle, middle + 24 * 8 + 48)


def test_births_of_trainings_replicas_and_hosts_by_hand() -> None:
    # the data of all steps are there from the start
    report = trained(family_case("1f1b", p=2, m=2), Training(steps=3))
    assert born(report) == ((1248 + 3 * 192,) * 2, (0, 0))
    # half of the weights and of their sums on each of two members; 4 microbatches of 2 tokens
    assert born(run_replicas(of_family("1f1b"), "3")) == ((1248 + 4 * 64,) * 4, (0,) * 4)
    # one of two stages on a rank is the host's: it has the weights twice
    report = run(family_case("toffload", p=2, m=2))
    assert born(report) == ((1248 + 192,) * 2, (2 * 1248,) * 2)


def test_a_users_stage_begins_with_its_tables_too() -> None:
    case = family_case("1f1b", p=2, m=2)
    found, _ = born(run(case, own("constant", "own_hoarders")))
    # Pair: 16 + 4 + 16 parameters of float64, and a table of 3 x 4 that its first forward makes
    assert found == ((36 + 12) * 8 + 2 * 96,) * 2


def test_model_state_as_passes_begin_and_end() -> None:
    training = Training(optimizer="adam", steps=2)
    report = trained(family_case("1f1b", p=2, m=2), training)
    assert report.ok, str(report)
    assert [moment.name for moment in report.earlier_state] == [
        "begins pass 0",
        "ends pass 0",
        "begins pass 1",
    ]
    adam = 2 * 1248 + 6 * 4
    states = [moment.on_ranks.measured[0] for moment in report.earlier_state]
    assert states == [
        StateBytes(weights=1248),
        StateBytes(weights=1248, gradients=1248, optimizer=adam),
        StateBytes(weights=1248, optimizer=adam),
    ]
    assert report.model_state.measured[0] == states[1]


def test_all_passes_of_a_training_are_there() -> None:
    report = trained(family_case("toffload", p=2, m=2), Training(optimizer="momentum", steps=3))
    assert report.ok, str(report)
    assert len(report.passes) == 3
    assert report.traces == report.passes[-1]
    for traces in report.passes:
        for trace in traces:
            assert trace.live_bytes == trace.predicted
            assert trace.host_live_bytes == trace.host_predicted
            assert len(trace.host_predicted) == len(trace.actions)


def test_bytes_that_are_not_counted_have_no_births() -> None:
    report = run(family_case("1f1b", p=2, m=2), count_bytes=False)
    assert report.ok
    assert report.born_bytes == ((), ())


# What the account rests on.


def test_a_written_a_grown_and_a_swapped_tensor_have_changed() -> None:
    births = Births()
    still, written, grown, swapped = (torch.zeros(4) for _ in range(4))
    with torch.inference_mode():
        inference = torch.zeros(4)
    with births.watched():
        births.guard([still, written, grown, swapped, inference])
        assert births.changed() == []
        written[1:3].fill_(1)
        grown.untyped_storage().resize_(1 << 20)
        swapped.data = torch.ones(4)
        with torch.inference_mode():
            inference.fill_(1)  # torch keeps no count of it
        assert {id(each) for each in births.changed()} == {*map(id, (written, grown, swapped))}
        assert births.changed() == []
        births.disregard([written])
        written.fill_(2)
        assert births.changed() == []


def test_old_storages_stay_old() -> None:
    births, old = Births(), torch.zeros(3)
    with births.watched():
        assert old.untyped_storage()._cdata in births.old()
        new = torch.zeros(3)
        assert new.untyped_storage()._cdata not in births.old()
        assert new.untyped_storage()._cdata in {each._cdata for each in births.taken()}
    with births.watched():
        births.forget()
        circle: list[object] = [torch.zeros(5)]
        circle.append(circle)
        del circle
        kept = torch.zeros(2)
        assert settled_bytes(births.taken()) == {kept.untyped_storage()._cdata: 8}


def test_a_part_stands_for_what_it_shows() -> None:
    ledger, whole = Ledger(), torch.zeros(10, dtype=torch.float64)
    ready = [whole[:4]]
    ledger.elsewhere.append(lambda: ready)
    ledger.find([whole.untyped_storage()])
    assert ledger.live_bytes == 48
    ready.append(whole[4:])  # two parts show all of it
    assert ledger.live_bytes == 0
    ready.clear()
    assert ledger.live_bytes == 80
    ledger.others.append(lambda: [whole.untyped_storage()._cdata])
    assert ledger.live_bytes == 0


def test_a_result_is_set_apart_and_no_more_than_it() -> None:
    ledger, result, known = Ledger(), torch.zeros(10, dtype=torch.float64), torch.zeros(2)
    ledger.set_apart(result[0])
    assert ledger.live_bytes == 72
    ledger.find([known.untyped_storage()])
    ledger.set_apart(known)
    assert ledger.live_bytes == 72 + 8


def test_an_excluded_storage_that_is_taken_counts_whole() -> None:
    ledger, old, other = Ledger(), torch.zeros(4), torch.zeros(6)
    ledger.exclude_storages([old.untyped_storage()])
    assert ledger.live_bytes == 0
    ledger.take(old.untyped_storage())
    assert ledger.live_bytes == 16
    ledger.take(other.untyped_storage())
    assert ledger.live_bytes == 16 + 24
