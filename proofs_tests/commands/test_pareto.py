"""``bubbleproof pareto``: the front as a table, as JSON, as a picture and as schedules."""

from __future__ import annotations

import json
from pathlib import Path

from proofs_tests.commands.conftest import Run

SMALL = """\
ranks = 2
microbatches = 4
[durations]
forward = 1
backward = 2
"""


def problem(folder: Path) -> str:
    path = folder / "small.toml"
    path.write_text(SMALL)
    return str(path)


def test_the_front_with_its_schedules_and_picture(command: Run, tmp_path: Path) -> None:
    picture, folder = tmp_path / "front.svg", tmp_path / "points"
    answer = command(
        "pareto",
        problem(tmp_path),
        "--workers",
        "1",
        "-o",
        str(picture),
        "--schedules",
        str(folder),
        "--json",
    )
    assert answer.status == 0, answer.err
    found = json.loads(answer.out)
    assert found["is_exact"] is True
    # Room for 1: 24, a microbatch at a time; for 2: 1F1B's (m + p - 1) * 3 = 15.
    assert [(p["peak"], p["makespan"]) for p in found["front"]] == [(1, 24), (2, 15)]
    named = {p["name"]: p for p in found["published"]}
    assert (named["1f1b"]["peak"], named["1f1b"]["makespan"]) == (2, 15)
    assert (named["gpipe"]["peak"], named["gpipe"]["makespan"]) == (4, 15)
    assert "1f1b" in picture.read_text()
    for peak in (1, 2):
        verified = command("verify", str(folder / f"peak-{peak}.json"))
        assert verified.status == 0, verified.err


def test_people_read_what_proves_each_point(command: Run, tmp_path: Path) -> None:
    answer = command("pareto", problem(tmp_path), "--workers", "1")
    assert answer.status == 0
    first, *points = answer.out.splitlines()
    assert first.endswith("of makespan against peak memory; no other trade exists")
    assert first.startswith(f"{len(points)} trade")
    assert all(line.endswith("(proved)") for line in points)
    table = command("pareto", problem(tmp_path), "--workers", "1", "-v")
    assert "certificate checked" in table.out


def test_unusable_options_are_refused_in_one_line(command: Run, tmp_path: Path) -> None:
    for words, message in (
        (("-o", "front.pdf"), "must end in .svg or .png"),
        (("--workers", "0"), "workers must be 1 or more, got 0"),
        (("--time-limit", "0"), "time limit must be above 0 seconds"),
    ):
        answer = command("pareto", problem(tmp_path), *words)
        assert (answer.status, answer.out) == (2, "")
        assert message in answer.err
