"""``verify PLAN --certificate C --coq FILE.v``: a plan, optimal over its choices, as a theorem.

What ``verify`` refuses of a bundle Coq refuses too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from proofs_tests.commands.conftest import Run
from proofs_tests.coq import answer, needs_coq
from proofs_tests.sized import sized

# Of one chunk and of two, 4 candidates each; three chunks do not divide the ticks of rank 1.
TOML = """
ranks = 2
microbatches = 3
[durations]
forward = [6, 4]
input = [6, 8]
weight = [6, 4]
[memory]
capacity = 8
activation = 6
[plan]
chunks = [1, 2, 3]
placements = ["loop", "wave"]
backward = ["whole", "split"]
"""
OPEN = """
[choices.recompute]
stages = [0]
"""


@pytest.fixture
def planned(tmp_path: Path, command: Run) -> Path:
    """A problem file, its plan in ``plan`` and the proofs of all candidates."""
    (tmp_path / "p.toml").write_text(TOML)
    made = ("-o", tmp_path / "plan", "--certificate", tmp_path / "c.json")
    assert command("plan", tmp_path / "p.toml", *made).status == 0
    return tmp_path


def written(folder: Path, command: Run) -> str:
    """The theorem of the plan."""
    more = ("--certificate", folder / "c.json", "--coq", folder / "Plan.v")
    found = command("verify", folder / "plan", *more)
    assert found.status == 0, found.err
    return (folder / "Plan.v").read_text()


def entries(text: str) -> list[str]:
    """The bounds of the candidates in a theorem."""
    bundle = text.partition("Definition bundle")[2].partition("Theorem")[0]
    return re.findall(r"Plans\.Bounded .*?(?=;\n  Plans\.Bounded|\]\.\n)", bundle, re.DOTALL)


@needs_coq
def test_coq_accepts_a_plan_as_optimal_over_its_choices_and_no_more(
    planned: Path, command: Run, coq_library: tuple[Path, dict[str, str]]
) -> None:
    text, folder = written(planned, command), coq_library[0]
    done = answer(folder, "Plan", text)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Closed under the global context") == 1
    stated = re.search(r"every_candidate_takes space bundle (\d+)\.", text)
    assert stated is not None
    least = int(stated[1])
    assert f"The makespan of the plan is {least}, and of no schedule" in text
    listed = entries(text)
    assert len(listed) == 8
    wrong = {
        "raised": text.replace(stated[0], stated[0].replace(stated[1], str(least + 1))),
        "missing": text.replace(f"{listed[0]};\n  ", ""),
        "more tried": text.replace("Given.Wave]", "Given.Wave; Given.Listed [1; 0]%nat]"),
        "another winner": text.replace("winner := Plans.Candidate ", "winner := Plans.Candidate 3"),
        "another number": text.replace("forward := [[6]; [4]]", "forward := [[6]; [6]]", 1),
        "of another candidate": text.replace(listed[1], listed[1].replace(*_swapped(listed))),
    }  # fmt: skip
    for what in sized(["raised", "missing"], full=list(wrong)):
        other = wrong[what]
        assert other != text, what
        refused = answer(folder, "Wrong", other)
        assert refused.returncode, what
        assert "Syntax error" not in refused.stderr, what


def _swapped(listed: list[str]) -> tuple[str, str]:
    """The proof of the second entry, and that of the last."""
    second, last = (one.partition("(Plans.By_")[2] for one in (listed[1], listed[-1]))
    return second, last


def _raise(bundle: Any) -> None:
    least = min(bundle["candidates"], key=lambda one: one["bound"])
    least["bound"] += 1


def _drop(bundle: Any) -> None:
    bundle["candidates"].pop()


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (_drop, "the bundle has no bound of"),
        (_raise, "the certificate is not about a makespan of"),
    ],
    ids=("missing", "raised"),
)
def test_what_verify_refuses_is_written_as_no_theorem(
    planned: Path, command: Run, damage: Callable[[Any], None], said: str
) -> None:
    bundle = json.loads((planned / "c.json").read_text())
    damage(bundle)
    (planned / "c.json").write_text(json.dumps(bundle))
    alone = command("verify", planned / "plan", "--certificate", planned / "c.json")
    assert alone.status == 1
    assert said in alone.out
    more = ("--certificate", planned / "c.json", "--coq", planned / "x.v")
    found = command("verify", planned / "plan", *more)
    assert found.status == 2
    assert "--coq writes what holds; the plan or its proofs do not" in found.err
    assert found.err.count("\n") == 1
    assert not (planned / "x.v").exists()


def test_the_proofs_of_another_plan_are_refused(planned: Path, command: Run) -> None:
    longer = planned / "longer"
    longer.mkdir()
    (longer / "p.toml").write_text(TOML.replace("forward = [6, 4]", "forward = [12, 8]"))
    made = ("-o", longer / "plan", "--certificate", longer / "c.json")
    assert command("plan", longer / "p.toml", *made).status == 0
    more = ("--certificate", longer / "c.json", "--coq", planned / "x.v")
    found = command("verify", planned / "plan", *more)
    assert found.status == 2
    assert found.err.count("\n") == 1
    assert not (planned / "x.v").exists()


@pytest.mark.parametrize(
    ("toml", "said"),
    [
        (TOML.replace('["loop", "wave"]', '["bidirectional"]'), "placement bidirectional"),
        (TOML.replace("weight = [6, 4]", "weight_parts = [[2, 4], [2, 2]]"), "weight_parts"),
    ],
    ids=("bidirectional", "parts"),
)
def test_a_space_that_coq_does_not_know_is_refused_in_one_line(
    tmp_path: Path, command: Run, toml: str, said: str
) -> None:
    (tmp_path / "p.toml").write_text(toml)
    made = ("-o", tmp_path / "plan", "--certificate", tmp_path / "c.json")
    assert command("plan", tmp_path / "p.toml", *made).status == 0
    more = ("--certificate", tmp_path / "c.json", "--coq", tmp_path / "x.v")
    found = command("verify", tmp_path / "plan", *more)
    assert found.status == 2
    assert f"--coq does not know {said}" in found.err
    assert found.err.count("\n") == 1


def test_without_proofs_there_is_no_theorem(planned: Path, command: Run) -> None:
    found = command("verify", planned / "plan", "--coq", planned / "x.v")
    assert found.status == 2
    assert "--coq writes a plan with its candidates' proofs: give --certificate too" in found.err


@needs_coq
def test_what_is_open_in_a_candidate_is_in_the_theorem(
    tmp_path: Path, command: Run, coq_library: tuple[Path, dict[str, str]]
) -> None:
    small = TOML.replace("[1, 2, 3]", "[1]").replace('["whole", "split"]', '["whole"]')
    (tmp_path / "p.toml").write_text(small.replace("capacity = 8", "capacity = 12") + OPEN)
    made = ("-o", tmp_path / "plan", "--certificate", tmp_path / "c.json")
    assert command("plan", tmp_path / "p.toml", *made).status == 0
    text = written(tmp_path, command)
    assert "Question 0 [Way" in text
    done = answer(coq_library[0], "Plan", text)
    assert done.returncode == 0, done.stderr
