"""``trace``: what it prints and writes, its status, and what it refuses."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bubbleproof.report.amounts import time
from bubbleproof.traces.trace_events import EventFile, read_events
from proofs_tests.commands.conftest import Run
from proofs_tests.traces.made_traces import MadeRun

ROOT = Path(__file__).parents[2]
REAL = ROOT / "examples" / "ci" / "trace"  # four gloo processes; stage 2 slept 6 ms in each forward
Json = Any  # JSON of any form
Change = Callable[[list[Json]], object]


def made(name: str = "1f1b", **params: int) -> MadeRun:
    """A run in which every computation takes 1 ms."""
    shape = params or {"p": 2, "m": 4}
    return MadeRun(name=name, params=shape, lasting=lambda _action, _step: 1_000_000).run()


def test_the_straggler_of_a_real_run_is_named(command: Run) -> None:
    answer = command("trace", REAL, "--json")
    told = json.loads(answer.out)
    assert answer.status == 1
    assert [(each["stage"], each["kind"]) for each in told["stragglers"]] == [(2, "F")]
    assert told["waited_for_ns"][0]["what"] == "2F"
    people = command("trace", REAL).out.splitlines()
    assert people[0].startswith("stage 2 (rank 2) takes ")
    assert len(people) <= 10
    assert [people[0]] == command("trace", REAL, "-q").out.splitlines()
    assert "followed to where it comes" in command("trace", REAL, "-v").out
    median = sorted(told["step_ns"])[(len(told["step_ns"]) - 1) // 2]
    assert [sum(spent.values()) for spent in told["spent_ns"]] == [median] * 4


def test_what_is_written_solves_and_verifies(command: Run, tmp_path: Path) -> None:
    paths = made("zb-h1", p=2, m=4).write(tmp_path)
    answer = command("trace", *paths, "-o", tmp_path / "out")
    assert answer.status == 0, answer.err
    assert answer.out.startswith("no stage is slow: ")
    out = tmp_path / "out"
    assert sorted(p.name for p in out.iterdir()) == [
        "problem.toml",
        "schedule.csv",
        "trace.html",
        "trace.json",
    ]
    assert command("verify", out / "schedule.csv").status == 0
    solved = command("solve", out / "problem.toml", "--json")
    assert solved.status == 0, solved.err
    # F, I, W of 1 ms, m=4: 12 of work on rank 1 behind one F of rank 0.
    tick = json.loads(solved.out)["makespan"] / 13
    assert tick == pytest.approx(20, abs=3)  # a tick is a twentieth of 1 ms; a message 0.03 ms


def test_the_page_shows_the_run_above_its_prediction(command: Run, tmp_path: Path) -> None:
    """Both in one unit, the measured step as long as its work lasted."""
    assert command("trace", *made().write(tmp_path), "-o", tmp_path / "out").status == 0
    page = (tmp_path / "out" / "trace.html").read_text("utf-8")
    told = json.loads((tmp_path / "out" / "trace.json").read_text())
    assert "no stage is slow" in page
    assert "as it ran (the median step)" in page
    length = told["measured"]["makespan"] // 1000
    near = [time(ticks, "us") for ticks in (length, length + 1)]  # rounded down, each
    assert any(text in page for text in near)
    assert time(told["predicted_ns"] // 1000, "us") in page


def test_the_prediction_is_the_run_without_what_is_not_work(command: Run, tmp_path: Path) -> None:
    # 1F1B of p=2 m=4, all of 1 ms: (4 + 1) * 2 ms and, on its critical path, messages of 0.03 ms.
    told = json.loads(command("trace", *made().write(tmp_path), "--json").out)
    assert told["predicted_ns"] == pytest.approx(10_100_000, rel=0.02)  # in ticks of 0.05 ms
    assert min(told["step_ns"]) > 10_000_000


def test_the_schedule_that_ran_is_recognised(command: Run, tmp_path: Path) -> None:
    paths = made("zb-h1", p=3, m=4).write(tmp_path)
    assert command("trace", *paths, "--schedule", "zb-h1 p=3 m=4").status == 0
    answer = command("trace", *paths, "--schedule", "1f1b p=3 m=4")
    assert answer.status == 1
    assert "rank 0 ran 0I0 as its computation 3, not 0B0" in answer.out


def test_spans_of_another_framework_are_named_by_a_file(command: Run, tmp_path: Path) -> None:
    run = made()
    folder = tmp_path / "traces"
    folder.mkdir()
    for path in run.write(folder):
        text = Path(path).read_text()
        for rank in range(2):
            for number in range(4):
                text = text.replace(f'"PP:{rank}F{number}"', '"forward-compute"')
                text = text.replace(f'"PP:{rank}B{number}"', f'"backward of {number}"')
        Path(path).write_text(text)
    names = tmp_path / "names.toml"
    names.write_text(
        '[[span]]\npattern = "forward-compute"\nkind = "F"\nmicrobatches = 4\n'
        '[[span]]\npattern = "backward of (?P<microbatch>[0-9]+)"\nkind = "B"\n'
    )
    told = json.loads(command("trace", folder, "--names", names, "--json").out)
    assert (told["ranks"], told["microbatches"], len(told["step_ns"])) == (2, 4, 3)


def test_a_file_that_ends_early_gives_a_partial_answer(command: Run, tmp_path: Path) -> None:
    paths = made().write(tmp_path)
    text = Path(paths[1]).read_text()
    Path(paths[1]).write_text(text[: int(len(text) * 0.8)])
    answer = command("trace", *paths)
    assert answer.status == 0
    assert "the answer is partial:" in answer.out
    assert "rank 1: its file ends early" in answer.out
    assert "2 steps of" in answer.out


def _cut_gzip(paths: list[str]) -> None:
    packed = gzip.compress(Path(paths[0]).read_bytes())
    Path(paths[0]).write_bytes(packed[: len(packed) // 8])


def _damage(paths: list[str]) -> None:
    """Event 3 (0 is the process's name) ends in what is no JSON."""
    text = Path(paths[0]).read_text()
    third = json.dumps(json.loads(text)["traceEvents"][3])
    assert third in text
    Path(paths[0]).write_text(text.replace(third, third[:-1] + " oops}", 1))


def _list_kinds(content: Json) -> None:
    """They are no kinds of ours, so that no event is a span."""
    for event in content["traceEvents"]:
        event["cat"] = [event.get("cat")]


def _nest(paths: list[str]) -> None:
    Path(paths[0]).write_text('{"traceEvents": [' + "[" * 100_000)


def edited(rank: int, change: Callable[[Json], object]) -> Callable[[list[str]], None]:
    """A change of one rank's content."""

    def edit(paths: list[str]) -> None:
        content = json.loads(Path(paths[rank]).read_text())
        change(content)
        Path(paths[rank]).write_text(json.dumps(content))

    return edit


def _rename(content: Json) -> None:
    for event in content["traceEvents"]:
        event["name"] = event["name"].replace("PP:", "")


def _jump(content: Json) -> None:
    events = content["traceEvents"]
    for event in events[len(events) // 2 :]:
        event["ts"] += 8_000  # us; a message of theirs is at most 5 ms old


WRONG: dict[str, tuple[Callable[[list[str]], object], str]] = {
    "no JSON": (lambda p: Path(p[0]).write_text("x = 1"), 'a trace with "traceEvents"'),
    "no text": (lambda p: Path(p[0]).write_bytes(b"\xff\xfe\x00"), "UTF-8"),
    "cut in its first step": (_cut_gzip, "rank"),
    "one rank missing": (lambda p: p.pop(), "no trace of rank 1 of 2"),
    "one rank twice": (lambda p: p.append(p[0]), "rank 0 stands in"),
    "another job": (
        edited(1, lambda c: c["distributedInfo"].update(world_size=4)),
        "is of a job with 2 ranks",
    ),
    "no rank": (edited(0, lambda c: c.pop("distributedInfo")), "distributedInfo with the rank"),
    "no actions": (edited(0, _rename), "expected spans such as PP:0F0"),
    "no action": (edited(0, lambda c: c["traceEvents"][3].update(name="PP:0X0")), "PP:0X0"),
    "time backwards": (edited(0, lambda c: c["traceEvents"][3].update(dur=-1)), "dur -1"),
    "no time": (edited(0, lambda c: c["traceEvents"][3].update(ts=float("nan"))), "found ts nan"),
    "a time without end": (
        edited(0, lambda c: c["traceEvents"][3].update(dur=float("inf"))),
        "rank0.json: 'PP:",
    ),
    "a base that is a list": (
        edited(0, lambda c: c.update(baseTimeNanoseconds=[1])),
        "baseTimeNanoseconds: expected a whole number",
    ),
    "a size that is nothing": (
        edited(0, lambda c: c["distributedInfo"].update(world_size=None)),
        "world_size: expected a whole number",
    ),
    "damaged in the middle": (_damage, "rank0.json: event 3: expected an event in JSON"),
    "nested without end": (_nest, "rank0.json: event 0: expected an event in JSON"),
    "a clock that jumps": (edited(0, _jump), "before they were sent, whatever its clock"),
    "kinds that are lists": (edited(0, _list_kinds), "expected spans such as PP:0F0"),
    "no whole step": (edited(0, lambda c: c["traceEvents"].__delitem__(slice(4, None))), "rank"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_trace_of_a_run_is_refused_in_one_line(
    name: str, command: Run, tmp_path: Path
) -> None:
    spoil, told = WRONG[name]
    paths = made().write(tmp_path)
    spoil(paths)
    answer = command("trace", *paths)
    assert answer.status == 2, answer.out
    lines = [line for line in answer.err.splitlines() if not line.startswith("reading ")]
    assert len(lines) == 1
    assert told in lines[0]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "entries [[span]]"),
        ('[[span]]\nkind = "F"\n', "pattern, kind and perhaps microbatches"),
        ('[[span]]\npattern = "f"\nkind = "X"\nmicrobatches = 4\n', "one of F, B"),
        ('[[span]]\npattern = "f("\nkind = "F"\n', "a regular expression"),
        ('[[span]]\npattern = "f"\nkind = "F"\n', "microbatches = N"),
        ('[[span]]\npattern = "f"\nkind = "F"\nmicrobatches = 0\n', "a number of 1 or more"),
        ('[[span]]\npattern = "(?P<step>.)"\nkind = "F"\n', "groups stage, microbatch, slice"),
    ],
)
def test_names_that_say_nothing_are_refused(
    text: str, told: str, command: Run, tmp_path: Path
) -> None:
    names = tmp_path / "names.toml"
    names.write_text(text)
    answer = command("trace", REAL, "--names", names)
    assert answer.status == 2
    assert told in answer.err


def test_a_large_file_takes_the_memory_of_a_small_one(tmp_path: Path) -> None:
    # 10,000 events of 800 bytes: 8 MB on disk, and 4 MB of characters at most at a time.
    path = tmp_path / "large.json"
    head = '{"ph":"X","cat":"cpu_op","name":"aten::mm","ts":1.0,"dur":2.0,"args":{"x":"'
    event = head + "1" * 720 + '"}}'
    with path.open("w") as out:
        out.write('{"traceEvents":[' + event)
        out.writelines(f",\n{event}" for _ in range(9_999))
        out.write("]}")
    file = EventFile(path=str(path))
    tracemalloc.start()
    try:
        number = sum(1 for _ in read_events(file))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert number == file.num_events == 10_000
    assert not file.is_truncated
    assert peak < 4 << 20
