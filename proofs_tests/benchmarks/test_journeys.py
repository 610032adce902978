"""The pages that are timed are there, and their Python is what the pages show."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch", reason="the page names torch's version")

from benchmarks.journeys import BLOCK, PAGES, STARTS, _script, page_of, size

ROOT = Path(__file__).parents[2]


def test_every_page_has_something_to_follow() -> None:
    for page, _ in PAGES:
        assert BLOCK.search((ROOT / page).read_text("utf-8")), page


def test_the_table_has_a_row_for_each_start_and_page() -> None:
    text = (ROOT / "records" / "journeys.md").read_text("utf-8")
    assert all(f"(`{page}`)" in text for page, _ in PAGES)
    assert all(f"| `bubbleproof {' '.join(words)}` |" in text for words, _ in STARTS)
    assert "| wheel | 1.0 MB | 2 MB |" in page_of([("wheel", "1.0 MB", "2 MB")])


def test_a_pages_lines_are_a_script_that_runs_once() -> None:
    names: dict[str, object] = {"__name__": "__main__", "seen": []}
    exec(_script(["for x in (1, 2):", "    seen.append(x)", "seen.append(3)"]), names)
    assert names["seen"] == [1, 2, 3]
    names["__name__"] = "another"
    exec(_script(["seen.append(4)"]), names)
    assert names["seen"] == [1, 2, 3]


def test_a_folders_size_is_that_of_its_files(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "a").write_bytes(b"12345")
    (tmp_path / "b").write_bytes(b"12")
    assert size(tmp_path) == 7
