"""``verify --certificate C --coq FILE.v``: what it writes, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

import bubbleproof as bp
from bubbleproof.formats import ScheduleFile
from bubbleproof.formats.certificate_json import read_certificate
from bubbleproof.formats.coq.choices_theorem import choices_theorem
from bubbleproof.formats.coq.coq_theorem import coq_theorem
from bubbleproof.formats.plans.cases_json import read_proof
from bubbleproof.verify.candidates.chosen import plain_of
from proofs_tests.commands.conftest import Run
from proofs_tests.commands.test_certificates import OPEN
from proofs_tests.patience import PATIENCE
from proofs_tests.test_coq_theorem import TOML

PARTS = """
ranks = 2
microbatches = 2
split_backward = true
[durations]
forward = 2
input = 2
weight_parts = [1, 2]
"""


@pytest.fixture
def folder(tmp_path: Path, command: Run) -> Path:
    """A problem, its best schedule and a certificate."""
    (tmp_path / "small.toml").write_text(TOML)
    made = ("-o", tmp_path / "s.json", "--certificate", tmp_path / "c.json")
    assert command("solve", tmp_path / "small.toml", *made).status == 0
    return tmp_path


def test_it_writes_the_theorem_of_the_schedule_and_its_certificate(
    folder: Path, command: Run
) -> None:
    more = ("--certificate", folder / "c.json", "--coq", folder / "Optimal.v")
    answer = command("verify", folder / "s.json", *more)
    assert answer.status == 0, answer.err
    given = bp.read(folder / "s.json")
    assert isinstance(given, ScheduleFile)
    proof = read_certificate(folder / "c.json", given.problem)
    written = (folder / "Optimal.v").read_text()
    assert written == coq_theorem(given.problem, given.timed(), proof, given.pipeline)
    assert "Given.forward := [[3]; [9]; [2]]" in written


def test_of_open_choices_it_writes_a_theorem_about_all_of_them(
    tmp_path: Path, command: Run
) -> None:
    problem, schedule, path, target = (tmp_path / name for name in ("p.toml", "s", "c", "x.v"))
    schedule, path = schedule.with_suffix(".json"), path.with_suffix(".json")
    problem.write_text(OPEN)
    words = ("solve", problem, "-o", schedule, "--certificate", path, "--certified")
    assert command(*words, "--time-limit", PATIENCE).status == 0
    assert command("verify", schedule, "--certificate", path, "--coq", target).status == 0
    given = bp.read(schedule)
    assert isinstance(given, ScheduleFile)
    assert given.pipeline is not None
    assert given.allowed is not None
    plain = plain_of(given.pipeline)
    proof = read_proof(path, plain, given.allowed)
    written = choices_theorem(given.problem, given.timed(), plain, given.allowed, proof)
    assert target.read_text() == written


def test_without_a_certificate_there_is_no_theorem(tmp_path: Path, command: Run) -> None:
    answer = command("verify", "1f1b", "p=2", "m=2", "--coq", tmp_path / "x.v")
    assert answer.status == 2
    assert "--coq writes a schedule with its certificate: give --certificate too" in answer.err
    assert not (tmp_path / "x.v").exists()


def test_a_schedule_that_breaks_a_rule_is_no_theorem(folder: Path, command: Run) -> None:
    # GPipe keeps six activations where three have room.
    more = ("--problem", folder / "small.toml", "--certificate", folder / "c.json")
    answer = command("verify", "gpipe", "p=3", "m=6", *more, "--coq", folder / "x.v")
    assert answer.status == 2
    assert "--coq writes what holds; gpipe p=3 m=6 violates a rule" in answer.err
    assert not (folder / "x.v").exists()


def test_a_choice_that_coq_does_not_know_is_refused_in_one_line(
    tmp_path: Path, command: Run
) -> None:
    problem, schedule, proof = (tmp_path / name for name in ("p.toml", "s.json", "c.json"))
    problem.write_text(PARTS)
    assert command("solve", problem, "-o", schedule, "--certificate", proof).status == 0
    answer = command("verify", schedule, "--certificate", proof, "--coq", tmp_path / "x.v")
    assert answer.status == 2
    assert "--coq does not know weight_parts" in answer.err
    assert answer.err.count("\n") == 1
    assert not (tmp_path / "x.v").exists()
