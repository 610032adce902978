"""Programs written as PyTorch pipeline tables, and what such a table cannot say.

The table is in the new dialect (see ``formats.pytorch_csv``), without idle cells. Of computations
alone it is for ``_load_csv(format="compute_only")`` of any torch that knows them. With messages
it is for ``_load_csv(format="compute_comms")``, and has what the runtime of one version of torch
needs besides (``theory.pipelines.programs.pytorch_runtime``): REDUCE_GRAD, waits, and UNSHARD and
RESHARD where stages are sharded. A table has no words for slices, parts of W, recomputation,
eviction, off-loading or optimizer steps: a program with those is refused, and so is one whose
problem has them, beside its ranks. What else is not part of a table, or not kept by the runtime
that runs it, is reported as losses.
"""

from __future__ import annotations

from collections.abc import Sequence

from bubbleproof.formats.action_text import action_texts
from bubbleproof.formats.errors import UnusableInput, about, quoted
from bubbleproof.formats.files import FilePath, write_text
from bubbleproof.formats.pytorch_csv import KINDS, CollectiveCell, with_cells
from bubbleproof.formats.schedule_file import ScheduleFile
from bubbleproof.theory.model.actions import COMMUNICATION_KINDS, NONE, ActionTable, Kind
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.programs.messages_in_programs import (
    is_message,
    program_without_messages,
)
from bubbleproof.theory.pipelines.programs.pytorch_runtime import (
    NEWEST,
    REDUCES_SINCE,
    SCALES_SINCE,
    SINCE,
    WAIT_OF,
    WAITS_SINCE,
    Version,
    completed,
    shown,
)
from bubbleproof.theory.pipelines.programs.pytorch_shards import with_shards
from bubbleproof.verify.communication.runtime_collectives import COLLECTIVES


def write_table(
    path: FilePath,
    program: Program,
    *,
    problem: Problem | None = None,
    collectives: Sequence[CollectiveCell] = (),
    torch: Version = NEWEST,
    communication: bool | None = None,
) -> tuple[str, ...]:
    """Write a program as a PyTorch table; an existing file is replaced whole or not at all.

    ``communication`` says that the table is to have messages and what the runtime of ``torch``
    needs besides; None that it has where the program has any. ``collectives`` are cells that the
    program came with (``read_table``). Returns what is lost, one sentence each; what ``problem``
    holds beyond the program counts only where it is given. Raises ``UnusableInput`` naming the
    first action that a table cannot say.
    """
    if communication is None:
        communication = bool(program.actions.is_kind(*COMMUNICATION_KINDS).any())
    with about(path):
        whole = _whole(program, problem, collectives, torch, communication=communication)
        write_text(path, _table_text(whole, problem))
    lost = list(losses(program, problem))
    if communication:
        lost += _of_version(program, torch)
    elif problem is not None and problem.actions.is_kind(*COLLECTIVES).any():
        lost.append("UNSHARD, RESHARD and REDUCE_GRAD: PyTorch's runtime adds its own")
    return tuple(lost)


def write_program(path: FilePath, file: ScheduleFile) -> tuple[str, ...]:
    """Write a schedule's program as it stands; see ``write_table``."""
    return write_table(path, file.program, problem=file.problem)


def _whole(
    program: Program,
    problem: Problem | None,
    collectives: Sequence[CollectiveCell],
    version: Version,
    *,
    communication: bool,
) -> Program:
    """The program with all cells that are to stand in the table."""
    if problem is not None:
        program = program_without_messages(problem, program)
        if communication and not collectives:
            program = with_shards(problem, program)
        beside = (program.resource >= problem.num_ranks) & program.actions.is_kind(*COLLECTIVES)
        program = program.take(~beside)
        _refuse_kinds(problem.actions)  # lowering leaves out what runs beside the ranks
    _refuse_unsayable(program, problem)
    if SINCE[Kind.OVERLAP_F_B] > version and program.actions.is_kind(Kind.OVERLAP_F_B).any():
        pair = quoted(next(text for text in action_texts(program.actions) if "OVERLAP" in text))
        raise UnusableInput("", f"no pairs (torch {shown(version)} knows no OVERLAP_F_B)", pair)
    return completed(with_cells(program, collectives), version) if communication else program


def _table_text(program: Program, problem: Problem | None) -> str:
    resource = program.resource.tolist()
    num_ranks = problem.num_ranks if problem else max(resource, default=-1) + 1
    rows: list[list[str]] = [[] for _ in range(num_ranks)]
    for rank, text in zip(resource, action_texts(program.actions), strict=True):
        rows[rank].append(text)
    if not rows or not all(rows):
        rank = next((r for r, row in enumerate(rows) if not row), 0)
        raise UnusableInput(f"row {rank + 1}", "the actions of a rank", "none")
    return "".join(",".join(row) + "\n" for row in rows)


def losses(program: Program, problem: Problem | None) -> tuple[str, ...]:
    """What a table leaves out of the problem, and what PyTorch's runtime does in another way."""
    found = []
    if problem is not None:
        if (problem.duration != 1).any():
            found.append(f"durations (in {problem.unit}): a table counts steps")
        if problem.edges.lag.any():
            found.append("latencies: a table has no time")
        if is_message(problem, program).any():
            found.append("messages on links: PyTorch's runtime sends its own")
        if len(problem.events):
            found.append(f"memory (in {problem.memory_unit}): a table has none")
        if any(store.capacity is not None for store in problem.stores):
            found.append(
                "capacities are not kept: PyTorch's runtime also keeps outputs to the end of a "
                "step, and before 2.15 what it sent"
            )
    if program.actions.is_kind(Kind.I).any():
        found.append(
            "I releases nothing in PyTorch's runtime, and that of stage 0 does nothing: its W is "
            "the whole backward"
        )
    if not _ends_in_order(program):
        found.append(
            "PyTorch's runtime numbers losses in the order of execution: the last stage's forwards "
            "are not in ascending order of microbatches"
        )
    return tuple(found)


def _of_version(program: Program, version: Version) -> list[str]:
    """What the runtime of one version does not do with a table with messages."""
    named = f"torch {shown(version)}"
    found = []
    if version < WAITS_SINCE and program.actions.is_kind(*WAIT_OF.values()).any():
        found.append(f"waits for SENDs: {named} waits as a step ends")
    if version < SCALES_SINCE:
        found.append(f"{named} does not divide gradients by the number of microbatches")
    elif version < REDUCES_SINCE and program.actions.is_kind(Kind.W).any():
        found.append(
            f"{named} divides the gradients of a stage by the number of microbatches only where "
            "its last backward is a B: give scale_grads=False, and divide the loss"
        )
    return found


def _refuse_kinds(actions: ActionTable) -> None:
    """Raise ``UnusableInput`` for the first action of a kind that no table has a word for."""
    unsaid = actions.take(~actions.is_kind(*KINDS))
    for text in action_texts(unsaid)[:1]:
        raise UnusableInput("", "actions that a PyTorch table has words for", quoted(text))


def _refuse_unsayable(program: Program, problem: Problem | None) -> None:
    _refuse_kinds(program.actions)
    texts = action_texts(program.actions)
    for row, text in enumerate(texts):
        if program.actions.slice[row]:
            raise UnusableInput("", "whole microbatches (a table has no slices)", quoted(text))
        if program.actions.part[row] != NONE:
            raise UnusableInput("", "whole weight gradients (a table has no parts)", quoted(text))
        if problem is not None and program.resource[row] >= problem.num_ranks:
            name = problem.resources[int(program.resource[row])].name
            found = f"{quoted(text)} on {quoted(name)}"
            raise UnusableInput("", "actions on ranks alone", found)
    _refuse_two_homes(program)


def _refuse_two_homes(program: Program) -> None:
    """PyTorch reads the rank of a stage off the rows, so a stage may stand on one rank only."""
    home: dict[int, int] = {}
    for stage, rank in zip(program.actions.stage.tolist(), program.resource.tolist(), strict=True):
        if home.setdefault(stage, rank) != rank:
            found = f"stage {stage} on ranks {home[stage]} and {rank}"
            raise UnusableInput("", "each stage on one rank", found)


def _ends_in_order(program: Program) -> bool:
    actions = program.actions
    forward = actions.is_kind(Kind.F, Kind.OVERLAP_F_B)
    if not forward.any():
        return True
    last = forward & (actions.stage == actions.stage[forward].max())
    microbatch = actions.microbatch[last]
    return bool((microbatch[1:] > microbatch[:-1]).all())
