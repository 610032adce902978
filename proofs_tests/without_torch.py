"""A plugin of pytest for where torch is not installed: what needs it is skipped and says why.

That is what cannot be imported without torch, and each test with the marker ``torch``: tests of
modules that load torch only when a replay begins.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from pathlib import Path

import pytest

REASON = "torch is not installed"
ABSENT = "No module named 'torch"


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Skip a module whose import failed for want of torch."""
    report = yield
    if report.failed and ABSENT in str(report.longrepr):
        report.outcome = "skipped"
        report.longrepr = (report.nodeid, 0, f"Skipped: {REASON}")
        _forget(collector.path)
    return report


def _forget(path: Path) -> None:
    """Leave no half of a module behind, which pytest does, for those that import it after."""
    for name, module in list(sys.modules.items()):
        if getattr(module, "__file__", None) == str(path):
            del sys.modules[name]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the tests with the marker."""
    for item in items:
        if item.get_closest_marker("torch") is not None:
            item.add_marker(pytest.mark.skip(reason=REASON))
