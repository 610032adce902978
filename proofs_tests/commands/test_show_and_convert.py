"""``show`` and ``convert``: every target, and what is lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bubbleproof.theory.families import families
from proofs_tests.commands.conftest import Run
from proofs_tests.sized import sampled


def test_show_on_the_terminal(command: Run) -> None:
    answer = command("show", "1f1b", "p=2", "m=2")
    assert answer.status == 0
    assert "rank 0  F0 F1 .  .  B0--- .  B1---" in answer.out


@pytest.mark.parametrize("ending", ["html", "svg", "pdf", "png", "perfetto.json"])
def test_show_writes_every_picture(command: Run, tmp_path: Path, ending: str) -> None:
    target = tmp_path / f"x.{ending}"
    assert command("show", "interleaved", "p=2", "m=4", "-o", target).status == 0
    assert target.stat().st_size > 1000


@pytest.mark.parametrize("ending", ["json", "csv"])
def test_convert_round_trip(command: Run, tmp_path: Path, ending: str) -> None:
    target = tmp_path / f"x.{ending}"
    assert command("convert", "zb-h1", "p=3", "m=5", target).status == 0
    assert command("verify", target).status == 0


@pytest.mark.sweep
@pytest.mark.parametrize("family", sampled([*families()], every=3))
def test_every_family_survives_a_file(command: Run, tmp_path: Path, family: str) -> None:
    target = tmp_path / "x.json"
    assert command("convert", family, "p=2", "m=4", target).status == 0
    found, told = (
        json.loads(command("verify", *words, "--json").out)
        for words in ([target], [family, "p=2", "m=4"])
    )
    assert found["ok"]
    assert found["measured"] == told["measured"]


@pytest.mark.torch
def test_convert_with_communication_is_a_whole_program(command: Run, tmp_path: Path) -> None:
    target = tmp_path / "x.csv"
    assert command("convert", "1f1b", "p=2", "m=2", target, "--communication").status == 0
    assert target.read_text().startswith("0F0,0SEND_F0,0F1,")
    assert command("verify", target).status == 0
    assert command("replay", target).status == 0


@pytest.mark.parametrize(
    ("version", "last", "fits"),
    [
        ("2.6", "0B1", "torch 2.6 to 2.8"),
        ("2.9.1", "0B1", "torch 2.9 alone"),
        ("2.13.0+cpu", "0REDUCE_GRAD", "torch 2.10 to 2.14"),
        ("2.15", "0WAIT_REDUCE_GRAD", "torch 2.15"),
    ],
)
def test_a_table_with_messages_is_for_some_versions_of_torch(
    version: str, last: str, fits: str, command: Run, tmp_path: Path
) -> None:
    target, again = tmp_path / "x.csv", tmp_path / "y.csv"
    answer = command("convert", "1f1b", "p=2", "m=2", target, "--communication", "--torch", version)
    assert f"with messages, for {fits}" in answer.err
    assert target.read_text().splitlines()[0].endswith(f",{last}")
    told = command("verify", target)
    assert told.status == 0
    assert fits.removesuffix(" alone").removeprefix("torch ") in told.out
    assert ("REDUCE_GRAD" in told.out) == (last == "0B1")  # told where it is missing
    command("convert", target, again, "--communication", "--torch", version)
    assert again.read_text() == target.read_text()


def test_convert_keeps_what_a_table_says_of_itself(command: Run, tmp_path: Path) -> None:
    # RECVs and collectives stand where they stood, and the version's waits come to them.
    given, target = tmp_path / "x.csv", tmp_path / "y.csv"
    own = ["0UNSHARD,0F0,0SEND_F0,0RECV_B0,0B0,0REDUCE_GRAD,0RESHARD", "1RECV_F0,1F0,1B0,1SEND_B0"]
    given.write_text("\n".join(own) + "\n")
    command("convert", given, target, "--communication", "--torch", "2.15")
    assert target.read_text().splitlines() == [
        "0UNSHARD,0F0,0SEND_F0,0RECV_B0,0B0,0WAIT_SEND_F0,0REDUCE_GRAD,0WAIT_REDUCE_GRAD,0RESHARD",
        "1RECV_F0,1F0,1B0,1SEND_B0,1REDUCE_GRAD,1WAIT_REDUCE_GRAD,1WAIT_SEND_B0",
    ]
    answer = command("convert", given, tmp_path / "z.json")
    assert "not written: the collectives of the table" in answer.err


def test_a_table_of_computations_says_who_takes_it(command: Run, tmp_path: Path) -> None:
    answer = command("convert", "1f1b", "p=2", "m=2", tmp_path / "x.csv")
    assert "computations alone, for any torch" in answer.err
    assert "torchtitan" in answer.err


def test_convert_says_what_is_lost(command: Run, tmp_path: Path) -> None:
    answer = command("convert", "1f1b", "p=2", "m=2", tmp_path / "x.csv")
    assert "not written: durations (in tick): a table counts steps" in answer.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["show", "1f1b", "p=2", "m=2", "-o", "x.gif"], "a picture's file must end in .html, .svg"),
        (["show", "1f1b", "p=2", "m=2", "--width", "85"], "--width goes with a picture"),
        (["show", "1f1b", "p=2", "m=2", "-o", "x.pdf", "--width", "9"], "60 to 600 mm, got 9"),
        (["show", "1f1b", "p=2", "m=2", "--window", "3"], "--window must be FIRST:LAST in ticks"),
        (["convert", "1f1b"], "expected two things: convert SCHEDULE TARGET"),
        (
            ["convert", "1f1b", "p=2", "m=2", "x.csv", "--torch", "2.13"],
            "--torch is for a table",
        ),
        (
            ["convert", "1f1b", "p=2", "m=2", "x.csv", "--communication", "--torch", "2.16"],
            "a version of torch must be 2.6 to 2.15 (their tables are known), got '2.16'",
        ),
        (["convert", "1f1b", "p=2", "m=2", "x.txt"], "the target must end in .json .csv"),
    ],
)
def test_unusable_words(command: Run, words: list[str], message: str) -> None:
    answer = command(*words)
    assert (answer.status, answer.out) == (2, "")
    assert message in answer.err
    assert answer.err.count("\n") == 1


# Rank 1 wants 1B1 before 1F1: it stops after 1F0 at tick 2, and rank 0 before 0B0.
DEADLOCK = "0F0,0B0,0F1,0B1\n1F0,1B1,1F1,1B0\n"
WAITS = (
    "nothing moves after 2 ticks",
    "rank 0 waits at 0B0 for 1B0",
    "rank 1 waits at 1B1 for 1F1",
)


def test_a_deadlock_is_shown_until_it_stands_still(command: Run, tmp_path: Path) -> None:
    path = tmp_path / "dead.csv"
    path.write_text(DEADLOCK)
    answer = command("show", path)
    assert answer.status == 1
    assert answer.out.splitlines() == [
        "time    0  1",
        "rank 0  F0 .  [0B0]",
        "rank 1  .  F0 [1B1]",
        *WAITS,
    ]
    assert answer.err == "deadlock: 1F1 waits for 1B1 waits for 1F1\n"


@pytest.mark.parametrize("ending", ["svg", "html", "png", "perfetto.json"])
def test_a_deadlock_is_drawn_and_marked(command: Run, tmp_path: Path, ending: str) -> None:
    path, target = tmp_path / "dead.csv", tmp_path / f"x.{ending}"
    path.write_text(DEADLOCK)
    answer = command("show", path, "-o", target)
    assert answer.status == 1
    assert "deadlock: 1F1 waits for 1B1 waits for 1F1" in answer.err
    if ending in ("svg", "html"):
        text = target.read_text()
        assert all(sentence in text for sentence in WAITS)
        assert "never starts" in text
        assert "stops after 2 ticks" in text
        assert "makespan 2 ticks, idle" not in text.replace(",  ", ", ")


def test_a_picture_of_what_runs_to_its_end_has_no_mark(command: Run, tmp_path: Path) -> None:
    target = tmp_path / "x.svg"
    assert command("show", "1f1b", "p=2", "m=2", "-o", target).status == 0
    assert "never starts" not in target.read_text()
