"""Torch on one thread, as ranks have it: a second one only gets in the way of small matrices.

``test_replay`` sees to it that a replay needs no such help.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bubbleproof.reference_exec.evidence.oracle import single_threaded


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    with single_threaded():
        yield
