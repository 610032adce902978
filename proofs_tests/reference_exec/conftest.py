"""Torch on one thread, as ranks have it: a second one only gets in the way of small matrices.

``test_replay`` sees to it that a replay needs no such help.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    from bubbleproof.reference_exec.evidence.oracle import single_threaded  # needs torch

    with single_threaded():
        yield
