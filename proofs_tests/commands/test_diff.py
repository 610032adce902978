"""``diff``: two schedules side by side, for people and for programs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import bubbleproof as bp
from proofs_tests.commands.conftest import Run


def test_gpipe_and_1f1b_differ_in_order_and_memory(command: Run) -> None:
    answer = command("diff", "gpipe p=2 m=3", "1f1b p=2 m=3", "--json")
    found = json.loads(answer.out)
    assert answer.status == 1
    assert (found["a"], found["b"], found["same"]) == ("gpipe p=2 m=3", "1f1b p=2 m=3", False)
    # Both take (m + p - 1)(tF + tB) = 12 ticks; GPipe holds m microbatches, 1F1B p - r.
    assert found["measures"]["makespan"] == {"a": 12, "b": 12}
    assert found["measures"]["peak_activations"] == {"a": [3, 3], "b": [2, 1]}
    assert found["broken"] == {"a": [], "b": []}
    sums = {side: sum(row[side] or 0 for row in found["causes"].values()) for side in "ab"}
    assert sums == {"a": 6, "b": 6}  # 2 ranks times 12 ticks less 18 of work
    # Rank 0: FFFBBB to FFBFBB, one out of order; rank 1: FFFBBB to FBFBFB: of F1 B0, F2 B0, F2 B1
    # two actions cover all pairs that changed.
    assert len(found["moved"]) == 3
    assert {row["resource"] for row in found["moved"]} == {"rank 0", "rank 1"}


def test_the_same_schedule_is_status_0(command: Run, tmp_path: Path) -> None:
    bp.write(tmp_path / "s.json", bp.family("1f1b")(p=2, m=3))
    answer = command("diff", "1f1b p=2 m=3", str(tmp_path / "s.json"))
    assert answer.status == 0
    assert ": 12 actions in the same order at the same ticks\n" in answer.out
    assert answer.out.startswith("SAME  1f1b p=2 m=3 and ")


def test_people_read_what_changed(command: Run) -> None:
    told = command("diff", "1f1b p=2 m=4", "zb-h1 p=2 m=4", "-v").out
    assert "only in zb-h1 p=2 m=4: 0I0" in told
    assert "every rule holds" in told


def test_the_first_line_says_which_is_shorter(command: Run) -> None:
    # 1F1B: (8 + 3) * 3 ticks; ZB-H1: 8 * 3 and p - 1 = 3 of its bubble.
    answer = command("diff", "1f1b p=4 m=8", "zb-h1 p=4 m=8")
    first, *more = answer.out.splitlines()
    assert first == "zb-h1 p=4 m=8 takes 27 ticks, 18.2 % less than 33 ticks of 1f1b p=4 m=8"
    assert len(more) < 10
    assert command("diff", "1f1b p=4 m=8", "zb-h1 p=4 m=8", "-q").out.splitlines() == [first]
    other = command("diff", "zb-h1 p=4 m=8", "1f1b p=4 m=8").out
    assert other.startswith("1f1b p=4 m=8 takes 33 ticks, 22.2 % more than 27 ticks of zb-h1")


def test_a_broken_schedule_is_told_apart(command: Run, tmp_path: Path) -> None:
    member = bp.family("1f1b")(p=1, m=2)
    early = replace(member.schedule, start=member.schedule.start // 2)
    bp.write(tmp_path / "s.json", member.problem, early)
    answer = command("diff", "1f1b p=1 m=2", str(tmp_path / "s.json"), "--json")
    found = json.loads(answer.out)
    assert answer.status == 1
    assert found["broken"]["a"] == []
    assert {"exclusive", "dependencies"} <= set(found["broken"]["b"])


def test_a_word_that_names_nothing_is_refused(command: Run) -> None:
    answer = command("diff", "1f1b p=2 m=3", "")
    assert answer.status == 2
    assert "expected a schedule" in answer.err
