"""The text of a small problem file, what is read of a text, and why one is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from bubbleproof.formats import ProblemFile, UnusableInput, read_problem

SMALL = """
ranks = 2
microbatches = 4
[durations]
forward = 10
backward = 20
"""


def read(text: str, tmp_path: Path) -> ProblemFile:
    (tmp_path / "small.toml").write_text(text)
    return read_problem(tmp_path / "small.toml")


def refusal(text: str, tmp_path: Path) -> str:
    with pytest.raises(UnusableInput) as caught:
        read(text, tmp_path)
    assert "\n" not in str(caught.value)
    return str(caught.value).replace(f"{tmp_path}/small.toml: ", "")
