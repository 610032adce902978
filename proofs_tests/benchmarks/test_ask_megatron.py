"""Megatron-core's own answers, recorded, against our orders, groups and layout strings."""

from __future__ import annotations

import json
from typing import Any

import pytest

from benchmarks.frameworks.ask_megatron import (
    RECORD,
    SHAPES,
    STRINGS,
    VERSIONS,
    digest,
    drawn_shapes,
    drawn_strings,
    stages_of,
)
from bubbleproof.frameworks import framework_named
from bubbleproof.theory.families import Family, family
from bubbleproof.theory.families.interleaved import (
    InterleavedOneForwardOneBackward,
    group_choices,
)
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline

ASKED: dict[str, list[Any]] = json.loads(RECORD.read_text())


def cells(program: Program, ranks: int) -> str:
    """The digest of a program, as of Megatron's calls."""
    return digest(
        [
            [(each.kind.name, each.stage // ranks, each.microbatch) for each in order]
            for order in program.orders(ranks)
        ]
    )


def own(v: int, group: int) -> Family:
    return family("1f1b") if v == 1 else InterleavedOneForwardOneBackward(group)


def test_the_record_is_of_the_drawn_shapes_and_of_the_version_that_is_told() -> None:
    assert ASKED["versions"] == list(VERSIONS)
    assert VERSIONS[0].startswith(framework_named("megatron-core", "test").version)
    assert [tuple(row[0]) for row in ASKED["shapes"]] == drawn_shapes(SHAPES)
    assert [row[0] for row in ASKED["layouts"]] == drawn_strings(STRINGS)
    for kind in ("shapes", "layouts"):
        assert 0.3 < sum(row[1] is None for row in ASKED[kind]) / len(ASKED[kind]) < 0.8


def test_every_order_and_every_refusal_is_megatrons() -> None:
    """G left out is G = p there; one chunk is 1f1b. Cell by cell, by a digest of all ranks."""
    wrong = []
    for (p, v, m, group), told, *_ in ASKED["shapes"]:
        made = Pipeline(num_ranks=p, num_microbatches=m, num_chunks=v)
        ours = own(v, group or p)
        found = None if ours.refusal(made) else cells(ours.program(made), p)
        if found != told:
            wrong.append((p, v, m, group, told, found))
    assert not wrong


def test_a_wrong_order_is_seen() -> None:
    """Negative control: groups of one microbatch more are another order."""
    (p, v, m, group), told = next(
        row for row in ASKED["shapes"] if row[1] and row[0][1] > 1 and row[0][3]
    )
    made = Pipeline(num_ranks=p, num_microbatches=m, num_chunks=v)
    other = next(each for each in group_choices(p, m) if each != group)
    assert cells(InterleavedOneForwardOneBackward(other).program(made), p) != told


def test_the_family_without_groups_is_megatrons_where_ranks_divide_microbatches() -> None:
    seen = 0
    for (p, v, m, group), told, *_ in ASKED["shapes"]:
        if v > 1 and m % p == 0 and group in (None, p):
            made = Pipeline(num_ranks=p, num_microbatches=m, num_chunks=v)
            assert cells(family("interleaved").program(made), p) == told
            seen += 1
    assert seen > 10


@pytest.mark.parametrize("kind", [True, False])
def test_every_layout_is_read_as_megatron_reads_it(kind: bool) -> None:
    rows = [row for row in ASKED["layouts"] if (row[1] is not None) is kind]
    assert [stages_of(row[0]) for row in rows] == [row[1] for row in rows]


def test_stages_without_layers_are_among_the_layouts() -> None:
    assert any("" in row[1] for row in ASKED["layouts"] if row[1])
