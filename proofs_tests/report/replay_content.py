"""The content of a written replay, by its layout."""

from __future__ import annotations

import json
from pathlib import Path

from proofs_tests.report.replay_layout import ReplayLayout


def replay_in(path: Path) -> ReplayLayout:
    """What the file says; an error where its schema is not kept."""
    text = path.read_text()
    found = ReplayLayout.model_validate_json(text, strict=False)
    told = found.model_dump(mode="json")
    assert json.loads(text) == told  # nothing is left to a default
    return found
