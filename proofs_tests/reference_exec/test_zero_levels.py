"""ZeRO levels by parameter name, and what lies where in flat buffers."""

from __future__ import annotations

import pytest
import torch

from bubbleproof.reference_exec.models.footprint import weight_bytes
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.models.reference import Stage
from bubbleproof.reference_exec.plans.shard_layout import Segment, StageLayout
from bubbleproof.reference_exec.plans.zero_levels import ZeroLevels


def test_levels_go_by_the_parts_of_a_name() -> None:
    levels = ZeroLevels.parse("3,norm=1,bias=2")
    names = ["layers.0.up.weight", "layers.1.norm2.weight", "layers.1.norm1.bias", "down_bias"]
    assert [levels.of(name) for name in names] == [3, 1, 2, 2]
    assert str(levels) == "3,norm=1,bias=2"
    assert levels.highest == 3
    assert ZeroLevels.parse("1").of("anything") == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "ZeRO levels must be a level, perhaps with other levels of names"),
        ("norm=1", "ZeRO levels must be a level, perhaps with other levels of names"),
        ("3,norm", "ZeRO levels must be a level, perhaps with other levels of names"),
        ("4", "a ZeRO level must be 1, 2 or 3, got 4"),
        ("2,norm=0", "a ZeRO level must be 1, 2 or 3, got 0"),
    ],
)
def test_what_is_no_level(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ZeroLevels.parse(text)


def test_a_name_that_no_parameter_has_is_refused() -> None:
    with pytest.raises(ValueError, match=r"named 'gain', and there are none; .* bias, norm$"):
        ZeroLevels.parse("3,gain=1").require_names(["norm1.bias"])


def test_members_share_seven_elements() -> None:
    # a (2, 2) and a (3,): 7 elements; of 3 members the first has 3, the others 2
    segment = Segment(shapes={"a": (2, 2), "b": (3,)}, members=3)
    assert [segment.bounds(member) for member in range(3)] == [(0, 3), (3, 5), (5, 7)]
    flat = torch.arange(7)
    views = segment.views(flat)
    assert views["a"].tolist() == [[0, 1], [2, 3]]
    assert views["b"].tolist() == [4, 5, 6]
    rows = [segment.pieces(flat[slice(*segment.bounds(d))], d) for d in range(3)]
    assert [row["a"].tolist() for row in rows] == [[0, 1, 2], [3], []]
    assert [row["b"].tolist() for row in rows] == [[], [4], [5, 6]]


def test_more_members_than_elements() -> None:
    segment = Segment(shapes={"a": (2,)}, members=3)
    assert [segment.bounds(member) for member in range(3)] == [(0, 1), (1, 2), (2, 2)]


def test_what_a_member_holds_all_the_time() -> None:
    # 4 parameters of level 1, 6 of level 2, 5 of level 3, two members. Shards of the first: 2, 3
    # and 3, twice (parameters and reduced gradients): 16. Whole parameters of levels 1 and 2: 10;
    # whole gradients of level 1: 4.
    shapes = {"a.x": (4,), "b.x": (2, 3), "c.x": (5,)}
    layout = StageLayout.of(shapes, ZeroLevels.parse("3,a=1,b=2"), 2)
    assert sum(layout.kept(0)) == 2 * (2 + 3 + 3) + 10 + 4
    assert sum(layout.kept(1)) == 2 * (2 + 3 + 2) + 10 + 4
    assert (layout.size(3), layout.size(2, 3)) == (5, 11)


@pytest.mark.parametrize("kind", ["mlp", "transformer", "llama"])
def test_all_levels_together_are_all_weights(kind: str) -> None:
    spec = ModelSpec(kind=kind, layers=2)
    shapes = {name: tuple(p.shape) for name, p in Stage(spec, 0).named_parameters()}
    layout = StageLayout.of(shapes, ZeroLevels.parse("3,weight=2,up=1"), 2)
    assert min(layout.size(level) for level in (1, 2, 3)) >= (kind == "mlp")
    assert layout.size(1, 2, 3) * spec.element_bytes == weight_bytes(spec, 0)
