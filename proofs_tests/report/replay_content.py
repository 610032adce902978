"""The content of a written replay, by its layout."""

from __future__ import annotations

from pathlib import Path

from bubbleproof.formats.layouts.replay_layout import ReplayLayout


def replay_in(path: Path) -> ReplayLayout:
    """What the file says; an error where its schema is not kept."""
    return ReplayLayout.model_validate_json(path.read_text(), strict=False)
