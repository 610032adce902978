"""Measure, solve, replay: a model's own times make the problem whose schedule trains it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bubbleproof.formats.problem_toml import ProblemFile, read_problem
from bubbleproof.formats.toml_text import toml_text
from bubbleproof.formats.values import Tick
from bubbleproof.reference_exec.evidence.profiling import StageProfile, Times
from bubbleproof.report.profiled_model import ProfiledPipeline, measured_content
from proofs_tests.commands.conftest import Run

MODEL = ("--hidden", 8, "--layers", "1,2", "--sequence", 3, "--batch", 1)
QUICK = ("--warmup", 1, "--repeats", 3)


def once(seconds: float) -> Times:
    return Times(seconds=(seconds,))


FIRST = StageProfile(
    stage=0,
    forward=once(0.000_104),
    input_backward=once(0.000_096),
    weight_backward=once(0.000_052),
    backward=once(0.000_151),
    activation_bytes=1000,
    kept_for_weight_bytes=1024,
    static_bytes=500,
)
SECOND = StageProfile(
    stage=1,
    forward=once(0.000_2),
    input_backward=once(0.000_3),
    weight_backward=once(0.000_001),
    backward=once(0.000_4),
    activation_bytes=2000,
    kept_for_weight_bytes=1400,
    static_bytes=700,
)


def written(path: Path, *, whole: bool) -> ProblemFile:
    """What a problem file of the two stages says, read back."""
    shape = ProfiledPipeline(ranks=2, microbatches=3, whole=whole, latency=4, capacity="1 MiB")
    content = measured_content(shape, (FIRST, SECOND), Tick.parsed("10us"), 'two "stages".toml')
    path.write_text(toml_text(content, ("measured by hand\non paper",)), encoding="utf-8")
    return read_problem(path)


def test_a_split_problem_has_the_ticks_of_i_and_w(tmp_path: Path) -> None:
    file = written(tmp_path / "measured.toml", whole=False)
    pipeline, ticks = file.pipeline, file.pipeline.ticks
    assert (file.name, pipeline.unit) == ('two "stages"', "ticks of 10 us")
    # in ticks of 10 us: 10.4, 9.6, 5.2 and 20, 30, 0.1, which is one tick at least
    assert ticks.forward.ravel().tolist() == [10, 20]
    assert ticks.input_backward.ravel().tolist() == [10, 30]
    assert ticks.weight_backward.ravel().tolist() == [5, 1]
    assert ticks.backward.ravel().tolist() == [15, 31]  # the sums: what a problem file says of B
    assert pipeline.activation == (1000, 2000)
    assert pipeline.released_at_input == (-24, 600)
    assert pipeline.static == (500, 700)
    assert (pipeline.capacity, pipeline.latency) == (1 << 20, 4)
    assert (pipeline.num_microbatches, pipeline.split_backward) == (3, True)


def test_a_whole_problem_has_the_measured_ticks_of_b(tmp_path: Path) -> None:
    file = written(tmp_path / "measured.toml", whole=True)
    assert file.pipeline.ticks.backward.ravel().tolist() == [15, 40]  # 15.1 and 40
    assert not file.has_split_ticks


@pytest.mark.torch
@pytest.mark.parametrize("form", [(), ("--whole",)])
def test_what_is_measured_is_solved_and_replayed(
    command: Run, tmp_path: Path, form: tuple[str, ...]
) -> None:
    problem, schedule = tmp_path / "small.toml", tmp_path / "small.json"
    shape = ("--ranks", 2, "--microbatches", 3, "--tick", "10us", "--capacity", "64 KiB", *form)
    measured = command("profile", "-o", problem, *shape, *MODEL, *QUICK, "--json")
    assert measured.status == 0, measured.err
    stages = json.loads(measured.out)["stages"]
    pipeline = read_problem(problem).pipeline
    assert pipeline.unit == "ticks of 10 us"
    assert pipeline.split_backward is (form == ())
    for number, stage in enumerate(stages):
        seconds = sorted(stage["forward"]["seconds"])[1]  # the median of three
        ticks = int(pipeline.ticks.forward[number, 0])
        assert ticks == 1 or abs(ticks * 10e-6 - seconds) <= 5e-6 * (1 + 1e-9)
    solved = command("solve", problem, "-o", schedule, "--time-limit", 20, "--json")
    assert solved.status == 0, solved.err
    replayed = command("replay", schedule, *MODEL, "--json")
    assert replayed.status == 0, replayed.err
    report = json.loads(replayed.out)
    assert report["ok"] is True
    # what was measured alone is what the replay holds, with nothing converted in between
    static = [stage["static_bytes"] for stage in stages]
    promised = json.loads(solved.out)["measured"]["peak_memory"]
    assert report["measured_peak_bytes"] == [
        whole - weights for whole, weights in zip(promised, static, strict=True)
    ]


@pytest.mark.torch
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("-o", "x.json", "--ranks", 2), "profile writes a problem file ending in .toml"),
        (("-o", "x.toml", "--ranks", 0), "profile ranks must be 1 or more, got 0"),
        (("-o", "x.toml", "--ranks", 2, "--tick", "fast"), "a tick must be a whole number"),
        (("-o", "x.toml", "--ranks", 2, "--device", "tpu"), "device must be one of cpu, cuda"),
        (("-o", "x.toml", "--ranks", 2, "--layers", "1,2,3"), "model layers must be one number"),
        (
            ("-o", "x.toml", "--ranks", 2, "--placement", "spiral"),
            "x.toml: placement: expected 'lo",
        ),
        (("-o", "x.toml", "--ranks", 2, "--capacity", "1 byte"), "x.toml: memory.capacity: expect"),
        (
            ("-o", "x.toml", "--ranks", 2, "--latency", -1),
            "x.toml: links.latency: expected",
        ),
        (
            ("-o", "x.toml", "--ranks", 2, "--hidden", 10**7),
            "a model on the cpu takes at most 4294967296 bytes",
        ),
        (("-o", ".", "--ranks", 2), ".: expected a regular file to write, found a folder"),
    ],
)
def test_what_cannot_be_measured_is_refused_in_one_line(
    command: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[object, ...],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    answer = command("profile", *options, "--microbatches", 2, *QUICK)
    assert answer.status == 2
    assert message in answer.err
    assert answer.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
