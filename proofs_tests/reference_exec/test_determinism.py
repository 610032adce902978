"""Equal bits on a GPU: the reference models use no operation that CUDA runs in any order.

Torch lists what is not deterministic in the documentation of ``use_deterministic_algorithms``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any  # what torch dispatches

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from bubbleproof.reference_exec.drivers.virtual import run_virtual
from proofs_tests.reference_exec.cases import TINY, family_case
from proofs_tests.sized import paired

# What ``words.CrossEntropy`` scatters goes to one word of each row: no two meet in any order.
MEET_NOWHERE = {"scatter"}


class Names(TorchDispatchMode):
    """The names of the operations that run inside it, without what says that they are in place."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch's stub
        self.seen: set[str] = set()

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        del types
        self.seen.add(func._schema.name.removeprefix("aten::").rstrip("_"))
        return func(*args, **(kwargs or {}))


def listed() -> set[str]:
    """What torch lists, without classes of modules, sparse tensors and the gradient of gather."""
    text = torch.use_deterministic_algorithms.__doc__ or ""
    rows = re.findall(r"\* :func:`torch\.(?:\w+\.)*(\w+)`(.*)", text)
    return {name.rstrip("_") for name, rest in rows if "sparse" not in rest and name != "gather"}


@pytest.mark.parametrize(("kind", "vocabulary"), paired(["mlp", "transformer", "llama"], [5, 0]))
def test_reference_models_run_in_one_order(kind: str, vocabulary: int) -> None:
    spec = replace(TINY, kind=kind, vocabulary=vocabulary).on(2)
    with Names() as names:
        for family, params in (("svpp", {"p": 2, "m": 2, "s": 2}), ("zb-h1", {"p": 2, "m": 3})):
            run_virtual(family_case(family, **params).plan(spec))
    assert {"mm", "native_layer_norm", "embedding_dense_backward", "rsqrt"} & names.seen
    assert "scatter_add" not in names.seen  # the gradient of ``gather``
    assert names.seen & listed() <= MEET_NOWHERE


def test_the_list_is_found() -> None:
    assert {"index_add", "cumsum", "scatter_add", "index_put", "histc"} <= listed()
