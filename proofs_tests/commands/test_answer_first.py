"""The answer stands in the first line, and at most ten lines follow it beside the drawing."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from rich.console import Console

import bubbleproof as bp
from bubbleproof.commands import output
from bubbleproof.formats.clusters.cluster_toml import is_cluster_file
from bubbleproof.theory.families import families
from proofs_tests.commands.conftest import Run
from proofs_tests.patience import PATIENCE

EXAMPLES = Path(__file__).parents[2] / "examples"
PROBLEMS = [path for path in sorted(EXAMPLES.glob("*/*.toml")) if not is_cluster_file(path)]
QUICK = [path for path in PROBLEMS if path.stem.startswith("gpt3")]
TABLES = sorted(EXAMPLES.glob("ci/*.csv"))
MOST = 10
SMALL = "ranks = 2\nmicrobatches = 4\n[durations]\nforward = 1\nbackward = 2\n"
TIMED = """name = "timed"
ranks = 2
microbatches = 2
unit = "ms"
[durations]
forward = 100
backward = 200
[memory]
activation = "1 GiB"
capacity = "3 GiB"
"""
DRAWN = re.compile(r"(time|rank|link|group) .*|\(.*\)|  \S.*|")  # of a schedule, or of a breach


def without_drawing(text: str) -> list[str]:
    """The lines that are words."""
    return [line for line in text.splitlines() if not DRAWN.fullmatch(line)]


@pytest.mark.parametrize("path", QUICK, ids=lambda path: path.name)
def test_solve_of_the_examples(command: Run, path: Path) -> None:
    answer = command("solve", path)
    assert answer.status == 0
    assert answer.out.startswith("OPTIMAL    ")
    scope = "over these choices" if path.stem == "gpt3-13b-balanced" else "for this pipeline"
    assert f" s {scope}   (proved: rank " in answer.out.splitlines()[0]
    assert len(without_drawing(answer.out)) <= MOST
    assert answer.err == ""  # no terminal: no progress
    assert re.search(r"^rank 0 ", answer.out, re.MULTILINE)
    assert not re.search(r"\d{5,}|\d+/\d+| bytes", answer.out)


@pytest.mark.sweep
@pytest.mark.parametrize("path", sorted({*PROBLEMS} - {*QUICK}), ids=lambda path: path.name)
def test_solve_of_the_other_examples(command: Run, path: Path) -> None:
    answer = command("solve", path, "--time-limit", int(PATIENCE))
    heading = "UNPROVED   " if " by the claim of " in answer.out else "OPTIMAL    "
    assert answer.out.startswith(heading)
    assert len(without_drawing(answer.out)) <= MOST


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.name)
def test_verify_of_the_examples(command: Run, path: Path) -> None:
    answer = command("verify", path)
    state = {0: "VALID (every rule", 1: "INVALID ("}[answer.status]
    assert answer.out.startswith(f"{path.name}: {state}")
    assert len(without_drawing(answer.out)) <= MOST
    if answer.status:
        assert re.search(r"\n  rank \d.*\[", answer.out)  # the cell is marked


@pytest.mark.parametrize("name", sorted(families()))
def test_verify_and_measure_of_families(command: Run, name: str) -> None:
    words = [name, "p=4", "m=8", *(["v=2"] if name == "pipemesh" else [])]
    if name == "pipemesh":
        words += ["e=8", "d=8"]
    if name == "adapipe":
        words += ["f=8"]
    found = command("verify", *words)
    assert found.out.startswith(f"{' '.join(words)}: VALID (every rule")
    measured = command("measure", *words)
    assert re.match(rf"{name} .*: \d+ tick.* idle \d", measured.out)
    for answer in (found, measured):
        assert answer.status == 0
        assert len(answer.out.splitlines()) <= MOST


def test_a_family_says_how_long_and_under_what(command: Run) -> None:
    """(m + p - 1)(tF + tB) = 33 ticks, of which 9 are idle on each rank: 9/33; rank 0 holds p."""
    told = command("verify", "1f1b", "p=4", "m=8").out.splitlines()
    dot = "\N{MIDDLE DOT}"
    assert told == [
        "1f1b p=4 m=8: VALID (every rule) "
        f"{dot} 33 ticks {dot} idle 27.3 % {dot} peak 4 activations on rank 0",
        "deadlock-free under buffered, rendezvous, pair-stream, launch-order, rank-stream   "
        "(-v: each rule)",
    ]


def test_numbers_have_units_of_people(command: Run, tmp_path: Path) -> None:
    """(2 + 2 - 1) * 300 = 900 ms; idle 3 of 9 on each rank, and rank
    1 waits for the first forward and before the last backward. Rank 0 keeps 2 of room for 3."""
    path, best = tmp_path / "timed.toml", tmp_path / "best.json"
    path.write_text(TIMED)
    answer = command("solve", path, "-o", best)
    lines = answer.out.splitlines()
    assert lines[0] == (
        "OPTIMAL    900 ms for this pipeline   "
        "(proved: rank 1 is busy or unavoidably waiting for 900 ms; certificate checked)"
    )
    assert lines[1] == "idle       33.3 %   as long as 1F1B"
    assert re.fullmatch(r"memory     2 \| [12] of 3 GiB", lines[2])
    assert lines[3].startswith("bottleneck rank 1: ")
    assert (
        answer.err
        == f"wrote {best}      next: bubbleproof show {best} -o {best.with_suffix('.html')}\n"
    )
    told = command("verify", best).out.splitlines()[0]
    assert told.startswith("best.json: VALID (every rule)")
    assert told.endswith("peak 2 of 3 GiB on rank 0")


def test_1f1b_stands_beside_only_where_it_fits(command: Run, tmp_path: Path) -> None:
    """With room for one microbatch they follow one another, 4 * 6 = 24; 1F1B needs room for two."""
    path = tmp_path / "tight.toml"
    path.write_text(SMALL + "[memory]\ncapacity = 1\n")
    answer = command("solve", path)
    assert answer.out.startswith("OPTIMAL    24 ticks for this pipeline")
    assert "1F1B" not in answer.out


@pytest.mark.parametrize(
    ("text", "words", "told"),
    [
        ("[memory]\nactivation = 5\nstatic = 3\ncapacity = 7\n", [], "memory of rank 0 (7 "),
        ("", ["--within", "12"], "no more than 12 ticks are allowed"),
    ],
)
def test_what_cannot_be_says_first_what_would_have_to_change(
    command: Run, tmp_path: Path, text: str, words: list[str], told: str
) -> None:
    path = tmp_path / "never.toml"
    path.write_text(SMALL + text)
    answer = command("solve", path, *words)
    first, second = answer.out.splitlines()
    assert answer.status == 1
    assert first.startswith(f"INFEASIBLE for this pipeline unless this changes: {told}")
    assert second.startswith("why        ")


def test_a_claim_names_its_solver(
    command: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Without time for a certificate an optimum rests on the solver's word, and says on whose."""
    monkeypatch.setattr(
        "bubbleproof.solvers.bound_search.BoundSearch._certify_claim", lambda _: None
    )
    path = tmp_path / "open.toml"  # one resource shows 78 ticks, and 80 are optimal
    path.write_text(
        "ranks = 4\nmicrobatches = 8\n[durations]\nforward = 2\nbackward = 4\n"
        "[memory]\ncapacity = 4\n[links]\nlatency = 1\n"
    )
    first = command("solve", path, "--engine", "cpsat").out.splitlines()[0]
    assert first.startswith(
        "UNPROVED   80 ticks for this pipeline, optimal by the claim of CP-SAT   ("
    )
    assert "not below 80 ticks: claimed by CP-SAT, uncertified; proved: " in first
    assert "bottleneck" not in first


def test_many_files_say_first_how_many_are_valid(command: Run, tmp_path: Path) -> None:
    right, stuck = tmp_path / "right.json", tmp_path / "stuck.csv"
    bp.write(right, bp.family("1f1b")(p=2, m=2))
    stuck.write_text("0B0,0F0\n1F0,1B0\n")
    first, second, *_ = command("verify", right, stuck).out.splitlines()
    assert first.startswith("1 of 2 valid")
    assert second.startswith(f"{stuck}: INVALID (")
    assert str(right) not in second
    assert command("verify", right, right).out == "2 of 2 valid   (-v: each of them)\n"


@dataclass(slots=True)
class Terminal:
    """Standard error that is a terminal of so many characters."""

    written: str = ""

    def write(self, text: str) -> int:
        """Keep it."""
        self.written += text
        return len(text)

    def flush(self) -> None:
        """Nothing is held back."""

    def isatty(self) -> bool:
        """It is one."""
        return True


def test_progress_is_one_line_of_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    report = output.progress_line("ms", verbose=False)
    assert report is not None
    with output.end_progress():
        report("cpsat", 806, 800, 1.5)
        report("cpsat", 800, 800, 2.5)
    clear = "\r\x1b[K"
    assert screen.written.split(clear)[1:] == [
        "   1.50 s  cpsat        best 806 ms, bound 800 ms",
        "   2.50 s  cpsat        best 800 ms, bound 800 ms",
        "",
    ]


def test_there_is_none_elsewhere_unless_asked_for(command: Run, tmp_path: Path) -> None:
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    assert command("solve", path).err == ""
    assert "bound 15 ticks" in command("solve", path, "-v").err


def test_a_line_is_broken_between_words_at_the_width(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    narrow = Console(width=40, force_terminal=True, color_system=None)
    monkeypatch.setattr(output, "console", lambda: narrow)
    monkeypatch.setattr(output, "_is_drawn", lambda _: True)
    text = "proved: rank 0 is busy or unavoidably waiting for 4.307 s; certificate checked"
    output.print_line(text, "OPTIMAL")
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 40
    assert all(line.startswith(" " * 11) for line in lines[1:])
    assert " ".join(" ".join(lines).split()) == f"OPTIMAL {text}"
