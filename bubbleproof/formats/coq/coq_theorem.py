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
from bubbleproof.formats.coq.coq_words import rows_text
from bubbleproof.formats.coq.pipeline_words import (
    PREAMBLE,
    named,
    problem_words,
    schedule_words,
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
"""
_PROBLEM = "(instance own_tasks own_edges)"
_MAKESPAN = """
Theorem no_schedule_is_faster : forall others first last,
  valid positive (instance own_tasks own_edges) others ->
  in_memory positive Pos.eq_dec (instance own_tasks own_edges) stores others ->
  spans (fun r => r <? {ranks}) (instance own_tasks own_edges) others first last ->
  {bound} <= last - first.
Proof.
  {why}
Qed.

Print Assumptions schedule_takes.
Print Assumptions no_schedule_is_faster.
"""
_SPAN_IDLE = """
Theorem schedule_idles :
  span_idle {ranks} own_tasks (instance own_tasks own_edges) rows = {value}.
Proof. vm_cast_no_check (eq_refl {value}). Qed.

Theorem no_schedule_idles_less : forall others,
  valid positive (instance own_tasks own_edges) others ->
  in_memory positive Pos.eq_dec (instance own_tasks own_edges) stores others ->
  {bound} <= span_idle {ranks} own_tasks (instance own_tasks own_edges) others.
Proof.
  {why}
Qed.

Print Assumptions schedule_idles.
Print Assumptions no_schedule_idles_less.
"""
# Why no schedule does better, by any certificate of the makespan, by one of span_idle, by windows.
_SHOWN = """apply (bounded_schedules (fun r => r <? {ranks}) own_tasks own_edges stores ({bound})).
  - vm_cast_no_check (eq_refl true).
  - apply (shown_bounds_plans (fun r => r <? {ranks}) own_tasks own_edges stores ({bound}) proof).
    vm_cast_no_check (eq_refl true)."""
_IDLE = """apply ({lemma} {ranks} own_tasks own_edges stores
    (groups justified) (lives justified) (all justified) proof).
  vm_cast_no_check (eq_refl true)."""
_WINDOWS = """apply (windows_on_the_problem (fun r => r <? {ranks}) own_tasks own_edges stores
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
    measured, names = measure(problem, schedule), task_names(problem)
    is_idle = certificate.objective == "span_idle"
    head = _HEAD.format(
        objective=certificate.objective,
        value=measured.span_idle if is_idle else measured.makespan,
        bound=certificate.bound,
        tasks=problem.num_tasks,
        edges=len(problem.edges),
    )
    rows = rows_text(problem, schedule)
    solved = schedule_words(problem, schedule, rows, of=_PROBLEM, stores="stores")
    said = (_SPAN_IDLE if is_idle else _MAKESPAN).format(
        ranks=problem.num_ranks,
        value=measured.span_idle,
        bound=certificate.bound,
        why=why.format(ranks=problem.num_ranks, bound=certificate.bound),
    )
    told = "" if pipeline is None else "Print Assumptions problem_is_of_the_pipeline.\n"
    is_own = isinstance(certificate, MicrobatchWindows)  # which numbers tasks of its own
    proof = definitions if is_own else named(definitions, names)
    stated = problem_words(problem, pipeline, names) + named(solved, names)
    return head + PREAMBLE + stated + proof + said + _TAIL + told


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
