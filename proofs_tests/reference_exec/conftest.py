"""Torch on one thread, as ranks have it: a second one only gets in the way of small matrices.

``test_replay`` sees to it that a replay needs no such help.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from bubbleproof.reference_exec.drivers.gloo import GlooPool


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    from bubbleproof.reference_exec.evidence.oracle import single_threaded  # needs torch

    with single_threaded():
        yield


@pytest.fixture(scope="module")
def pool() -> Iterator[GlooPool]:
    """Processes for the replays of a module; tests of pools have a ``pool`` of their own."""
    from bubbleproof.reference_exec.drivers.gloo import GlooPool  # needs torch

    with GlooPool(4) as opened:
        yield opened
