"""docs/reference/dependencies.md names what pyproject.toml asks for, and says why."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.dependencies import CORE, END, ROOT, WHY, main, packages, requirements, tables

PAGE = ROOT / "docs" / "reference" / "dependencies.md"


def test_the_page_has_a_row_for_each_dependency_and_a_table_for_each_extra() -> None:
    text = PAGE.read_text("utf-8").partition(END)[0]
    sections = text.split("\n## ")[1:]
    groups = requirements()
    assert len(sections) == len(groups)
    for section, (extra, names) in zip(sections, groups.items(), strict=True):
        assert section.startswith(f'`pip install "bubbleproof[{extra}]"`' if extra else "`pip")
        for name in names:
            assert f"| {name} | " in section
            assert f" | {WHY[name]} |" in section


def test_packages_that_come_along_name_who_asks_for_them() -> None:
    found = {package.name: package for package in packages(["ortools"])}
    assert next(iter(found)) == "ortools"
    assert found["protobuf"].why == "asked for by ortools"
    assert (found["numpy"].size or 0) > 10_000_000
    assert "numpy" not in {p.name for p in packages(["ortools"], known=frozenset({"numpy"}))}
    assert packages(["no-such-package"])[0].size is None


def test_the_tables_are_replaced_and_the_rest_of_the_page_stays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.md"
    few = {group: requirements()[group] for group in (CORE, "cvc5", "sat")}
    monkeypatch.setattr("benchmarks.dependencies.requirements", lambda: dict(few))
    made = tables()  # once, and of few: to weigh all files of all packages takes seconds
    monkeypatch.setattr("benchmarks.dependencies.tables", lambda: made)
    page.write_text(f"# Title\n\nabove\n\n## `pip install\nold\n{END}\n\nbelow\n")
    main(write=page)
    main()
    assert capsys.readouterr().out == made
    assert page.read_text("utf-8") == f"# Title\n\nabove\n\n{made}\n{END}\n\nbelow\n"
