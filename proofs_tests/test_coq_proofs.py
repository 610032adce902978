"""The Coq proofs of ``proofs/`` are accepted, rest on no axiom, and say what Python does.

Statements that are false, since a bound is raised by one or a hypothesis dropped, are refused. The
problem and the schedules in closed form are compared with those of the package, and the page of the
guide names what there is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

import bubbleproof as bp
from bubbleproof.theory.pipelines.pipeline import problem_of
from bubbleproof.verify.spec import EventRow, plain_problem, plain_schedule
from proofs_tests.coq import FILES, NAMED, PROOFS, THEOREM, answer, asked, needs_coq, text_of
from proofs_tests.coq_mutants import MUTANTS
from proofs_tests.sized import sized

PAGE = (PROOFS / "README.md").read_text("utf-8")
UNPROVED = re.compile(r"\b(Axiom|Axioms|Parameter|Parameters|Conjecture|Admitted|admit|give_up)\b")
COMMENT = re.compile(r"\(\*.*?\*\)", re.DOTALL)
CLOSED = "Closed under the global context"
SIZES = [(1, 1, 3, 5), (3, 2, 1, 2), (2, 5, 4, 1), (4, 6, 2, 3)]


@pytest.fixture
def folder(coq_library: tuple[Path, dict[str, str]]) -> Path:
    return coq_library[0]


@pytest.fixture
def printed(coq_library: tuple[Path, dict[str, str]]) -> dict[str, str]:
    return coq_library[1]


@needs_coq
def test_no_theorem_rests_on_an_axiom(printed: dict[str, str]) -> None:
    text = text_of("Assumptions.v")
    assert re.findall(r"^Print Assumptions (\w+)\.$", text, re.MULTILINE) == ["every_theorem"]
    assert printed["Assumptions.v"] == f"{CLOSED}\n"
    proved = [name for file in FILES for name in THEOREM.findall(text_of(file))]
    assert sorted(asked()) == sorted(proved)


@needs_coq
def test_an_axiom_would_be_named(folder: Path, printed: dict[str, str]) -> None:
    assert printed
    text = "Axiom no : False. Theorem t : 0 = 1. Proof. destruct no. Qed. Print Assumptions t."
    done = answer(folder, "WithAxiom", text)
    assert done.returncode == 0
    assert CLOSED not in done.stdout


def test_no_file_leaves_a_proof_out() -> None:
    assert {path.name for path in PROOFS.glob("*.v")} == set(FILES)
    assert UNPROVED.search("Proof. Admitted.")
    for file in FILES:
        assert not UNPROVED.search(COMMENT.sub("", text_of(file))), file


@needs_coq
@pytest.mark.parametrize("what", sized(list(MUTANTS)[::8], full=list(MUTANTS)))
def test_a_false_statement_is_refused(folder: Path, printed: dict[str, str], what: str) -> None:
    file, true, false = MUTANTS[what]
    assert file in printed
    text = text_of(file)
    assert true in text
    done = answer(folder, "Mutant", text.replace(true, false))
    assert done.returncode == 1
    assert "Syntax error" not in done.stderr
    assert "not found" not in done.stderr


def rows(listed: Iterable[EventRow]) -> str:
    """The rows as a list of Coq's."""
    return f"[{'; '.join(f'Row _ {rank} ({term(task)}) {start}' for rank, task, start in listed)}]"


def term(task: str) -> str:
    """A task such as 2F0 as Coq has it, F 2 0."""
    return re.sub(r"^(\d+)([FB])(\d+)$", r"\2 \1 \3", task)


HEADER = """Require Import ZArith List Bool.
From Bubbleproof Require Import Definitions Pipeline OneF1B GPipe.
Import ListNotations.
Open Scope Z_scope.
Definition same_edge (e f : edge action) : bool :=
  let '(a, b, n) := e in let '(c, d, k) := f in
  same_task _ same_action a c && same_task _ same_action b d && (n =? k).
Definition same_row (x y : row action) : bool :=
  (place _ x =? place _ y) && (start _ x =? start _ y) &&
  same_task _ same_action (task _ x) (task _ y).
Definition all_in {A} (same : A -> A -> bool) l k := forallb (fun x => existsb (same x) k) l.
Definition alike {A} (same : A -> A -> bool) l k := all_in same l k && all_in same k l.
"""


@needs_coq
@pytest.mark.parametrize("name", ["1f1b", "gpipe"])
def test_the_package_has_the_same_problem_and_starts(
    folder: Path, printed: dict[str, str], name: str
) -> None:
    """Edges both ways, starts in closed form, and what the checker says of a right schedule.

    With the last of its rows a tick earlier it is wrong: that ends the schedule, so something on
    its rank, or what it waits for, ends where it started.
    """
    assert printed
    text = HEADER
    for p, m, forward, backward in SIZES:
        pipe = bp.Pipeline(num_ranks=p, num_microbatches=m, forward=forward, backward=backward)
        problem = plain_problem(problem_of(pipe))
        listed = plain_schedule(bp.family(name).schedule(pipe)).rows
        last = max(listed, key=lambda row: row[2])
        early = [(r, t, s - 1 if t == last[1] else s) for r, t, s in listed]
        edges = "; ".join(f"({term(a)}, {term(b)}, {lag})" for a, b, lag in problem.edges)
        tasks = "; ".join(term(task) for _, task, _ in listed)
        ticks = "; ".join(str(problem.duration[task]) for _, task, _ in listed)
        size = f"{p} {m} {forward} {backward}"
        given = f"(pipeline {size})"
        for claim in (
            f"alike same_edge [{edges}] (edges _ {given}) = true",
            f"map (duration _ {given}) [{tasks}] = [{ticks}]",
            f"alike same_row {rows(listed)} (schedule_{name} {size}) = true",
            f"alike same_row {rows(early)} (schedule_{name} {size}) = false",
            f"check _ same_action {given} {rows(listed)} = true",
            f"check _ same_action {given} {rows(early)} = false",
        ):
            text += f"Goal {claim}. Proof. vm_compute. reflexivity. Qed.\n"
    done = answer(folder, "Agreement", text)
    assert done.returncode == 0, done.stderr


TWO_MICROBATCHES = """Require Import ZArith List Lia.
From Bubbleproof Require Import Definitions Exchange.
Import ListNotations.
Open Scope Z_scope.
Notation F j := (Member bool unit false j).
Notation B j := (Member bool unit true j).
Notation step := (Other bool unit tt).
Definition small := Problem (one bool unit) [F 0%nat; F 1%nat; B 0%nat; B 1%nat; step]
  (fun t => match t with Other _ _ _ => 1 | Member _ _ b _ => if b then 3 else 2 end) (fun _ => [0])
  [(F 0%nat, B 0%nat, 0); (F 1%nat, B 1%nat, 0); (B 0%nat, step, 0); (B 1%nat, step, 0)].
Goal interchangeable bool unit small 2.
Proof.
  constructor; cbn.
  - intros c j H. destruct H as [H|[H|[H|[H|[H|[]]]]]]; try discriminate; injection H; intros;
      subst; (split; [lia|]); intros [|[|?]] ?; try lia; auto 9.
  - reflexivity.
  - reflexivity.
  - intros c j c' k lag H. destruct H as [H|[H|[H|[H|[]]]]]; try discriminate; injection H; intros;
      subst; (split; [reflexivity|]); intros [|[|?]] ?; try lia; auto 9.
  - intros c j o lag H. destruct H as [H|[H|[H|[H|[]]]]]; try discriminate; injection H; intros;
      subst; match goal with L : (?k < 2)%nat |- _ => destruct k as [|[|?]] end; try lia; auto 9.
  - intros c j o lag H. destruct H as [H|[H|[H|[H|[]]]]]; discriminate.
Qed.
Definition turned (t : one bool unit) : Z := match t with
  | Other _ _ _ => 10
  | Member _ _ b j => (if b then 4 else 0) + nth j (if b then [3; 0] else [2; 0]) 0
  end.
Goal map (exchanged bool unit 2 turned) (tasks _ small) = [0; 2; 4; 7; 10].
Proof. vm_compute. reflexivity. Qed.
"""


@needs_coq
def test_the_hypotheses_of_the_exchange_can_hold(folder: Path, printed: dict[str, str]) -> None:
    """Two microbatches in turned order, and a step that waits for both: sorted by hand."""
    assert printed
    done = answer(folder, "Exchanged", TWO_MICROBATCHES)
    assert done.returncode == 0, done.stderr
    wrong = TWO_MICROBATCHES.replace("(F 1%nat, B 1%nat, 0)", "(F 1%nat, B 1%nat, 1)")
    refused = answer(folder, "Unlike", wrong)
    assert refused.returncode == 1
    assert "Syntax error" not in refused.stderr


def listed_in_coq(pairs: Iterable[tuple[int, int]]) -> str:
    """A function from stages to ticks; 0 where none is listed."""
    cases = " ".join(f"| {stage}%nat => {ticks}" for stage, ticks in pairs)
    return f"(fun i : nat => match i with {cases} | _ => 0 end)"


UNEVEN = [  # forwards and backwards by stage, microbatches, ticks of a link
    ((2, 1, 3), (4, 1, 2), 2, 5),
    ((1, 3), (2, 7), 3, 0),
    ((4,), (9,), 2, 3),
    ((1, 0, 2, 5), (3, 2, 0, 1), 1, 2),
]


@needs_coq
def test_the_package_has_the_same_stages_and_links(folder: Path, printed: dict[str, str]) -> None:
    """``stages`` of StageStarts.v, and what rank 0 holds at each tick, by the package's events.

    A link a tick longer is another problem.
    """
    assert printed
    text = HEADER.replace("GPipe.", "GPipe StageStarts.")
    for forward, backward, m, latency in UNEVEN:
        p = len(forward)
        pipe = bp.Pipeline(
            num_ranks=p, num_microbatches=m, forward=forward, backward=backward, latency=latency
        )
        problem = plain_problem(problem_of(pipe))
        listed = plain_schedule(bp.family("1f1b").schedule(pipe)).rows
        edges = "; ".join(f"({term(a)}, {term(b)}, {lag})" for a, b, lag in problem.edges)
        ticks = "; ".join(str(problem.duration[task]) for _, task, _ in listed)
        links = listed_in_coq((rank, latency) for rank in range(p - 1))
        times = " ".join(listed_in_coq(enumerate(each)) for each in (forward, backward))
        given = f"(stages {p} {m} {times} {links} {links})"
        longer = f"(stages {p} {m} {times} {links} (fun i => {links} i + 1))"
        start = {task: tick for _, task, tick in listed}
        ends = range(max(tick + problem.duration[task] for task, tick in start.items()) + 1)
        held = [
            sum(
                change
                for task, at_end, rank, change in problem.events
                if rank == 0 and start[task] + at_end * problem.duration[task] <= now
            )
            for now in ends
        ]
        claims = [
            f"alike same_edge [{edges}] (edges _ {given}) = true",
            f"map (duration _ {given}) [{'; '.join(term(t) for _, t, _ in listed)}] = [{ticks}]",
            f"check _ same_action {given} {rows(listed)} = true",
            f"map (fun now => held_in {given} {m} {rows(listed)} 0 now)"
            f" [{'; '.join(map(str, ends))}] = [{'; '.join(map(str, held))}]",
        ]
        if p > 1:
            claims.append(f"alike same_edge [{edges}] (edges _ {longer}) = false")
        for claim in claims:
            text += f"Goal {claim}. Proof. vm_compute. reflexivity. Qed.\n"
    done = answer(folder, "Uneven", text)
    assert done.returncode == 0, done.stderr


def section(title: str) -> str:
    """A section of the page, without its heading."""
    return re.split(rf"\n## {title}\n", PAGE)[1].split("\n## ")[0]


def test_the_page_names_what_there_is() -> None:
    known = {name for file in FILES for name in NAMED.findall(text_of(file))}
    named = set(re.findall(r"`(\w+)`", section("Proved in Coq")))
    assert named - known == set()
    proved = {name for file in FILES for name in THEOREM.findall(text_of(file))}
    assert proved - named == set()


def test_the_page_names_every_file() -> None:
    users = {"Optimal.v", "Plan.v"}  # which ``verify --coq`` writes
    assert set(re.findall(r"`?(\w+\.v)`?", PAGE)) - users == set(FILES)


def test_the_page_repeats_statements_as_they_stand() -> None:
    """Each statement of a block of Coq on the page is a text of the files, spaces aside."""
    known = " ".join(" ".join(text_of(file) for file in FILES).split())
    blocks = re.findall(r"```coq\n(.*?)```", PAGE, re.DOTALL)
    stated = [statement for block in blocks for statement in block.strip().split("\n\n")]
    assert {"stages_bound", "frontier", "bpipe_is_best"} <= set(THEOREM.findall("\n".join(stated)))
    for statement in stated:
        assert " ".join(statement.split()) in known, statement
