"""Rows of a problem file: costs by slice, weights in parts, the work space of GEMMs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bubbleproof.formats import UnusableInput
from bubbleproof.theory.pipelines.pipeline import Pipeline
from proofs_tests.formats.problem_texts import read, refusal

ROWS = """
ranks = 2
microbatches = 3
slices = 2
split_backward = true
[durations]
forward = [[3, 4]]
input = [[3, 4], [6, 8]]
weight_parts = [1, 2]
"""


def test_slices_of_unequal_cost_and_weights_in_parts(tmp_path: Path) -> None:
    file = read(ROWS, tmp_path)
    assert file.pipeline == Pipeline(
        num_ranks=2,
        num_microbatches=3,
        num_slices=2,
        split_backward=True,
        forward=((3, 4), (3, 4)),
        backward=((6, 7), (9, 11)),
        input_backward=((3, 4), (6, 8)),
        weight_backward=3,
        weight_parts=((1, 2), (1, 2)),
    )
    assert file.has_split_ticks


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ('"1 KiB"', ((1024, 1024), (1024, 1024))),
        ('["1 KiB", 7]', ((1024, 7), (1024, 7))),
        ('[["1 KiB", 7], [0, 1]]', ((1024, 7), (0, 1))),
        ("0", ()),
    ],
)
def test_the_workspace_of_gemms(text: str, rows: object, tmp_path: Path) -> None:
    memory = f"[memory]\nweight_workspace = {text}\n"
    file = read('memory_unit = "bytes"' + ROWS + memory, tmp_path)
    assert file.pipeline.weight_workspace == rows


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1, 2, 3]", "weight_workspace of stage 0 must be one number per part of W (2), got 3"),
        (
            "[[1, 2], [1]]",
            "weight_workspace of stage 1 must be one number per part of W (2), got 1",
        ),
        ('[["1 KB", 0], [0, 0]]', "memory.weight_workspace[0][0]: expected a size in one of B, kB"),
    ],
)
def test_workspace_that_does_not_fit_is_refused(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(UnusableInput, match=re.escape(message)):
        read(ROWS + f"[memory]\nweight_workspace = {text}\n", tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[[3, 4]]", "[[3, 4, 5]]",
         "durations.forward: "
         "forward of stage 0 must be one number per slice (2), got 3"),
        ("[[3, 4]]", "[[3, 4], 5]",
         "durations.forward[0]: expected a number or a text such as \"9 ms\", found a list of 2"),
        ("[[3, 4]]", "[[3, -4]]",
         "durations.forward[0][1]: expected a number of 0 or more, found -4"),
        ("[1, 2]", "[]", "durations.weight_parts: expected one part or more, found none"),
        ("[1, 2]", "[[1, 2], []]", "durations.weight_parts: expected one part or more, found none"),
        ("[1, 2]", "[1, 2]\nweight = 4",
         "durations.weight: expected weight_parts = 3 on slice 0 of stage 0, found 4"),
        ("[1, 2]", "[1, 2]\nbackward = 6",
         "durations.backward: expected input + weight = 7 on slice 1 of stage 0, found 6"),
        ("input = [[3, 4], [6, 8]]", "",
         "durations.input: expected both input and weight, found nothing"),
    ],
)  # fmt: skip
def test_refused_rows(old: str, new: str, message: str, tmp_path: Path) -> None:
    assert refusal(ROWS.replace(old, new, 1), tmp_path) == message
