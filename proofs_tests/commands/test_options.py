"""Option groups: spread over a command, put together again, shown under their headings."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from importlib import import_module
from math import inf
from types import ModuleType
from typing import Annotated, ClassVar, get_type_hints

import pytest
from typer import Argument, Option, Typer

import bubbleproof as bp
from bubbleproof import cli
from bubbleproof.cli import app
from bubbleproof.commands import solve
from bubbleproof.commands.measuring import measure
from bubbleproof.commands.options.option_groups import (
    GivenOptions,
    HeadedCommand,
    OptionGroup,
    runs,
    seconds_given,
)
from bubbleproof.commands.options.shared_options import (
    DemandOptions,
    Detail,
    SolveOutput,
)
from bubbleproof.commands.replaying import profile, replay
from bubbleproof.commands.replaying.replay_options import (
    CommunicationOptions,
    MeasurementOptions,
    ModelOptions,
    PipelineOptions,
    ProfileRequest,
    ReplayOutput,
    ReplayRequest,
    RunOptions,
    TrainingOptions,
)
from bubbleproof.declared import declared
from bubbleproof.formats.layouts.problem_file_layout import SolveLayout
from bubbleproof.planners import PlanOptions
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.plans.training import LossScale, Training
from bubbleproof.reference_exec.plans.zero_levels import ZeroLevels
from bubbleproof.solvers import SolveOptions
from proofs_tests.commands.conftest import Run

MODEL = (
    "--model", "llama", "--hidden", 16, "--layers", "1,2", "--heads", 4, "--kv-heads", 2,
    "--sequence", 6, "--batch", 3, "--vocabulary", 11, "--tied", "--dtype", "float32",
    "--model-seed", 9,
)  # fmt: skip
SPEC = ModelSpec(
    kind="llama",
    hidden=16,
    layers=(1, 2),
    heads=4,
    kv_heads=2,
    sequence=6,
    batch=3,
    vocabulary=11,
    tied=True,
    dtype="float32",
    seed=9,
)
LLAMA = ModelOptions(
    model="llama",
    hidden=16,
    layers="1,2",
    heads=4,
    kv_heads=2,
    sequence=6,
    batch=3,
    vocabulary=11,
    tied=True,
    dtype="float32",
    model_seed=9,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape(OptionGroup):
    HEADING: ClassVar[str] = "Shape"

    width: Annotated[int, Option(help="Across.")]
    round_: Annotated[bool, Option("--round")] = False


def sections(text: str) -> dict[str, list[str]]:
    """The options and arguments of a help page by their heading, in their order; no examples."""
    found: dict[str, list[str]] = {}
    heading = ""
    for line in text.partition("\n  Examples:\n")[0].splitlines():
        if title := re.fullmatch(r"(\w+):", line):
            heading = title[1]
        elif option := re.match(r"  (\S+)", line):
            found.setdefault(heading, []).append(option[1])
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure(OptionGroup):
    name: Annotated[str, Argument()]
    shape: Shape


def drawing(seen: list[tuple[Figure, int]]) -> Callable[..., int]:
    """A command whose work is to keep what it is given."""

    @runs("commands.measuring.measure.kept")
    def draw(figure: Figure, size: int = 3) -> None:
        """Draws."""

    def kept(figure: Figure, size: int) -> int:
        seen.append((figure, size))
        return 4

    measure.kept = kept  # type: ignore[attr-defined]  # found by its name when the command runs
    return draw


def test_a_group_is_spread_and_gathered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "kept", None, raising=False)  # and away when the test ends
    seen: list[tuple[Figure, int]] = []
    draw = drawing(seen)
    signature = inspect.signature(draw)
    assert list(signature.parameters) == ["name", "width", "round_", "size"]
    assert signature.parameters["width"].default is inspect.Parameter.empty
    assert signature.parameters["round_"].default is False
    assert draw(name="x", width=2, round_=True, size=5) == 4
    assert seen == [(Figure(name="x", shape=Shape(width=2, round_=True)), 5)]


def test_two_options_of_one_name_are_refused() -> None:
    def twice(width: int, shape: Shape) -> None:
        del width, shape

    with pytest.raises(ValueError, match="duplicate parameter name: 'width'"):
        inspect.signature(runs("commands.measuring.measure.run_measure")(twice))


def test_every_option_keeps_its_name_on_the_way() -> None:
    """What does a command's work takes the parameters that the command line gives it."""
    assert len(kept_names(cli)) == len(app.registered_commands)


def kept_names(commands: ModuleType) -> list[str]:
    """The commands of a module, of each of which that is so."""
    checked = []
    for node in ast.parse(inspect.getsource(commands)).body:
        works = [
            [argument.value for argument in decorator.args if isinstance(argument, ast.Constant)]
            for decorator in getattr(node, "decorator_list", ())
            if isinstance(decorator, ast.Call)
            and isinstance(decorator.func, ast.Name)
            and decorator.func.id == "runs"
        ]
        if not works:
            continue
        assert isinstance(node, ast.FunctionDef)
        (named, *options), *_ = works
        module, _, function = str(named).rpartition(".")
        known = vars(import_module(f"bubbleproof.{options[0]!s}")) if options else None
        work = getattr(import_module(f"bubbleproof.{module}"), function)
        assert [*inspect.signature(work).parameters] == [arg.arg for arg in node.args.args]
        hints, asked = (
            get_type_hints(work),
            get_type_hints(getattr(commands, node.name).__wrapped__, localns=known),
        )
        assert hints["return"] is int
        for name in inspect.signature(work).parameters:
            assert hints[name] == asked[name] or hints[name] == wider(asked[name]), (
                node.name,
                name,
            )
        checked.append(node.name)
    return checked


def wider(hint: object) -> object:
    """A sequence in place of the list that the command line makes."""
    if hint == list[str]:
        return Sequence[str]
    return Sequence[str] | None if hint == list[str] | None else hint


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
        "--backend",
        "--device",
        "--seed",
        "--unsafe",
        "--no-count-bytes",
        "--no-count-work",
        "--dialect",
        "-h,",
    ]
    assert shown["Communication"] == ["--comm", "--timeout", "--torchrun", "--share-gpu"]
    assert shown["Output"] == ["-o,", "--explain", "--json", "-q,", "-v,", "--all"]
    assert shown["Model"] == [word for word in MODEL if str(word).startswith("--")]
    assert sections(command("profile", "--help").out)["Model"] == shown["Model"]


def options_of(callback: Callable[..., object]) -> list[object]:
    """What is said of each parameter of a command: an option or an argument of typer."""
    return [
        each.annotation.__metadata__[0] for each in inspect.signature(callback).parameters.values()
    ]


def test_every_command_shows_each_option_once(command: Run) -> None:
    shows_each_option_once(app, command)


def shows_each_option_once(of: Typer, command: Run) -> None:
    """The help of each command."""
    for info in of.registered_commands:
        assert info.callback is not None
        name = info.name or info.callback.__name__
        shown = sections(command(name, "--help").out)
        rows = [row for heading in shown if heading for row in shown[heading]]
        told = [each for each in options_of(info.callback) if not getattr(each, "hidden", False)]
        assert len(rows) == len(set(rows)) == 1 + len(told)
        assert (info.cls is HeadedCommand) == (name in ("solve", "replay", "profile"))


def test_every_option_of_replay_arrives(command: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[ReplayRequest] = []

    def kept(request: ReplayRequest) -> int:
        seen.append(request)
        return 0

    monkeypatch.setattr(replay, "run_replay", kept)
    assert command("replay", "1f1b", "p=2").status == 0
    assert command(
        "replay", "x.csv", *MODEL, "--backend", "gloo", "--device", "cuda", "--seed", 7,
        "--unsafe", "--no-count-bytes", "--no-count-work", "--dialect", "old",
        "--steps", 3, "--optimizer", "adam",
        "--learning-rate", 0.5, "--barrier", "--clip", 2, "--accumulate", 5,
        "--loss-scale", 8, "--data-parallel", 4,
        "--zero", "2,norm=1",
        "--comm", "rendezvous", "--timeout", 9, "--torchrun", "--share-gpu",
        "-o", "a.html", "-o", "b.json", "--explain", "--json", "--verbose", "--all",
    ).status == 0  # fmt: skip
    plain = ReplayRequest(schedule=["1f1b", "p=2"])
    full = ReplayRequest(
        schedule=["x.csv"],
        run=RunOptions(
            backend="gloo",
            device="cuda",
            seed=7,
            unsafe=True,
            no_count_bytes=True,
            no_count_work=True,
            dialect="old",
        ),
        model=LLAMA,
        training=TrainingOptions(
            steps=3,
            optimizer="adam",
            learning_rate=0.5,
            barrier=True,
            clip=2.0,
            accumulate=5,
            loss_scale="8",
            data_parallel=4,
            zero="2,norm=1",
        ),
        communication=CommunicationOptions(
            comm="rendezvous", timeout=9.0, torchrun=True, share_gpu=True
        ),
        output=ReplayOutput(output=["a.html", "b.json"], explain=True, json=True),
        detail=Detail(verbose=True, all=True),
    )
    assert seen == [plain, full]
    assert full.model.spec() == SPEC
    assert full.training.levels() == ZeroLevels.parse("2,norm=1")
    assert full.training.asked() == Training(
        optimizer="adam",
        steps=3,
        learning_rate=0.5,
        has_barrier=True,
        clip=2.0,
        accumulate=5,
        loss_scale=LossScale(value=8.0),
    )
    # every option was given something else than its default
    for group in ("run", "model", "training", "communication", "output"):
        one, other = getattr(plain, group), getattr(full, group)
        assert all(getattr(one, f.name) != getattr(other, f.name) for f in fields(one))


def test_every_option_of_profile_arrives(command: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[ProfileRequest] = []

    def kept(request: ProfileRequest) -> int:
        seen.append(request)
        return 0

    monkeypatch.setattr(profile, "run_profile", kept)
    assert command(
        "profile", *MODEL, "-o", "x.toml", "--ranks", 3, "--microbatches", 5, "--chunks", 2,
        "--placement", "wave", "--whole", "--latency", 4, "--capacity", "1 GiB", "--device",
        "cuda", "--warmup", 1, "--repeats", 2, "--tick", "10us", "--json",
    ).status == 0  # fmt: skip
    assert seen == [
        ProfileRequest(
            output="x.toml",
            pipeline=PipelineOptions(
                ranks=3,
                microbatches=5,
                chunks=2,
                placement="wave",
                whole=True,
                latency=4,
                capacity="1 GiB",
            ),
            measurement=MeasurementOptions(device="cuda", warmup=1, repeats=2, tick="10us"),
            model=LLAMA,
            json=True,
        )
    ]


def test_every_option_of_solve_arrives(command: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Sequence[object]] = []

    def kept(**given: object) -> int:
        values = (
            each.values if isinstance(each, GivenOptions) else each for each in given.values()
        )
        seen.append(tuple(values))
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
            {
                "engine": "sat",
                "objective": "peak",
                "within": 9,
                "threads": 1,
                "seed": 3,
                "certified": True,
                "time_limit": 0.5,
                "work": None,
                "memory": None,
            },
            DemandOptions(
                require=["0F1<0B0", "0F2<0B0"],
                forbid=["0F3<0F2"],
                keep="a.json",
                keep_ranks="0,1",
                keep_until=8,
            ),
            SolveOutput(output="b.json", certificate="c.json", json=True),
        )
    ]


def test_the_models_defaults_are_those_of_the_spec() -> None:
    assert ModelOptions().spec() == ModelSpec()


@pytest.mark.parametrize(
    ("given", "seconds"),
    [("10", 10), ("1.5", 1.5), ("10s", 10), ("2min", 120), ("500ms", 0.5), ("1 h", 3600), (7.0, 7)],
)
def test_a_time_has_a_unit_or_counts_seconds(given: str | float, seconds: float) -> None:
    assert seconds_given(given) == seconds


@pytest.mark.parametrize("given", ["3 fortnights", "10 m", "soon", "", "-5s", "1,5"])
@pytest.mark.parametrize("option", ["--time-limit", "--timeout"])
def test_another_time_is_refused_with_the_units(command: Run, option: str, given: str) -> None:
    words = ["solve"] if option == "--time-limit" else ["replay"]
    answer = command(*words, "1f1b p=2 m=3", option, given)
    assert (answer.status, answer.out) == (2, "")
    assert answer.err.startswith(f"bubbleproof: Invalid value for '{option}': expected a time")
    if re.fullmatch(r"\d+ \w+", given):
        assert "in one of ns, us, ms, s, min, h" in answer.err


def test_every_output_has_a_long_name() -> None:
    """Whatever ``-o`` names is ``--output`` too."""
    for info in app.registered_commands:
        assert info.callback is not None
        for each in options_of(info.callback):
            names = (each.default, *(each.param_decls or ()))  # type: ignore[attr-defined]  # of typer
            assert ("-o" in names) == ("--output" in names)


def test_little_and_much_are_not_asked_at_once() -> None:
    assert Detail(verbose=True).has_tables
    assert not Detail(quiet=True).has_tables
    for more in ({"verbose": True}, {"all": True}):
        with pytest.raises(ValueError, match="-q prints the first line alone"):
            Detail(quiet=True, **more)


@pytest.mark.parametrize(("name", "kind"), [("solve", SolveOptions), ("plan", PlanOptions)])
def test_a_function_at_the_door_takes_what_is_declared(name: str, kind: type) -> None:
    """With the declared default; what a file may say is None there, a time too."""
    taken = inspect.signature(getattr(bp, name)).parameters
    for each in declared(kind):
        default = taken[each.name].default
        assert default == each.default or (default is None and each.said.is_in_file), each.name


def test_a_problem_file_has_the_keys_that_are_declared() -> None:
    keys = {each.name for each in declared(SolveOptions) if each.said.is_in_file}
    assert {*SolveLayout.model_fields} == keys
    assert SolveLayout().objective == SolveOptions().objective


@pytest.mark.parametrize(("name", "kind"), [("solve", SolveOptions), ("plan", PlanOptions)])
def test_the_command_line_says_what_is_declared(command: Run, name: str, kind: type) -> None:
    shown = " ".join(command(name, "--help").out.split())
    for each in declared(kind):
        assert f"--{each.name.replace('_', '-')}" in shown
        assert each.said.help.rstrip(".") in shown


def test_what_is_given_goes_before_the_file_and_the_file_before_the_default() -> None:
    file = SolveLayout(time_limit=1, memory=1 << 30)
    asked: list[tuple[dict[str, float], float]]
    asked = [({}, 1), ({"time_limit": 0.5}, 0.5), ({"work": 2.0}, inf)]
    for given, limit in asked:
        found = SolveOptions.asked(given, file)
        assert (found.time_limit, found.memory, found.threads) == (limit, 1 << 30, 2)
    assert SolveOptions.asked({"time_limit": None}).time_limit == 60
    assert GivenOptions(SolveOptions, {"memory": "2 GiB"}).options(file).memory == 2 << 30
