"""What a ``Pipeline`` accepts has a Problem: whatever is wrong is said when it is made.

Values of every field and of every kind of choice are drawn (``random_choices``), and most of them
are then damaged: numbers out of range, things that are not there, rows of other lengths, values of
other types. Where such a pipeline is made, its problem is there; where not, one line says why.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import fields, is_dataclass, replace
from random import Random
from typing import Any

import pytest

from bubbleproof.theory.model.actions import Action, Kind
from bubbleproof.theory.pipelines.choices import CHOICES
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.pipeline_statement import PipelineStatement
from bubbleproof.theory.pipelines.recompute import Recompute
from bubbleproof.theory.pipelines.sharding import Sharding
from bubbleproof.theory.pipelines.transfers import Eviction
from proofs_tests.random_choices import DRAWERS, anything, drawer_of, shape_of
from proofs_tests.sized import sized

COUNT = sized(300, full=20_000)
NAMES = (*(f.name for f in fields(PipelineStatement) if f.name != "choices"), *CHOICES)
HOSTILE = (-1, 0, 1, 2, 3, 7, 99, 5_000, 1 << 40, 1 << 59, 1 << 62, 10**40, None, "1", 1.5, True)


def damaged(random: Random, value: object) -> object:
    """The value with one thing in it changed, at any depth."""
    if isinstance(value, tuple) and value and random.random() < 0.85:
        at = random.randrange(len(value))
        match random.randrange(5):
            case 0:
                return value[:at] + value[at + 1 :]
            case 1:
                return (*value, value[at])
            case _:
                return (*value[:at], damaged(random, value[at]), *value[at + 1 :])
    if is_dataclass(value) and not isinstance(value, type) and random.random() < 0.9:
        name = random.choice([f.name for f in fields(value)])
        return replace(value, **{name: damaged(random, getattr(value, name))})
    return random.choice([*Kind] if isinstance(value, Kind) else HOSTILE)


@pytest.mark.sweep
def test_what_is_made_has_a_problem() -> None:
    """300 statements, 20,000 with ``BUBBLEPROOF_SWEEP=full``."""
    seen: Counter[str] = Counter()
    for number in range(COUNT):
        random = Random(number)
        drawn = anything(random, shape_of(random, 3, 3))
        assert drawn.problem().num_tasks
        name = random.choice(NAMES)
        try:
            given = drawn.with_changes(**{name: damaged(random, getattr(drawn, name))})
        except (ValueError, TypeError) as error:
            seen["refused" if str(error).count("\n") == 0 else f"{number}: {error}"] += 1
            continue
        assert given.problem().num_tasks, (number, name)
        seen["made"] += 1
    assert {*seen} == {"refused", "made"}
    assert min(seen.values()) > COUNT / 10


def test_every_field_is_drawn() -> None:
    shape = {"num_ranks", "num_microbatches", "num_chunks", "num_slices"}
    assert {*NAMES} - shape == {*DRAWERS}
    with pytest.raises(AssertionError, match="a_new_kind has no drawer"):
        drawer_of("a_new_kind")


def act(kind: Kind, stage: int, microbatch: int) -> Action:
    return Action(kind=kind, stage=stage, microbatch=microbatch)


MOVED: dict[str, Any] = {"microbatch": 0, "source": 0, "target": 1, "duration": 1}
CLASHES: dict[str, tuple[dict[str, Any], str]] = {
    "a frozen stage that is not there": ({"frozen_stages": (7,)}, "stage 7 has no F"),
    "frozen twice": ({"frozen_stages": (1, 1)}, "each frozen stage is named once"),
    "evicted from another rank": (
        {"evictions": (Eviction(stage=1, **MOVED),)},
        "an eviction needs the forward and the backward of stage 1 microbatch 0 on rank 0",
    ),
    "evicted to a rank that is not there": (
        {"evictions": (Eviction(stage=0, **{**MOVED, "target": 5}),)},
        "an eviction goes to a rank of 0..1, got 5",
    ),
    "a microbatch that is not there": (
        {"recompute": Recompute(samples=((0, 9),))},
        "stage 0 has no forward of microbatch 9",
    ),
    "more kept than held": ({"recompute": Recompute(stages=(0,), kept=2)}, "kept (2) exceeds"),
    "an overlap across ranks": (
        {"overlaps": (((0, 1), (1, 0)),)},
        "overlap needs 0F1 and 1B0 as tasks of one rank",
    ),
    "an overlap with half a backward": (
        {"overlaps": (((0, 1), (0, 0)),), "split_backward": True},
        "overlap needs 0F1 and 0B0 as tasks of one rank",
    ),
    "a wait for what is not there": (
        {"waits": ((act(Kind.F, 0, 0), act(Kind.W, 0, 1)),)},
        "a wait names 0W1, which is no task",
    ),
    "weights of other stages": (
        {"sharding": Sharding(zero=3, gather=1, reduce=1, parameter=(1, 2, 3))},
        "parameter must be one number or one per stage (2)",
    ),
    "too many ticks": ({"forward": 1 << 59}, "must add up to less than 2**60 ticks"),
    "a number too large": ({"static": 10**40}, "static must be less than 2**60"),
    "too many slices": ({"num_slices": 5_000}, "slice must be 0 to 4094, got 4999"),
}


@pytest.mark.parametrize("name", CLASHES)
def test_a_clash_is_said_when_the_pipeline_is_made(name: str) -> None:
    changes, words = CLASHES[name]
    with pytest.raises(ValueError, match=r"\A.*\Z") as found:
        Pipeline(num_ranks=2, num_microbatches=2, **changes)
    assert words in str(found.value)


def test_a_circle_of_waits_is_a_pipeline_without_a_schedule() -> None:
    """No order has it; that is an answer (``solve``: infeasible), and no fault of the statement."""
    first, second = act(Kind.F, 0, 0), act(Kind.F, 0, 1)
    circle = Pipeline(num_ranks=1, num_microbatches=2, waits=((first, second), (second, first)))
    assert circle.problem().num_tasks == 4


UNSPLIT = (
    "input_backward and weight_backward are ticks of split backwards, but split_backward is False"
)


@pytest.mark.parametrize("given", [{"input_backward": 1}, {"weight_backward": (1, 2)}])
def test_halves_of_backwards_that_run_whole_are_refused(given: dict[str, Any]) -> None:
    """Told alone they were left out, and whole backwards took the 2 ticks of nobody's choice."""
    both = {"input_backward": 1, "weight_backward": 1, **given}
    for halves in (given, both):
        with pytest.raises(ValueError, match=UNSPLIT):
            Pipeline(num_ranks=2, num_microbatches=2, **halves)
        told: list[dict[str, Any]] = [{"split_backward": True}, {"backward": 3}]
        told.append({"frozen_stages": (0,)})
        for more in told:
            made = Pipeline(num_ranks=2, num_microbatches=2, **halves, **more)
            assert made.with_changes(unit="us") == made.with_changes(unit="us")


def test_the_text_of_a_pipeline_makes_it_again() -> None:
    both = Pipeline(num_ranks=2, num_microbatches=2, input_backward=5, backward=2)
    assert "backward=2, input_backward=5" in repr(both)
    assert eval(repr(both), {"Pipeline": Pipeline}) == both  # our own text
