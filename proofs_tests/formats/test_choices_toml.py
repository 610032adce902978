"""The ``[choices]`` table says what it looks like it says, and refuses what makes no sense."""

from __future__ import annotations

from pathlib import Path

import pytest

from bubbleproof.formats import UnusableInput, read_problem
from bubbleproof.theory.pipelines.allowed import (
    AllowedChoices,
    AllowedEvictions,
    AllowedOffloads,
    AllowedRecompute,
)

SMALL = """
memory_unit = "bytes"
ranks = 3
microbatches = 4
[durations]
forward = 1
backward = 2
[memory]
activation = ["2 KiB", "1 KiB", "2 KiB"]
"""


def read(tables: str, tmp_path: Path) -> AllowedChoices | None:
    (tmp_path / "small.toml").write_text(SMALL + tables)
    return read_problem(tmp_path / "small.toml").allowed


def test_no_table_allows_nothing(tmp_path: Path) -> None:
    assert read("", tmp_path) is None
    assert read("[choices]", tmp_path) is None


def test_each_table_allows_its_kind(tmp_path: Path) -> None:
    allowed = read(
        """
        [choices.recompute]
        stages = [2, 0]
        kept = "1 KiB"
        duration = 7
        per_microbatch = true
        [choices.evict]
        pairs = [[0, 2], [1, 2]]
        duration = 5
        [choices.offload]
        offload = 3
        reload = 4
        host_capacity = "1 MiB"
        """,
        tmp_path,
    )
    assert allowed == AllowedChoices(
        recompute=AllowedRecompute(stages=(2, 0), kept=1024, duration=7, per_microbatch=True),
        evict=AllowedEvictions(pairs=((0, 2), (1, 2)), duration=5),
        offload=AllowedOffloads(stages=(0, 1, 2), offload=3, reload=4, host_capacity=1 << 20),
    )


def test_defaults(tmp_path: Path) -> None:
    # The middle one of three ranks is its own mirror image: it evicts nowhere.
    allowed = read("[choices.evict]\nduration = 0\n[choices.recompute]", tmp_path)
    assert allowed == AllowedChoices(
        recompute=AllowedRecompute(stages=(0, 1, 2)),
        evict=AllowedEvictions(pairs=((0, 2), (2, 0)), duration=0),
    )


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ("recompute]\nstages = [3]", "choices.recompute.stages[0]: expected another stage of 0"),
        ("recompute]\nstages = [1, 1]", "choices.recompute.stages[1]: expected another stage"),
        ("recompute]\nkept = 1025", "kept: expected at most the activation of stage 1 (1024)"),
        ('recompute]\nkept = "1 lb"', "choices.recompute.kept: expected a size in one of B, kB"),
        ("evict]", "choices.evict.duration: expected"),
        ("evict]\nduration = -1", "choices.evict.duration: expected"),
        ("evict]\nduration = 1\npairs = [[0, 0]]", "choices.evict.pairs[0]: expected another"),
        ("evict]\nduration = 1\npairs = [[0, 1], [0, 2]]", "choices.evict.pairs[1]: expected"),
        ("evict]\nduration = 1\npairs = [[0, 3]]", "choices.evict.pairs[0]: expected another"),
        ("offload]\noffload = 1\nreload = 1\nstages = [-1]", "choices.offload.stages[0]"),
        ("offload]\noffload = 1", "choices.offload.reload: expected"),
        ("guess]", "no key 'guess'"),
    ],
)
def test_refusals(tables: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(UnusableInput) as caught:
        read(f"[choices.{tables}", tmp_path)
    assert message in str(caught.value)


def test_bidirectional_pipelines_choose_nothing(tmp_path: Path) -> None:
    text = SMALL.replace("ranks = 3", 'ranks = 2\nplacement = "bidirectional"')
    text = text.replace('["2 KiB", "1 KiB", "2 KiB"]', '"1 KiB"')
    (tmp_path / "small.toml").write_text(text + "[choices.recompute]")
    with pytest.raises(UnusableInput, match="choices: expected a placement with one rank per"):
        read_problem(tmp_path / "small.toml")
