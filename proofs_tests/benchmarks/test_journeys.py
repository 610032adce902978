"""The pages that are followed are there, and a page that shows something else is told of."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="the page names torch's version")

from benchmarks.journeys import (
    INSTALLING,
    PAGES,
    STARTS,
    TORCH,
    TUTORIALS,
    Environment,
    Followed,
    followed,
    installed,
    page_of,
    size,
    typed_lines,
)
from proofs_tests.followed_pages import StepKind, steps_of

ROOT = Path(__file__).parents[2]


def test_every_page_has_something_to_follow() -> None:
    for page in (*TUTORIALS, *PAGES):
        assert steps_of((ROOT / page).read_text("utf-8")), page
    for page in TUTORIALS:
        kinds = {step.kind for step in steps_of((ROOT / page).read_text("utf-8"))}
        assert kinds - {StepKind.FILE}, page


def test_the_blocks_for_a_shell_are_typed_as_they_stand_but_for_torch() -> None:
    for page in INSTALLING:
        lines = typed_lines((ROOT / page).read_text("utf-8"))
        assert f"pip install {TORCH}" in {line.partition("  ")[0] for line in lines}
        assert "pip install '.[exec,report]'" in lines
        assert any(line.startswith("bubbleproof verify ") for line in lines)
        assert "index-url" not in "".join(lines)


def test_the_record_has_a_row_for_each_start_and_page() -> None:
    text = (ROOT / "records" / "journeys.md").read_text("utf-8")
    assert all(f"| `{page}` |" in text for page in (*TUTORIALS, *PAGES))
    assert all(f"| `{page}, its block for a shell` |" in text for page in INSTALLING)
    assert all(f"| `bubbleproof {' '.join(words)}` |" in text for words, _ in STARTS)
    one = Followed(page="a.md", blocks=6, seconds=60, words=400)
    written = page_of([("wheel", "1.0 MB", "2 MB")], [one])
    assert "| wheel | 1.0 MB | 2 MB |" in written
    # a minute of commands, one of copying, two of reading
    assert "| `a.md` | 6 | 60 s | 400 | 4 min | nothing |" in written


def test_a_page_is_followed_and_what_it_shows_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file is saved, a command and Python follow; one block is wrong, and the next right."""
    text = (
        "some words\n\n`a.txt`\n\n<!-- saved as a.txt -->\n```text\nhello\n```\n\n"
        "```console\n$ bubbleproof a.txt\nhello\n```\n\n"
        "```python\n>>> word = open('a.txt').read()\n>>> word\n'goodbye'\n```\n\n"
        "```python\n>>> word\n'hello\\n'\n```\n\n```python\n>>> nothing\n1\n```\n"
    )
    (tmp_path / "page.md").write_text(text)
    monkeypatch.setattr("benchmarks.journeys.ROOT", tmp_path)
    (tmp_path / "proofs_tests").mkdir()
    shown = (ROOT / "proofs_tests" / "shown.py").read_text()
    (tmp_path / "proofs_tests" / "shown.py").write_text(shown)
    programs, folder = tmp_path / "bin", tmp_path / "reader"
    programs.mkdir()
    folder.mkdir()
    (programs / "python").symlink_to(sys.executable)
    (programs / "bubbleproof").symlink_to("/bin/cat")
    found = followed(Environment(programs=programs, folder=folder), "page.md")
    assert (found.blocks, found.words) == (5, 8)  # some words, `a.txt`, and five of the mark
    wrong, raised = found.failures
    assert wrong == "`>>> word = open('a.txt').read()` line 3: 'hello\\n'"
    assert raised == "`>>> nothing` line 1: NameError: name 'nothing' is not defined"


def test_a_block_for_a_shell_that_fails_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.journeys.ROOT", tmp_path)
    (tmp_path / "page.md").write_text(
        "```sh\necho well > done\nls nowhere\necho more > more\n```\n"
    )
    found = installed(tmp_path, "page.md")
    assert [failure.endswith("No such file or directory") for failure in found.failures] == [True]
    assert (tmp_path / "done").exists()
    assert not (tmp_path / "more").exists()


def test_a_folders_size_is_that_of_its_files(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "a").write_bytes(b"12345")
    (tmp_path / "b").write_bytes(b"12")
    assert size(tmp_path) == 7
