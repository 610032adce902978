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

All kinds that it writes are about the problem itself. Prices (``proofs/Prices.v``) add no edge.
The edges that other certificates add (``verify.certificates.index_order``) are justified by
``proofs/FreeEdges.v``, which finds for itself that microbatches are identical and that stores are
used in lifecycles.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from bubbleproof.formats.coq.certificate_words import (
    one_machine_text,
    one_store_text,
    trail_text,
    volume_text,
)
from bubbleproof.formats.coq.coq_words import (
    certificate_edges,
    edge_text,
    lines_text,
    own_edges,
    rows_text,
    stores_text,
    table_text,
)
from bubbleproof.formats.coq.free_edges import groups_text, lives_text
from bubbleproof.formats.coq.pipeline_words import (
    named,
    names_text,
    pipeline_edges,
    pipeline_theorem,
    task_names,
)
from bubbleproof.formats.coq.price_list import prices_text
from bubbleproof.formats.coq.window_words import WindowWords
from bubbleproof.theory.model.measures import measure
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify.certificates.certificate import Drup
from bubbleproof.verify.certificates.certificate_rule import Certificate
from bubbleproof.verify.certificates.crossings import Crossings
from bubbleproof.verify.certificates.microbatch_windows import MicrobatchWindows
from bubbleproof.verify.certificates.one_machine import OneMachine
from bubbleproof.verify.certificates.one_store import OneStore
from bubbleproof.verify.certificates.tick_prices import TickPrices
from bubbleproof.verify.certificates.volume import Volume

MOST_TASKS = 20_000  # rule 4 is checked pair by pair: 400 million are minutes
_HEAD = """(* The {objective} of the schedule is {value}, and of none of its problem below {bound}.
   {tasks} tasks; {edges}. Made by bubbleproof; it is checked by
       make proofs && coqc -Q build/proofs Bubbleproof FILE.v *)

Require Import ZArith List Bool.
From Bubbleproof Require Import {files}.
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
_FREE = """
(* Groups of identical microbatches, the lives of stores, and all edges that these justify. *)
Definition groups : list group := [
  {groups}].

Definition lives : list life := [
  {lives}].

Definition all_edges : list (edge positive) := [
  {all_edges}].

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
  apply ({lemma} (fun r => r <? {ranks}) all_tasks own_edges stores {given}).
  vm_cast_no_check (eq_refl true).
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
  apply ({lemma} {ranks} all_tasks own_edges stores {given}).
  vm_cast_no_check (eq_refl true).
Qed.

Print Assumptions schedule_idles.
Print Assumptions no_schedule_idles_less.
"""
_TAIL = """
Print Assumptions schedule_is_valid.
Print Assumptions schedule_keeps_memory.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CoqClaim:
    """What is written for a kind of certificates: the files of ``proofs/`` that it needs, what is
    said of its edges, its definitions, and the theorem with what that is given beside the problem.
    """

    files: str
    edges: str
    definitions: str
    lemma: str
    given: str


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
    claim = _claim(problem, certificate)
    measured = measure(problem, schedule)
    values = {"makespan": measured.makespan, "span_idle": measured.span_idle}
    names = task_names(problem)
    edges = own_edges(problem) if pipeline is None else pipeline_edges(problem, pipeline)
    head = _HEAD.format(
        objective=certificate.objective,
        value=values[certificate.objective],
        bound=certificate.bound,
        tasks=problem.num_tasks,
        edges=claim.edges,
        files=claim.files,
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
        lemma=claim.lemma,
        given=claim.given,
    )
    told = "" if pipeline is None else "Print Assumptions problem_is_of_the_pipeline.\n"
    is_own = isinstance(certificate, MicrobatchWindows)  # which numbers tasks of its own
    proof = claim.definitions if is_own else named(claim.definitions, names)
    head = named(head, names).replace("{names}", names_text(names))
    return head + proof + said + _TAIL + told


def _claim(problem: Problem, certificate: Certificate) -> CoqClaim:
    if isinstance(certificate, TickPrices):
        return _prices(problem, certificate)
    if isinstance(certificate, OneMachine):
        return _one_machine(problem, certificate)
    if isinstance(certificate, OneStore):
        return _one_store(problem, certificate)
    if isinstance(certificate, Volume):
        return _volume(problem, certificate)
    if isinstance(certificate, MicrobatchWindows):
        return _windows(problem, certificate)
    if isinstance(certificate, Crossings):
        raise ValueError("--coq has no theorem of what crosses (Crossings)")
    return _trail(problem, certificate)


def _prices(problem: Problem, certificate: TickPrices) -> CoqClaim:
    return CoqClaim(
        files="Definitions Stores Instances PricePayments Prices PricesSound",
        edges=f"{len(problem.edges)} edges of the problem",
        definitions=f"\nDefinition prices : price_list := {prices_text(problem, certificate)}.\n",
        lemma="prices_sound",
        given="prices",
    )


def _one_machine(problem: Problem, certificate: OneMachine) -> CoqClaim:
    if certificate.objective == "span_idle":
        files, lemma = "OneMachine FreeEdges SpanIdle", "idle_by_one_machine"
    else:
        files, lemma = "OneMachine FreeEdges", "one_machine_on_the_problem"
    return _with_free_edges(problem, files, lemma, one_machine_text(problem, certificate))


def _one_store(problem: Problem, certificate: OneStore) -> CoqClaim:
    if certificate.objective == "span_idle":
        files, lemma = "FreeEdges OneStore SpanIdle", "idle_by_one_store"
    else:
        files, lemma = "FreeEdges OneStore", "one_store_on_the_problem"
    return _with_free_edges(problem, files, lemma, one_store_text(certificate))


def _volume(problem: Problem, certificate: Volume) -> CoqClaim:
    files, text = "FreeEdges Volume VolumeSound", volume_text(problem, certificate)
    return _with_free_edges(problem, files, "volume_on_the_problem", text)


def _trail(problem: Problem, certificate: Drup) -> CoqClaim:
    files, text = "FreeEdges Facts Absurd Trail", trail_text(problem, certificate)
    given = f"groups lives\n    all_edges ({certificate.bound}) proof"
    lemma = "trail_on_the_problem"
    claim = _with_free_edges(problem, files, lemma, text, every_chain=True)
    return replace(claim, given=given)


def _windows(problem: Problem, certificate: MicrobatchWindows) -> CoqClaim:
    return CoqClaim(
        files="Definitions Stores Instances OneMachine PricePayments Prices Groups\n"
        "  Lifecycles OneStore Volume Facts Absurd Trail Shown Windows WindowRows",
        edges=f"{len(problem.edges)} edges of the problem",
        definitions=WindowWords(problem, certificate).definitions(),
        lemma="windows_on_the_problem",
        given=f"justified shorts\n    short_proofs windows ({certificate.bound})",
    )


def _with_free_edges(
    problem: Problem, files: str, lemma: str, claim: str, *, every_chain: bool = False
) -> CoqClaim:
    """A claim about the edges too that index order and memory allow to ask for."""
    everything, own = certificate_edges(problem), len(problem.edges)
    free = _FREE.format(
        groups=groups_text(problem),
        lives=lives_text(problem, every_chain=every_chain),
        all_edges=lines_text([*map(edge_text, everything)]),
    )
    return CoqClaim(
        files=f"Definitions Stores Instances Groups Lifecycles {files}",
        edges=f"{own} edges of the problem and {len(everything) - own} more that identical\n   "
        "microbatches and memory allow to ask for",
        definitions=f"{free}Definition proof := {claim}.\n",
        lemma=lemma,
        given="groups lives\n    all_edges proof",
    )
