"""The types of a pipeline's values: what is taken as ours, and what is told by its field."""

from __future__ import annotations

import re

import numpy as np
import pytest

from bubbleproof.theory.pipelines.limits import require_size
from bubbleproof.theory.pipelines.pipeline import Pipeline


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        *(
            (name, value, "a whole number, one per stage, or rows of them")
            for name in ("forward", "weight_backward", "activation", "static", "message")
            for value in (None, 1.5, "1", {1: 2})
        ),
        ("links", [3], "a tuple of Link"),
        ("links", 3, "a tuple of Link"),
        ("choices", 3, "Choices"),
        ("unit", 3, "a name"),
        ("placement", None, "loop, wave, bidirectional or a rank per stage"),
        ("split_backward", 1, "a flag, or rows"),
        ("split_backward", [True], "a flag, or rows"),
        ("weight_parts", 3, "a row of ticks, or a row per stage"),
        ("overlaps", [3], "a tuple of"),
        ("recompute", True, "a Recompute or None"),
        ("evictions", [3], "a tuple of Eviction"),
        ("waits", ["0F0"], "a tuple of"),
        ("offloads", 3, "a tuple of ActivationOffload"),
        ("host_capacity", "1 GiB", "a whole number or None"),
        ("state_offload", 3, "a StateOffload or None"),
        ("sharding", 3, "a Sharding or None"),
    ],
)
def test_a_wrong_type_is_told_by_its_field(field: str, value: object, expected: str) -> None:
    values = {"num_ranks": 2, "num_microbatches": 2, field: value}
    with pytest.raises(TypeError, match=re.escape(f"{field} must be {expected}")):
        Pipeline(**values)  # type: ignore[arg-type]  # on purpose


def test_numpys_numbers_and_lists_are_taken_as_ours() -> None:
    given = Pipeline(
        num_ranks=np.int64(2),  # type: ignore[arg-type]  # on purpose, as all below
        num_microbatches=2,
        forward=np.array([1, 2]),  # type: ignore[arg-type]  # likewise
        capacity=[3, None],  # type: ignore[arg-type]  # likewise
        placement=[1, 0],  # type: ignore[arg-type]  # likewise
        split_backward=np.ones((2, 2), dtype=bool),  # type: ignore[arg-type]  # likewise
    )
    assert given == Pipeline(
        num_ranks=2,
        num_microbatches=2,
        forward=(1, 2),
        capacity=(3, None),
        placement=(1, 0),
        split_backward=((True, True), (True, True)),
    )
    assert hash(given) == hash(given.with_changes())


@pytest.mark.parametrize(
    ("shape", "told"),
    [
        (
            {"ranks": 4, "microbatches": 10**6},
            "4000000 actions, got 8000000 (4 ranks, 1000000 microbatches)",
        ),
        (
            {"ranks": 1, "microbatches": 10**6, "chunks": 1, "slices": 3},
            "4000000 actions, got 6000000 (1000000 microbatches, 3 slices)",
        ),
        (
            {"ranks": 5000, "microbatches": 1, "chunks": 2},
            "4096 ranks, got 5000 (5000 ranks, 2 chunks)",
        ),
    ],
)
def test_what_is_too_large_is_told_with_its_shape(shape: dict[str, int], told: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        require_size(**shape)
    assert str(caught.value) == f"a pipeline has at most {told}"
