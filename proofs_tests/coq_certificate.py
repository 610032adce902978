"""A certificate of one resource as a theorem of Coq.

    python -m proofs_tests.coq_certificate CERTIFICATE PROBLEM > Optimal.v

PROBLEM is a problem file without choices, CERTIFICATE what ``bubbleproof solve --certificate``
wrote about it. The text writes the problem out as a table of tasks and a list of edges; ``coqc``
accepts it where ``check_one_machine`` of ``proofs/OneMachine.v`` does, computed by Coq. The edges
are those of the problem and those of ``verify.certificates.index_order``, which are taken for
granted: that a bound on the schedules that keep them is one on all is a lemma in prose. They stand
in an order in which heads can be computed in one pass.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from bubbleproof.formats.certificate_json import read_certificate
from bubbleproof.formats.problem_toml import read_problem
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.pipelines.pipeline_problem import problem_of
from bubbleproof.verify.certificates.chains import in_order
from bubbleproof.verify.certificates.index_order import index_order, sure_edges
from bubbleproof.verify.certificates.one_machine import OneMachine, longest_paths

TEXT = """(* No schedule of this problem takes less than {bound} ticks. It has {tasks} tasks and
   {edges} edges, {free} of them from the order of identical microbatches and from
   memory (verify/certificates/index_order.py). *)

Require Import ZArith List.
From Bubbleproof Require Import Definitions OneMachine.
Import ListNotations.
Open Scope Z_scope.

Definition all_tasks : table := [
  {table}].

Definition all_edges : list (edge positive) := [
  {listed}].

Definition one_resource := Certificate {resource} [{crowd}] {head} {tail} {bound}.

Theorem no_schedule_is_faster : forall rows first last,
  valid positive (instance all_tasks all_edges) rows ->
  within positive (instance all_tasks all_edges) rows first last ->
  {bound} <= last - first.
Proof.
  apply (one_machine_sound all_tasks all_edges one_resource). vm_compute. reflexivity.
Qed.

Print Assumptions no_schedule_is_faster.
"""


def coq_text(problem: Problem, certificate: OneMachine) -> str:
    """The theorem that the certificate's bound is one, for Coq to judge.

    Raises ``ValueError`` where the certificate is of another objective, or the problem has what the
    definitions of ``proofs/`` do not: resources that are no rank's, or edges in a cycle.
    """
    if certificate.objective != "makespan" or len(problem.resources) != problem.num_ranks:
        raise ValueError("only a bound of the makespan is written for Coq, and on ranks alone")
    if (paths := longest_paths(problem, "makespan", certificate.resource)) is None:
        raise ValueError("the problem's precedences have a cycle")
    heads, tails = paths
    homes: list[list[int]] = [[] for _ in range(problem.num_tasks)]
    occupancy = problem.occupancy
    for task, place in zip(occupancy.task.tolist(), occupancy.resource.tolist(), strict=True):
        homes[task].append(place)
    ticks = enumerate(zip(problem.duration.tolist(), homes, strict=True))
    edges = edges_in_order(problem)
    return TEXT.format(
        bound=certificate.bound,
        tasks=problem.num_tasks,
        edges=len(edges),
        free=len(edges) - len(problem.edges.before),
        table=";\n  ".join(
            f"({name(task)}, ({duration}, [{joined(places)}]))"
            for task, (duration, places) in ticks
        ),
        listed=";\n  ".join(f"({name(a)}, {name(b)}, {lag})" for a, b, lag in edges),
        resource=certificate.resource,
        crowd="; ".join(map(name, certificate.tasks)),
        head=min(heads[task] for task in certificate.tasks),
        tail=min(tails[task] for task in certificate.tasks),
    )


def edges_in_order(problem: Problem) -> list[tuple[int, int, int]]:
    """All edges that certificates use, each after those that lead to it."""
    edges = sure_edges(problem, index_order(problem))
    before, after, lag = edges.before.tolist(), edges.after.tolist(), edges.lag.tolist()
    place = {task: at for at, task in enumerate(in_order(problem.num_tasks, before, after))}
    return sorted(zip(before, after, lag, strict=True), key=lambda edge: place[edge[0]])


def name(task: int) -> str:
    """A task's positive number."""
    return f"{task + 1}%positive"


def joined(numbers: Iterable[int]) -> str:
    return "; ".join(map(str, numbers))


def main(words: Sequence[str]) -> None:
    """Write the theorem on standard output."""
    if len(words) != 2:
        raise SystemExit("python -m proofs_tests.coq_certificate CERTIFICATE PROBLEM")
    problem = problem_of(read_problem(words[1]).pipeline)
    certificate = read_certificate(words[0], problem)
    if not isinstance(certificate, OneMachine):
        raise SystemExit("the certificate is not one of a single resource")
    sys.stdout.write(coq_text(problem, certificate))


if __name__ == "__main__":
    main(sys.argv[1:])
