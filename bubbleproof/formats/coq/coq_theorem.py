"""A schedule and its certificate as a theorem of Coq, which Coq judges with nothing of ours.

``coq_theorem`` writes a problem out as a table of tasks and lists of edges, a schedule as its rows,
and a certificate; in the words of ``proofs/Definitions.v``. ``coqc`` accepts it where

- the problem is that of the pipeline, where there is one: Coq derives it from the pipeline's
  numbers (``pipeline_words``), and tasks go by their names;
- ``check`` accepts the rows: they keep rules 1 to 4; and their makespan, or their ``span_idle``
  (``proofs/SpanIdle.v``), is what is said;
- ``check_memory`` of ``proofs/Stores.v`` accepts them: they keep rule 5, at every moment;
- the checker of the certificate's kind accepts it: no schedule is below its bound.

All are computed by Coq. Where bound and objective are equal that is ``optimal``.

All kinds that it writes are about the problem itself (``proofs/Shown.v``). Prices add no edge. The
edges that other certificates add (``verify.certificates.index_order``) are justified by
``proofs/FreeEdges.v``, which finds for itself that microbatches are identical and that stores are
used in lifecycles.
"""

from __future__ import annotations

from bubbleproof.formats.coq.certificate_words import (
    free_text,
    one_machine_text,
    one_store_text,
    shown_text,
)
from bubbleproof.formats.coq.coq_words import (
    edge_text,
    lines_text,
    own_edges,
    rows_text,
    stores_text,
    table_text,
)
from bubbleproof.formats.coq.pipeline_words import (
    named,
    names_text,
    pipeline_edges,
    pipeline_theorem,
    task_names,
)
from bubbleproof.formats.coq.window_words import WindowWords
from bubbleproof.theory.model.measures import measure
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify.certificates.certificate_rule import Certificate
from bubbleproof.verify.certificates.microbatch_windows import MicrobatchWindows
from bubbleproof.verify.certificates.one_machine import OneMachine
from bubbleproof.verify.certificates.one_store import OneStore

MOST_TASKS = 20_000  # rule 4 is checked pair by pair: 400 million are minutes
_HEAD = """(* The {objective} of the schedule is {value}, and of none of its problem below {bound}.
   {tasks} tasks; {edges} edges. Made by bubbleproof; it is checked by
       make proofs && coqc -Q build/proofs Bubbleproof FILE.v *)

Require Import ZArith List Bool.
From Bubbleproof Require Import Definitions Stores Instances Bounds OneMachine PricePayments Prices
  Groups Lifecycles OneStore Volume Facts Absurd Trail Shown SpanIdle Windows WindowRows.
From Bubbleproof Require Given.
Import ListNotations.
Open Scope Z_scope.

{names}

Definition all_tasks : table := [
  {table}].

Definition own_edges : list (edge positive) := [
  {own_edges}].

Definition rows : schedule positive := [
  {rows}].

Definition stores : list (store positive) := [
  {stores}].
{pipeline}
Theorem schedule_is_valid : valid positive (instance all_tasks own_edges) rows.
Proof. apply (check_sound positive Pos.eq_dec). vm_cast_no_check (eq_refl true). Qed.

Theorem schedule_keeps_memory :
  in_memory positive Pos.eq_dec (instance all_tasks own_edges) stores rows.
Proof. apply check_memory_iff. vm_cast_no_check (eq_refl true). Qed.
"""
_MAKESPAN = """
Theorem schedule_takes :
  spans (fun r => r <? {ranks}) (instance all_tasks own_edges) rows {first} {last}.
Proof. apply check_spans_iff. vm_cast_no_check (eq_refl true). Qed.

Theorem no_schedule_is_faster : forall others first last,
  valid positive (instance all_tasks own_edges) others ->
  in_memory positive Pos.eq_dec (instance all_tasks own_edges) stores others ->
  spans (fun r => r <? {ranks}) (instance all_tasks own_edges) others first last ->
  {bound} <= last - first.
Proof.
  {why}
Qed.

Print Assumptions schedule_takes.
Print Assumptions no_schedule_is_faster.
"""
_SPAN_IDLE = """
Theorem schedule_idles :
  span_idle {ranks} all_tasks (instance all_tasks own_edges) rows = {value}.
Proof. vm_cast_no_check (eq_refl {value}). Qed.

Theorem no_schedule_idles_less : forall others,
  valid positive (instance all_tasks own_edges) others ->
  in_memory positive Pos.eq_dec (instance all_tasks own_edges) stores others ->
  {bound} <= span_idle {ranks} all_tasks (instance all_tasks own_edges) others.
Proof.
  {why}
Qed.

Print Assumptions schedule_idles.
Print Assumptions no_schedule_idles_less.
"""
# Why no schedule does better, by any certificate of the makespan, by one of span_idle, by windows.
_SHOWN = """apply (bounded_schedules (fun r => r <? {ranks}) all_tasks own_edges stores ({bound})).
  - vm_cast_no_check (eq_refl true).
  - apply (shown_bounds_plans (fun r => r <? {ranks}) all_tasks own_edges stores ({bound}) proof).
    vm_cast_no_check (eq_refl true)."""
_IDLE = """apply ({lemma} {ranks} all_tasks own_edges stores
    (groups justified) (lives justified) (all justified) proof).
  vm_cast_no_check (eq_refl true)."""
_WINDOWS = """apply (windows_on_the_problem (fun r => r <? {ranks}) all_tasks own_edges stores
    justified shorts short_proofs windows ({bound})).
  vm_cast_no_check (eq_refl true)."""
_TAIL = """
Print Assumptions schedule_is_valid.
Print Assumptions schedule_keeps_memory.
"""


def coq_theorem(
    problem: Problem,
    schedule: Schedule,
    certificate: Certificate,
    pipeline: Pipeline | None = None,
) -> str:
    """The theorem that the schedule is valid, what its objective is, and that the bound is one.

    Parameters
    ----------
    problem, schedule
        A problem, and a schedule of it with all its tasks.
    certificate
        A ``OneMachine`` or ``OneStore`` of either objective, a ``TickPrices``, a ``Volume``, a
        ``MicrobatchWindows``, or a ``Drup`` of the makespan.
    pipeline
        That of the problem; None for a problem that is written as tasks.

    Raises
    ------
    ValueError
        For a pipeline with a choice that ``proofs/Given.v`` does not know, and for what ``proofs/``
        has no words for: edges in a cycle, tasks beyond ``MOST_TASKS``, some proofs by propagation
        (``trail_words``).
    """
    if problem.num_tasks > MOST_TASKS:
        raise ValueError(f"--coq writes at most {MOST_TASKS} tasks, got {problem.num_tasks}")
    definitions, why = _proved(problem, certificate)
    measured = measure(problem, schedule)
    values = {"makespan": measured.makespan, "span_idle": measured.span_idle}
    names = task_names(problem)
    edges = own_edges(problem) if pipeline is None else pipeline_edges(problem, pipeline)
    head = _HEAD.format(
        objective=certificate.objective,
        value=values[certificate.objective],
        bound=certificate.bound,
        tasks=problem.num_tasks,
        edges=len(problem.edges),
        table=lines_text([*table_text(problem)]),
        own_edges=lines_text([*map(edge_text, edges)]),
        rows=lines_text([*rows_text(problem, schedule)]),
        stores=lines_text([*stores_text(problem)]),
        names="{names}",
        pipeline=""
        if pipeline is None
        else pipeline_theorem(pipeline, tasks="all_tasks", stores="stores"),
    )
    first = int(schedule.start[schedule.program.resource < problem.num_ranks].min())
    statements = _MAKESPAN if certificate.objective == "makespan" else _SPAN_IDLE
    said = statements.format(
        ranks=problem.num_ranks,
        first=first,
        last=first + measured.makespan,
        value=measured.span_idle,
        bound=certificate.bound,
        why=why.format(ranks=problem.num_ranks, bound=certificate.bound),
    )
    told = "" if pipeline is None else "Print Assumptions problem_is_of_the_pipeline.\n"
    is_own = isinstance(certificate, MicrobatchWindows)  # which numbers tasks of its own
    proof = definitions if is_own else named(definitions, names)
    head = named(head, names).replace("{names}", names_text(names))
    return head + proof + said + _TAIL + told


def _proved(problem: Problem, certificate: Certificate) -> tuple[str, str]:
    """What a certificate is in Coq, and by which theorem it shows its bound."""
    if isinstance(certificate, MicrobatchWindows):
        return WindowWords(problem, certificate).definitions(), _WINDOWS
    if certificate.objective == "makespan":
        return f"\nDefinition proof := {shown_text(problem, certificate)}.\n", _SHOWN
    if isinstance(certificate, OneMachine):
        text, lemma = one_machine_text(problem, certificate), "idle_by_one_machine"
    elif isinstance(certificate, OneStore):
        text, lemma = one_store_text(certificate), "idle_by_one_store"
    else:
        kind = type(certificate).__name__
        raise ValueError(f"--coq writes proofs by propagation of the makespan alone, got a {kind}")
    justified = f"\nDefinition justified : free := {free_text(problem)}.\n"
    return f"{justified}\nDefinition proof := {text}.\n", _IDLE.replace("{lemma}", lemma)
