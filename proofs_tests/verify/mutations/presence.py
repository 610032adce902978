"""Rows too many, too few, unknown or on another resource: rules 1 and 2."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from bubbleproof.theory.model.actions import STAGE_KINDS, Action, Kind
from proofs_tests.verify.mutations.operators import (
    has_shared_tasks,
    has_splits,
    only_compute,
    operator,
)
from proofs_tests.verify.tables import Specimen


@operator("COMPLETE")
def duplicate_later(random: Random, specimen: Specimen) -> Specimen | None:
    rows = specimen.copied()
    r, i = random.choice(specimen.places())
    action = rows[r][i][0]
    last, start = rows[r][-1]
    rows[r].append((action, start + specimen.ticks(last)))
    return specimen.with_rows(rows)


@operator("COMPLETE")
def duplicate_in_place(random: Random, specimen: Specimen) -> Specimen | None:
    rows = specimen.copied()
    r, i = random.choice(specimen.places())
    rows[r].insert(i, rows[r][i])
    return specimen.with_rows(rows)


@operator("COMPLETE", needs=has_splits)
def double_weight_gradient(random: Random, specimen: Specimen) -> Specimen | None:
    rows = specimen.copied()
    places = [(r, i) for r, i in specimen.places() if rows[r][i][0].kind is Kind.W]
    if not places:
        return None
    r, i = random.choice(places)
    last, start = rows[r][-1]
    rows[r].append((rows[r][i][0], start + specimen.ticks(last) + 1))
    return specimen.with_rows(rows)


@operator("COMPLETE")
def drop(random: Random, specimen: Specimen) -> Specimen | None:
    rows = specimen.copied()
    r, i = random.choice(specimen.places())
    del rows[r][i]
    return specimen.with_rows(rows)


@operator("COMPLETE")
def drop_a_microbatch(random: Random, specimen: Specimen) -> Specimen | None:
    microbatch = random.choice(list(specimen.starts())).microbatch
    kept = [[(a, s) for a, s in row if a.microbatch != microbatch] for row in specimen.rows]
    return specimen.with_rows(kept)


@operator("COMPLETE")
def drop_a_resource(random: Random, specimen: Specimen) -> Specimen | None:
    rows = specimen.copied()
    rows[random.choice([r for r, row in enumerate(rows) if row])] = []
    return specimen.with_rows(rows)


def _renamed(random: Random, specimen: Specimen, **changes: int) -> Specimen:
    rows = specimen.copied()
    places = specimen.places()
    if "microbatch" in changes:
        places = [(r, i) for r, i in places if rows[r][i][0].kind not in STAGE_KINDS]
    r, i = random.choice(places)
    action, start = rows[r][i]
    rows[r][i] = (replace(action, **changes), start)  # type: ignore[arg-type]  # ints by name
    return specimen.with_rows(rows)


@operator("COMPLETE")
def foreign_microbatch(random: Random, specimen: Specimen) -> Specimen | None:
    above = int(specimen.problem.actions.microbatch.max()) + 1
    return _renamed(random, specimen, microbatch=above + random.randrange(3))


@operator("COMPLETE")
def foreign_stage(random: Random, specimen: Specimen) -> Specimen | None:
    above = int(specimen.problem.actions.stage.max()) + 1
    return _renamed(random, specimen, stage=above + random.randrange(3))


@operator("COMPLETE")
def foreign_slice(random: Random, specimen: Specimen) -> Specimen | None:
    above = int(specimen.problem.actions.slice.max()) + 1
    return _renamed(random, specimen, slice=above + random.randrange(3))


@operator("COMPLETE")
def extra_foreign_row(random: Random, specimen: Specimen) -> Specimen | None:
    rows = specimen.copied()
    r, i = random.choice(specimen.places())
    stage = int(specimen.problem.actions.stage.max()) + 1
    rows[r].insert(i, (Action(stage=stage, kind=Kind.STEP), rows[r][i][1]))
    return specimen.with_rows(rows)


@operator("PLACED")
def wrong_resource(random: Random, specimen: Specimen) -> Specimen | None:
    rows = specimen.copied()
    r, i = random.choice(specimen.places())
    action, _ = rows[r].pop(i)
    homes = [k for k, row in enumerate(specimen.rows) if any(a == action for a, _ in row)]
    others = [k for k in range(len(rows)) if k not in homes]
    if not others:
        return None
    target = random.choice(others)
    end = max((s + specimen.ticks(a) for a, s in rows[target]), default=0)
    rows[target].append((action, end))
    return specimen.with_rows(rows)


@operator("PLACED")
def no_such_resource(random: Random, specimen: Specimen) -> Specimen | None:
    """A row stands on a resource that the problem does not have."""
    rows = specimen.copied()
    r, i = random.choice(specimen.places())
    row = rows[r].pop(i)
    rows += [[] for _ in range(random.randint(0, 2))]
    return specimen.with_rows([*rows, [row]])


@operator("PLACED", needs=only_compute)
def exchanged_ranks(random: Random, specimen: Specimen) -> Specimen | None:
    rows = specimen.copied()
    if not only_compute(specimen):
        return None
    r, q = random.sample(range(specimen.problem.num_ranks), 2)
    rows[r], rows[q] = rows[q], rows[r]
    return specimen.with_rows(rows)


@operator("PLACED", needs=has_shared_tasks)
def two_starts(random: Random, specimen: Specimen) -> Specimen | None:
    """A task of two resources starts later on one of them."""
    rows = specimen.copied()
    counts = [a for row in rows for a, _ in row]
    places = [(r, i) for r, i in specimen.places() if counts.count(rows[r][i][0]) > 1]
    if not places:
        return None
    r, i = random.choice(places)
    rows[r][i] = (rows[r][i][0], rows[r][i][1] + random.randint(1, 3))
    return specimen.with_rows(rows)
