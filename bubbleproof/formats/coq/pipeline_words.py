"""A pipeline as it is given, in the words of ``proofs/Given.v``, the names of its tasks, and what
every file says of a problem and a schedule.

Coq derives the problem of the pipeline by itself and compares it with the tasks, edges and stores
that are written out: what ``theory.pipelines.pipeline`` derived. A file so is about the numbers of
a problem file, and another number there makes it no theorem.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction

from bubbleproof.formats.coq.coq_words import (
    Edge,
    edge_text,
    lines_text,
    list_text,
    own_edges,
    stores_text,
    table_text,
    task_text,
)
from bubbleproof.theory.model.actions import NONE, Kind
from bubbleproof.theory.model.measures import measure
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.theory.pipelines.choices import CHOICES
from bubbleproof.theory.pipelines.links import Link, Links
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.pipeline_statement import PLAIN, TICKS
from bubbleproof.theory.pipelines.stage_numbers import column, grid

_TASK = re.compile(r"(\d+)%positive")
_KNOWN = ("placement", "split_backward")
_PLACINGS = {"loop": "Given.Loop", "wave": "Given.Wave"}
_OF_STAGES = {"activation": "activation", "released": "released_at_input", "static": "static"}
_REFUSED = (
    "--coq does not know {}: proofs/Given.v has ranks, chunks, slices, placement, split backwards, "
    "ticks, links and the memory of stages"
)
_TEXT = """
(* The pipeline as it was given, and that all above is derived from it. *)
Definition pipeline : Given.pipeline_given := {{|
  {fields} |}}.

Theorem problem_is_of_the_pipeline :
  instance own_tasks own_edges = Given.problem_of pipeline /\\
  stores = Given.stores_of pipeline.
Proof.
  apply Given.written_is;
    [vm_cast_no_check (eq_refl own_tasks) | vm_cast_no_check (eq_refl own_edges)
    | vm_cast_no_check (eq_refl stores)].
Qed.
"""
PREAMBLE = """
Require Import ZArith List Bool.
From Bubbleproof Require Import Definitions Stores Instances Bounds OneMachine PricePayments Prices
  Groups Lifecycles OneStore Volume Facts Absurd Trail Shown SpanIdle Windows WindowRows Relaxation
  Cases.
From Bubbleproof Require Given Plans.
Import ListNotations.
Open Scope Z_scope.
"""
_PROBLEM = """
{names}

Definition own_tasks : table := [
  {table}].

Definition own_edges : list (edge positive) := [
  {edges}].

Definition stores : list (store positive) := [
  {stores}].
{pipeline}"""
_SCHEDULE = """
Definition rows : schedule positive := [
  {rows}].

Theorem schedule_is_valid : valid positive {problem} rows.
Proof. apply (check_sound positive Pos.eq_dec). vm_cast_no_check (eq_refl true). Qed.

Theorem schedule_keeps_memory : in_memory positive Pos.eq_dec {problem} {stores} rows.
Proof. apply check_memory_iff. vm_cast_no_check (eq_refl true). Qed.

Theorem schedule_takes : spans (fun r => r <? {ranks}) {problem} rows {first} {last}.
Proof. apply check_spans_iff. vm_cast_no_check (eq_refl true). Qed.
"""


def problem_words(problem: Problem, pipeline: Pipeline | None, names: Sequence[str]) -> str:
    """The names, the problem and, where there is one, the pipeline that it is derived from.

    Raises ``ValueError`` as ``require_known`` does.
    """
    edges = own_edges(problem) if pipeline is None else pipeline_edges(problem, pipeline)
    text = _PROBLEM.format(
        names="{names}",
        table=lines_text([*table_text(problem)]),
        edges=lines_text([*map(edge_text, edges)]),
        stores=lines_text([*stores_text(problem)]),
        pipeline="" if pipeline is None else _TEXT.format(fields=given_text(pipeline)),
    )
    return named(text, names).replace("{names}", names_text(names))


def schedule_words(
    problem: Problem, schedule: Schedule, rows: Iterable[str], *, of: str, stores: str
) -> str:
    """The rows of a schedule, that they are valid and within memory, and how long they take.

    ``of`` and ``stores`` are what the problem and its stores are called there.
    """
    first = int(schedule.start[schedule.program.resource < problem.num_ranks].min())
    return _SCHEDULE.format(
        rows=lines_text([*rows]),
        problem=of,
        stores=stores,
        ranks=problem.num_ranks,
        first=first,
        last=first + measure(problem, schedule).makespan,
    )


def require_known(pipeline: Pipeline) -> None:
    """Raise ``ValueError`` naming what ``proofs/Given.v`` does not know of a pipeline."""
    if unknown := next(_unknown(pipeline), None):
        raise ValueError(_REFUSED.format(unknown))


def _unknown(pipeline: Pipeline) -> Iterator[str]:
    """What of the pipeline has no word there."""
    chosen = (name for name in CHOICES if name not in _KNOWN)
    yield from (n for n in chosen if getattr(pipeline, n) != getattr(PLAIN, n))
    if pipeline.is_bidirectional:
        yield "placement bidirectional"
    if pipeline.workspace:
        yield "weight_workspace"


def given_text(pipeline: Pipeline) -> str:
    """The fields of the record. Raises ``ValueError`` as ``require_known`` does."""
    require_known(pipeline)
    links = (
        f"({a}%nat, {b}%nat, {_link_text(pipeline.all_links.between(a, b))})"
        for a, b in dict.fromkeys(one.ranks for one in pipeline.links)
    )
    fields = {
        "ranks": pipeline.num_ranks,
        "chunks": pipeline.num_chunks,
        "microbatches": pipeline.num_microbatches,
        "slices": pipeline.num_slices,
        "placement": placing_text(pipeline.placement),
        "split": _split_text(pipeline),
        **{name: _rows_text(grid(getattr(pipeline, name), num_slices=pipeline.num_slices).tolist())
           for name in TICKS},
        "message": list_text(column(pipeline.message).tolist()),
        "every_link": _link_text(pipeline.all_links),
        "named_links": list_text(links),
        **{name: list_text(map(_number, column(getattr(pipeline, field)).tolist()))
           for name, field in _OF_STAGES.items()},
        "capacity": list_text(
            "None" if one is None else f"Some {one}" for one in pipeline.capacities
        ),
    }  # fmt: skip
    return ";\n  ".join(f"Given.{name} := {value}" for name, value in fields.items())


def _link_text(link: Link | Links) -> str:
    rate = None if link.bandwidth is None else Fraction(link.bandwidth)
    told = "None" if rate is None else f"(Some ({rate.numerator}, {rate.denominator}))"
    return f"Given.Link {link.latency} {told} {str(link.duplex == 'full').lower()}"


def _split_text(pipeline: Pipeline) -> str:
    flags = pipeline.split_backward
    if isinstance(flags, bool):
        row = f"repeat {str(flags).lower()} {pipeline.num_microbatches}"
        return f"repeat ({row}) {pipeline.num_stages}"
    return list_text(list_text(str(flag).lower() for flag in row) for row in flags)


def _rows_text(rows: Sequence[Sequence[int]]) -> str:
    return list_text(list_text(row) for row in rows)


def placing_text(placement: str | tuple[int, ...]) -> str:
    """A placement. Raises ``ValueError`` for a bidirectional one."""
    if isinstance(placement, tuple):
        return f"Given.Listed {list_text(placement)}%nat"
    if placement not in _PLACINGS:
        raise ValueError(_REFUSED.format(f"placement {placement}"))
    return _PLACINGS[placement]


def _number(number: int) -> str:
    return f"({number})" if number < 0 else str(number)


def pipeline_edges(problem: Problem, pipeline: Pipeline) -> list[Edge]:
    """The problem's precedences in the order of ``edges_of`` in ``proofs/Given.v``.

    Forwards are followed from the first stage on, backwards from the last.
    """
    each = pipeline.num_microbatches * pipeline.num_slices
    size, actions = pipeline.num_stages * each, problem.actions

    def key(edge: Edge) -> tuple[int, int, int]:
        before, after, _ = edge
        kind, stage = int(actions.kind[before]), int(actions.stage[before])
        row = int(actions.microbatch[before] * pipeline.num_slices + actions.slice[before])
        place, is_message = stage * each + row, kind in (Kind.SEND_F, Kind.SEND_B)
        is_back = kind not in (Kind.F, Kind.SEND_F)
        return (2 * size - place if is_back else place), is_message, after

    return sorted(own_edges(problem), key=key)


def task_names(problem: Problem) -> list[str]:
    """An identifier of each task: its kind, stage and microbatch, such as ``F_0_3``."""
    actions = problem.actions
    names = []
    for row in range(problem.num_tasks):
        action = actions[row]
        numbers = [action.stage, action.microbatch]
        numbers += [action.slice] if actions.is_sliced else []
        parts = [action.kind.name, *("x" if one == NONE else str(one) for one in numbers)]
        parts += [] if action.part == NONE else [f"part{action.part}"]
        if action.partner is not None:
            parts += ["with", str(action.partner.stage), str(action.partner.microbatch)]
        names.append("_".join(parts))
    return names


def names_text(names: Sequence[str]) -> str:
    """Each name as a definition, several on a line."""
    texts = [f"Definition {name} := {task_text(task)}." for task, name in enumerate(names)]
    return "\n".join(" ".join(texts[at : at + 4]) for at in range(0, len(texts), 4))


def named(text: str, names: Sequence[str]) -> str:
    """The text with each task by its name."""
    return _TASK.sub(lambda found: names[int(found[1]) - 1], text)
