"""The closed forms are the families' schedules, tick for tick.

The theorems write the schedules down apart from ``theory.families``; here both are compared start
by start, and the theorems' makespans and peaks with ``measure``. p up to 8, m up to 3p; durations
with tF below, at and above tB.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from bubbleproof.papers.field import gpipe_theorem, one_f_one_b_theorem
from bubbleproof.papers.theorems.closed_form import ClosedForm
from bubbleproof.papers.theorems.terms import Term, index, lift
from bubbleproof.theory.families import FamilyMember, member
from bubbleproof.theory.model.actions import Kind
from bubbleproof.theory.model.measures import measure
from proofs_tests.sized import sampled

TICKS = ((1, 2), (1, 1), (3, 2))
RANK, PLACE = index("i"), index("j")
Start = Callable[[Term, Term], Term]


def evaluator(start: Start) -> Callable[[dict[str, int], int, int], int]:
    """A closed form as a function of numbers; the term is built once."""
    term = start(RANK, PLACE)
    return lambda values, i, j: int(term.value({**values, "i": i, "j": j}))


def rows(found: FamilyMember, kind: Kind) -> Iterator[tuple[int, int, int]]:
    """(rank, place among the rank's actions of that kind, start) of every such action."""
    program = found.schedule.program
    chosen = program.actions.kind == kind
    count: dict[int, int] = {}
    for rank, start in zip(
        program.resource[chosen].tolist(), found.schedule.start[chosen].tolist(), strict=True
    ):
        place = count.get(rank, 0)
        count[rank] = place + 1
        yield rank, place, start


def sizes(most: int = 8) -> Iterator[tuple[int, int]]:
    return ((p, m) for p in range(1, most + 1) for m in range(1, 3 * p + 1))


def assert_same(
    found: FamilyMember, values: dict[str, int], starts: dict[Kind, Callable[..., int]]
) -> None:
    for kind, start in starts.items():
        for rank, place, tick in rows(found, kind):
            assert start(values, rank, place) == tick, (values, kind.name, rank, place)


@pytest.mark.parametrize(
    ("name", "form"), [("gpipe", gpipe_theorem.FORM), ("1f1b", one_f_one_b_theorem.FORM)]
)
@pytest.mark.parametrize(("forward", "backward"), TICKS)
def test_one_stage_per_rank(name: str, form: ClosedForm, forward: int, backward: int) -> None:
    starts = {Kind.F: evaluator(form.forward), Kind.B: evaluator(form.backward)}
    for p, m in sampled([*sizes()], every=5):
        found = member(name, p=p, m=m, tF=forward, tB=backward)
        values = {"p": p, "m": m, "tF": forward, "tB": backward}
        assert_same(found, values, starts)
        measured = measure(found.problem, found.schedule)
        assert measured.makespan == form.makespan.value(values)
        peaks = tuple(int(form.peak(lift(rank)).value(values)) for rank in range(p))
        assert measured.peak_activations == peaks


@pytest.mark.parametrize(("name", "option"), [("terapipe", "s"), ("bfs", "v")])
@pytest.mark.parametrize(("forward", "backward"), TICKS)
def test_gpipe_over_other_pieces(name: str, option: str, forward: int, backward: int) -> None:
    form = gpipe_theorem.FORM
    starts = {Kind.F: evaluator(form.forward), Kind.B: evaluator(form.backward)}
    for p, m in sampled([*sizes(5)], every=4):
        for pieces in (1, 2, 3):
            if name == "bfs" and m < p:
                continue  # the theorem asks for m >= p
            given = {"p": p, "m": m, "tF": forward, "tB": backward, option: pieces}
            found = member(name, **given)
            values = {"p": p, "m": m * pieces, "tF": forward, "tB": backward}
            assert_same(found, values, starts)
            measured = measure(found.problem, found.schedule)
            assert measured.makespan == form.makespan.value(values)
            assert set(measured.peak_activations) == {m * pieces}


def test_breadth_first_with_fewer_microbatches_than_ranks_is_another_schedule() -> None:
    # p=3, m=2, v=2, tF=1: rank 0 is free for chunk 1 from tick 2 on, but chunk 0 leaves the last
    # rank only at tick 3. So the assumption m >= p is needed.
    found = member("bfs", p=3, m=2, v=2)
    start = evaluator(gpipe_theorem.FORM.forward)
    with pytest.raises(AssertionError):
        assert_same(found, {"p": 3, "m": 4, "tF": 1, "tB": 2}, {Kind.F: start})
