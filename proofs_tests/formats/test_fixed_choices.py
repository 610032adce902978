"""What is chosen of a pipeline stands in a problem file, by the names that ``Choices`` has."""

from __future__ import annotations

from dataclasses import fields
from random import Random

import pytest

from bubbleproof.formats.errors import UnusableInput
from bubbleproof.formats.layouts.derived_layout import plain
from bubbleproof.formats.problem_toml import problem_file_of_text, problem_of
from bubbleproof.formats.toml_text import toml_text
from bubbleproof.theory.pipelines.choices import Choices
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.recompute import Recompute
from bubbleproof.theory.pipelines.value_types import declared
from proofs_tests.random_choices import combined
from proofs_tests.sized import sized

OF_THE_FILE = {"placement", "split_backward", "weight_parts"}
HINTS = declared(Choices)


def table(choices: Choices) -> dict[str, object]:
    """``[choices]`` of these: every field that is not its default, as a file holds it."""
    found = {
        field.name: plain(getattr(choices, field.name), HINTS[field.name])
        for field in fields(Choices)
        if field.name not in OF_THE_FILE and getattr(choices, field.name) != field.default
    }
    if isinstance(again := found.get("recompute"), dict):
        again["fixed"] = True
        found["recompute"] = without_nothing(again)
    return {name: without_nothing(value) for name, value in found.items()}


def without_nothing(value: object) -> object:
    """TOML has no null: what is None is left out."""
    if isinstance(value, dict):
        return {name: without_nothing(one) for name, one in value.items() if one is not None}
    return [without_nothing(one) for one in value] if isinstance(value, list) else value


def content(pipeline: Pipeline) -> dict[str, object]:
    """A problem file of the shape and the choices; of the numbers those that choices look at."""
    is_split = pipeline.split_backward is True
    return {
        "ranks": pipeline.num_ranks,
        "microbatches": pipeline.num_microbatches,
        "chunks": pipeline.num_chunks,
        "slices": pipeline.num_slices,
        "placement": plain(pipeline.placement),
        "split_backward": is_split,
        "durations": {
            "forward": plain(pipeline.forward),
            **({} if is_split else {"backward": plain(pipeline.backward)}),
            "input": plain(pipeline.input_backward),
            "weight": plain(pipeline.weight_backward),
        },
        "memory": {"activation": plain(pipeline.activation)},
        "choices": table(pipeline.choices),
    }


IN_THE_FILE = (
    "num_ranks",
    "num_microbatches",
    "num_chunks",
    "num_slices",
    "forward",
    "backward",
    "input_backward",
    "weight_backward",
    "activation",
    "choices",
)


def drawn(seed: int) -> Pipeline:
    """One with choices of a file: a backward is split everywhere or nowhere, and adds up."""
    made = combined(Random(seed))
    ticks = made.ticks
    return made.with_changes(
        split_backward=made.split_backward is True,
        weight_parts=(),
        weight_workspace=(),
        overlaps=() if made.split_backward is True else made.overlaps,
        waits=(),  # of actions that another way to run backwards does not have
        backward=tuple(map(tuple, (ticks.input_backward + ticks.weight_backward).tolist())),
    )


@pytest.mark.sweep
def test_every_choice_is_read_from_a_problem_file_as_it_was_written() -> None:
    seen: set[str] = set()
    for seed in range(sized(60, full=1_000)):
        pipeline = drawn(seed)
        text = toml_text(content(pipeline))
        found = problem_file_of_text(text, name="drawn").pipeline
        assert found == Pipeline(**{name: getattr(pipeline, name) for name in IN_THE_FILE}), text
        seen |= table(pipeline.choices).keys()
    assert seen >= {field.name for field in fields(Choices)} - OF_THE_FILE - {"waits"}


BASE = {"ranks": 2, "microbatches": 3, "durations": {"forward": 1, "input": 1, "weight": 1}}


def chosen(**choices: object) -> Choices:
    return problem_of({**BASE, "choices": choices}, name="x").pipeline.choices


def test_choices_are_read_as_they_are_written_by_hand() -> None:
    assert chosen(frozen_stages=[0]).frozen_stages == (0,)
    assert chosen(host_capacity=4).host_capacity == 4
    (wait,) = chosen(waits=[["0B0", "0F2"]]).waits
    assert [str(action) for action in wait] == ["0B0", "0F2"]


def test_stages_that_do_recompute_are_no_choice_of_the_solver() -> None:
    file = problem_of({**BASE, "choices": {"recompute": {"fixed": True}}}, name="x")
    assert file.pipeline.recompute == Recompute(stages=(0, 1))
    assert file.allowed is None
    one = chosen(recompute={"fixed": True, "samples": [[1, 2]], "duration": 2}).recompute
    assert one == Recompute(samples=((1, 2),), duration=2)
    both = chosen(recompute={"fixed": True, "stages": [0], "samples": [[1, 2]]}).recompute
    assert both == Recompute(stages=(0,), samples=((1, 2),))


@pytest.mark.parametrize(
    ("choices", "more", "message"),
    [
        ({"frozen": [0]}, {}, "did you mean 'frozen_stages'?"),
        ({"frozen_stages": 0}, {}, "choices.frozen_stages: expected a list, found 0"),
        ({"frozen_stages": [5]}, {}, "stage 5"),
        ({"waits": [["0B0"]]}, {}, "choices.waits[0]: expected more entries"),
        ({"waits": [["0B0", "F"]]}, {}, "choices.waits[0][1]"),
        ({"sharding": {"zero": 9}}, {}, "choices.sharding"),
        ({"overlaps": [["0F1", "0W0"]]}, {}, "choices.overlaps[0]"),
        ({"recompute": {"samples": [[0, 1]]}}, {}, "expected fixed = true beside them"),
        (
            {"recompute": {"fixed": True, "per_microbatch": True}},
            {},
            "choices.recompute.per_microbatch: expected nothing beside fixed = true",
        ),
        (
            {"recompute": {"fixed": True, "stages": [0, 0]}},
            {},
            "choices.recompute: each recomputed stage is named once",
        ),
        (
            {"recompute": {}, "frozen_stages": [0]},
            {},
            "choices.frozen_stages: expected nothing beside what the solver may choose",
        ),
        (
            {"frozen_stages": [0]},
            {"plan": {"chunks": [1, 2]}},
            "choices.frozen_stages: expected nothing beside [plan] with other chunks or slices",
        ),
    ],
)
def test_what_cannot_be_chosen_is_refused_with_its_place(
    choices: dict[str, object], more: dict[str, object], message: str
) -> None:
    with pytest.raises((UnusableInput, ValueError)) as caught:
        problem_of({**BASE, **more, "choices": choices}, name="x").pipeline.problem()
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
