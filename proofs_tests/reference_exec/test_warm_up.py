"""What torch loads at a process's first backward is loaded before the first action."""

from __future__ import annotations

import sys
from unittest.mock import patch

import pytest

from proofs_tests.own_process import run_alone

pytestmark = pytest.mark.torch


def a_replay_loads_nothing_in_its_actions() -> None:
    """In a process of its own, where no backward has run."""
    import bubbleproof as bp
    from bubbleproof.reference_exec.drivers import virtual

    loaded: list[set[str]] = []
    run = virtual._run

    def watched(*given: object) -> object:
        loaded.append({*sys.modules})
        found = run(*given)  # type: ignore[arg-type]  # as given
        loaded.append({*sys.modules})
        return found

    with patch.object(virtual, "_run", watched):
        bp.replay("1f1b p=2 m=2")
    before, after = loaded
    assert "torch" in before
    assert after - before == set()


def test_no_action_waits_for_what_torch_loads() -> None:
    run_alone(a_replay_loads_nothing_in_its_actions)
