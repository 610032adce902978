"""Plans of unlike layers beside every cut there is (``unlike_layers`` has the models)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bubbleproof.planners import Plan, PlanOptions, plan
from bubbleproof.theory.pipelines.shapes.cut_lists import NamedCuts
from proofs_tests.planners.unlike_layers import ORDERS, compared, drawn


@pytest.mark.parametrize("seed", range(16))
def test_no_cut_is_shorter_than_the_plan_or_its_bound(seed: int) -> None:
    row = compared(seed)
    assert row.is_right, row


def test_one_balanced_cut_would_be_longer() -> None:
    """The control: of some of these models another cut than the balanced ones is the best."""

    def value(seed: int, kind: str) -> int:
        space = drawn(seed)
        assert space.layers is not None
        layers = replace(space.layers, rule=NamedCuts(kinds=(kind,)))
        found = plan(replace(space, layers=layers), PlanOptions(orders=ORDERS))
        return found.value if isinstance(found, Plan) else 0

    pairs = [(value(seed, "any"), value(seed, "balanced")) for seed in range(8)]
    assert any(0 < least < balanced for least, balanced in pairs)
