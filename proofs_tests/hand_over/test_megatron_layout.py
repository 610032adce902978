"""Megatron's layout strings: what is written is read back, and what is none is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubbleproof.hand_over.megatron_target import layers_of, layout_of


@given(st.lists(st.integers(0, 40), min_size=1, max_size=64))
def test_a_layout_is_read_back_as_the_layers_that_were_cut(layers: list[int]) -> None:
    stages = layers_of(layout_of(layers))
    assert [stage.count("t") for stage in stages] == layers
    assert stages[0][0] == "E"
    assert stages[-1][-1] == "L"


def test_a_published_layout_has_its_stages() -> None:
    """``Et*3|(tt|)*29,m|L``: 61 layers on 32 stages, of which 29 have two, and one prediction."""
    stages = layers_of("Et*3|(tt|)*29,m|L")
    assert len(stages) == 1 + 29 + 2
    assert sum(stage.count("t") for stage in stages) == 3 + 2 * 29
    assert stages[-2:] == (("m",), ("L",))
    assert layers_of("E|t||tt|L") == (("E",), ("t",), (), ("t", "t"), ("L",))
    # 2 + 34*2 + 3 + 3*2 + 1 layers; empty stages would stand between two bars.
    published = layers_of("Et*2|(t*2|)*34,t*3|(t*2|)*3,tL")
    assert [stage.count("t") for stage in published] == [2, *[2] * 34, 3, *[2] * 3, 1]


@pytest.mark.parametrize(
    ("layout", "said"),
    [
        ("Etx|tL", "got 'x'"),
        ("t|tL", "begins with one E"),
        ("Et|t", "ends with one L"),
        ("EtEL", "begins with one E"),
        ("E(t|tL", "got '('"),
        ("Et*70000|L", "at most 65536 letters"),
        ("E((t|)*300)*300L", "got '('"),  # Megatron reads no repetition within another
        ("E(t|)*70000L", "at most 65536 letters"),
        ("Et*9999999999999999999L", "at most 65536 letters"),
        ("Etm|tL", "behind every layer t"),
        ("Et|m|mL", "all layers m in one stage"),
        ("", "begins with one E"),
    ],
)
def test_what_is_no_layout_is_refused(layout: str, said: str) -> None:
    with pytest.raises(ValueError, match="a layout") as caught:
        layers_of(layout)
    assert said in str(caught.value)
