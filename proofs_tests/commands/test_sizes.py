"""What is too large is one line and status 2, before anything of that size is made.

Memory stands for time here: what would take long would first be built.
"""

from __future__ import annotations

import json
import sys
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from bubbleproof.formats import ScheduleFile, write_schedule
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.plans.replay_limits import least_bytes, require_room
from bubbleproof.reference_exec.plans.replay_limits import require_size as require_replay_size
from bubbleproof.theory.families import families, member, parse_parameters
from bubbleproof.theory.pipelines.limits import MAX_TASKS, require_size
from bubbleproof.theory.pipelines.pipeline import Pipeline
from proofs_tests.commands.conftest import Answer, Run
from proofs_tests.own_process import run_alone

MOST_BYTES = 32 << 20
SMALL = ("1f1b", "p=2", "m=2")
TOO_MANY = "at most 4000000 actions, got"
PROBLEM = """\
ranks = {ranks}
microbatches = {microbatches}
[durations]
forward = 1
backward = 2
"""


def refused(command: Run, *words: object) -> Answer:
    """The answer of a command that must refuse in one line."""
    answer = command(*words)
    assert (answer.status, answer.out) == (2, ""), answer.err
    assert answer.err.count("\n") == 1, answer.err
    return answer


@contextmanager
def little_memory(most: int = MOST_BYTES) -> Iterator[None]:
    """The block allocates no more at once; numpy's arrays count."""
    tracemalloc.start()
    try:
        yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < most


@pytest.mark.parametrize("family", families())
@pytest.mark.parametrize(
    "shape", ["p=4 m=20000000", "p=4000 m=999999999999998", "p=1000000 m=4000000"]
)
def test_no_family_is_built_beyond_the_limit(family: str, shape: str) -> None:
    with little_memory(), pytest.raises(ValueError, match="a pipeline has at most 4"):
        families()[family].member(parse_parameters(shape.split()))


def test_the_limit_is_just_what_is_allowed() -> None:
    # 4 ranks x 500,000 microbatches x (F and B) are 4,000,000; split backwards are a half more.
    require_size(ranks=4, microbatches=500_000)
    with pytest.raises(ValueError, match=f"at most {MAX_TASKS} actions, got 4000008 "):
        require_size(ranks=4, microbatches=500_001)
    with pytest.raises(ValueError, match="got 6000000"):
        require_size(ranks=4, microbatches=500_000, tasks_each=3)
    with pytest.raises(ValueError, match="at most 4096 ranks, got 4097"):
        require_size(ranks=4097, microbatches=1)


def test_parts_of_w_are_counted() -> None:
    """2 x 200,000 forwards with an I each, and W in nine parts: 11 * 400,000."""
    with pytest.raises(ValueError, match="got 4400000 "):
        Pipeline(
            num_ranks=2,
            num_microbatches=200_000,
            split_backward=True,
            weight_backward=9,
            weight_parts=(1,) * 9,
        )


@pytest.mark.parametrize(
    "verb", ["measure", "verify", "show", "replay", "repair", "convert", "export"]
)
def test_every_command_that_takes_a_family(command: Run, verb: str) -> None:
    words = {"convert": ["x.json"], "export": ["x.csv"]}.get(verb, [])
    verb = "convert" if verb == "export" else verb
    assert TOO_MANY in refused(command, verb, "1f1b", "p=4", "m=1000000000", *words).err


@pytest.mark.parametrize("verb", ["solve", "run", "pareto", "bench"])
def test_every_command_that_takes_a_problem(command: Run, tmp_path: Path, verb: str) -> None:
    path = tmp_path / "huge.toml"
    path.write_text(PROBLEM.format(ranks=2, microbatches=10**9))
    assert "at most 4000000 actions, found 4000000000" in refused(command, verb, path).err
    path.write_text(PROBLEM.format(ranks=10**6, microbatches=1))
    assert "at most 4096 ranks, found 1000000" in refused(command, verb, path).err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["replay", *SMALL, "--data-parallel", 10**9], "at most 4096 processes"),
        (["replay", *SMALL, "--steps", 10**12, "--barrier"], "at most 4000000 actions"),
        (["replay", *SMALL, "--steps", 10**30], "at most 4000000 actions"),
        (["replay", *SMALL, "--hidden", 10**23], "model hidden must be 2147483647 or less"),
        (["replay", *SMALL, "--layers", 10**9], "model layers must be 4096 or less"),
        (["replay", *SMALL, "--vocabulary", 10**12], "model vocabulary must be 2147483647 words"),
        (["replay", *SMALL, "--batch", 10**12], "model batch must be 2147483647 or less"),
        (["profile", "--ranks", 10**9, "--microbatches", 2], "at most 4096 ranks"),
        (["profile", "--ranks", 2, "--microbatches", 10**9], TOO_MANY),
        (["profile", "--ranks", 2, "--microbatches", 2, "--chunks", 10**23], TOO_MANY),
        (["bench", "--threads", 10**9], "threads must be 256 or less, got 1000000000"),
        (["show", *SMALL, "--window", f"0:{10**30}"], "up to 2,305,843,009,213,693,952 ticks"),
    ],
)
def test_numbers_of_options(command: Run, tmp_path: Path, words: list[str], message: str) -> None:
    extra = ["-o", tmp_path / "x.toml"] if words[0] == "profile" else []
    assert message in refused(command, *words, *extra).err


def refused_without_torch() -> None:
    """Every refusal that the numbers alone decide; loading torch takes seconds."""
    from bubbleproof.cli import main

    for words in (
        ["--data-parallel", "1000000"],
        ["--data-parallel", "129", "--backend", "gloo"],  # of 2 ranks each
        ["--steps", "100000000", "--backend", "gloo"],
        ["--hidden", "10000000"],
        ["--batch", "100000000"],
        ["--vocabulary", "100000000"],
        ["--model", "transformer", "--sequence", "30000"],
        ["--model", "llama", "--sequence", "30000"],
        ["--layers", "4096", "--hidden", "512"],
    ):
        sys.argv = ["bubbleproof", "replay", *SMALL, *words]
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 2, words
        assert "torch" not in sys.modules, words


def test_numbers_are_refused_before_torch_is_loaded() -> None:
    run_alone(refused_without_torch)


def test_the_limits_of_a_replay_are_named_and_are_no_smaller(command: Run) -> None:
    words = ["replay", "1f1b", "p=4096", "m=2", "--backend", "gloo"]
    assert "at most 256 processes on gloo" in refused(command, *words).err
    require_size(ranks=4096, microbatches=2)
    small = member("1f1b", p=2, m=2).problem
    require_replay_size(small, 1, 128, backend="gloo")
    spec = ModelSpec(kind="transformer", sequence=4096)
    # of 2 samples and 2 heads: 4096^2 probabilities each; 2 * 4096 * (16 * 8 + 4 + 8) activations
    assert 0 < least_bytes(spec, 1) - 8 * (4 * 4096**2 + 2 * 4096 * 140) < 100_000  # of weights
    require_room(spec, num_stages=2, num_slices=1)
    longest = replace(spec, sequence=30000)
    require_room(longest, num_stages=2, num_slices=1, device="cuda")
    with pytest.raises(ValueError, match="4294967296 bytes"):
        require_room(longest, num_stages=2, num_slices=1)


def slow(folder: Path, ticks: int) -> Path:
    """A schedule of 1f1b in which one backward lasts so long, and the next does not wait for it."""
    small = member("1f1b", p=2, m=2)
    pipeline = small.pipeline.with_changes(backward=(2, ticks))
    path = folder / "slow.json"
    write_schedule(path, ScheduleFile.of(pipeline.problem(), small.schedule, pipeline=pipeline))
    return path


@pytest.mark.parametrize("ticks", [10**6, 10**9])
def test_a_counterexample_is_as_wide_as_its_page(command: Run, tmp_path: Path, ticks: int) -> None:
    path = slow(tmp_path, ticks)
    command("verify", *SMALL)
    with little_memory(MOST_BYTES // 8):
        answer = command("verify", path)
    assert answer.status == 1
    assert (
        f"rank 1 starts 1F1 at 4, but 1B0, listed before it, runs until {ticks + 2}" in answer.out
    )
    assert max(map(len, answer.out.splitlines())) < 200


@pytest.mark.parametrize("ending", [None, "svg", "html", "png", "perfetto.json"])
def test_a_picture_is_as_large_as_its_actions(
    command: Run, tmp_path: Path, ending: str | None
) -> None:
    """The same eight actions in some ticks and in a billion: pictures of about one size."""
    sizes = []
    for ticks in (2, 10**9):
        target = tmp_path / f"x.{ending}"
        words = [] if ending is None else ["-o", target]
        answer = command("show", slow(tmp_path, ticks), *words)
        assert answer.status == 0, answer.err
        sizes.append(len(answer.out) if ending is None else target.stat().st_size)
    assert sizes[1] < 10 * sizes[0] + 10_000


def test_ticks_that_fit_one_by_one_are_summed(command: Run, tmp_path: Path) -> None:
    """600 lags of 2**53 - 1 are more than the 2**53 - 1 that a file may have in sum."""
    path, small = tmp_path / "wide.json", member("1f1b", p=2, m=2)
    write_schedule(path, ScheduleFile.of(small.problem, small.schedule))
    content = json.loads(path.read_text())
    content["problem"]["edges"] = [["0F0", "1F0", (1 << 53) - 1]] * 600
    path.write_text(json.dumps(content))
    assert f"at most {(1 << 53) - 1} ticks in total" in refused(command, "verify", path).err


def test_what_is_forgotten_or_misplaced_is_named(
    command: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.json").write_text("{}")
    for words, message in (
        (["convert", "1f1b", "p=4", "m=8"], "TARGET: the target must end in .json"),
        (["verify", "x.json", "y.toml"], "a problem is given as --problem y.toml"),
        (["solve", "/dev/null"], "found no ending"),
        (["replay", *SMALL, "--model", "fool.py"], "a model of your own is FILE.py:FUNCTION"),
        (
            ["show", *SMALL, "-o", "x.json/x.perfetto.json"],
            "x.json/x.perfetto.json: expected a file in a folder",
        ),
        (["show", *SMALL, "-o", "x.json/x.svg"], "x.json/x.svg: expected a file in a folder"),
    ):
        assert message in refused(command, *words).err


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("0F999999999", "expected an action whose microbatch is 16777214 or less"),
        ("0F" + 30 * "9", "expected an action whose microbatch is 16777214 or less"),
        ("99999F0", "expected an action whose stage is 65534 or less"),
        ("0F0x", "expected a PyTorch action such as 0F0"),
    ],
)
def test_a_number_in_a_table_that_is_too_large_is_called_that(
    command: Run, tmp_path: Path, cell: str, message: str
) -> None:
    path = tmp_path / "x.csv"
    path.write_text(f"{cell},0B0\n")
    assert message in refused(command, "verify", path).err
