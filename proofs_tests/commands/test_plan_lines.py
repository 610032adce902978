"""What ``plan`` and ``run`` say by default: the verdict in the first line, ten lines at most."""

from __future__ import annotations

from pathlib import Path

import pytest

from proofs_tests.commands.conftest import Run

EXAMPLES = Path(__file__).parents[2] / "examples"
FITS = """
ranks = 2
microbatches = 2
[durations]
forward = 1
backward = 2
[plan]
chunks = [1]
"""


@pytest.mark.parametrize(
    ("name", "best"),
    [
        # its optimum takes a search, which on a busy machine may end at 3.593 s
        ("cluster/gpt3-13b-8xA100", "VPP 5, split backward: 3.5"),
        ("cluster/llama-13b-64xA100", "TP1 PP2 DP32 · micro-batch 1 · ZeRO-1 · no recompute"),
        ("researcher/plan", "VPP 2, split backward: 74 ticks"),
    ],
)
def test_the_answer_is_the_first_line(command: Run, name: str, best: str) -> None:
    answer = command("plan", EXAMPLES / f"{name}.toml")
    lines = answer.out.splitlines()
    assert (answer.status, answer.err) == (0, "")
    assert lines[0][:9] in ("OPTIMAL  ", "BEST     ")
    assert lines[0][9:].startswith(best)
    assert len(lines) <= 10
    assert sum("lower bound" in line for line in lines) == 1
    assert any(line.endswith("what would change it, -v: the report)") for line in lines[-2:])


def test_ones_own_configuration_stands_in_the_first_ten_lines(command: Run) -> None:
    words = (
        "plan",
        EXAMPLES / "cluster" / "llama-13b-64xA100.toml",
        "--yours",
        "tensor=4 pipeline=4 chunks=5",
    )
    lines = command(*words).out.splitlines()
    (yours,) = [line for line in lines[:10] if line.startswith("yours")]
    assert yours.startswith(
        "yours    TP4 PP4 DP4 · micro-batch 1 · ZeRO-1 · no recompute · VPP 5: "
    )
    assert "% beside the plan; change tensor 4 -> 1" in yours


def test_numbers_are_those_of_the_problem(command: Run, tmp_path: Path) -> None:
    """Two ranks and microbatches of 1 + 2 ticks: 2 * 3 of rank 0, and 3 of rank 1 between."""
    path = tmp_path / "fits.toml"
    path.write_text(FITS)
    lines = command("plan", path).out.splitlines()
    assert lines[0] == "OPTIMAL  VPP 1, full backward: 9 ticks"
    assert "proved   shortest of any schedule of these candidates (lower bound 9 ticks)" in lines
    assert not any(line.startswith("next") for line in lines)  # nothing else is asked about


@pytest.mark.torch
def test_a_run_is_five_lines(command: Run, tmp_path: Path) -> None:
    path = tmp_path / "fits.toml"
    path.write_text(FITS + '[compare]\nfamilies = ["1f1b", "gpipe"]\n')
    answer = command("run", path, "-o", tmp_path / "out", "--backend", "virtual")
    plan, against, valid, replay, report = answer.out.splitlines()
    assert plan == "plan      VPP 1, full backward: 9 ticks, proved optimal over 1 configuration"
    assert against == "against   1f1b 9 ticks (as long), gpipe 9 ticks (as long)"
    assert valid.startswith("valid     every rule; memory ")
    assert replay.startswith("replay    2 ranks on virtual: gradients and losses bit-identical; ")
    assert report == f"report    {tmp_path / 'out' / 'report.html'}"


def test_what_json_has_is_asked_for_once(command: Run) -> None:
    answer = command("plan", EXAMPLES / "researcher" / "plan.toml", "--json", "--why")
    assert (answer.status, answer.out) == (2, "")
    assert "--why has no meaning for --json" in answer.err
