"""What NCCL is taken to keep, by versions and variables; and that a replay says so."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bubbleproof.commands.replaying import under_torchrun
from bubbleproof.commands.replaying.replay_options import (
    CommunicationOptions,
    ReplayRequest,
    RunOptions,
    TrainingOptions,
)
from bubbleproof.formats.inputs import read_schedule_input
from bubbleproof.reference_exec.drivers.nccl_order import (
    KeptOrder,
    NcclHere,
    agreed_semantics,
    kept_order,
    require_sharing,
)
from bubbleproof.reference_exec.evidence.replay_report import ReplayReport
from bubbleproof.reference_exec.replaying import replay
from bubbleproof.reference_exec.runtime import cuda
from bubbleproof.report.document import replay_rows
from bubbleproof.verify.communication.semantics import Semantics
from proofs_tests.reference_exec.cases import TINY, family_case
from proofs_tests.reference_exec.test_agreement import REQUEST

pytestmark = pytest.mark.torch

ORDER, STREAM = Semantics.LAUNCH_ORDER, Semantics.RANK_STREAM
SET = {"CUDA_DEVICE_MAX_CONNECTIONS": "32", "NCCL_LAUNCH_ORDER_IMPLICIT": "1"}


def here(
    nccl: tuple[int, ...] = (2, 27, 5), cuda: tuple[int, ...] = (12, 8), **changed: str | None
) -> NcclHere:
    variables = {name: value for name, value in {**SET, **changed}.items() if value is not None}
    return NcclHere(nccl=nccl, cuda=cuda, variables=variables)


def connections(value: str | None) -> NcclHere:
    return here(CUDA_DEVICE_MAX_CONNECTIONS=value)


def implicit(value: str | None) -> NcclHere:
    return here(NCCL_LAUNCH_ORDER_IMPLICIT=value)


@pytest.mark.parametrize(
    ("found", "ranks", "expected", "why"),
    [
        (here(), 8, ORDER, "NCCL 2.27.5 starts communicators in the order of their launches"),
        (here(nccl=(2, 26, 2), cuda=(12, 3)), 8, ORDER, "CUDA 12.3 lets them overlap"),
        (here(nccl=(3, 0), cuda=(13, 0)), 8, ORDER, "NCCL 3.0 starts"),
        (here(nccl=(2, 25, 9)), 8, STREAM, "NCCL 2.25.9 orders no communicators"),
        (here(nccl=(2, 21, 5), cuda=(12, 4)), 8, STREAM, "NCCL 2.21.5 orders no communicators"),
        (here(cuda=(12, 2)), 8, STREAM, "CUDA 12.2 runs them one after the other"),
        (here(cuda=(11, 8)), 8, STREAM, "CUDA 11.8 runs them one after the other"),
        (implicit("0"), 8, STREAM, "NCCL_LAUNCH_ORDER_IMPLICIT is 0, not 1"),
        (implicit(None), 8, STREAM, "NCCL_LAUNCH_ORDER_IMPLICIT is not set, not 1"),
        (connections("1"), 2, STREAM, "CUDA_DEVICE_MAX_CONNECTIONS is 1, for up to 6 streams"),
        # Four lanes, and a stream for messages and one for evictions with each of p - 1 others.
        (connections("8"), 3, ORDER, "NCCL 2.27.5 starts"),
        (connections("8"), 4, STREAM, "CUDA_DEVICE_MAX_CONNECTIONS is 8, for up to 10 streams"),
        (connections(None), 4, STREAM, "CUDA_DEVICE_MAX_CONNECTIONS is 8, for up to 10 streams"),
        (here(), 15, ORDER, "NCCL 2.27.5 starts"),
        (here(), 16, STREAM, "CUDA_DEVICE_MAX_CONNECTIONS is 32, for up to 34 streams of a rank"),
        (connections("64"), 16, STREAM, "for up to 34 streams of a rank"),  # CUDA has 32 at most
    ],
)
def test_what_is_kept_follows_from_versions_and_variables(
    found: NcclHere, ranks: int, expected: Semantics, why: str
) -> None:
    kept = kept_order(found, ranks=ranks)
    assert kept.semantics is expected
    assert why in kept.why


def test_replicas_need_communicators_that_overlap_and_one_order_with_the_messages() -> None:
    kept = kept_order(here(), ranks=2, replicas=2)
    assert (kept.semantics, "one order of launches with the messages" in kept.why) == (STREAM, True)
    for found in (here(nccl=(2, 21, 5)), here(cuda=(12, 2)), implicit("0"), connections("1")):
        with pytest.raises(ValueError, match="replicas over NCCL need communicators that overlap"):
            kept_order(found, ranks=2, replicas=2)


@pytest.mark.parametrize("value", ["", "two", "-1", "1.5", "1" * 10, "\u0661"])
def test_a_variable_that_is_no_number_is_refused_by_name(value: str) -> None:
    with pytest.raises(ValueError, match="CUDA_DEVICE_MAX_CONNECTIONS must be a whole number"):
        kept_order(connections(value), ranks=2)


def test_what_is_asked_for_may_be_stricter_and_not_weaker() -> None:
    ordered, serial = (KeptOrder(semantics=each, why="so") for each in (ORDER, STREAM))
    assert agreed_semantics(ordered, None) == agreed_semantics(ordered, "launch-order") == ordered
    stricter = agreed_semantics(ordered, "rank-stream")
    assert stricter == KeptOrder(semantics=STREAM, why="asked for; launch-order would hold")
    for kept, weaker in (
        (ordered, "pair-stream"),
        (ordered, "rendezvous"),
        (serial, "launch-order"),
    ):
        with pytest.raises(ValueError, match=f"--comm {weaker} lets programs pass that may hang"):
            agreed_semantics(kept, weaker)


def test_ranks_share_a_gpu_from_2_30_on_where_nothing_forbids_it() -> None:
    require_sharing(here(nccl=(2, 30, 7), NCCL_MULTI_RANK_GPU_ENABLE="1"))
    for found, why in (
        (here(nccl=(2, 29, 3), NCCL_MULTI_RANK_GPU_ENABLE="1"), r"needs NCCL 2\.30 or newer, got"),
        (here(nccl=(2, 30)), "needs NCCL_MULTI_RANK_GPU_ENABLE=1, it is not set"),
        (here(nccl=(2, 31), NCCL_MULTI_RANK_GPU_ENABLE="0"), "it is 0; unset it"),
    ):
        with pytest.raises(ValueError, match=why):
            require_sharing(found)


def test_what_a_replay_sets_gives_launch_order_on_new_versions() -> None:
    variables = {name: cuda._FOR_WAITING_KERNELS[name] for name in SET}
    assert variables == SET


def test_processes_compare_versions_and_variables() -> None:
    parts = {name: part.mark for name, part in connections(None).parts().items()}
    assert parts == {
        "NCCL": "2.27.5",
        "CUDA": "12.8",
        "CUDA_DEVICE_MAX_CONNECTIONS": "not set",
        "NCCL_LAUNCH_ORDER_IMPLICIT": "1",
        "NCCL_MULTI_RANK_GPU_ENABLE": "not set",
    }


def request_of(comm: str | None = None, replicas: int = 1) -> ReplayRequest:
    return replace(
        REQUEST,
        schedule=["1f1b", "p=2", "m=2"],
        run=RunOptions(backend="nccl"),
        communication=CommunicationOptions(comm=comm),
        training=TrainingOptions(data_parallel=replicas),
    )


def test_a_program_for_nccl_is_verified_under_what_holds_and_all_compare_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = read_schedule_input(["1f1b", "p=2", "m=2"])
    for found, expected in ((here(), ORDER), (here(nccl=(2, 21, 5)), STREAM)):
        monkeypatch.setattr(under_torchrun, "nccl_here", lambda found=found: found)
        asked = under_torchrun.RunParts(request_of())
        order = under_torchrun._order(request_of().options("gloo"), given, asked)
        assert order == kept_order(found, ranks=2)
        assert order.semantics is expected
        assert asked._parts.keys() >= found.parts().keys()
    with pytest.raises(ValueError, match="--comm pair-stream lets programs pass"):
        under_torchrun._order(request_of("pair-stream").options("gloo"), given, asked)
    with pytest.raises(ValueError, match="replicas over NCCL need"):
        under_torchrun._order(request_of(replicas=2).options("gloo"), given, asked)


def test_the_report_says_which_semantics_and_why() -> None:
    case = family_case("1f1b", p=2, m=2)
    report = replay(case.pipeline, case.schedule, TINY)
    assert not any(row.quantity == "communication" for row in replay_rows(report))
    told: ReplayReport = replace(report, semantics="rank-stream", semantics_why="CUDA 12.2")
    (row,) = (row for row in replay_rows(told) if row.quantity == "communication")
    assert (row.predicted, row.measured) == ("verified under rank-stream", "CUDA 12.2")
    assert told.to_dict()["semantics_why"] == "CUDA 12.2"
