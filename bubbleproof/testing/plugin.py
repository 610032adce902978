"""The pytest plugin: the assertions as fixtures, loaded when a test asks for one.

pytest finds it by the entry point ``pytest11`` once bubbleproof is installed. It imports nothing
until a fixture is used, so that other test runs pay nothing for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

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
