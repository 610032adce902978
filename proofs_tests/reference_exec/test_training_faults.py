"""Faults in the STEPs and exchanges of trainings: refused before they run, seen where forced."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import pytest

from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.plans.training import Training
from bubbleproof.reference_exec.replaying import NotVerified
from bubbleproof.theory.model.actions import Kind
from bubbleproof.theory.model.schedule import Program
from proofs_tests.reference_exec.cases import TINY, Case, family_case
from proofs_tests.reference_exec.training_cases import trained, training_orders
from proofs_tests.sized import paired

Orders = list[list[str]]
TIED = replace(TINY, vocabulary=5, tied=True)
TWO = Training(optimizer="momentum", steps=2)
WAITING = replace(TWO, has_barrier=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """An edit of a family's training; ``refusal`` says why it is not run, ``shown`` what it does.

    ``shown`` empty: the run ends, with other weights.
    """

    family: str
    edit: str
    rank: int
    refusal: str
    shown: str = ""
    spec: ModelSpec = TINY
    training: Training = TWO

    def __str__(self) -> str:
        return f"{self.family}-{self.edit.replace(' ', '-')}-{self.rank}"


def edited(orders: Orders, rank: int, edit: str) -> Orders:
    """``drop X``, ``double X``, ``X before Y``, ``X after Y`` or ``X for Y`` on one rank.

    Rank -1 are all ranks.
    """
    first, *rest = edit.split()
    found = [list(order) for order in orders]
    for number, order in enumerate(found):
        if rank not in (-1, number):
            continue
        if first == "drop":
            order.remove(rest[0])
        elif first == "double":
            order.insert(order.index(rest[0]) + 1, rest[0])
        elif rest[0] == "for":
            order[order.index(rest[1])] = first
        else:
            order.remove(first)
            order.insert(order.index(rest[1]) + (rest[0] == "after"), first)
    return found


FAULTS = [
    Fault(
        family="zb-h1",
        edit="drop 0STEP",
        rank=0,
        refusal="0F0 on rank 0 in pass 1 needs version 1",
        shown="rank 0, action .*: left over: stage 0 without STEP",
    ),
    Fault(
        family="zb-h1",
        edit="double 1STEP",
        rank=1,
        refusal="1STEP on rank 1 in pass 0 needs each contribution of pass 1",
        shown="rank 1, action .*: 1STEP runs twice",
    ),
    Fault(family="zb-h1", edit="0STEP before 0W2", rank=0, refusal="lacks what 0W2 of pass 0 adds"),
    Fault(family="zb-h1", edit="1STEP before 1W2", rank=1, refusal="lacks what 1W2 of pass 0 adds"),
    Fault(
        family="zb-h1",
        edit="0STEP after 0F0",
        rank=0,
        refusal="lacks what 0W0 of pass 0 adds",
        shown="rank 0, action 1: stage 0 .* has no gradient",
    ),
    Fault(
        family="zb-h1",
        edit="1STEP for 0STEP",
        rank=0,
        refusal="1STEP on rank 0 in pass 0 is not of rank 0",
        shown="1STEP of a stage that does not step on rank 0",
    ),
    Fault(
        family="interleaved",
        edit="0STEP before 0B3",
        rank=0,
        refusal="lacks what 0B3 of pass 0 adds",
    ),
    Fault(family="chimera", edit="drop 0REDUCE_GRAD", rank=-1, refusal="lacks what 0B"),
    Fault(
        family="chimera",
        edit="drop 0REDUCE_GRAD",
        rank=0,
        refusal="stands 1 times on rank 1, must stand once on 0 and 1",
        shown="MessageMismatch: rank 0 sent 1REDUCE_GRAD where rank 1 expected 0REDUCE_GRAD",
    ),
    Fault(
        family="chimera",
        edit="1REDUCE_GRAD before 0REDUCE_GRAD",
        rank=1,
        refusal="is sent as 0REDUCE_GRAD but received as 1REDUCE_GRAD",
        shown="MessageMismatch: ",
    ),
    Fault(family="chimera", edit="0STEP before 0REDUCE_GRAD", rank=0, refusal="lacks what 0B"),
    Fault(
        family="chimera",
        edit="double 0REDUCE_GRAD",
        rank=0,
        refusal="stands 2 times on rank 0",
        shown="rank 0, action .*: 0REDUCE_GRAD runs twice",
    ),
    Fault(
        family="1f1b", edit="drop 0REDUCE_GRAD.1", rank=-1, spec=TIED, refusal="of the tied matrix"
    ),
    Fault(
        family="1f1b",
        edit="0REDUCE_GRAD.1 before 0B2",
        rank=0,
        spec=TIED,
        refusal="lacks what 0B2 of pass 0 adds, of the tied matrix",
    ),
    Fault(
        family="1f1b",
        edit="drop 1STEP",
        rank=1,
        training=WAITING,
        refusal="rank 1 never comes to the barrier: it has no STEP",
        shown="rank 1, action .*: left over: stage 1 without STEP",
    ),
    Fault(
        family="1f1b",
        edit="1STEP before 1SEND_B2",
        rank=1,
        training=WAITING,
        refusal="is sent as 1STEP but received as 0RECV_B2",
        shown="MessageMismatch: rank 1 sent 1STEP where rank 0 expected 0RECV_B2",
    ),
]


def case_of(fault: Fault) -> Case:
    sizes = {"interleaved": {"p": 2, "m": 4, "v": 2}, "chimera": {"p": 2, "m": 4}}
    return family_case(fault.family, **sizes.get(fault.family, {"p": 2, "m": 3}))


@pytest.mark.parametrize(
    "fault", FAULTS, ids=lambda f: f"{f.family}-{f.edit.replace(' ', '-')}-{f.rank}"
)
def test_a_fault_is_refused_and_shows_where_it_is_forced(fault: Fault) -> None:
    case = case_of(fault)
    orders = training_orders(case, fault.training, fault.spec)
    program = Program.from_orders(edited(orders, fault.rank, fault.edit))
    with pytest.raises(NotVerified, match=re.escape(fault.refusal)):
        trained(case, fault.training, fault.spec, program=program)
    report = trained(case, fault.training, fault.spec, program=program, unsafe=True)
    assert not report.ok
    assert {*report.broken_rules} <= {"communication", "dataflow"}
    assert report.broken_rules
    if fault.shown:
        assert re.search(fault.shown, report.stopped), report.stopped
    else:
        assert report.stopped == ""
        assert not report.weights_equal


@pytest.mark.parametrize(
    ("of", "has_barrier"), paired([("1f1b", 1), ("zb-h1", 1), ("1f1b", 2)], [False, True])
)
def test_a_stage_whose_whole_gradient_is_lost_ends_a_forced_training(
    of: tuple[str, int], has_barrier: bool
) -> None:
    family, replicas = of
    case = family_case(family, p=2, m=2)
    orders = [
        [a for a in order if a.stage == 0 or a.kind not in (Kind.B, Kind.I, Kind.W)]
        for order in case.lowered.orders(2)
    ]
    report = trained(
        case,
        replace(TWO, has_barrier=has_barrier),
        program=Program.from_orders(orders),
        data_parallel=replicas,
        unsafe=True,
    )
    assert "dataflow" in report.broken_rules
    assert not report.ok
    assert report.stopped.startswith("BrokenProgram: rank 1"), report.stopped


def test_a_program_of_nothing_ends_a_forced_training() -> None:
    case = family_case("1f1b", p=2, m=2)
    report = trained(case, TWO, program=Program.from_orders([[], []]), unsafe=True)
    assert report.broken_rules
    assert report.stopped.startswith("BrokenProgram: "), report.stopped


def test_a_forward_on_a_rank_that_lacks_its_stage_ends_a_forced_run() -> None:
    case = family_case("1f1b", p=2, m=2)
    orders = case.lowered.orders(2)
    first = orders[0].pop(0)
    orders[1].insert(0, first)
    assert str(first) == "0F0"
    report = trained(case, TWO, program=Program.from_orders(orders), unsafe=True)
    assert report.broken_rules
    assert "rank 1, action 0: 0F0 of a stage that is not on rank 1" in report.stopped
