"""Families that repeat: closed forms against the families at many m, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from bubbleproof.papers.theorems.periodic import obligations
from bubbleproof.papers.theorems.periodic_families import (
    PeriodicShape,
    PeriodicTheorem,
    periodic_theorem,
)
from bubbleproof.papers.theorems.periodic_fit import fitted
from bubbleproof.papers.theorems.periodic_list import listed
from bubbleproof.papers.theorems.periodic_schedule import PeriodicSchedule
from bubbleproof.papers.theorems.prover import prove, prove_obligation
from bubbleproof.papers.theorems.theorem import ProofVerdict
from bubbleproof.theory.families import FamilyMember, member
from bubbleproof.theory.model.actions import Action
from bubbleproof.theory.model.measures import measure
from bubbleproof.theory.pipelines.placement import num_downward
from proofs_tests.sized import sampled, sized

ALL = [
    pytest.param(shape, id=f"{about.id} {shape.title}")
    for about in listed()
    for shape in about.shapes
    if dict(shape.params)["p"] <= 6
]
SHAPES = sampled(ALL, every=5)


def bare_name(action: Action, found: FamilyMember, repeats: int) -> tuple[str, int]:
    """What a class is called but for its run, and the number of the action's microbatch."""
    half = num_downward(found.pipeline.num_microbatches)
    is_upward = found.pipeline.is_bidirectional and action.microbatch >= half
    number = action.microbatch - half * is_upward
    name = f"{action.kind.name} of stage {action.stage}"
    if action.partner is not None:
        name += f", with B of stage {action.partner.stage}"
    if action.slice:
        name += f", slice {action.slice}"
    if is_upward:
        name += ", direction 1"
    if number % repeats:
        name += f", remainder {number % repeats}"
    return name, number // repeats


def starts_by_class(found: FamilyMember, repeats: int) -> dict[str, list[int]]:
    """Starts by class and place, written down apart from the fit."""
    rows: dict[str, list[tuple[int, int]]] = {}
    actions, ticks = found.schedule.program.actions, found.schedule.start.tolist()
    for action, tick in zip(actions, ticks, strict=True):
        name, number = bare_name(action, found, repeats)
        rows.setdefault(name, []).append((number, tick))
    classes: dict[str, list[int]] = {}
    for name, row in rows.items():
        row.sort()
        run = 0
        for k, (number, tick) in enumerate(row):
            run += k > 0 and number != row[k - 1][0] + 1
            classes.setdefault(f"{name}, run {run}" if run else name, []).append(tick)
    return classes


def assert_same(schedule: PeriodicSchedule, shape: PeriodicShape, periods: int) -> None:
    found = shape.member(schedule.least + schedule.step * periods)
    told = {task.name: schedule.starts(k, periods) for k, task in enumerate(schedule.classes)}
    assert told == starts_by_class(found, shape.repeats), (shape.title, periods)
    measured = measure(found.problem, found.schedule)
    assert measured.makespan == schedule.makespan.at(0, periods)
    assert measured.peak_activations[: len(schedule.peaks)] == schedule.peaks


@pytest.mark.sweep
@pytest.mark.parametrize("shape", SHAPES)
def test_the_closed_form_is_the_familys_at_other_sizes(shape: PeriodicShape) -> None:
    schedule = shape.schedule()
    assert schedule.least <= shape.size
    for periods in sized((2, 9), full=(0, 1, 2, 5, 9, 16)):  # 0 is the fit's own last step
        assert_same(schedule, shape, periods)


def test_t_pipes_numbers_by_hand() -> None:
    # p=2, two chunks, tF=1, tB=2. Microbatch 0 runs F F on stages 0, 1, 2, 3 in ticks 0 to 3 and
    # its backwards in 4-5, 6-7, 8-9, 10-11; a rank works 2 + 4 = 6 ticks per microbatch.
    # The paper's 6(m+p-1) is then 6m work on a rank and 6 ticks of wait; rank 0's peak 4 is
    # shallow 3 (x=0, y=1: ceil((4+6+6)/6)) and deep 1 (ceil(4/6)).
    schedule = PeriodicShape(family="tpipe", params=(("p", 2),), size=16).schedule()
    assert (schedule.step, schedule.makespan.per_period) == (1, 6)
    assert schedule.makespan.at(0, 4) == 6 * (schedule.least + 4 + 1)
    assert schedule.peaks == (4, 3)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda m: member("gpipe", p=2, m=m), "starts otherwise at the front|the back moves by"),
        (
            lambda m: member("interleaved", p=2, m=m),
            "F of stage 0 starts otherwise at the front when m grows",
        ),
        (lambda m: member("bpipe", p=4, m=m), "m \\+ step has other classes of tasks than m"),
    ],
)
def test_what_does_not_repeat_is_refused(make: Callable[[int], FamilyMember], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        fitted(make, shape="it", size=20, repeats=1)


def test_a_closed_form_read_off_too_early_is_not_proved() -> None:
    # p=4, m=43: ten groups of which three are one larger, so that the middle of the schedule still
    # belongs to the larger ones, in the order that spreads them. The fit does not see it; the proof
    # does.
    shape = PeriodicShape(
        family="interleaved-spread", params=(("p", 4), ("v", 2)), size=43, repeats=4
    )
    verdicts = {prove_obligation(o).verdict for o in obligations(shape.schedule())}
    assert ProofVerdict.FAILED in verdicts


def test_every_number_of_a_closed_form_matters() -> None:
    """One more or one less in any start, count or boundary: some obligation fails."""
    about = next(about for about in listed() if about.id == "svpp-w")
    shape = about.shapes[0]
    one, right = replace(about, shapes=(shape,)), shape.schedule()
    for number, task in sampled([*enumerate(right.classes)], every=3):
        for k, piece in enumerate(task.pieces):
            for changed in (
                replace(piece, start=piece.start.plus(1)),
                replace(piece, start=piece.start.plus(-1)),
                replace(piece, last=piece.last.plus(1)),
                replace(piece, first=piece.first.plus(1)),
            ):
                pieces = (*task.pieces[:k], changed, *task.pieces[k + 1 :])
                wrong = replace(task, pieces=pieces)
                classes = (*right.classes[:number], wrong, *right.classes[number + 1 :])
                proof = prove(periodic_theorem(one, (replace(right, classes=classes),)))
                assert proof.verdict is ProofVerdict.FAILED, (task.name, k, changed)


@pytest.mark.parametrize("about", listed(), ids=lambda about: about.id)
def test_obligations_hold_at_every_place_without_z3(about: PeriodicTheorem) -> None:
    schedule = about.shapes[0].schedule()
    places = max(task.count.at(0, 3) for task in schedule.classes)
    for obligation in obligations(schedule):
        for n in range(4):
            for j in range(-1, places + 2):
                assert obligation.holds({"j": j, "n": n}), (obligation.name, j, n)
