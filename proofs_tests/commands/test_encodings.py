"""Output in the encodings of older consoles: what one lacks is spelled out, and nothing fails."""

from __future__ import annotations

import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest

from bubbleproof.cli import main

PROBLEM = "ranks = 2\nmicrobatches = 2\n[durations]\nforward = 1\nbackward = 2\n"
LINES = (
    "show 1f1b p=2 m=3",
    "verify 1f1b p=2 m=3",
    "verify crossed.csv",
    "measure 1f1b p=2 m=3 --why",
    "solve problem.toml --work 0.1",
    "plan plan.toml --work 0.1",
    "plan --help",
)


def printed(monkeypatch: pytest.MonkeyPatch, line: str, encoding: str) -> tuple[int, str]:
    """The exit status of a command, and what it writes to streams of that encoding."""
    out = TextIOWrapper(BytesIO(), encoding=encoding)
    err = TextIOWrapper(BytesIO(), encoding=encoding)
    with monkeypatch.context() as context:
        context.setattr(sys, "argv", ["bubbleproof", *line.split()])
        context.setattr(sys, "stdout", out)
        context.setattr(sys, "stderr", err)
        with pytest.raises(SystemExit) as stopped:
            main()
    out.flush()
    err.flush()
    told = (out.buffer.getvalue() + err.buffer.getvalue()).decode(encoding)
    return int(stopped.value.code or 0), told


@pytest.mark.parametrize("line", LINES)
def test_a_command_prints_in_any_encoding(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("problem.toml").write_text(PROBLEM, "utf-8")
    Path("plan.toml").write_text(f"{PROBLEM}[plan]\nchunks = [1]\n", "utf-8")
    Path("crossed.csv").write_text("0F0,0B0\n1B0,1F0\n")
    status, whole = printed(monkeypatch, line, "utf-8")
    assert status in (0, 1)
    for encoding in ("cp1252", "ascii"):
        found, told = printed(monkeypatch, line, encoding)
        assert found == status, told
        assert "Unicode" not in told
        assert "encod" not in told
        assert ("\\u" in told) >= ("≤" in whole and encoding == "ascii")


def test_names_of_files_are_spelled_where_they_cannot_be_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("größer≤.toml").write_text(PROBLEM, "utf-8")
    for encoding, name in (("utf-8", "größer≤"), ("cp1252", r"größer\u2264")):
        status, told = printed(monkeypatch, "solve größer≤.toml -v", encoding)
        assert (status, name in told) == (0, True)
    assert r"gr\xf6\xdfer\u2264" in printed(monkeypatch, "solve größer≤.toml -v", "ascii")[1]
    assert r"no\u2264.toml: expected a file" in printed(monkeypatch, "solve no≤.toml", "cp1252")[1]
