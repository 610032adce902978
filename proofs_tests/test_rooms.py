"""The rooms at the top of the repository are one with ``bubbleproof.*``, and their examples run.

pytest would import a file there by its place, ``theory.model.problem``, which is a second name for
one thing and refused; so the examples of docstrings are run here, by the modules' own names.
"""

from __future__ import annotations

import doctest
import subprocess
import sys
from importlib import import_module

import pytest

from proofs_tests.structure import BESIDE, PACKAGE, ROOT, modules

EXAMPLES = [
    name
    for name, path in modules().items()
    if name.partition(".")[0] in BESIDE and ">>> " in path.read_text("utf-8")
]


@pytest.mark.parametrize("room", BESIDE)
@pytest.mark.parametrize("statement", ["import {0}", "from {0} import model", "import {0}.x"])
def test_a_second_name_of_a_room_is_refused(room: str, statement: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", statement.format(room)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    expected = f"ImportError: import bubbleproof.{room}: {room}/ is one with it"
    assert done.stderr.splitlines()[-1] == expected


@pytest.mark.parametrize("room", BESIDE)
def test_a_room_is_a_folder_at_the_top_and_nowhere_else(room: str) -> None:
    assert not (ROOT / room).is_symlink()
    assert import_module(f"bubbleproof.{room}").__path__ == [str(ROOT / room)]


def test_nothing_else_at_the_top_hides_what_is_in_the_package() -> None:
    inside, top = ({path.stem for path in folder.iterdir()} for folder in (PACKAGE, ROOT))
    assert inside & top - {"__pycache__"} == {*BESIDE}


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_examples_of_a_docstring_run(name: str) -> None:
    try:
        module = import_module(f"bubbleproof.{name}")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "torch":
            raise
        pytest.skip("torch is not installed")
    found = doctest.testmod(module)
    assert found.attempted > 0
    assert found.failed == 0
