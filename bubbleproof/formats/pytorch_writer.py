"""Programs written as PyTorch pipeline tables, and what such a table cannot say.

The table is in the new dialect (see ``formats.pytorch_csv``), computations alone or lowered,
without idle cells. It has no words for slices, parts of W, recomputation, eviction, off-loading or
optimizer steps: a program with those is refused. Durations, latencies and memory are not part of a
table either; the program stays right without them, so they are reported as losses.
"""

from __future__ import annotations

from bubbleproof.formats.action_text import action_texts
from bubbleproof.formats.errors import UnusableInput, about, quoted
from bubbleproof.formats.files import FilePath, write_text
from bubbleproof.formats.pytorch_csv import KINDS
from bubbleproof.theory.model.actions import NONE, Kind
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.links import is_message, program_without_messages


def write_table(
    path: FilePath, program: Program, *, problem: Problem | None = None
) -> tuple[str, ...]:
    """Write a program as a PyTorch table; an existing file is replaced whole or not at all.

    Returns what is lost, one sentence each; what ``problem`` holds beyond the program counts only
    where it is given. Raises ``UnusableInput`` naming the first action that a table cannot say.
    """
    with about(path):
        write_text(path, _table_text(program, problem))
    return losses(program, problem)


def _table_text(program: Program, problem: Problem | None) -> str:
    if problem is not None:
        program = program_without_messages(problem, program)
    _refuse_unsayable(program, problem)
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
    """What a table leaves out of the problem, and what PyTorch's runtime will not take."""
    found = []
    if problem is not None:
        if (problem.duration != 1).any():
            found.append(f"durations (in {problem.unit}) are lost: a table counts steps")
        if problem.edges.lag.any():
            found.append("latencies are lost: a table has no time")
        if is_message(problem, program).any():
            found.append("messages on links are lost: PyTorch's runtime sends its own")
        if len(problem.events):
            found.append(f"memory (in {problem.memory_unit}) is lost: a table has none")
    if not _ends_in_order(program):
        found.append(
            "PyTorch's runtime numbers losses in the order of execution: the last stage's forwards "
            "are not in ascending order of microbatches"
        )
    return tuple(found)


def _refuse_unsayable(program: Program, problem: Problem | None) -> None:
    texts = action_texts(program.actions)
    for row, text in enumerate(texts):
        if Kind(int(program.actions.kind[row])) not in KINDS:
            raise UnusableInput("", "actions that a PyTorch table has words for", quoted(text))
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
