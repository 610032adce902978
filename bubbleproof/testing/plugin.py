"""The pytest plugin: the assertions and a pool of processes as fixtures, loaded when asked for.

pytest finds it by the entry point ``pytest11`` once bubbleproof is installed. It imports nothing
until a fixture is used, so that other test runs pay nothing for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bubbleproof.reference_exec.drivers.gloo import GlooPool
    from bubbleproof.verify import Verdict


@pytest.fixture(scope="session")
def assert_valid() -> Callable[..., Verdict]:
    """``assert_valid(problem, schedule)``; see ``bubbleproof.testing.assertions``."""
    from bubbleproof.testing import assertions

    return assertions.assert_valid


@pytest.fixture(scope="session")
def assert_valid_file() -> Callable[..., Verdict]:
    """``assert_valid_file(path)``; see ``bubbleproof.testing.assertions``."""
    from bubbleproof.testing import assertions

    return assertions.assert_valid_file


@pytest.fixture(scope="session")
def gloo_pool() -> Iterator[GlooPool]:
    """Processes for ``replay(..., pool=gloo_pool)`` on gloo, started by the first replay.

    They stay until the session ends; see ``reference_exec.drivers.gloo``. Needs torch.
    """
    from bubbleproof.reference_exec.drivers.gloo import GlooPool

    with GlooPool() as pool:
        yield pool
