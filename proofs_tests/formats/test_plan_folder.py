"""What stands in a plan's folder beside the plan."""

from __future__ import annotations

from pathlib import Path

import pytest

from bubbleproof.formats.plans.plan_folder import table_beside
from bubbleproof.formats.schedule_file import ScheduleFile
from bubbleproof.theory.families import member


@pytest.mark.parametrize(("name", "is_written"), [("1f1b", True), ("bpipe", False)])
def test_a_table_of_what_evicts_is_not_written(name: str, is_written: bool, tmp_path: Path) -> None:
    drawn, path = member(name, p=4, m=8), tmp_path / "schedule.csv"
    given = ScheduleFile.of(drawn.problem, drawn.schedule, pipeline=drawn.pipeline, name=name)
    told = table_beside(path, given)
    assert path.exists() == is_written
    assert len(told) == (not is_written)
    for line in told:
        assert line.startswith("no schedule.csv: expected actions that a PyTorch table has words")
        assert str(tmp_path) not in line
