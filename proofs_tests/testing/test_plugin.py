"""The pytest plugin: found by its entry point, light, and its fixtures fail readably."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from proofs_tests.structure import files

ROOT = Path(__file__).resolve().parents[2]

SUITE = """
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.model.schedule import Program

STEP = Pipeline(num_ranks=2, num_microbatches=1)


def test_good(assert_valid):
    assert_valid(STEP, Program.from_orders([["0F0", "0B0"], ["1F0", "1B0"]]))


def test_bad(assert_valid):
    assert_valid(STEP, Program.from_orders([["0F0", "0B0"], ["1B0", "1F0"]]))


def test_file(assert_valid_file, tmp_path):
    (tmp_path / "table.csv").write_text("0F0,0B0\\n1B0,1F0\\n")
    assert_valid_file(tmp_path / "table.csv")
"""

REPLAYS = """
import multiprocessing

import pytest

from proofs_tests.structure import files

from bubbleproof.reference_exec.replaying import replay
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.plans.run_options import ReplayOptions
from bubbleproof.theory.families import member

SEEN = set()


@pytest.mark.parametrize("family", ["gpipe", "1f1b"])
def test_replay(family, gloo_pool):
    found = member(family, p=2, m=2)
    options = ReplayOptions(backend="gloo")
    report = replay(found.pipeline, found.schedule, ModelSpec(), options, pool=gloo_pool)
    assert report.ok
    SEEN.update(process.pid for process in multiprocessing.active_children())
    assert len(SEEN) == 2
"""


def test_the_entry_point_names_the_plugin() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    module = project["entry-points"]["pytest11"]["bubbleproof"]
    assert importlib.import_module(module).__name__ == "bubbleproof.testing.plugin"


def test_fixtures_pass_and_fail_with_the_counterexample(tmp_path: Path) -> None:
    (tmp_path / "test_suite.py").write_text(SUITE)
    words = ["-m", "pytest", "-q", "-p", "bubbleproof.testing.plugin", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, *words, "--rootdir", str(tmp_path), "-c", os.devnull, "test_suite.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    out = done.stdout
    assert "2 failed, 1 passed" in out, out + done.stderr
    first = "invalid schedule, dependencies: deadlock: 1B0 waits for 1F0 waits for 1B0"
    assert out.count(f"InvalidSchedule: {first}") >= 2
    assert "rank 1  [1B0]  [1F0]" in out
    assert "def _required" not in out  # the trace ends in the user's test


def test_replays_of_a_session_share_their_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    (tmp_path / "test_replays.py").write_text(REPLAYS)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    words = ["-q", "-p", "bubbleproof.testing.plugin", "-p", "no:cacheprovider"]
    place = ["--rootdir", str(tmp_path), "-c", os.devnull, str(tmp_path)]
    assert pytest.main([*words, *place]) == pytest.ExitCode.OK
    assert multiprocessing.active_children() == []


def test_loading_the_plugin_loads_nothing_heavy() -> None:
    code = "import sys, pytest, bubbleproof.testing.plugin; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    loaded = {name.split(".")[0] for name in done.stdout.split()}
    assert loaded.isdisjoint({"numpy", "hypothesis", "pydantic", "ortools", "z3", "torch"})
    assert "pytest" in loaded


def test_no_other_room_imports_hypothesis() -> None:
    users = {
        name
        for name, path in files().items()
        if "import hypothesis" in (text := path.read_text()) or "from hypothesis" in text
    }
    assert users == {"testing/__init__.py", "testing/strategies.py"}  # the first in its example
