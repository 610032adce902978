"""Every command with its defaults: workers, limits, widths and backend are those of its users."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer

from bubbleproof.cli import app
from bubbleproof.commands import bench
from bubbleproof.commands.serving.local_server import LocalServer
from bubbleproof.solvers.engine_runs import INSTANCES
from proofs_tests.commands.conftest import Run
from proofs_tests.commands.output_schemas import schema_of
from proofs_tests.costs.measured_cases import B200
from proofs_tests.traces.made_traces import MadeRun

# Rank 1 has 2 * (3 + 4) = 14 ticks of work, after 1 and before 2 of rank 0: 17.
PROBLEM = "ranks = 2\nmicrobatches = 2\n[durations]\nforward = [1, 3]\nbackward = [2, 4]\n"
SMALL = ("1f1b", "p=2", "m=2")
NO_CALLS = """{"version": "2.10", "entries": [],
"pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0]"}}}"""

# What each must be given, and a word of its answer.
GIVEN: dict[str, tuple[tuple[str, ...], str]] = {
    "run": (("small.toml",), "report    runs/small/report.html"),
    "solve": (("small.toml",), "17 tick"),
    "repair": (SMALL, "9 tick"),  # 1F1B is (m + p - 1) * 3
    "pareto": (("small.toml",), "17 tick"),
    "plan": (("plan.toml",), "OPTIMAL  VPP 1, full backward: 17 ticks"),
    "bench": ((), "cpsat"),
    "verify": (SMALL, "rank-stream"),
    "costs": (("gpt2",), "gpt2 has 124 M parameters"),  # the published number of its weights
    "calibrate": (("rows.csv", "-o", "x.toml"), "12 rows"),
    "estimate": (("rows.csv", "--hardware", "b200"), "849 ms  66.5 GiB"),  # measured: 66.55
    "measure": (SMALL, "9 ticks"),
    "diff": (
        ("1f1b p=2 m=2", "1f1b p=2 m=2"),
        "SAME  1f1b p=2 m=2 and 1f1b p=2 m=2: 8 actions",
    ),  # F and B: 2 p m
    "replay": (SMALL, "gradients"),
    "profile": (("-o", "x.toml", "--ranks", "1", "--microbatches", "1"), "x.toml"),
    "hang": (("dumps",), "no rank waits for another"),
    "trace": (("traces",), "no stage is slow: "),
    "show": (SMALL, "rank 1  .  F0 B0"),
    "serve": ((), "http://127.0.0.1:"),
    "convert": ((*SMALL, "x.json"), ""),
    "families": ((), "zb-h1"),
    "cards": ((), "H100-SXM5-80GB"),
    "models": ((), "llama-3-70b"),
    "frameworks": ((), "megatron-core"),
    "hand-over": ((*SMALL, "--to", "torch", "-o", "out"), "UNSUPPORTED.md"),
}


def commands() -> dict[str, list[typer.core.TyperOption | typer.core.TyperArgument]]:
    """The commands of the command line and what each may be given."""
    group = typer.main.get_command(app)
    return {name: command.params for name, command in group.commands.items()}  # type: ignore[attr-defined]  # of a group


def test_every_command_is_run_with_its_defaults() -> None:
    assert set(GIVEN) == set(commands())


def test_a_command_without_such_a_test_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(GIVEN, "pareto")
    with pytest.raises(AssertionError):
        test_every_command_is_run_with_its_defaults()


def test_what_every_command_prints_as_json_has_a_schema() -> None:
    """A new one gets it by the two lines of ``output_schemas``."""
    with_json = {n for n, params in commands().items() for p in params if "--json" in p.opts}
    assert {name for name in with_json if schema_of(name) is None} == set()


@pytest.mark.parametrize("name", GIVEN)
def test_nothing_is_given_that_has_a_default(name: str) -> None:
    optional = {word for p in commands()[name] if not p.required for word in p.opts}
    assert not optional & set(GIVEN[name][0])


def marked(name: str) -> object:
    """A command's name, with the marker ``torch`` where its answer needs torch."""
    needs_torch = name in {"run", "replay", "profile"}
    return pytest.param(name, marks=[pytest.mark.torch] if needs_torch else [])


def prepare(
    name: str, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> tuple[tuple[str, ...], str]:
    """What a command is given and what it says, with the files for it; what is long is short."""
    monkeypatch.chdir(folder)
    Path("small.toml").write_text(PROBLEM)
    Path("plan.toml").write_text(f"{PROBLEM}[plan]\n")
    Path("rows.csv").write_text(B200)
    dump = Path("dumps") / "nccl_trace_rank_0.json"
    dump.parent.mkdir()
    dump.write_text(NO_CALLS)
    Path("traces").mkdir()
    made = MadeRun(name="1f1b", params={"p": 2, "m": 2}, lasting=lambda _a, _s: 1_000_000, steps=1)
    made.run().write(Path("traces"))
    first = dict(list(INSTANCES.items())[:1])  # the others take their whole limit
    monkeypatch.setattr(bench, "INSTANCES", first)
    monkeypatch.setattr(LocalServer, "serve_forever", lambda _server: None)  # until Ctrl-C
    return GIVEN[name]


@pytest.mark.parametrize("name", map(marked, GIVEN))
def test_defaults(command: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str) -> None:
    words, told = prepare(name, monkeypatch, tmp_path)
    answer = command(name, *words)
    assert answer.status == 0, answer.err
    assert told in answer.out
