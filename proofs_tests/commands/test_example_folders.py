"""The folders of ``examples/``, one for each kind of user: what their READMEs say works."""

from __future__ import annotations

import re
import shutil
from fnmatch import fnmatch
from pathlib import Path

import pytest

from proofs_tests.commands.conftest import Run

ROOT = Path(__file__).resolve().parents[2] / "examples"
PAGES = sorted(ROOT.glob("*/README.md"))
LINES = 5
WRONG = ("verify crossed.csv", "hang hang", "trace trace")  # what they find has status 1
_TYPED = re.compile(r"`bubbleproof ([^`]+)`")
_TORCH = re.compile(r"^replay ")
TYPED = [
    pytest.param(page, line, marks=[pytest.mark.torch] if _TORCH.match(line) else [], id=line)
    for page in PAGES
    for line in _TYPED.findall(page.read_text("utf-8"))
]


def test_each_folder_has_a_page_of_five_lines() -> None:
    assert [page.parent.name for page in PAGES] == ["ci", "cluster", "model", "researcher"]
    assert {path.parent for path in PAGES} == {path for path in ROOT.iterdir() if path.is_dir()}
    for page in PAGES:
        title, blank, *lines = page.read_text("utf-8").splitlines()
        assert (title[:2], blank, len(lines)) == ("# ", "", LINES), page


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.parent.name)
def test_a_page_names_every_file_of_its_folder(page: Path) -> None:
    text = page.read_text("utf-8")
    files = [path for path in page.parent.iterdir() if path != page and path.name[0] not in "._"]
    patterns = re.findall(r"`([\w*-]+\.toml)`", text)
    left = [path.name for path in files if path.name not in text]
    assert [name for name in left if not any(fnmatch(name, each) for each in patterns)] == []


@pytest.mark.parametrize(("page", "line"), TYPED)
def test_what_a_page_tells_to_type_works(
    page: Path, line: str, command: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "hf:" in line:
        pytest.importorskip("transformers")
    here = tmp_path / page.parent.name
    shutil.copytree(page.parent, here)
    monkeypatch.chdir(here)
    answer = command(*line.split())
    assert answer.status == line.startswith(WRONG), answer.err
    assert "bubbleproof: " not in answer.err
