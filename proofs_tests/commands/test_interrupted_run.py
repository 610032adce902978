"""Ctrl-C in the midst of `run` and `replay`: what was found is told, and nothing is begun anew."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from proofs_tests.commands.test_interruptions import PROBLEM, answer, interrupting
from proofs_tests.own_process import run_alone
from proofs_tests.patience import PATIENCE
from proofs_tests.reference_exec.processes import HAS_PROC, descendants, outlive

ROOT = Path(__file__).resolve().parents[2]


def of_run() -> tuple[int, dict[str, object]]:
    """The status of ``run`` on a small problem, and the rows of its replay."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "small.toml"
        path.write_text(PROBLEM)
        status, out = answer("run", str(path), "-o", f"{folder}/out", "--json")
        assert (Path(folder) / "out" / "schedule.json").exists()
    found = json.loads(out)
    assert found["value"] == 24  # see test_interruptions
    (row,) = found["replay"]
    return status, row


def in_two_places() -> None:
    from bubbleproof.commands import run_outcome
    from bubbleproof.commands.replaying.replay import replay_given
    from bubbleproof.solvers.search import Search

    not_run = ("not run", "interrupted")
    vars(run_outcome)["replay_given"] = interrupting(replay_given, 1)
    status, row = of_run()
    assert (status, row["verdict"], row["measured"]) == (130, *not_run)

    replays: list[object] = []
    vars(run_outcome)["replay_given"] = lambda *given, **_: replays.append(given)
    wrapped = interrupting(Search._certify_claim, 1)
    setattr(Search, "_certify_claim", wrapped)  # noqa: B010 - mypy takes no assignment to a method
    status, row = of_run()
    assert (status, row["verdict"], row["measured"]) == (130, *not_run)
    assert replays == []


def test_run_tells_what_it_found_and_replays_no_more() -> None:
    run_alone(in_two_places)


def at_the_picture_and_the_verdict() -> None:
    """A Ctrl-C in the picture, also one that compiled code lets out as an error of its own."""
    from bubbleproof.commands import run, run_outcome
    from bubbleproof.commands.replaying.replay import replay_given
    from bubbleproof.report.gantt import draw

    def broken(*_: object, **__: object) -> None:
        try:
            os.kill(os.getpid(), signal.SIGINT)
        except KeyboardInterrupt:
            raise ValueError("Invalid affine transformation matrix") from None

    vars(run_outcome)["replay_given"] = lambda *_, **__: None  # no torch is needed for this
    for drawing in (interrupting(draw, 1), broken):
        vars(run_outcome)["draw"] = drawing
        status, row = of_run()
        assert (status, row["verdict"]) == (130, "not run")
    vars(run_outcome)["draw"], vars(run_outcome)["replay_given"] = draw, replay_given
    vars(run)["check_every_rule"] = interrupting(vars(run)["check_every_rule"], 1)
    status, row = of_run()
    assert (status, row["verdict"], row["measured"]) == (130, "not run", "interrupted")


def test_run_tells_what_it_found_where_the_picture_is_interrupted() -> None:
    run_alone(at_the_picture_and_the_verdict)


_WORDS = ("replay", "1f1b", "p=2", "m=2000")  # many seconds of work


@pytest.mark.torch
@pytest.mark.skipif(not HAS_PROC, reason="needs /proc to know which processes there are")
def test_a_replay_ends_with_all_its_processes_and_one_line() -> None:
    # rank 1 of the gloo driver stands ready when its line is printed: all processes are there
    caller = subprocess.Popen(
        [sys.executable, "-m", "bubbleproof", *_WORDS, "--backend", "gloo"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert caller.stderr is not None
    heard = caller.stderr.readline() + caller.stderr.readline()
    family = descendants(caller.pid)
    os.killpg(caller.pid, signal.SIGINT)  # as a terminal does: the ranks get it too
    output, errors = caller.communicate(timeout=PATIENCE)
    assert sorted(heard.splitlines()) == ["rank 0: ready", "rank 1: ready"]
    assert len(family) >= 4  # the command, its server and two ranks
    assert caller.returncode == 130
    assert output == ""
    assert errors == "bubbleproof: interrupted\n"
    assert outlive(family, PATIENCE) == set()
