"""The workflow names what exists: targets of make, extras and Pythons; and versions are pinned."""

from __future__ import annotations

import re
import shlex
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
    assert targets == {"lint", "test", "coverage", "wheel-test"}


def test_all_versions_of_python_that_are_declared_are_tested(workflow: dict[str, Any]) -> None:
    declared = [word.removeprefix(PYTHON) for word in SETTINGS["classifiers"] if PYTHON in word]
    assert workflow["jobs"]["without-torch"]["strategy"]["matrix"]["python"] == declared
    assert SETTINGS["requires-python"] == f">={declared[0]}"


def test_only_torch_and_what_needs_it_are_left_out(workflow: dict[str, Any]) -> None:
    extras = set(SETTINGS["optional-dependencies"]) - {"all"}
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
