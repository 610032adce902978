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
from bubbleproof.papers.theorems.theorem_library import theorems
from bubbleproof.theory.pipelines.pipeline_problem import problem_of
from bubbleproof.verify.spec import EventRow, plain_problem, plain_schedule
from proofs_tests.coq import FILES, NAMED, PROOFS, THEOREM, answer, needs_coq, text_of
from proofs_tests.sized import sized

PAGE = (PROOFS.parent / "docs" / "guide" / "formal.md").read_text("utf-8")
UNPROVED = re.compile(r"\b(Axiom|Axioms|Parameter|Parameters|Conjecture|Admitted|admit|give_up)\b")
COMMENT = re.compile(r"\(\*.*?\*\)", re.DOTALL)
CLOSED = "Closed under the global context"
LENGTH = "(Z.of_nat m + Z.of_nat p - 1) * (tF + tB)"
BUSY = "busy positive (ticks k) (crowd c) + least_tail c)."
MUTANTS = {
    "a bound raised by one": ("Pipeline.v", LENGTH, f"{LENGTH} + 1"),
    "no microbatches": ("Pipeline.v", "(1 <= m)%nat", "(0 <= m)%nat"),
    "no ranks": ("Pipeline.v", "(1 <= p)%nat", "(0 <= p)%nat"),
    "1F1B faster by one": ("OneF1B.v", LENGTH, f"{LENGTH} - 1"),
    "1F1B with one forward more ahead": ("OneF1B.v", "Nat.ltb j (p - i)", "Nat.ltb j (p - i + 1)"),
    "a forward of -1 ticks": ("OneF1B.v", "0 <= tF", "-1 <= tF"),
    "a backward of -1 ticks": ("OneF1B.v", "0 <= tB", "-1 <= tB"),
    "GPipe faster by one": ("GPipe.v", LENGTH, f"{LENGTH} - 1"),
    "a certificate's claim raised by one": ("OneMachine.v", BUSY, f"{BUSY[:-2]} + 1)."),
    "tasks counted twice": ("OneMachine.v", "distinct (crowd c) (Map.empty unit) &&", "true &&"),
    "an edge that is no task's": ("Instances.v", "if known k a && known k b", "if known k b"),
    "prices that prove one tick more": (
        "PricesSound.v",
        "least_makespan c <= last - first.",
        "least_makespan c < last - first.",
    ),
    "the least of a row a tick later": ("PriceTables.v", "(i <= j)%nat ->", "(i <= j + 1)%nat ->"),
    "a store's change paid a tick late": (
        "PriceTables.v",
        "later m i x = total m - total (firstn (Z.to_nat (x - i)) m)",
        "later m i x = total m - total (firstn (Z.to_nat (x - i + 1)) m)",
    ),
    "tasks of a class that differ": (
        "Groups.v",
        "ticks k t =? ticks k c",
        "ticks k t =? ticks k t",
    ),
    "an edge of one microbatch, not found in the next": ("Groups.v", "Nat.ltb (S j) n", "false"),
    "events of no task": ("InOrder.v", "well_stored (index_of l) stores &&", "true &&"),
    "more held within a life": (
        "Lifecycles.v",
        "kept_at_least f <= level j now.",
        "kept_at_least f < level j now.",
    ),
    "a memory edge a tick later": (
        "FreeEdges.v",
        "In (a, b, lag) (all_memory_edges stores lives) ->\n  s a + ticks k a + lag <= s b.",
        "In (a, b, lag) (all_memory_edges stores lives) ->\n  s a + ticks k a + lag < s b.",
    ),
    "one begun less than there is room for": (
        "OneStore.v",
        "Z.max 0 ((spare r + all_freed) / a)",
        "Z.max 0 ((spare r + all_freed) / a - 1)",
    ),
    "a release not looked at": (
        "OneStore.v",
        "then Z.max 0 (- at_finish r t) else 0",
        "then 0 else 0",
    ),
    "a moment passed a tick later": ("OneStore.v", "n + more <? begin", "n + more <? begin - 1"),
    "a store's claim raised by one": (
        "OneStore.v",
        "store_bound c <= last - first.\nProof.\n  intros counts l es stores c H s",
        "store_bound c < last - first.\nProof.\n  intros counts l es stores c H s",
    ),
    "ends in which all may be done": ("OneStore.v", "late <? work)", "late <? work + 1)"),
    "a rank's idle time raised by one": (
        "SpanIdle.v",
        "claim c <= span_idle ranks l (instance l es) rows.",
        "claim c < span_idle ranks l (instance l es) rows.",
    ),
    "a rank's work taken off twice": (
        "SpanIdle.v",
        "(Z.of_nat i) - work_of l (Z.of_nat i))",
        "(Z.of_nat i) - 2 * work_of l (Z.of_nat i))",
    ),
    "a rank that is none": ("SpanIdle.v", "(r <? ranks)", "(r <? ranks + 1)"),
    "a peak of tasks that take no time": (
        "OrderPeaks.v",
        "level most, (forall t, In t l -> 0 < d t) ->",
        "level most, (forall t, In t l -> 0 <= d t) ->",
    ),
    "a peak where ends acquire": (
        "OrderPeaks.v",
        "(forall t, In t l -> b t <= 0) -> in_turn s d from",
        "(forall t, In t l -> b t <= 1) -> in_turn s d from",
    ),
    "starts below 0": ("LeftShift.v", "(forall x, 0 <= s x) /\\", "(forall x, -1 <= s x) /\\"),
    "waits that are kept and a tick more": ("LeftShift.v", "s x + w <= s y.", "s x + w < s y."),
    "a volume raised by one": (
        "VolumeSound.v",
        "volume_bound c <= last - first.",
        "volume_bound c < last - first.",
    ),
    "one begun a tick late": ("VolumeSound.v", "now < a + n * d ->", "now <= a + n * d ->"),
    "more missing at the ends": (
        "Steps.v",
        "(Z.of_nat n * room - most * steps_to (Z.of_nat n)) <=",
        "(Z.of_nat n * room + 1 - most * steps_to (Z.of_nat n)) <=",
    ),
    "levels after the first not looked at": (
        "Volume.v",
        "highest (acquired f) (map change (stops f)).",
        "highest (acquired f) [].",
    ),
    "a use a tick longer": (
        "Volume.v",
        "Some (w + ticks k (pick j (finishes f)))",
        "Some (w + ticks k (pick j (finishes f)) + 1)",
    ),
    "a later start asked for": (
        "Definitions.v",
        "finish x + lag <=? start y",
        "finish x <? start y",
    ),
    "microbatches of different lengths": (
        "Exchange.v",
        "duration _ p (Member c i) = duration _ p (Member c j);",
        "duration _ p (Member c i) = duration _ p (Member c i);",
    ),
    "an edge of one microbatch alone": (
        "Exchange.v",
        "j = k /\\ forall i, (i < n)",
        "j = k /\\ forall i, (i < 0)",
    ),
    "an order asked for with a lag": (
        "Exchange.v",
        "(Member c j, Member c k, 0)",
        "(Member c j, Member c k, 1)",
    ),
    "a base load not looked at": ("Stores.v", "check_fits s (base s) &&", "true &&"),
    "a capacity not looked at": ("Stores.v", "Some c => n <=? c", "Some c => true"),
    "an order not looked at": ("AllRules.v", "(finish T p x <=? start _ y) &&", "true &&"),
    "turns that overlap": ("Packing.v", "s t + d t <= s u \\/", "s t <= s u \\/"),
    "a peak lowered by one": ("Peaks.v", "(Nat.min (p - i) m))", "(Nat.min (p - i) m) - 1)"),
    "the price of memory raised by one": (
        "MemoryBound.v",
        "(Z.of_nat p - Z.of_nat k)) * (tF + tB)\n    <= last - first.\nProof.\n  intros Hp",
        "(Z.of_nat p - Z.of_nat k)) * (tF + tB)\n    < last - first.\nProof.\n  intros Hp",
    ),
    "backwards in any order": ("MemoryBound.v", " /\\ s (B i a) <= s (B i b)) ->", ") ->"),
    "a pair that holds one less": ("BPipe.v", "Z.of_nat p + 2 <= 2", "Z.of_nat p + 3 <= 2"),
    "transfers that never count twice": (
        "BPipe.v",
        "on_evictor now j = true /\\ on_acceptor now j = true;",
        "on_evictor now j = true;",
    ),
    "ZB-H1 faster by one": (
        "ZBH1.v",
        "(3 * Z.of_nat m + Z.of_nat p - 1) * t",
        "(3 * Z.of_nat m + Z.of_nat p - 2) * t",
    ),
    "ZB-H1 with fewer microbatches": ("ZBH1.v", "(p <= m)%nat", "(p <= S m)%nat"),
    "an order that falls": ("Orders.v", "if k <=? fst y then", "if fst y <=? k then"),
    "a wait that is no fall": ("WaitGraph.v", "-> h f < h e) -> ends", "-> h f <= h e) -> ends"),
    "someone needed who is not there": (
        "WaitGraph.v",
        "Theorem no_cycle_ends : closed ->",
        "Theorem no_cycle_ends : True ->",
    ),
    "a message that ends with the first of its starts": (
        "Stricter.v",
        "Nat.max (h (Started T (Send T k)))",
        "Nat.min (h (Started T (Send T k)))",
    ),
    "messages that need not match": (
        "Stricter.v",
        "pair_stream_is_weaker : matched launch_order ->",
        "pair_stream_is_weaker : True ->",
    ),
    "inputs that come later": (
        "OneOrder.v",
        "precedes (Compute T u) (Compute T t).\nHyp",
        "precedes (Compute T t) (Compute T u).\nHyp",
    ),
    "tasks of no ticks": (
        "Lowered.v",
        "In t (tasks _ p) -> 1 <= duration _ p t.",
        "In t (tasks _ p) -> 0 <= duration _ p t.",
    ),
    "a rank that sends to itself": (
        "OneOrder.v",
        " /\\\n                    source T home k <> target T home k",
        "",
    ),
}
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
    asked = re.findall(r"^  (\w+)(?:,|\)\.)$", text.split("every_theorem := (")[1], re.MULTILINE)
    proved = [name for file in FILES for name in THEOREM.findall(text_of(file))]
    assert sorted(asked) == sorted(proved)


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
@pytest.mark.parametrize("what", sized(list(MUTANTS)[::3], full=list(MUTANTS)))
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


def section(title: str) -> str:
    """A section of the page, numbered or not, without its heading."""
    return re.split(rf"\n## (?:\d+\. )?{title}\n", PAGE)[1].split("\n## ")[0]


def test_the_page_names_what_there_is() -> None:
    known = {name for file in FILES for name in NAMED.findall(text_of(file))}
    named = set(re.findall(r"`(\w+)`", section("Proved in Coq")))
    assert named - known == set()
    proved = {name for file in FILES for name in THEOREM.findall(text_of(file))}
    assert proved - named == set()
    assert set(re.findall(r"`([\w-]+)`", section("Proved by Z3"))) == set(theorems())


def test_the_page_names_every_file() -> None:
    assert set(re.findall(r"`?(\w+\.v)`?", PAGE)) == {*FILES, "Optimal.v"}  # the user's own
