"""The command that mutates the checker: what it kills, what lives, and what it refuses."""

from __future__ import annotations

import builtins
import re
import subprocess
import sys
from typing import Any

import pytest

from proofs_tests.mutate import __main__ as command
from proofs_tests.mutate.__main__ import drawn, page, trusted
from proofs_tests.mutate.mutants import NOTED, mutants, mutated, noting
from proofs_tests.mutate.trial import ALIVE, KILLED, LATE
from proofs_tests.own_process import ROOT

SOURCE = '''
class Box:
    """A box."""

    def fits(self, size: int) -> bool:
        """Whether it does; 7 is no number of the code."""
        if size < 3 and not self.closed:
            return True
        self.tried += 1
        return size == min(3, 4)
'''


def run(*words: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own."""
    line = [sys.executable, "-m", "proofs_tests.mutate", *words]
    return subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)


def test_every_small_change_of_a_body_is_a_mutant() -> None:
    assert sorted(m.text for m in mutants("box.py", SOURCE)) == sorted(
        [
            "if size < 3 and (not self.closed) -> if not (size < 3 and (not self.closed))",
            "size < 3 and (not self.closed) -> size < 3 or not self.closed",
            "size < 3 -> size <= 3",
            "3 -> 4",
            "not self.closed -> self.closed",
            "return True -> return None",
            "True -> False",
            "self.tried += 1 -> self.tried -= 1",
            "self.tried += 1 -> pass",
            "1 -> 2",
            "return size == min(3, 4) -> return None",
            "size == min(3, 4) -> size != min(3, 4)",
            "min(3, 4) -> max(3, 4)",
            "3 -> 4 (no. 2)",
            "4 -> 5",
        ]
    )


def test_what_is_only_asserted_has_no_mutants() -> None:
    source = """
def pairs(a, b):
    assert len(a) < 3, a
    return [*zip(a, b, strict=True)]
"""
    assert [m.text for m in mutants("pairs.py", source)] == [
        "return [*zip(a, b, strict=True)] -> return None"
    ]


def test_a_mutant_is_the_function_with_that_one_change() -> None:
    (mutant,) = (m for m in mutants("box.py", SOURCE) if m.text == "size < 3 -> size <= 3")
    space: dict[str, Any] = {}
    exec(SOURCE, space)  # the text above
    box = space["Box"]()
    box.closed, box.tried = False, 0
    assert not box.fits(3) or box.tried  # 3 is not below 3
    space["Box"].fits.__code__ = mutated(SOURCE, "box.py", mutant)
    assert box.fits(3) is True


def test_a_statement_notes_that_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    noted: set[tuple[str, int]] = set()
    monkeypatch.setattr(builtins, NOTED, noted, raising=False)
    space: dict[str, Any] = {}
    exec(SOURCE, space)
    box = space["Box"]()
    box.closed, box.tried = False, 0
    lines = {m.text: m.line for m in mutants("box.py", SOURCE)}
    condition, tried = lines["3 -> 4"], lines["1 -> 2"]
    assert (condition, lines["True -> False"], tried) == (7, 8, 9)  # of SOURCE
    code = noting(SOURCE, "box.py", "box.py", {condition, tried})["Box.fits"]
    space["Box"].fits.__code__ = code
    assert noted == set()
    assert box.fits(2) is True  # as before
    assert noted == {("box.py", condition)}
    assert box.fits(3) is True
    assert noted == {("box.py", condition), ("box.py", tried)}


def test_what_is_trusted_is_verify_and_what_it_imports() -> None:
    files = trusted()
    assert {
        "verify/check.py",
        "verify/spec.py",
        "theory/model/memory.py",
        "theory/model/problem.py",
    } <= {*files}
    assert not [name for name in files if name.startswith(("solvers", "theory/families"))]


def test_the_tests_to_be_tried_are_there() -> None:
    assert [name for name in command.TESTS if not (ROOT / name).exists()] == []


def test_a_stale_entry_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        command, "SAME", {("verify/explain/grid.py", "gone", "1 -> 2"): "it is gone"}
    )
    with pytest.raises(
        ValueError, match=r"no mutant any more: verify/explain/grid.py \| gone \| 1 -> 2"
    ):
        drawn(["verify/explain/grid.py"], 1, 1)


def test_every_entry_names_a_mutant_of_the_tree() -> None:
    assert drawn(trusted(), 5, 1)


def test_the_page_counts_those_that_mean_the_same_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other, third, fourth = mutants("box.py", SOURCE)[:4]
    monkeypatch.setattr(command, "SAME", {third.key: "a reason"})
    verdicts = {one: KILLED, other: LATE, third: ALIVE, fourth: ALIVE}
    text = page("words", verdicts, {7: [*verdicts]})
    # Three count, of which two are killed: 66.7 %.
    killed = "Of 4 mutants drawn at random, 2 are killed (1 of them by the time limit), "
    assert f"{killed}1 mean the same, 1 live: 66.7 % killed." in text
    assert f"`{third.text}`. a reason" in text
    assert "Seed" not in text
    both = page("words", verdicts, {7: [one, third], 8: [other, fourth]})
    assert f"{killed}1 mean the same, 1 live: 66.7 % killed." in both
    assert "- Seed 7. Of 2 mutants drawn at random, 1 are killed (0 of them" in both
    assert "1 mean the same, 0 live: 100.0 % killed." in both
    assert "0 mean the same, 1 live: 50.0 % killed." in both


def test_mutants_of_tested_code_are_killed() -> None:
    done = run(
        "--count",
        "6",
        "--seed",
        "2",
        "--files",
        "verify/claimed_numbers.py",
        "--tests",
        "proofs_tests/verify/test_check.py",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "6 are killed" in done.stdout


def test_a_mutant_that_no_test_calls_is_alive() -> None:
    done = run(
        "--count",
        "2",
        "--files",
        "theory/pipelines/replication.py",
        "--tests",
        "proofs_tests/verify/test_check.py",
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "not called: theory/pipelines/replication.py" in done.stdout
    assert "2 live: 0.0 % killed" in done.stdout


def test_the_page_kills_97_of_100() -> None:
    """The sample of ``mutants.md``: its table adds up to its sentence, and what lives is told."""
    text = (ROOT / "records" / "mutants.md").read_text("utf-8")
    row = r"^\| (?:verify|theory)/\S+" + r" \| (\d+)" * 4 + r" \|$"
    rows = re.findall(row, text, re.MULTILINE)
    killed, late, same, alive = (sum(map(int, column)) for column in zip(*rows, strict=True))
    said = f"Of {killed + late + same + alive} mutants drawn at random, {killed + late} are killed"
    assert said in text
    assert killed + late >= 0.97 * (killed + late + alive)
    assert killed + late >= 100
    told = text.partition("## Alive")[2].count("\n- ")
    assert told == alive
