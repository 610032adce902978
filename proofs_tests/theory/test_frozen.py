"""Frozen stages: no W, and a backward of an I's ticks that keeps nothing for one."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

import bubbleproof as bp
from bubbleproof.formats import ScheduleFile, read_schedule, write_schedule
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.choices import Choices
from bubbleproof.theory.pipelines.choices_aloud import listed_choices, read_aloud
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.shapes.plan_space import PlanSpace
from bubbleproof.theory.pipelines.sharding import Sharding
from bubbleproof.verify.candidates.chosen import foreign_step
from bubbleproof.verify.required import differences
from proofs_tests.random_choices import combined
from proofs_tests.theory.pipeline_rows import edges, events

TWO = Pipeline(
    num_ranks=2,
    num_microbatches=1,
    split_backward=True,
    forward=3,
    input_backward=5,
    weight_backward=7,
    activation=4,
    released_at_input=-1,
    weight_workspace=2,
    frozen_stages=(0,),
)


def test_the_tasks_and_the_memory_of_a_frozen_stage_by_hand() -> None:
    made = TWO.problem()
    # Stage 0 has no W; stage 1 has one, with a residual of 1 from the start of its I.
    ticks = {made.label(task): int(made.duration[task]) for task in range(made.num_tasks)}
    assert ticks == {"0F0": 3, "1F0": 3, "0B0": 5, "1I0": 5, "1W0": 7}
    assert edges(made) == Counter(
        [
            ("0F0", "1F0", 0),
            ("0F0", "0B0", 0),
            ("1F0", "1I0", 0),
            ("1I0", "0B0", 0),
            ("1I0", "1W0", 0),
        ]
    )
    of_stage_0 = {key: n for key, n in events(made).items() if key[0].startswith("0")}
    assert of_stage_0 == {("0F0", "start", 0, 4): 1, ("0B0", "end", 0, -4): 1}


@pytest.mark.parametrize("number", range(60))
def test_what_is_required_is_stated_twice(number: int) -> None:
    """Of pipelines with any other choices, but those that frozen stages have no meaning with."""
    left_out = ("waits", "state_offload", "sharding", "frozen_stages")
    plain = combined(Random(number), without=left_out)
    stages = [g for g in range(plain.num_stages) if Random(f"{number}.{g}").random() < 0.5] or [0]
    if len(stages) == plain.num_stages:  # no backward is left for other choices to speak of
        kept = {name: getattr(plain, name) for name in ("placement", "split_backward")}
        plain = plain.with_changes(choices=Choices(weight_parts=plain.weight_parts, **kept))
    frozen = plain.with_changes(frozen_stages=tuple(stages))
    assert differences(frozen, frozen.problem()) == []
    # Where a B takes longer than an I, no stage is the same frozen and trained.
    frozen = frozen.with_changes(input_backward=1, backward=3)
    trained = frozen.with_changes(frozen_stages=())
    assert differences(frozen, trained.problem()) != []
    assert differences(trained, frozen.problem()) != []


def test_a_schedule_of_it_is_found_and_every_rule_holds() -> None:
    found = bp.solve(TWO.with_changes(num_microbatches=3))
    assert found.schedule is not None
    assert bp.check(TWO.with_changes(num_microbatches=3), found.schedule).ok
    trained = bp.solve(TWO.with_changes(num_microbatches=3, frozen_stages=()))
    assert trained.schedule is not None
    assert not bp.check(TWO.with_changes(num_microbatches=3), trained.schedule).ok


def test_it_is_written_and_read_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    file = ScheduleFile(problem=TWO.problem(), program=Program.from_orders([]), pipeline=TWO)
    write_schedule(path, file)
    choices = json.loads(path.read_text())["pipeline"]["choices"]
    assert choices == {"split_backward": True, "frozen_stages": [0]}
    assert read_schedule(path).pipeline == TWO


def test_it_reads_aloud() -> None:
    three = Pipeline(num_ranks=3, num_microbatches=1, frozen_stages=(1, 0))
    assert read_aloud(three) == ("stage 0 is frozen", "stage 1 is frozen")
    assert listed_choices(three.choices)["frozen"] == [0, 1]
    assert "frozen" not in listed_choices(replace(three.choices, frozen_stages=()))
    assert read_aloud(three.with_changes(frozen_stages=(0, 1, 2))) == (
        "nothing is trained: no backward runs",
    )


def test_what_it_refuses() -> None:
    with pytest.raises(ValueError, match=r"each frozen stage is named once, got \(0, 0\)"):
        TWO.with_changes(frozen_stages=(0, 0)).problem()
    with pytest.raises(ValueError, match="stage 2 has no F of its own"):
        TWO.with_changes(frozen_stages=(2,)).problem()
    with pytest.raises(TypeError, match="frozen_stages must be a tuple of stages, got int 1"):
        TWO.with_changes(frozen_stages=1)
    with pytest.raises(ValueError, match="frozen_stages and sharding have no meaning together"):
        TWO.with_changes(sharding=Sharding(zero=1, gather=1, reduce=1))


def test_no_replay_runs_it() -> None:
    found = bp.solve(TWO)
    assert found.schedule is not None
    with pytest.raises(ValueError, match="a replay trains every stage or none; leave out frozen"):
        bp.replay(TWO, found.schedule)


def test_a_plan_may_not_leave_out_the_work_of_its_problem() -> None:
    trained = TWO.with_changes(frozen_stages=())
    refused = "its frozen_stages leaves out work of the problem's step"
    assert foreign_step(PlanSpace(pipeline=trained), TWO) == refused
    assert foreign_step(PlanSpace(pipeline=trained), trained) is None
