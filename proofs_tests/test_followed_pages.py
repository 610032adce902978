"""Tutorials and the pages of formats, followed from an empty folder: they show what is printed.

Every file is saved as the page has it, every command and line of Python is run there in order, and
what it prints must stand below. ``python -m proofs_tests.test_followed_pages`` writes the current
output into the pages.
"""

from __future__ import annotations

import os
import re
import sys
from contextlib import chdir, redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import pytest

from proofs_tests.followed_pages import FollowedStep, StepKind, as_shown, save, steps_of, with_shown
from proofs_tests.shown import normal, session
from proofs_tests.test_documents import FOLLOWED, NEEDS_TORCH, PLAIN, output

_PYTEST = re.compile(r"in \d+\.\d+s")


class Reader:
    """Somebody who follows a page in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.names = folder, dict[str, object]()

    def follow(self, step: FollowedStep) -> str:
        """Do what a step says; gives what it prints."""
        if step.kind is StepKind.FILE:
            save(step, self.folder)
            return ""
        if step.kind is StepKind.PYTHON:
            with chdir(self.folder):
                return session(step.text, self.names)
        if step.text.startswith("bubbleproof "):
            printed = output(step.text, self.folder)
            return printed if printed.strip() else ""
        return _of_pytest(step.text, self.folder)


def _of_pytest(command: str, folder: Path) -> str:
    """What pytest prints, run in this process as pytest runs its own tests."""
    before, path, out = set(sys.modules), list(sys.path), StringIO()
    words = [
        *command.split()[3:],
        "-p",
        "no:cacheprovider",
        "--capture=sys",
        "-W",
        "ignore",
        "-c",
        os.devnull,
    ]
    width = {**PLAIN, "COLUMNS": "80", "PYTEST_ADDOPTS": ""}
    with chdir(folder), patch.dict(os.environ, width), redirect_stdout(out):
        for name in ("CI", "BUILD_NUMBER"):  # there pytest cuts no line
            os.environ.pop(name, None)
        status = pytest.main([*words, "--rootdir", str(folder)])
    sys.path[:] = path
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", None) or "").startswith(str(folder)):
            del sys.modules[name]  # the page may save another file of this name
    assert status in (0, 1), out.getvalue()
    return _PYTEST.sub("in 0.50s", out.getvalue())


def _marked(page: Path) -> object:
    text = page.read_text("utf-8")
    needs = NEEDS_TORCH.search(text) or "import torch" in text
    return pytest.param(page, marks=[pytest.mark.torch] if needs else [], id=page.stem)


@pytest.mark.parametrize("page", [_marked(page) for page in FOLLOWED])
def test_a_page_that_is_followed_shows_what_is_printed(page: Path, tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    for step in steps_of(page.read_text("utf-8")):
        assert normal(reader.follow(step)) == normal(step.shown)


@pytest.mark.parametrize("page", FOLLOWED, ids=lambda page: page.stem)
def test_a_reader_sees_what_each_file_is_called(page: Path) -> None:
    """The mark is a comment, which nobody sees: the name stands above it."""
    text = page.read_text("utf-8")
    for step in steps_of(text):
        if step.kind is StepKind.FILE:
            assert f"\n`{step.name}`\n\n<!-- saved as {step.name} -->\n" in text


@pytest.mark.parametrize("page", FOLLOWED, ids=lambda page: page.stem)
def test_every_file_of_a_page_is_used_below(page: Path) -> None:
    """By a command or a line that names it, or by a file that does."""
    steps = steps_of(page.read_text("utf-8"))
    for place, step in enumerate(steps):
        if step.kind is StepKind.FILE:
            name = Path(step.name)
            others = (other.text for other in steps[place:] if other is not step)
            earlier = (other.text for other in steps[:place])
            words = {name.name, name.stem, name.parts[0]}
            assert any(word in text for text in (*others, *earlier) for word in words), name


def test_a_block_that_shows_something_else_is_noticed(tmp_path: Path) -> None:
    line = ">>> __import__('pathlib').Path('a/b.txt').read_text()"
    text = f"<!-- saved as a/b.txt -->\n```text\nhello\n```\n\n```python\n{line}\n'no'\n```\n"
    reader = Reader(tmp_path)
    file, typed = steps_of(text)
    assert (file.kind, file.name, file.typed, typed.typed) == (StepKind.FILE, "a/b.txt", 1, 1)
    assert reader.follow(file) == file.shown
    assert reader.follow(typed) != typed.shown
    assert "'hello\\n'" in with_shown(text, Reader(tmp_path).follow)
    assert "```text\nhello\n```" in with_shown(text, Reader(tmp_path).follow)


def test_what_is_lost_is_shown_below_what_is_printed() -> None:
    told = as_shown("wrote it  \n", "   0.35 s  greedy\nnot written: latencies\nwrote x.csv\n")
    assert told == "wrote it\nnot written: latencies\n"
    assert as_shown("", "wrote x.csv\n") == ""


def write_pages(pages: list[Path]) -> None:
    """Put what is printed now into the pages."""
    for page in pages:
        with TemporaryDirectory() as name:
            done = with_shown(page.read_text("utf-8"), Reader(Path(name)).follow)
        page.write_text(done, "utf-8")


if __name__ == "__main__":
    write_pages([Path(word) for word in sys.argv[1:]] or list(FOLLOWED))
