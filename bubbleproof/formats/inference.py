"""The pipeline behind a program that came without one.

A table of actions tells its own shape: a rank per resource, stages and microbatches up to the
highest index, each stage on the rank where its actions stand. Durations are unknown and taken as
one tick (two for a full backward); links take none. Whether the program then does every task of
that pipeline exactly once, in an order that works, is for ``verify`` to say. A PyTorch table is
read as a schedule with that pipeline, its starts the earliest.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np

from bubbleproof.formats.errors import UnusableInput, about
from bubbleproof.formats.pytorch_csv import read_table, refuse_cut_off
from bubbleproof.formats.schedule_file import ScheduleFile
from bubbleproof.formats.sizes import refuse_oversize
from bubbleproof.theory.model.actions import (
    COMMUNICATION_KINDS,
    NONE,
    ActionTable,
    Bools,
    Ints,
    Kind,
)
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.frozen import untrained
from bubbleproof.theory.pipelines.overlaps import Overlap
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.placement import BIDIRECTIONAL, num_downward
from bubbleproof.theory.pipelines.timing import UntimedProgram, left_shift
from bubbleproof.verify.communication.matching import compute_part

SUBJECT = "the program"


def infer_pipeline(program: Program, *, subject: str = SUBJECT) -> Pipeline:
    """The smallest pipeline that has all the program's actions as tasks.

    The backward of a (stage, microbatch) is split where the program has its I or W and not its B;
    where it has both it is full, so that the I and W stand out as foreign. A stage's W is cut into
    as many parts as the program names. A program of forwards alone trains nothing.

    Raises ``UnusableInput`` (about ``subject``) where no pipeline has that shape: no actions, a
    stage on no rank or oddly on two, a number of stages that is no multiple of the ranks.
    """
    with about(subject):
        return _inferred(program)


def _inferred(program: Program) -> Pipeline:
    if not len(program):
        raise UnusableInput("", "actions", "none")
    actions = program.actions
    ranks = int(program.resource.max()) + 1
    stages = int(max(actions.stage.max(), actions.partner_stage.max())) + 1
    microbatches = int(max(actions.microbatch.max(), actions.partner_microbatch.max())) + 1
    if microbatches < 1:
        raise UnusableInput("", "actions of microbatches", "collectives alone")
    if stages % ranks:
        expected = f"as many stages on average on each of {ranks} ranks"
        raise UnusableInput("", expected, f"{stages} stages")
    slices = int(actions.slice.max()) + 1
    refuse_oversize(ranks=ranks, chunks=stages // ranks, microbatches=microbatches, slices=slices)
    placement = _placement(program, stages, ranks)
    parts = _parts(actions, stages)
    is_forward_only = actions.is_kind(Kind.F, *COMMUNICATION_KINDS).all()
    made = Pipeline(
        num_ranks=ranks,
        num_microbatches=microbatches,
        num_chunks=stages // ranks,
        num_slices=slices,
        placement=placement,
        split_backward=_split(program, stages, microbatches),
        weight_backward=tuple(max(1, len(row)) for row in parts),
        weight_parts=parts,
        overlaps=_overlaps(program),
    )
    return made.with_changes(**untrained(stages)) if is_forward_only else made


def _placement(program: Program, stages: int, ranks: int) -> str | tuple[int, ...]:
    """The rank of each stage, or ``bidirectional`` where stages on two ranks follow its rule."""
    actions = program.actions
    stage = np.concatenate([actions.stage, actions.partner_stage])
    microbatch = np.concatenate([actions.microbatch, actions.partner_microbatch])[stage != NONE]
    rank = np.tile(program.resource, 2)[stage != NONE]
    stage = stage[stage != NONE]
    home = np.full(stages, NONE)
    home[stage] = rank
    if (home[stage] != rank).any() and _is_bidirectional(stage, microbatch, rank, ranks):
        return BIDIRECTIONAL
    for wrong in stage[home[stage] != rank].tolist()[:1]:
        raise UnusableInput("", f"stage {wrong} on one rank", "it on two")
    for missing in np.flatnonzero(home == NONE).tolist()[:1]:
        raise UnusableInput("", f"stages 0 to {stages - 1}", f"no action of stage {missing}")
    for idle in np.setdiff1d(np.arange(ranks), home).tolist()[:1]:
        raise UnusableInput("", f"actions on ranks 0 to {ranks - 1}", f"none on rank {idle}")
    return tuple(home.tolist())


def _is_bidirectional(stage: Ints, microbatch: Ints, rank: Ints, ranks: int) -> bool:
    """Whether the first half of the microbatches runs stage g on rank g mod p, the rest mirrored.

    Actions that belong to no microbatch may stand on either rank.
    """
    upward = microbatch >= num_downward(int(microbatch.max()) + 1)
    down = stage % ranks
    expected = np.where(upward, ranks - 1 - down, down)
    return bool((expected == rank)[microbatch != NONE].all())


def _split(program: Program, stages: int, microbatches: int) -> bool | tuple[tuple[bool, ...], ...]:
    """One flag where all backwards are alike, else a row per stage."""
    actions = program.actions
    overlapped = actions.is_kind(Kind.OVERLAP_F_B)
    full = _grid(actions.stage, actions.microbatch, actions.is_kind(Kind.B), stages, microbatches)
    full |= _grid(
        actions.partner_stage, actions.partner_microbatch, overlapped, stages, microbatches
    )
    parts = actions.is_kind(Kind.I, Kind.W)
    split = _grid(actions.stage, actions.microbatch, parts, stages, microbatches) & ~full
    if split.all() or not split.any():
        return bool(split.all())
    return tuple(tuple(row) for row in split.tolist())


def _parts(actions: ActionTable, stages: int) -> tuple[tuple[int, ...], ...]:
    """One tick for each part of a stage's W, up to the highest that the program names."""
    most = np.zeros(stages, dtype=np.int64)
    np.maximum.at(most, actions.stage, actions.part + 1)
    return tuple((1,) * count for count in most.tolist())


def _grid(stage: Ints, microbatch: Ints, rows: Bools, stages: int, microbatches: int) -> Bools:
    grid = np.zeros((stages, microbatches), dtype=bool)
    grid[stage[rows], microbatch[rows]] = True
    return grid


def _overlaps(program: Program) -> tuple[Overlap, ...]:
    """The overlapped pairs; of pairs that share an action only the first: others are foreign."""
    actions = program.actions
    rows = np.flatnonzero(actions.is_kind(Kind.OVERLAP_F_B))
    columns = (
        actions.stage,
        actions.microbatch,
        actions.partner_stage,
        actions.partner_microbatch,
    )
    forwards: set[tuple[int, int]] = set()
    backwards: set[tuple[int, int]] = set()
    pairs = []
    for f, i, b, j in zip(*(column[rows].tolist() for column in columns), strict=True):
        if (f, i) not in forwards and (b, j) not in backwards:
            forwards.add((f, i))
            backwards.add((b, j))
            pairs.append(((f, i), (b, j)))
    return tuple(pairs)


def read_timed_table(path: str, dialect: Literal["new", "old"] | None = None) -> ScheduleFile:
    """The schedule of a table, left-shifted, with the pipeline that it seems to be of."""
    table = read_table(path, dialect=dialect)
    compute = compute_part(table.program) if table.has_communication else table.program
    pipeline = infer_pipeline(compute, subject=path)
    problem = pipeline.problem()
    with about(path):
        refuse_cut_off(table, problem)
    name = Path(path).stem
    return timed(
        ScheduleFile(
            problem=problem,
            program=table.program,
            pipeline=pipeline,
            name=name,
            collectives=table.collectives,
        )
    )


def timed(given: ScheduleFile) -> ScheduleFile:
    """The file with left-shifted starts, or without any where its program has none."""
    try:
        schedule = left_shift(given.problem, given.compute)
    except UntimedProgram:
        return replace(given, schedule=None)
    return replace(given, schedule=schedule, claims=schedule.claims)
