"""Rows in another order or at another time: rules 3 and 4."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from bubbleproof.theory.model.actions import NONE, Action, Kind
from proofs_tests.verify.mutations.operators import (
    backward_forward_places,
    has_backwards,
    has_forwards_after_backwards,
    has_lags,
    has_splits,
    operator,
)
from proofs_tests.verify.tables import Specimen


@operator("EXCLUSIVE")
def swap_neighbours(random: Random, specimen: Specimen) -> Specimen | None:
    """Two neighbours change places in the order and keep their starts."""
    rows = specimen.copied()
    r, i = random.choice(_neighbours_in_time(specimen))
    rows[r][i], rows[r][i + 1] = rows[r][i + 1], rows[r][i]
    return specimen.with_rows(rows)


@operator("EXCLUSIVE")
def swap_starts(random: Random, specimen: Specimen) -> Specimen | None:
    """Two neighbours keep their places in the order and exchange their starts."""
    rows = specimen.copied()
    r, i = random.choice(_neighbours_in_time(specimen))
    (first, early), (second, late) = rows[r][i : i + 2]
    rows[r][i : i + 2] = [(first, late), (second, early)]
    return specimen.with_rows(rows)


@operator("EXCLUSIVE")
def rotate_order(random: Random, specimen: Specimen) -> Specimen | None:
    rows = specimen.copied()
    r, i = random.choice(_neighbours_in_time(specimen))
    rows[r] = rows[r][i + 1 :] + rows[r][: i + 1]
    return specimen.with_rows(rows)


def _neighbours_in_time(specimen: Specimen) -> list[tuple[int, int]]:
    """Neighbours of which the second starts later and takes time."""
    return [
        (r, i)
        for r, i in specimen.neighbours()
        if specimen.rows[r][i][1] < specimen.rows[r][i + 1][1]
        and specimen.ticks(specimen.rows[r][i + 1][0]) > 0
    ]


@operator("EXCLUSIVE")
def overlap_by_one(random: Random, specimen: Specimen) -> Specimen | None:
    """A row starts one tick before the one ahead of it ends."""
    places = [(r, i) for r, i in specimen.neighbours() if specimen.ticks(specimen.rows[r][i][0])]
    r, i = random.choice(places)
    ahead, start = specimen.rows[r][i]
    moved = {specimen.rows[r][i + 1][0]: start + specimen.ticks(ahead) - 1}
    return specimen.with_rows(specimen.retimed(moved))


@operator("DEPENDENCIES", "MEMORY", nature="either")
def exchange_turns(random: Random, specimen: Specimen) -> Specimen | None:
    """Two neighbours of a rank run in the other order, within the same span of time."""
    rows = specimen.copied()
    places = [(r, i) for r, i in specimen.neighbours() if r < specimen.problem.num_ranks]
    r, i = random.choice(places)
    (first, early), (second, late) = rows[r][i : i + 2]
    end = late + specimen.ticks(second)
    moved = {second: early, first: end - specimen.ticks(first)}
    if _is_shared(specimen, first) or _is_shared(specimen, second):
        return None
    rows[r][i : i + 2] = [(second, moved[second]), (first, moved[first])]
    return specimen.with_rows(rows)


def _is_shared(specimen: Specimen, action: Action) -> bool:
    return sum(a == action for row in specimen.rows for a, _ in row) > 1


@operator("DEPENDENCIES", "MEMORY", nature="either", needs=has_forwards_after_backwards)
def forward_ahead_of_backward(random: Random, specimen: Specimen) -> Specimen | None:
    """A rank takes its next forward before the backward ahead of it: one more activation."""
    places = backward_forward_places(specimen)
    if not places:
        return None
    rows = specimen.copied()
    r, i = random.choice(places)
    (backward, _), (forward, late) = rows[r][i : i + 2]
    start = late + specimen.ticks(forward) - specimen.ticks(backward)
    early = start - specimen.ticks(forward)
    rows[r][i : i + 2] = [(forward, early), (backward, start)]
    return specimen.with_rows(rows)


@operator("DEPENDENCIES", "EXCLUSIVE")
def start_one_earlier(random: Random, specimen: Specimen) -> Specimen | None:
    """Always wrong, because every case is left-shifted."""
    action, start = random.choice(list(specimen.starts().items()))
    return specimen.with_rows(specimen.retimed({action: start - 1}))


@operator("DEPENDENCIES", "EXCLUSIVE", "MEMORY", nature="either")
def start_one_later(random: Random, specimen: Specimen) -> Specimen | None:
    action, start = random.choice(list(specimen.starts().items()))
    return specimen.with_rows(specimen.retimed({action: start + 1}))


@operator("DEPENDENCIES", "EXCLUSIVE")
def start_at_zero(random: Random, specimen: Specimen) -> Specimen | None:
    late = [a for a, start in specimen.starts().items() if start > 0]
    return specimen.with_rows(specimen.retimed({random.choice(late): 0}))


@operator("DEPENDENCIES")
def start_before_zero(random: Random, specimen: Specimen) -> Specimen | None:
    action = random.choice(list(specimen.starts()))
    return specimen.with_rows(specimen.retimed({action: -random.randint(1, 5)}))


@operator("DEPENDENCIES")
def all_before_zero(random: Random, specimen: Specimen) -> Specimen | None:
    shift = min(specimen.starts().values()) + random.randint(1, 4)
    earlier = {action: start - shift for action, start in specimen.starts().items()}
    return specimen.with_rows(specimen.retimed(earlier))


@operator("DEPENDENCIES", needs=has_lags)
def lag_ignored(random: Random, specimen: Specimen) -> Specimen | None:
    """A consumer starts when its input is made, and not when it has arrived."""
    edges = specimen.problem.edges
    lagging = [i for i in range(len(edges)) if edges.lag[i] > 0]
    if not lagging:
        return None
    i = random.choice(lagging)
    before, after = (
        specimen.problem.actions[int(column[i])] for column in (edges.before, edges.after)
    )
    arrived = specimen.starts()[before] + specimen.ticks(before) + int(edges.lag[i])
    return specimen.with_rows(
        specimen.retimed({after: arrived - random.randint(1, int(edges.lag[i]))})
    )


@operator("DEPENDENCIES", needs=has_backwards)
def backward_before_forward(random: Random, specimen: Specimen) -> Specimen | None:
    return _exchanged(random, specimen, (Kind.B, Kind.I), Kind.F)


@operator("DEPENDENCIES", needs=has_splits)
def weight_before_input(random: Random, specimen: Specimen) -> Specimen | None:
    return _exchanged(random, specimen, (Kind.W,), Kind.I)


def _exchanged(
    random: Random, specimen: Specimen, late: tuple[Kind, ...], early: Kind
) -> Specimen | None:
    """Two actions of one stage and microbatch stand in each other's places; None if timeless."""
    starts = specimen.starts()
    pairs = [
        (a, replace(a, kind=early, part=NONE))
        for a in starts
        if a.kind in late and replace(a, kind=early, part=NONE) in starts
    ]
    pairs = [(a, b) for a, b in pairs if specimen.ticks(b) > 0 or starts[a] > starts[b]]
    if not pairs:
        return None
    a, b = random.choice(pairs)
    other = {a: b, b: a}
    swapped = [
        [(other.get(action, action), start) for action, start in row] for row in specimen.rows
    ]
    return specimen.with_rows(swapped)
