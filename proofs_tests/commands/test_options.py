"""Option groups: spread over a command, put together again, shown under their headings."""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Annotated, ClassVar

import pytest
from typer import Option

from bubbleproof.cli import app
from bubbleproof.commands import profile, replay, solve
from bubbleproof.commands.option_groups import HeadedCommand, OptionGroup, spread
from bubbleproof.commands.options import DemandOptions, SearchOptions, SolveOutput
from bubbleproof.commands.profile import ProfileRequest
from bubbleproof.commands.replay_options import ModelOptions
from bubbleproof.commands.replay_request import ReplayRequest
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.plans.training import Training
from bubbleproof.reference_exec.plans.zero_levels import ZeroLevels
from proofs_tests.commands.conftest import Run

MODEL = (
    "--model", "llama", "--hidden", 16, "--layers", "1,2", "--heads", 4, "--kv-heads", 2,
    "--sequence", 6, "--batch", 3, "--vocabulary", 11, "--tied", "--dtype", "float32",
)  # fmt: skip
SPEC = ModelSpec(
    kind="llama", hidden=16, layers=(1, 2), heads=4, kv_heads=2, sequence=6, batch=3,
    vocabulary=11, tied=True, dtype="float32",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape(OptionGroup):
    HEADING: ClassVar[str] = "Shape"

    width: Annotated[int, Option(help="Across.")]
    round_: Annotated[bool, Option("--round")] = False


def sections(text: str) -> dict[str, list[str]]:
    """The options and arguments of a help page by their heading, in their order."""
    found: dict[str, list[str]] = {}
    heading = ""
    for line in text.splitlines():
        if title := re.fullmatch(r"(\w+):", line):
            heading = title[1]
        elif option := re.match(r"  (\S+)", line):
            found.setdefault(heading, []).append(option[1])
    return found


def test_a_group_is_spread_and_gathered() -> None:
    seen: list[tuple[str, Shape, int]] = []

    @spread
    def draw(name: str, shape: Shape, size: int = 3) -> int:
        seen.append((name, shape, size))
        return 0

    signature = inspect.signature(draw)
    assert list(signature.parameters) == ["name", "width", "round_", "size"]
    assert signature.parameters["width"].default is inspect.Parameter.empty
    assert signature.parameters["round_"].default is False
    assert draw(name="x", width=2, round_=True, size=5) == 0
    assert seen == [("x", Shape(width=2, round_=True), 5)]


def test_two_options_of_one_name_are_refused() -> None:
    def twice(width: int, shape: Shape) -> int:
        return width + shape.width

    with pytest.raises(ValueError, match="duplicate parameter name: 'width'"):
        spread(twice)


def test_help_stands_under_headings(command: Run) -> None:
    shown = sections(command("replay", "--help").out)
    assert list(shown) == [
        "",
        "Arguments",
        "Options",
        "Model",
        "Training",
        "Communication",
        "Output",
    ]
    assert shown["Options"] == [
        "--backend", "--device", "--seed", "--unsafe", "--no-count-bytes", "--dialect", "--help",
    ]  # fmt: skip
    assert shown["Communication"] == ["--comm", "--timeout", "--debug-headers", "--torchrun"]
    assert shown["Output"] == ["-o", "--json"]
    assert shown["Model"] == [word for word in MODEL if str(word).startswith("--")]
    assert sections(command("profile", "--help").out)["Model"] == shown["Model"]


def test_every_command_shows_each_option_once(command: Run) -> None:
    for info in app.registered_commands:
        assert info.callback is not None
        name = info.callback.__name__
        shown = sections(command(name, "--help").out)
        rows = [row for heading in shown if heading for row in shown[heading]]
        assert len(rows) == len(set(rows)) == 1 + len(inspect.signature(info.callback).parameters)
        assert (info.cls is HeadedCommand) == (name in ("solve", "replay", "profile"))


def test_every_option_of_replay_arrives(command: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[ReplayRequest, bool]] = []

    def kept(request: ReplayRequest, *, torchrun: bool) -> int:
        seen.append((request, torchrun))
        return 0

    monkeypatch.setattr(replay, "run_replay", kept)
    assert command("replay", "1f1b", "p=2").status == 0
    assert command(
        "replay", "x.csv", *MODEL, "--backend", "gloo", "--device", "cuda", "--seed", 7,
        "--unsafe", "--no-count-bytes", "--dialect", "old", "--steps", 3, "--optimizer", "adam",
        "--learning-rate", 0.5, "--barrier", "--data-parallel", 4, "--zero", "2,norm=1",
        "--comm", "rendezvous", "--timeout", 9, "--debug-headers", "--torchrun",
        "-o", "a.html", "-o", "b.json", "--json",
    ).status == 0  # fmt: skip
    plain = ReplayRequest(words=["1f1b", "p=2"], spec=ModelSpec())
    full = ReplayRequest(
        words=["x.csv"], spec=SPEC, backend="gloo", device="cuda", seed=7, is_unsafe=True,
        counts_bytes=False,
        dialect="old", data_parallel=4, levels=ZeroLevels.parse("2,norm=1"), comm="rendezvous",
        training=Training(optimizer="adam", steps=3, learning_rate=0.5, has_barrier=True),
        timeout=9.0, has_headers=True, targets=["a.html", "b.json"], as_json=True,
    )  # fmt: skip
    assert seen == [(plain, False), (full, True)]
    # every field was given something else than its default
    assert all(getattr(plain, f.name) != getattr(full, f.name) for f in fields(ReplayRequest))


def test_every_option_of_profile_arrives(command: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[ProfileRequest, str, bool]] = []

    def kept(request: ProfileRequest, *, target: str, as_json: bool) -> int:
        seen.append((request, target, as_json))
        return 0

    monkeypatch.setattr(profile, "run_profile", kept)
    assert command(
        "profile", *MODEL, "-o", "x.toml", "--ranks", 3, "--microbatches", 5, "--chunks", 2,
        "--placement", "wave", "--whole", "--latency", 4, "--capacity", "1 GiB", "--device",
        "cuda", "--warmup", 1, "--repeats", 2, "--tick", "10us", "--json",
    ).status == 0  # fmt: skip
    ((request, target, as_json),) = seen
    assert (request.spec, target, as_json) == (SPEC, "x.toml", True)
    pipeline, measurement = request.pipeline, request.measurement
    assert (pipeline.ranks, pipeline.microbatches, pipeline.chunks) == (3, 5, 2)
    assert (pipeline.placement, pipeline.whole) == ("wave", True)
    assert (pipeline.latency, pipeline.capacity) == (4, "1 GiB")
    assert (measurement.device, measurement.tick) == ("cuda", "10us")
    assert (measurement.warmup, measurement.repeats) == (1, 2)


def test_every_option_of_solve_arrives(command: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Sequence[object]] = []

    def kept(*given: object) -> int:
        seen.append(given)
        return 0

    monkeypatch.setattr(solve, "run_solve", kept)
    assert command(
        "solve", "x.toml", "--engine", "sat", "--objective", "peak", "--within", 9,
        "--time-limit", 0.5, "--seed", 3, "--threads", 1, "--certified", "--require", "0F1<0B0",
        "--require", "0F2<0B0", "--forbid", "0F3<0F2", "--keep", "a.json", "--keep-ranks", "0,1",
        "--keep-until", 8, "-o", "b.json", "--certificate", "c.json", "--json",
    ).status == 0  # fmt: skip
    assert seen == [
        (
            "x.toml",
            SearchOptions(
                engine="sat", objective="peak", within=9, time_limit=0.5, seed=3, threads=1,
                certified=True,
            ),
            DemandOptions(
                require=["0F1<0B0", "0F2<0B0"], forbid=["0F3<0F2"], keep="a.json",
                keep_ranks="0,1", keep_until=8,
            ),
            SolveOutput(output="b.json", certificate="c.json", json=True),
        )
    ]  # fmt: skip


def test_the_models_defaults_are_those_of_the_spec() -> None:
    assert ModelOptions().spec() == ModelSpec()
