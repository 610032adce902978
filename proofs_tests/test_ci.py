"""The workflow names what exists: targets of make, extras and Pythons; and versions are pinned."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from bubbleproof.theory.pipelines.programs.pytorch_runtime import NEWEST, OLDEST, shown
from proofs_tests.lowest import constraints

ROOT = Path(__file__).parents[1]
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
PROJECT = (ROOT / "pyproject.toml").read_text("utf-8")
SETTINGS = tomllib.loads(PROJECT)["project"]
PYTHON = "Programming Language :: Python :: "


@pytest.fixture(scope="module")
def workflow() -> dict[str, Any]:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    found: dict[str, Any] = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text("utf-8"))
    return found


def commands(workflow: dict[str, Any]) -> list[list[str]]:
    """The words of each step that runs something."""
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    return [shlex.split(step["run"]) for step in steps if "run" in step]


def test_every_step_makes_a_target_with_variables_that_exist(workflow: dict[str, Any]) -> None:
    (phony,) = re.findall(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)
    variables = set(re.findall(r"^(\w+) \?=", MAKEFILE, re.MULTILINE))
    for make, target, *given in commands(workflow):
        assert make == "make"
        assert target in phony.split()
        assert re.search(rf"^{target}:", MAKEFILE, re.MULTILINE)
        assert {word.partition("=")[0] for word in given} <= variables
    targets = {words[1] for words in commands(workflow)}
    assert targets == {"lint", "test", "coverage", "wheel-test", "site"}


def test_all_versions_of_python_that_are_declared_are_tested(workflow: dict[str, Any]) -> None:
    declared = [word.removeprefix(PYTHON) for word in SETTINGS["classifiers"] if PYTHON in word]
    assert workflow["jobs"]["without-torch"]["strategy"]["matrix"]["python"] == declared
    assert SETTINGS["requires-python"] == f">={declared[0]}"


def test_only_torch_and_what_needs_it_are_left_out(workflow: dict[str, Any]) -> None:
    extras = set(SETTINGS["optional-dependencies"]) - {"all", "site"}  # the site has its own job
    assert SETTINGS["optional-dependencies"]["all"] == [f"bubbleproof[{','.join(sorted(extras))}]"]
    assert set(workflow["env"]["WITHOUT_TORCH"].split(",")) == extras - {"exec", "models"}
    assert SETTINGS["optional-dependencies"]["exec"] == [
        word for word in SETTINGS["optional-dependencies"]["exec"] if word.startswith("torch>=")
    ]


def test_torch_is_asked_for_in_the_versions_whose_tables_are_known() -> None:
    (asked,) = SETTINGS["optional-dependencies"]["exec"]
    beyond = (NEWEST[0], NEWEST[1] + 1)
    assert asked == f"torch>={shown(OLDEST)},<{shown(beyond)}"


def test_every_requirement_but_torch_has_a_lowest_version() -> None:
    lists = [SETTINGS["dependencies"], *SETTINGS["optional-dependencies"].values()]
    names = {re.split(r"[>=\[]", word)[0] for words in lists for word in words}
    lowest = dict(line.split("==") for line in constraints(PROJECT))
    assert set(lowest) == names - {"torch", "bubbleproof"}


def test_every_requirement_is_pinned_for_the_suite() -> None:
    lines = (ROOT / "constraints.txt").read_text("utf-8").lower().splitlines()
    pinned = {line.partition("==")[0] for line in lines}
    assert {line.partition("==")[0] for line in constraints(PROJECT)} <= pinned


def test_the_action_calls_a_command_that_exists(tmp_path: Path) -> None:
    """Its last step, run by bash with the inputs' defaults, writes both files."""
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    action = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
    last = action["runs"]["steps"][-1]
    given = {name: str(row.get("default", "")) for name, row in action["inputs"].items()}
    given["paths"] = str(ROOT / "examples" / "ci" / "launch-order.csv")
    given["options"] = "--comm buffered"
    inputs = re.compile(r"\$\{\{ inputs\.(\w+) \}\}")
    asked = {key: inputs.fullmatch(value) for key, value in last["env"].items()}
    environment = {key: given[match[1]] for key, match in asked.items() if match}
    assert set(environment) == set(last["env"])
    shim = f'bubbleproof() {{ "{sys.executable}" -m bubbleproof "$@"; }}'
    done = subprocess.run(
        ["bash", "-euc", f"{shim}\n{last['run']}"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "1 of 1 valid" in done.stdout
    assert {path.name for path in tmp_path.iterdir()} == {"bubbleproof.sarif", "bubbleproof.xml"}


def test_the_hook_takes_what_is_in_folders_named_schedules() -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
    assert shlex.split(hook["entry"])[:2] == ["bubbleproof", "verify"]
    assert re.search(hook["files"], "src/schedules/a.csv")
    assert re.search(hook["files"], "schedules/deep/a.json")
    assert not re.search(hook["files"], "my_schedules/a.csv")
    assert not re.search(hook["files"], "schedules/a.toml")
