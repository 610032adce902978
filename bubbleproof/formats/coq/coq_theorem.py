"""A schedule and its certificate as a theorem of Coq, which Coq judges with nothing of ours.

``coq_theorem`` writes a problem out as a table of tasks and lists of edges, a schedule as its rows,
and a certificate of one resource; in the words of ``proofs/Definitions.v``. ``coqc`` accepts it
where

- ``check`` accepts the rows: they keep rules 1 to 4 and lie within their makespan;
- ``check_memory`` of ``proofs/Stores.v`` accepts them: they keep rule 5, at every moment;
- ``check_one_machine`` of ``proofs/OneMachine.v`` accepts the certificate: no valid schedule takes
  less than its bound.

All are computed by Coq. Where bound and makespan are equal that is ``optimal``. What Coq is not
told: why the edges of ``verify.certificates.index_order`` may be asked for, beside the problem's
own: for one group of identical microbatches ``proofs/Exchange.v`` proves that a bound on the
schedules that keep them is one on all; for several at once, and for memory, that is a lemma in
prose. The rows are shown to keep the problem's own edges. Edges stand in an order in which heads
can be computed in one pass.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.verify.certificates.certificate_rule import Certificate
from bubbleproof.verify.certificates.chains import in_order
from bubbleproof.verify.certificates.index_order import index_order, sure_edges
from bubbleproof.verify.certificates.one_machine import OneMachine, longest_paths

MOST_TASKS = 20_000  # rule 4 is checked pair by pair: 400 million are minutes
_TEXT = """(* The schedule takes {makespan} ticks, and none of its problem takes less than {bound}.
   {tasks} tasks; {own} edges of the problem and {free} more that identical microbatches and
   memory allow to ask for (verify/certificates/index_order.py). Made by bubbleproof; it is
   checked by    make proofs && coqc -Q build/proofs Bubbleproof FILE.v *)

Require Import ZArith List Bool.
From Bubbleproof Require Import Definitions Stores OneMachine.
Import ListNotations.
Open Scope Z_scope.

Definition all_tasks : table := [
  {table}].

Definition own_edges : list (edge positive) := [
  {own_edges}].

Definition all_edges : list (edge positive) := [
  {all_edges}].

Definition rows : schedule positive := [
  {rows}].

Definition stores : list (store positive) := [
  {stores}].

Definition one_resource := Certificate {resource} [{crowd}] {head} {tail} {bound}.

Theorem schedule_is_valid : valid positive (instance all_tasks own_edges) rows.
Proof. apply (check_sound positive Pos.eq_dec). vm_compute. reflexivity. Qed.

Theorem schedule_takes : within positive (instance all_tasks own_edges) rows {first} {last}.
Proof. apply check_within_sound. vm_compute. reflexivity. Qed.

Theorem schedule_keeps_memory :
  in_memory positive Pos.eq_dec (instance all_tasks own_edges) stores rows.
Proof. apply check_memory_iff. vm_compute. reflexivity. Qed.

Theorem no_schedule_is_faster : forall others first last,
  valid positive (instance all_tasks all_edges) others ->
  within positive (instance all_tasks all_edges) others first last ->
  {bound} <= last - first.
Proof.
  apply (one_machine_sound all_tasks all_edges one_resource). vm_compute. reflexivity.
Qed.

Print Assumptions schedule_is_valid.
Print Assumptions schedule_takes.
Print Assumptions schedule_keeps_memory.
Print Assumptions no_schedule_is_faster.
"""


def coq_theorem(problem: Problem, schedule: Schedule, certificate: Certificate) -> str:
    """The theorem that the schedule is valid, takes its makespan, and that the bound is one.

    Parameters
    ----------
    problem, schedule
        A problem whose resources are ranks, and a schedule of it with all its tasks.
    certificate
        A ``OneMachine`` of the makespan.

    Raises
    ------
    ValueError
        For another kind or objective, and where the problem has what ``proofs/`` has no words for:
        resources that are no rank's, edges in a cycle, tasks beyond ``MOST_TASKS``.
    """
    if not isinstance(certificate, OneMachine) or certificate.objective != "makespan":
        kind = f"{type(certificate).__name__} of {certificate.objective}"
        raise ValueError(
            f"--coq writes certificates of one resource (OneMachine) of the makespan, got {kind}; "
            "other kinds have no theorem in proofs/ yet"
        )
    if len(problem.resources) != problem.num_ranks:
        raise ValueError("--coq writes problems whose resources are ranks; this one has links too")
    if problem.num_tasks > MOST_TASKS:
        raise ValueError(f"--coq writes at most {MOST_TASKS} tasks, got {problem.num_tasks}")
    if (paths := longest_paths(problem, "makespan", certificate.resource)) is None:
        raise ValueError("the problem's precedences have a cycle")
    heads, tails = paths
    task = problem.locate(schedule.program.actions)
    ends = schedule.start + problem.duration[task]
    first, last = int(schedule.start.min()), int(ends.max())
    own, everything = _own_edges(problem), edges_in_order(problem)
    resources = schedule.program.resource.tolist()
    starts = schedule.start.tolist()
    rows = zip(resources, map(_name, task.tolist()), starts, strict=True)
    return _TEXT.format(
        makespan=last - first,
        bound=certificate.bound,
        tasks=problem.num_tasks,
        own=len(own),
        free=len(everything) - len(own),
        table=";\n  ".join(_table(problem)),
        own_edges=";\n  ".join(_edge(edge) for edge in own),
        all_edges=";\n  ".join(_edge(edge) for edge in everything),
        rows=";\n  ".join(f"Row positive {place} {name} {start}" for place, name, start in rows),
        stores=";\n  ".join(_stores(problem)),
        resource=certificate.resource,
        crowd="; ".join(map(_name, certificate.tasks)),
        head=min(heads[each] for each in certificate.tasks),
        tail=min(tails[each] for each in certificate.tasks),
        first=first,
        last=last,
    )


def _table(problem: Problem) -> Iterable[str]:
    """Each task with its duration and its resources."""
    homes: list[list[int]] = [[] for _ in range(problem.num_tasks)]
    occupancy = problem.occupancy
    for task, place in zip(occupancy.task.tolist(), occupancy.resource.tolist(), strict=True):
        homes[task].append(place)
    for task, ticks in enumerate(problem.duration.tolist()):
        yield f"({_name(task)}, ({ticks}, [{'; '.join(map(str, homes[task]))}]))"


def _stores(problem: Problem) -> Iterable[str]:
    """Each store with its base load, its capacity and its events."""
    found: list[list[str]] = [[] for _ in problem.stores]
    events = problem.events
    rows = np.stack([events.task, events.at_end, events.store, events.delta], axis=1).tolist()
    for task, at_end, store, delta in rows:
        moment = "true" if at_end else "false"
        found[store].append(f"Event positive {_name(task)} {moment} ({delta})")
    for store, changes in zip(problem.stores, found, strict=True):
        most = "None" if store.capacity is None else f"(Some {store.capacity})"
        yield f"Store positive {store.base} {most} [{'; '.join(changes)}]"


def _own_edges(problem: Problem) -> list[tuple[int, int, int]]:
    edges = problem.edges
    rows = np.stack([edges.before, edges.after, edges.lag], axis=1).tolist()
    return [(before, after, lag) for before, after, lag in rows]


def edges_in_order(problem: Problem) -> list[tuple[int, int, int]]:
    """All edges that certificates use, each after those that lead to it."""
    edges = sure_edges(problem, index_order(problem))
    before, after, lag = edges.before.tolist(), edges.after.tolist(), edges.lag.tolist()
    place = {task: at for at, task in enumerate(in_order(problem.num_tasks, before, after))}
    return sorted(zip(before, after, lag, strict=True), key=lambda edge: place[edge[0]])


def _edge(edge: tuple[int, int, int]) -> str:
    before, after, lag = edge
    return f"({_name(before)}, {_name(after)}, {lag})"


def _name(task: int) -> str:
    """A task's positive number."""
    return f"{task + 1}%positive"
