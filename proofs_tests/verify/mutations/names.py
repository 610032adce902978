"""Other microbatches, other kinds, other partners: the right amount of work, wrongly named."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from bubbleproof.theory.model.actions import NONE, Action, Kind
from proofs_tests.verify.mutations.operators import (
    has_full_backwards,
    has_overlaps,
    has_splits,
    operator,
)
from proofs_tests.verify.tables import Specimen


@operator("COMPLETE", "PLACED", "DEPENDENCIES", "EXCLUSIVE", "MEMORY", nature="either")
def renumber_microbatches(random: Random, specimen: Specimen) -> Specimen | None:
    """All microbatches change numbers; harmless where they are alike, misplaced where some run
    in the other direction of a bidirectional pipeline.
    """
    numbers = sorted({action.microbatch for action in specimen.starts()} - {NONE})
    other = dict(zip(numbers, random.sample(numbers, len(numbers)), strict=True))
    renamed = [[(_renumbered(a, other), s) for a, s in row] for row in specimen.rows]
    return specimen.with_rows(renamed)


@operator("COMPLETE", "PLACED", "DEPENDENCIES")
def renumber_on_one_stage(random: Random, specimen: Specimen) -> Specimen | None:
    stage = random.choice(list(specimen.starts())).stage
    numbers = sorted({action.microbatch for action in specimen.starts()} - {NONE})
    other = dict(zip(numbers, numbers[1:] + numbers[:1], strict=True))
    renamed = [
        [(_renumbered(a, other) if a.stage == stage else a, s) for a, s in row]
        for row in specimen.rows
    ]
    return specimen.with_rows(renamed)


def _renumbered(action: Action, other: dict[int, int]) -> Action:
    partner = action.partner and _renumbered(action.partner, other)
    microbatch = other.get(action.microbatch, action.microbatch)
    return replace(action, microbatch=microbatch, partner=partner)


@operator("COMPLETE", needs=has_splits)
def full_where_split(random: Random, specimen: Specimen) -> Specimen | None:
    """A B stands where the problem wants an I and a W."""
    rows = specimen.copied()
    places = [(r, i) for r, i in specimen.places() if rows[r][i][0].kind is Kind.I]
    if not places:
        return None
    r, i = random.choice(places)
    action, start = rows[r][i]
    weight = replace(action, kind=Kind.W)
    rows[r][i] = (replace(action, kind=Kind.B), start)
    rows[r] = [(a, s) for a, s in rows[r] if a != weight]
    return specimen.with_rows(rows)


@operator("COMPLETE", needs=has_full_backwards)
def split_where_full(random: Random, specimen: Specimen) -> Specimen | None:
    """An I and a W stand where the problem wants a B."""
    rows = specimen.copied()
    places = [(r, i) for r, i in specimen.places() if rows[r][i][0].kind is Kind.B]
    if not places:
        return None
    r, i = random.choice(places)
    action, start = rows[r][i]
    middle = start + specimen.ticks(action) // 2
    rows[r][i : i + 1] = [
        (replace(action, kind=Kind.I), start),
        (replace(action, kind=Kind.W), middle),
    ]
    return specimen.with_rows(rows)


def _overlaps(specimen: Specimen) -> list[tuple[int, int]]:
    return [(r, i) for r, i in specimen.places() if specimen.rows[r][i][0].partner is not None]


@operator("COMPLETE", needs=has_overlaps)
def other_partner(random: Random, specimen: Specimen) -> Specimen | None:
    """An overlap names another backward than the problem's."""
    if not _overlaps(specimen):
        return None
    rows = specimen.copied()
    r, i = random.choice(_overlaps(specimen))
    action, start = rows[r][i]
    assert action.partner is not None
    partner = replace(action.partner, microbatch=action.partner.microbatch + 1)
    rows[r][i] = (replace(action, partner=partner), start)
    return specimen.with_rows(rows)


@operator("COMPLETE", needs=has_overlaps)
def torn_overlap(random: Random, specimen: Specimen) -> Specimen | None:
    """An overlap's two halves stand one after the other."""
    if not _overlaps(specimen):
        return None
    rows = specimen.copied()
    r, i = random.choice(_overlaps(specimen))
    action, start = rows[r][i]
    assert action.partner is not None
    forward = replace(action, kind=Kind.F, partner=None)
    rows[r][i : i + 1] = [(forward, start), (action.partner, start + 1)]
    return specimen.with_rows(rows)
