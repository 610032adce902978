"""What verdicts say: the lines of their text, pictures without times, and what is not decided."""

from __future__ import annotations

from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify import check_program, check_whole
from bubbleproof.verify.finding import Rule
from bubbleproof.verify.verdict import RuleDecision, Verdict, Violation, join
from proofs_tests.verify.test_check import ORDERS, PIPELINE, STARTS, schedule

PROBLEM = PIPELINE.problem()


def test_every_rule_has_a_line() -> None:
    violation = Violation(rule=Rule.MEMORY, tasks=(), at=None, message="too much", picture="here")
    verdict = Verdict(
        decisions=(
            RuleDecision(rule=Rule.COMPLETE, count=0, violations=()),
            RuleDecision(rule=Rule.MEMORY, count=2, violations=(violation,)),
            RuleDecision(rule=Rule.COMMUNICATION, count=0, violations=(), detail="buffered"),
        ),
        undecided=((Rule.CLAIMS, "no times"),),
        inapplicable=((Rule.DATAFLOW, "no step"),),
    )
    # Names are 28 letters wide, states 12.
    assert str(verdict).split("\n") == [
        "complete" + " " * 21 + "holds        every required task exactly once, nothing foreign",
        "memory" + " " * 23 + "VIOLATED 2x  no store exceeds its capacity",
        "communication (buffered)" + " " * 5 + "holds        sends and receives match; no deadlock",
        "claims" + " " * 23 + "undecided    no times",
        "dataflow" + " " * 21 + "inapplicable no step",
        "",
        "too much",
        "here",
    ]
    assert repr(verdict) == "<Verdict: violated, memory 2x>"
    assert not verdict.ok
    assert verdict.broken == (Rule.MEMORY,)


def test_a_verdict_holds_when_all_is_decided() -> None:
    good = check_whole(PROBLEM, schedule(ORDERS, STARTS))
    assert good.ok
    assert repr(good) == "<Verdict: holds, makespan 9>"  # 0B1 ends at 9
    half = join([good, Verdict(decisions=(), undecided=((Rule.CLAIMS, "no times"),))])
    assert not half.ok
    assert half.broken == ()
    assert repr(half) == "<Verdict: undecided, makespan 9>"


def test_what_has_no_times_is_drawn_in_steps() -> None:
    waiting = Program.from_orders([["0F0", "0B0", "0F1", "0B1"], ["1F1", "1B1", "1F0", "1B0"]])
    verdict, made = check_program(PROBLEM, waiting)
    assert made is None
    (violation,) = verdict.violations
    # 0F1 waits for 0B0, that for 1B0, that for 1F0, that for 1B1, 1F1 and 0F1.
    assert violation.picture.split("\n")[0].startswith("  rank 0  0F0  [0B0]  [0F1]  0B1")
    assert "ticks" not in violation.picture


def test_what_has_no_times_leaves_messages_undecided_and_still_has_a_verdict() -> None:
    waiting = Program.from_orders([["0F0", "0B0", "0F1", "0B1"], ["1F1", "1B1", "1F0", "1B0"]])
    verdict = check_whole(PROBLEM, waiting)
    assert (Rule.COMMUNICATION, "the program cannot be lowered: it has no times") in (
        verdict.undecided
    )
    assert {Rule.DEPENDENCIES, Rule.DATAFLOW} == {*verdict.broken}


def test_a_missing_task_is_shown_beside_its_nearest_sibling() -> None:
    pipeline = Pipeline(num_ranks=1, num_microbatches=4)
    orders = [["0F0", "0F1", "0F2", "0F3", "0B0", "0B1", "0B2"]]
    verdict, _ = check_program(pipeline.problem(), Program.from_orders(orders))
    picture = next(v.picture for v in verdict.violations if v.rule is Rule.COMPLETE)
    assert "0B1  [0B2]" in picture  # 0B3 is missing
    assert picture.endswith("(marked: its nearest sibling)")
