"""Claims where an extra is not installed, and an option's former name."""

from __future__ import annotations

from pathlib import Path

import pytest

from proofs_tests.commands.conftest import Run
from proofs_tests.commands.test_extras import (
    test_a_cluster_without_dask_is_refused as refused_without_dask,
)
from proofs_tests.commands.test_extras import (
    test_the_old_name_of_a_scheduler_is_taken_and_says_so as old_name,
)


def test_a_cluster_without_dask_is_refused(
    command: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    refused_without_dask(command, monkeypatch, tmp_path, "claims")


def test_the_old_name_of_a_scheduler_is_taken_and_says_so(command: Run, tmp_path: Path) -> None:
    old_name(command, tmp_path, "claims")
