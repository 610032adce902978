"""Every format is known by its ending and its beginning, and a new one is one entry."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import bubbleproof as bp
from bubbleproof.commands.options.targets import copy_of_standard_input
from bubbleproof.formats import ScheduleFile, UnusableInput, format_table
from bubbleproof.formats.format_table import FORMATS, Format, Holds, endings, format_of
from bubbleproof.formats.inputs import read_problem_input
from proofs_tests.commands.conftest import Run
from proofs_tests.commands.conftest import command as command
from proofs_tests.structure import ROOT

EXAMPLES = ROOT / "examples"
PROBLEM = "ranks = 2\nmicrobatches = 3\n[durations]\nforward = 3\nbackward = 5\n"
MEMBER = bp.family("1f1b")(p=2, m=3)


def read_toy(path: str) -> ScheduleFile:
    """A made-up format: its one line is a family's words."""
    name, *words = Path(path).read_text("utf-8").removeprefix("toy ").split()
    if not words:
        raise UnusableInput("", "a family's words", name, path)
    found = bp.family(name)(**{k: int(v) for k, _, v in (word.partition("=") for word in words)})
    return ScheduleFile.of(found.problem, found.schedule, pipeline=found.pipeline)


def write_toy(path: str, file: ScheduleFile) -> None:
    Path(path).write_text(f"toy {file.name}", "utf-8")


TOY = Format(
    name="a toy",
    holds=Holds.SCHEDULE,
    endings=(".toy",),
    marks=r"\Atoy ",
    is_whole=True,
    reader=f"{__name__}.read_toy",
    writer=f"{__name__}.write_toy",
)


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("gpt3-13b-8xA100.toml", "a problem"),
        ("researcher/plan.toml", "a problem"),
        ("cluster/llama-13b-64xA100.toml", "a model on a cluster"),
        ("ci/crossed.csv", "a PyTorch table"),
        ("cluster/iterations.csv", "rows of iterations"),
        ("ci/trace/rank0.json.gz", "a trace of a run"),
        ("ci/hang/nccl_trace_rank_0.json", "a dump of the Flight Recorder"),
    ],
)
def test_an_example_is_known(file: str, name: str) -> None:
    found = format_of(EXAMPLES / file)
    assert found is not None
    assert found.name == name


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("a.json", '{"format": "bubbleproof/plan", "schedule": {"format": "bubbleproof/schedule"}}',
         "a plan"),
        ("a.json", '{"version": 2, "format": "bubbleproof/schedule"}', "a schedule"),
        ("a.json", '{"format": "bubbleproof/plan-certificate"}', "a certificate"),
        ("a.json", "{}", "a schedule"),  # by its ending
        ("a", '{"format": "bubbleproof/replay"}', "the report of a replay"),
        ("a.txt", "0F0,0B0\n", "a PyTorch table"),
        ("a", "# a step\n\nranks = 2\n", "a problem"),
        ("a.toml", "[model]\n", "a model without a cluster"),
        ("a.toml", "[model]\n[batch]\n", "a model on a cluster"),
        ("a.TOML", "[constants]\n", "a card with its constants"),
        ("a.txt", "nothing of ours", None),
        ("a", "", None),
    ],
)  # fmt: skip
def test_the_beginning_tells_what_the_ending_leaves_open(
    name: str, text: str, told: str | None, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(text, "utf-8")
    found = format_of(tmp_path / name)
    assert (None if found is None else found.name) == told


def test_what_reads_and_writes_is_there() -> None:
    for each in FORMATS:
        for name in filter(None, (each.reader, each.writer, each.places)):
            assert callable(format_table._loaded(name)), each.name
        assert each.endings or each.marks


def test_the_hook_takes_every_schedule() -> None:
    hook = (ROOT / ".pre-commit-hooks.yaml").read_text("utf-8")
    files = re.search(r"files: (.*)", hook)
    assert files is not None
    for ending in endings(Holds.SCHEDULE):
        assert re.search(files[1], f"here/schedules/x{ending}")
        assert f"({ending})" in hook


def test_another_thing_is_told_what_it_is(command: Run, tmp_path: Path) -> None:
    """Whoever wants a schedule, a problem or a file to plan says what was given instead."""
    problem, table = tmp_path / "p.toml", tmp_path / "t.csv"
    problem.write_text(PROBLEM, "utf-8")
    bp.write(table, MEMBER)
    for words in (["verify"], ["show"], ["replay"], ["hand-over", "--to", "torch-2.13", "-o", "x"]):
        answer = command(words[0], problem, *words[1:])
        assert answer.status == 2
        told = (
            f"{problem} is a problem: solve it first (bubbleproof solve {problem} -o best.json)\n"
        )
        assert answer.err == f"bubbleproof: {told}"
    assert "is a PyTorch table: it tells no durations" in command("solve", table).err
    assert "'t.csv', a PyTorch table" in command("plan", table).err.replace(f"{tmp_path}/", "")
    cluster = EXAMPLES / "cluster" / "llama-13b-64xA100.toml"
    assert "is a model on a cluster: plan it first" in command("solve", cluster).err
    dump = EXAMPLES / "ci" / "hang" / "nccl_trace_rank_0.json"
    assert "is a dump of the Flight Recorder: bubbleproof hang " in command("diff", dump, dump).err
    with pytest.raises(ValueError, match=r"^check: .*p\.toml is a problem: solve it first"):
        bp.check(problem)


def test_a_problem_is_taken_in_every_form(command: Run, tmp_path: Path) -> None:
    """(3 + 2 - 1) * 3 = 12 ticks for three microbatches of 1 + 2 ticks on two ranks."""
    bp.write(tmp_path / "s.json", MEMBER)
    (tmp_path / "run").mkdir()
    bp.write(tmp_path / "run" / "schedule.json", MEMBER)
    for given in (tmp_path / "s.json", tmp_path / "run", "1f1b p=2 m=3"):
        assert '"value": 12' in command("solve", given, "--json").out
        assert bp.solve(given).makespan == 12
    assert bp.solve(MEMBER).makespan == 12
    assert isinstance(read_problem_input("1f1b p=2 m=3"), ScheduleFile)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("verify", "-"), "0F0,0B0\n"),
        (("solve", "-"), PROBLEM),
        (("measure", "-"), "0F0,0B0\n"),
        (("diff", "-", "1f1b p=1 m=1"), "0F0,0B0\n"),
    ],
)
def test_a_dash_is_the_standard_input(
    words: tuple[str, ...], text: str, command: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy_of_standard_input.cache_clear()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text.encode())))
    answer = command(*words, "--json")
    assert (answer.status, "standard-input" in answer.out) == (0, True)


def test_a_new_format_is_one_entry(
    command: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(format_table, "FORMATS", (*FORMATS, TOY))
    monkeypatch.setattr("bubbleproof.formats.inputs.FORMATS", (*FORMATS, TOY))
    path = tmp_path / "a.toy"
    path.write_text("toy 1f1b p=2 m=3", "utf-8")
    assert command("verify", path).status == 0
    assert command("verify", tmp_path).status == 0  # a folder with it
    assert "1f1b" not in command("measure", path, "--json").err
    assert command("convert", path, tmp_path / "a.json").status == 0
    assert command("solve", path).status == 0
    assert bp.check(path).ok
    assert bp.measure(bp.read(path)).makespan == 12
    assert bp.testing.assert_valid_file(path).ok
    bp.write(tmp_path / "b.toy", path, name="1f1b p=2 m=3")
    assert bp.measure(tmp_path / "b.toy") == bp.measure(path)
    assert "a toy (.toy)" in command("verify", "x.nothing").err
