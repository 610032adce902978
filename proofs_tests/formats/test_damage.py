"""Damaged files: whatever is changed in them, a reader reads or refuses in one short line."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bubbleproof.formats import (
    ScheduleFile,
    UnusableInput,
    infer_pipeline,
    read_problem,
    read_schedule,
    read_table,
    write_schedule,
    write_table,
)
from bubbleproof.theory.families import member
from proofs_tests.sized import sized

EXAMPLE = Path(__file__).parents[2] / "examples" / "researcher" / "split-backward.toml"
SMALL = member("zb-h1", p=2, m=2)

edits = st.lists(
    st.tuples(
        st.floats(0, 1, exclude_max=True),
        st.sampled_from('0123456789-[]{}"=.,\n FBIWx(;)é'),
        st.integers(0, 2),
    ),
    min_size=1,
    max_size=4,
)


def damaged(text: str, changes: list[tuple[float, str, int]]) -> str:
    """The text with characters replaced, inserted or cut, each at a fraction of its length."""
    for place, character, cut in changes:
        at = int(place * len(text))
        text = text[:at] + character[: 2 - cut] + text[at + cut :]
    return text


def table(path: Path) -> None:
    infer_pipeline(read_table(path).program)


def sources(folder: Path) -> dict[str, Callable[[Path], object]]:
    write_schedule(
        folder / "pipeline", ScheduleFile.of(SMALL.problem, SMALL.schedule, pipeline=SMALL.pipeline)
    )
    write_schedule(folder / "problem", ScheduleFile.of(SMALL.problem, SMALL.schedule))
    write_table(folder / "table", SMALL.schedule.program)
    (folder / "example").write_text(EXAMPLE.read_text())
    return {
        "pipeline": read_schedule,
        "problem": read_schedule,
        "table": table,
        "example": read_problem,
    }


@cache
def texts() -> list[tuple[str, Callable[[Path], object]]]:
    with TemporaryDirectory() as folder:
        found = sources(Path(folder))
        return [((Path(folder) / name).read_text(), read) for name, read in found.items()]


@given(changes=edits)
@settings(max_examples=sized(80, full=200))
def test_damage(
    changes: list[tuple[float, str, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "damaged"
    for text, read in texts():
        path.write_text(damaged(text, changes), encoding="utf-8")
        message = refusal(read, path)
        assert "\n" not in message
        assert len(message) < 1000


def refusal(read: Callable[[Path], object], path: Path) -> str:
    """The message of the reader's refusal, empty where it reads the file."""
    try:
        read(path)
    except UnusableInput as error:
        return str(error)
    return ""
