"""The tables ``[plan]`` and ``[layers]``: what they say, and each value that cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest

from bubbleproof.theory.pipelines.allowed import AllowedChoices, AllowedRecompute
from bubbleproof.theory.pipelines.programs.spread import Spread
from bubbleproof.theory.pipelines.shapes.cut_lists import NamedCuts
from bubbleproof.theory.pipelines.shapes.layer_cuts import LayerPart, Layers
from bubbleproof.theory.pipelines.shapes.plan_space import PlanSpace
from proofs_tests.formats.problem_texts import read, refusal

SMALL = """
ranks = 2
microbatches = 3
[durations]
forward = [4, 8]
input = [2, 4]
weight = 6
[memory]
activation = 12
"""
WHOLE = SMALL.replace("input = [2, 4]\nweight = 6", "backward = 8")
LAYERED = """
memory_unit = "bytes"
ranks = 2
microbatches = 3
[memory]
capacity = "1 MiB"
message = "1 KiB"
[layers]
number = 5
forward = 3
input = 4
weight = 2
activation = "2 KiB"
released_at_input = "1 KiB"
static = "3 KiB"
[layers.embedding]
static = "1 KiB"
[layers.head]
forward = 1
backward = 2
"""


def space(text: str, tmp_path: Path) -> PlanSpace:
    found = read(text, tmp_path).plan
    assert found is not None
    return found


def test_without_the_table_nothing_is_planned(tmp_path: Path) -> None:
    found = read(SMALL, tmp_path)
    assert found.plan is None
    assert (found.rank_by, found.spread) == ("nominal", Spread())


def test_an_empty_table_is_the_shape_of_the_file(tmp_path: Path) -> None:
    found = space(SMALL + "[plan]\n", tmp_path)
    assert found == PlanSpace(pipeline=read(SMALL, tmp_path).pipeline)
    split = SMALL.replace("ranks = 2", "ranks = 2\nsplit_backward = true")
    asked = space(split + "[plan]\n", tmp_path)
    assert (asked.backward, asked.pipeline.split_backward) == (("split",), False)


def test_every_list_is_read(tmp_path: Path) -> None:
    text = (
        SMALL
        + """
        [choices.recompute]
        stages = [1]
        kept = 4
        [plan]
        chunks = [1, 2, 4]
        placements = ["wave", [1, 0], "bidirectional"]
        backward = ["split", [true, false], "mixed", "whole"]
        slices = [2, 1]
        rank_by = "p95"
        [plan.jitter]
        action_percent = 7
        rank_percent = 0
        straggler = [1, 20]
        slow_link = [0, 1, 50]
        samples = 30
        seed = 4
    """
    )
    found = space(text, tmp_path)
    assert found == PlanSpace(
        pipeline=read(SMALL, tmp_path).pipeline,
        allowed=AllowedChoices(recompute=AllowedRecompute(stages=(1,), kept=4)),
        chunks=(1, 2, 4),
        placements=("wave", (1, 0), "bidirectional"),
        backward=("split", (True, False), "mixed", "whole"),
        slices=(2, 1),
    )
    file = read(text, tmp_path)
    assert file.rank_by == "p95"
    assert file.spread == Spread(
        action_percent=7,
        rank_percent=0,
        straggler=(1, 20),
        slow_link=(0, 1, 50),
        samples=30,
        seed=4,
    )


def test_layers_stand_for_ticks_and_memory(tmp_path: Path) -> None:
    file = read(LAYERED + "[plan]\nchunks = [1]\n", tmp_path)
    assert file.plan is not None
    kib = 1024
    assert file.plan.layers == Layers(
        rule=NamedCuts(),
        runs=(
            (
                LayerPart(
                    forward=3,
                    backward=6,
                    input_backward=4,
                    weight_backward=2,
                    activation=2 * kib,
                    released=kib,
                    static=3 * kib,
                ),
                5,
            ),
        ),
        embedding=LayerPart(static=kib),
        head=LayerPart(forward=1, backward=2),
    )
    # The file's own shape has 2 and 3 layers: forward 2*3, 3*3 + 1; static 2*3 + 1, 3*3 KiB.
    own = file.pipeline
    assert (own.forward, own.backward) == ((6, 10), (12, 20))
    assert own.activation == (4 * kib, 6 * kib)
    assert own.static == (7 * kib, 9 * kib)
    assert (own.message, own.capacity) == ((kib, kib), kib * kib)
    assert file.has_split_ticks
    assert [c.layers for c in file.plan.candidates()] == [()]  # 5 are not divisible by 2


def test_the_spread_of_layers(tmp_path: Path) -> None:
    text = LAYERED.replace("number = 5", "number = 5\nspread = 0") + "[plan]\n"
    assert [c.layers for c in space(text, tmp_path).candidates()] == [(2, 3), (3, 2)]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("chunks = []", "plan: chunks must list one value or more, each once"),
        ("chunks = [1, 1]", "chunks must list one value or more, each once"),
        ("placements = []", "placements must list one value or more, each once"),
        ("backward = []", "backward must list one value or more, each once"),
        ("slices = [2, 2]", "slices must list one value or more, each once"),
        ("chunks = [0]", "plan.chunks[0]: expected a whole number of 1 or more, found 0"),
        ("chunks = [5000]", "plan.chunks[0]: expected a whole number of 4096 or less, found 5000"),
        ("chunks = 2", "plan.chunks: expected a list, found 2"),
        ('placements = ["ring"]', "plan.placements[0]"),
        ('backward = ["half"]', "plan.backward[0]"),
        ("backward = [[true]]", "one flag per rank (2), got 1 flags"),
        ('rank_by = "peak"', "plan.rank_by: expected"),
        ("chunk = [1]", "plan: no key 'chunk' (did you mean 'chunks'?); the keys are chunks"),
        (
            "jitter = {straggler = [2, 10]}",
            "plan.jitter.straggler: expected a rank of 0 to 1, found 2",
        ),
        (
            "jitter = {slow_link = [0, 2, 10]}",
            "plan.jitter.slow_link: expected a rank of 0 to 1, found 2",
        ),
        (
            "jitter = {slow_link = [0, 0, 10]}",
            "slow_link must join two different ranks, got 0 and 0",
        ),
        ("jitter = {rank_percent = 101}", "rank_percent must be 0 to 100, got 101"),
        ("jitter = {samples = 1000000}", "samples must be 1 to 100000, got 1000000"),
    ],
)
def test_a_plan_that_cannot_be_is_refused(table: str, message: str, tmp_path: Path) -> None:
    assert message in refusal(f"{SMALL}[plan]\n{table}\n", tmp_path)


def test_a_split_backward_needs_its_ticks(tmp_path: Path) -> None:
    for words in ('"split"', '"mixed"', "[true, false]"):
        text = f"{WHOLE}[plan]\nbackward = [{words}]\n"
        assert refusal(text, tmp_path).startswith(
            "plan.backward: expected durations.input and durations.weight"
        )
    read(WHOLE + '[plan]\nbackward = ["whole"]\n', tmp_path)
    layered = LAYERED.replace("input = 4\nweight = 2", "backward = 6")
    assert "expected layers.input and layers.weight" in refusal(
        layered + '[plan]\nbackward = ["split"]\n', tmp_path
    )


@pytest.mark.parametrize("key", ["chunks = 2", "slices = 2", 'placement = "wave"'])
def test_the_file_states_one_chunk_and_one_slice(key: str, tmp_path: Path) -> None:
    text = SMALL.replace("ranks = 2", f"ranks = 2\n{key}")
    for listed in ("forward = [4, 8]", "input = [2, 4]"):
        text = text.replace(listed, listed.split(" = ")[0] + " = 4")
    read(text, tmp_path)
    assert "as one chunk and one slice in a loop, got" in refusal(text + "[plan]\n", tmp_path)


def test_too_many_candidates_are_one_line(tmp_path: Path) -> None:
    wide = SMALL.replace("ranks = 2", "ranks = 4000").replace("[4, 8]", "4").replace("[2, 4]", "2")
    found = refusal(wide + '[plan]\nbackward = ["mixed"]\n', tmp_path)
    assert "at most 10000 candidates" in found
    assert len(found) < 400


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        # Embedding and head hold something: their stages need no layer, the other seven one each.
        ("ranks = 2", "ranks = 9", "layers.number: expected one per stage (7) or more, found 5"),
        ("number = 5", "number = 0", "layers.number: expected a whole number of 1 or more"),
        ("number = 5\n", "", "layers.number: expected this key, or pattern, found nothing"),
        ("number = 5\n", 'pattern = ["a"]\n', "layers.forward: expected nothing beside"),
        ("input = 4\n", "", "layers.input: expected both input and weight, found nothing"),
        ("weight = 2\n", "", "layers.weight: expected both input and weight, found nothing"),
        ("input = 4\nweight = 2\n", "", "layers.backward: expected this key, found nothing"),
        (
            "weight = 2\n",
            "weight = 2\nbackward = 7\n",
            "layers.backward: expected input + weight = 6, found 7",
        ),
        (
            "[layers]",
            "activation = 3\n[layers]",
            "memory.activation: expected nothing beside [layers], found a value",
        ),
        (
            "[layers]",
            "static = 3\n[layers]",
            "memory.static: expected nothing beside [layers], found a value",
        ),
        (
            "[memory]",
            "[durations]\nforward = 1\nbackward = 2\n[memory]",
            "durations: expected nothing beside [layers], found a table",
        ),
    ],
)
def test_layers_that_cannot_be_are_refused(
    old: str, new: str, message: str, tmp_path: Path
) -> None:
    assert refusal(LAYERED.replace(old, new, 1), tmp_path).startswith(message)


UNLIKE = """
ranks = 2
microbatches = 3
[layers]
pattern = ["tower", "dense*2 (window*2 full)*2"]
cuts = ["balanced"]
kinds.tower = { forward = 9, backward = 18 }
kinds.dense = { forward = 1, backward = 2 }
kinds.window = { forward = 2, backward = 4 }
kinds.full = { forward = 3, backward = 6 }
[plan]
"""


def test_layers_of_kinds_are_told_as_a_pattern(tmp_path: Path) -> None:
    """Nine layers in the order in which they stand, runs of one kind together."""
    space = read(UNLIKE, tmp_path).plan
    assert space is not None
    assert space.layers is not None
    ticks = [(part.forward, number) for part, number in space.layers.runs]
    assert ticks == [(9, 1), (1, 2), (2, 2), (3, 1), (2, 2), (3, 1)]
    assert [part.forward for part in space.layers.stages((2, 7))] == [10, 15]
    # 9 + 1 and 1 + 2 + 2 + 3 + 2 + 2 + 3, or 9 + 1 + 1 and 14; 11 + 2 and 12 is the lightest.
    assert space.candidates()[0].layers == (4, 5)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("tower", "other", "layers.pattern[0]: expected kinds of tower, dense, window, full"),
        ("(window*2 full)*2", "(window*2 full", "layers.pattern[1]: expected kinds with how many"),
        ("(window*2 full)*2", "((dense))", "layers.pattern[1]: expected kinds with how many"),
        ("dense*2", "dense*9999", "layers.pattern: expected 1 to 10000 layers, found 10006"),
        ("(window*2 full)*2", "(dense full)*9999", "layers.pattern[1]: expected at most 10000"),
        ("dense*2", "dense*0 ", ""),
        ("cuts", "number = 3\ncuts", "layers.number: expected nothing beside layers.pattern"),
        ("kinds.full = { forward = 3, backward = 6 }", "kinds.full = { forward = 3 }",
         "layers.kinds.full.backward: expected this key, found nothing"),
    ],
)  # fmt: skip
def test_patterns_that_cannot_be_are_refused(
    old: str, new: str, message: str, tmp_path: Path
) -> None:
    if not message:
        assert read(UNLIKE.replace(old, new, 1), tmp_path).plan is not None
        return
    assert refusal(UNLIKE.replace(old, new, 1), tmp_path).startswith(message)
