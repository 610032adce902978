"""A file that is cut anywhere is cut short; a damaged one is not taken for a short one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bubbleproof.formats.errors import UnusableInput
from bubbleproof.traces.trace_events import EventFile, read_events

EVENTS = [
    {"name": 'a "quoted" \\ name \u00e9', "ts": -1.5e-3, "args": {"is": True, "of": None}},
    {"name": "", "dur": float("-inf"), "args": {"list": [[], {}, [False, float("nan")]]}},
]


@pytest.mark.parametrize("indent", [None, 24])  # wide indents: long blanks stand before the cut
def test_a_file_cut_at_any_character_is_told_as_cut(indent: int | None, tmp_path: Path) -> None:
    text = json.dumps({"rank": 0, "traceEvents": EVENTS}, indent=indent)
    path = tmp_path / "cut.json"
    first = text.index("[") + 1
    for length in range(first, text.rindex("]")):
        path.write_text(text[:length])
        file = EventFile(path=str(path))
        number = sum(1 for _ in read_events(file))
        assert file.is_truncated, text[:length]
        assert number <= len(EVENTS)


def test_damage_is_told_with_its_event(tmp_path: Path) -> None:
    # The comma after "ts" is gone, more than a word before the end.
    path = tmp_path / "damaged.json"
    path.write_text('{"traceEvents": [{"ts": 1}, {"ts": 2 "dur": 3, "name": "long enough"}]}')
    with pytest.raises(UnusableInput, match="event 1: expected an event in JSON"):
        list(read_events(EventFile(path=str(path))))
