"""Schedule files read back as they were written, and tell what they cannot say."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import fields, replace
from fractions import Fraction
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubbleproof.formats import ScheduleFile, UnusableInput, read_schedule, write_schedule
from bubbleproof.formats.layouts.derived_layout import layout_of
from bubbleproof.formats.layouts.pipeline_layout import PipelineLayout, pipeline_from_layout
from bubbleproof.formats.schedule_json import is_same_problem
from bubbleproof.theory.families import member
from bubbleproof.theory.model.actions import Action, ActionTable
from bubbleproof.theory.model.problem import (
    Edges,
    MemoryEvents,
    Occupancy,
    Problem,
    Resource,
    Store,
)
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.theory.pipelines.activation_offload import ActivationOffload
from bubbleproof.theory.pipelines.choices import Choices
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.recompute import Recompute
from bubbleproof.theory.pipelines.sharding import Sharding
from bubbleproof.theory.pipelines.state_offload import StateOffload
from bubbleproof.theory.pipelines.transfers import Eviction
from bubbleproof.verify.required import differences
from proofs_tests.formats.strategies import pipelines, schedules
from proofs_tests.random_choices import combined
from proofs_tests.sized import sized


def assert_same(one: ScheduleFile, other: ScheduleFile) -> None:
    assert is_same_problem(one.problem, other.problem)
    assert [str(a) for a in one.program.actions] == [str(a) for a in other.program.actions]
    assert one.program.resource.tolist() == other.program.resource.tolist()
    assert (one.pipeline, one.name) == (other.pipeline, other.name)
    assert dict(one.claims) == dict(other.claims)
    assert one.schedule is not None
    assert other.schedule is not None
    assert one.schedule.start.tolist() == other.schedule.start.tolist()


@given(data=st.data(), pipeline=pipelines(), is_raw=st.booleans(), name=st.text(max_size=5))
def test_round_trip(
    data: st.DataObject,
    pipeline: Pipeline,
    is_raw: bool,
    name: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    problem = pipeline.problem()
    schedule = data.draw(schedules(problem))
    written = ScheduleFile.of(problem, schedule, pipeline=None if is_raw else pipeline, name=name)
    path = tmp_path_factory.mktemp("round") / "a.json"
    write_schedule(path, written)
    assert_same(written, read_schedule(path))


def transfer_problem() -> Problem:
    """Two ranks and a link: rank 0's activations move to rank 1 while it computes."""
    actions = [Action.parse(text) for text in ("0F0", "0EVICT0", "0LOAD0", "0B0", "1F0")]
    return Problem(
        resources=(
            Resource(name="rank 0", rank=0),
            Resource(name="rank 1", rank=1),
            Resource(name="link"),
        ),
        actions=ActionTable.from_actions(actions),
        duration=np.array([2, 1, 1, 4, 0]),
        occupancy=Occupancy(
            task=np.array([0, 1, 2, 3, 4, 4]), resource=np.array([0, 2, 2, 0, 1, 2])
        ),
        edges=Edges(before=np.array([0, 1]), after=np.array([1, 2]), lag=np.array([0, 3])),
        stores=(Store(name="here", base=5, capacity=9), Store(name="there")),
        events=MemoryEvents(
            task=np.array([0, 1]),
            at_end=np.array([False, True]),
            store=np.array([0, 1]),
            delta=np.array([4, -4]),
        ),
        unit="us",
        memory_unit="bytes",
    )


def test_hand_built_problem_is_written_in_words(tmp_path: Path) -> None:
    problem = transfer_problem()
    program = Program.from_orders([["0F0", "0B0"], ["1F0"], ["0EVICT0", "0LOAD0", "1F0"]])
    schedule = Schedule(
        program=program,
        start=np.array([0, 9, 1, 2, 6, 1]),
        claims={"makespan": 13, "idle_ratio": Fraction(1, 2), "peak_memory": (9, 0)},
    )
    path = tmp_path / "a.json"
    written = ScheduleFile.of(problem, schedule, name="eviction")
    write_schedule(path, written)
    assert_same(written, read_schedule(path))
    content = json.loads(path.read_text())
    assert content["problem"]["tasks"][4] == ["1F0", 0, ["rank 1", "link"]]
    assert content["problem"]["edges"][1] == ["0EVICT0", "0LOAD0", 3]
    assert content["problem"]["stores"][0] == {"name": "here", "base": 5, "capacity": 9}
    assert content["problem"]["events"][1] == ["0EVICT0", "end", "there", -4]
    assert content["orders"]["link"] == [["0EVICT0", 2], ["0LOAD0", 6], ["1F0", 1]]
    assert content["claims"] == {"makespan": 13, "idle_ratio": "1/2", "peak_memory": [9, 0]}


def test_layout_has_every_field_of_a_pipeline() -> None:
    assert list(PipelineLayout.model_fields) == [field.name for field in fields(Pipeline)]
    plain = PipelineLayout(num_ranks=1, num_microbatches=1)
    assert pipeline_from_layout(plain) == Pipeline(num_ranks=1, num_microbatches=1)


def test_layout_has_every_choice() -> None:
    schema = layout_of(Choices).model_json_schema()
    assert list(layout_of(Choices).model_fields) == [field.name for field in fields(Choices)]
    kinds = {
        "recompute": Recompute,
        "evictions": Eviction,
        "offloads": ActivationOffload,
        "state_offload": StateOffload,
        "sharding": Sharding,
    }
    for name, kind in kinds.items():
        told = schema["properties"][name]
        layout = re.search(r"#/\$defs/(\w+)", str(told))
        assert layout is not None
        properties = schema["$defs"][layout[1]]["properties"]
        assert set(properties) == {field.name for field in fields(kind)}


@pytest.mark.sweep
@pytest.mark.parametrize("number", range(sized(24, full=60)))
def test_combined_choices_are_read_back_as_they_were(number: int, tmp_path: Path) -> None:
    pipeline = combined(Random(number))
    if number % 3 == 0:
        wait = (Action.parse("0F0"), Action.parse("0B0"))
        pipeline = combined(Random(number), without=("split_backward",)).with_changes(waits=(wait,))
    problem = pipeline.problem()
    program = Program.from_orders([])
    path = tmp_path / "a.json"
    write_schedule(path, ScheduleFile(problem=problem, program=program, pipeline=pipeline))
    again = read_schedule(path)
    assert again.pipeline == pipeline
    assert differences(again.pipeline, again.problem) == []


def test_a_file_of_version_1_is_read(tmp_path: Path) -> None:
    shape = {
        "num_ranks": 2,
        "num_microbatches": 2,
        "placement": [1, 0],
        "overlaps": [["0F1", "0B0"]],
    }
    content = {
        "format": "bubbleproof/schedule",
        "version": 1,
        "pipeline": shape,
        "program": {"rank 0": [], "rank 1": []},
    }
    path = tmp_path / "a.json"
    path.write_text(json.dumps(content))
    assert read_schedule(path).pipeline == Pipeline(
        num_ranks=2, num_microbatches=2, placement=(1, 0), overlaps=(((0, 1), (0, 0)),)
    )


PIPELINE = {"num_ranks": 2, "num_microbatches": 1}
FILE: dict[str, object] = {
    "format": "bubbleproof/schedule",
    "version": 1,
    "pipeline": PIPELINE,
    "program": {"rank 0": ["0F0", "0B0"], "rank 1": ["1F0", "1B0"]},
}


def write(path: Path, **changes: object) -> Path:
    """The small file with some keys changed, or removed where the change is None."""
    content = {key: value for key, value in (FILE | changes).items() if value is not None}
    path.write_text(json.dumps(content))
    return path


def test_program_without_starts_is_left_shifted(tmp_path: Path) -> None:
    file = read_schedule(write(tmp_path / "a.json"))
    assert file.schedule is not None
    # 0F0 at 0, 1F0 after it at 1, 1B0 at 2, and 0B0 after those 2 ticks at 4; rows stand by rank.
    assert file.schedule.start.tolist() == [0, 4, 1, 2]
    assert not file.has_communication


def test_deadlock_keeps_its_program(tmp_path: Path) -> None:
    orders = {"rank 0": ["0B0", "0F0"], "rank 1": ["1F0", "1B0"]}
    file = read_schedule(write(tmp_path / "a.json", program=orders))
    assert file.schedule is None
    assert [str(a) for a in file.program.actions] == ["0B0", "0F0", "1F0", "1B0"]
    write_schedule(tmp_path / "b.json", file)
    again = read_schedule(tmp_path / "b.json")
    assert again.schedule is None
    assert [str(a) for a in again.program.actions] == ["0B0", "0F0", "1F0", "1B0"]


def test_lowered_program_is_kept(tmp_path: Path) -> None:
    orders = {"rank 0": ["0F0", "0SEND_F0"], "rank 1": ["1RECV_F0", "1F0"]}
    file = read_schedule(write(tmp_path / "a.json", program=orders))
    assert file.schedule is None
    assert file.has_communication


def test_orders_in_any_order_of_resources(tmp_path: Path) -> None:
    orders = {"rank 1": [["1F0", 1], ["1B0", 2]], "rank 0": [["0F0", 0], ["0B0", 4]]}
    file = read_schedule(write(tmp_path / "a.json", program=None, orders=orders))
    assert file.schedule is not None
    assert [str(a) for a in file.program.actions] == ["0F0", "0B0", "1F0", "1B0"]
    assert file.schedule.start.tolist() == [0, 4, 1, 2]


def calls_of(action: Callable[[], object]) -> int:
    """How many functions an action calls, those of C included."""
    counts = Counter[str]()

    def hear(frame: object, event: str, called: object) -> None:
        del frame, called
        counts[event] += 1

    sys.setprofile(hear)
    try:
        action()
    finally:
        sys.setprofile(None)
    return counts["call"] + counts["c_call"]


def test_the_work_grows_with_the_tasks_and_no_faster(tmp_path: Path) -> None:
    def work(microbatches: int) -> int:
        large = member("interleaved", p=4, m=microbatches, v=2)  # 16 tasks for each
        file = ScheduleFile.of(large.problem, large.schedule, pipeline=large.pipeline)
        path = tmp_path / f"{microbatches}.json"

        def there_and_back() -> None:
            write_schedule(path, file)
            assert_same(file, read_schedule(path))

        return calls_of(there_and_back)

    assert work(320) < 10.5 * work(32)


def unwritable(file: ScheduleFile, tmp_path: Path) -> str:
    path = tmp_path / "a.json"
    path.write_text("old")
    with pytest.raises(UnusableInput) as caught:
        write_schedule(path, file)
    assert path.read_text() == "old"
    return str(caught.value).replace(f"{tmp_path}/", "")


def test_write_refuses_another_pipeline(tmp_path: Path) -> None:
    small = member("1f1b", p=2, m=2)
    other = small.pipeline.with_changes(capacity=2)
    message = (
        "a.json: problem: expected the problem of its pipeline, "
        "found another one; leave out the pipeline"
    )
    file = ScheduleFile.of(small.problem, small.schedule, pipeline=other)
    assert unwritable(file, tmp_path) == message


def test_write_refuses_a_negative_start(tmp_path: Path) -> None:
    small = member("1f1b", p=2, m=1)
    early = replace(small.schedule, start=small.schedule.start - 3)
    message = "a.json: orders: expected starts of 0 ticks or more, found -3"
    assert unwritable(ScheduleFile.of(small.problem, early), tmp_path) == message


def test_write_refuses_a_resource_that_is_not_there(tmp_path: Path) -> None:
    small = member("1f1b", p=2, m=1)
    away = replace(small.schedule.program, resource=small.schedule.program.resource + 1)
    file = ScheduleFile.of(small.problem, replace(small.schedule, program=away))
    message = "a.json: program: expected resources 0 to 1 of the problem, found resource 2"
    assert unwritable(file, tmp_path) == message


def test_write_refuses_a_claim_that_a_reader_would(tmp_path: Path) -> None:
    small = member("1f1b", p=2, m=1)
    file = ScheduleFile.of(small.problem, replace(small.schedule, claims={"makespan": "1/0"}))
    message = "a.json: claims.makespan: expected a whole number, found '1/0'"
    assert unwritable(file, tmp_path) == message


def test_write_refuses_names_that_stand_twice(tmp_path: Path) -> None:
    problem = transfer_problem()
    twice = replace(problem, stores=(Store(name="here"), Store(name="here")))
    file = ScheduleFile(problem=twice, program=Program.from_orders([]))
    message = "a.json: stores: expected names that differ, found 'here' twice"
    assert unwritable(file, tmp_path) == message
