"""What every reader does with values that nobody means: one line that names the file, no more.

The readers are those of the fuzzer (``benchmarks.fuzz_targets``); here each value of a file they
begin from is another one in turn.
"""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Callable, Hashable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from benchmarks.fuzz_targets import LONGEST_LINE, TARGETS, FuzzTarget, finding
from bubbleproof.formats.errors import UnusableInput
from bubbleproof.formats.flight_recorder import MOST_CALLS
from bubbleproof.traces.span_names import PYTORCH, read_names
from bubbleproof.traces.trace_spans import read_trace
from proofs_tests.sized import sampled

LONG = "9" * 5_000  # digits: Python converts 4,300 at most
ESCAPES = "\x1b[31mred\x1b]0;owned\x07\u202e\x00 \u2028a\nb"
JSON_VALUES = (
    LONG,
    f"-{LONG}",
    f"[{LONG}]",
    "1e999999999",
    "-1e999999999",
    "NaN",
    "Infinity",
    json.dumps(ESCAPES),
    json.dumps("x" * 100_000),
    r'"\ud800"',
    "[" * 50_000 + "]" * 50_000,
    '{"a": 1, "a": 2}',
    json.dumps({ESCAPES: ESCAPES}),
    "true",
    "null",
    "[]",
)
TOML_VALUES = (
    LONG,
    "1e999999999",
    "nan",
    "inf",
    json.dumps("\x1b[31mred\u202e"),
    json.dumps("x" * 100_000),
    "[" * 5_000 + "]" * 5_000,
    "{ a = 1, a = 2 }",
    '{ "\\u001b[31m" = 1 }',
    "1979-05-27T07:32:00Z",
    "07:32:00",
    "true",
)
CELLS = (LONG, "1e999999999", "nan", ESCAPES, "x" * 100_000, "\ud7ff", "0F" + LONG, "-1", "")
BYTES = (
    b"",
    b"\xff\xfe{\x00}\x00",
    b"\xef\xbb\xbf",
    b"\x00" * 10,
    b"\x80",
    b"\xed\xa0\x80",
    b"\x1b[31m",
    b"\x80\x04.",
)
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2028\u2029]")
NAMELESS = {"question of serve", "page of a schedule", "page of a table"}  # what is asked, or made


def seed_of(target: FuzzTarget) -> bytes:
    return target.seeds()[0]


def with_json(content: bytes) -> Iterator[bytes]:
    """The text with another value at each of some places."""
    value = json.loads(content)
    for place in sampled(list(places(value)), every=40):
        for hostile in JSON_VALUES:
            yield replaced(value, place, hostile)
    yield from (hostile.encode() for hostile in JSON_VALUES)


def places(value: Any, at: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    items: Iterator[tuple[Any, Any]] = iter(())
    if isinstance(value, dict):
        items = iter(value.items())
    elif isinstance(value, list):
        items = iter(enumerate(value[:2]))
    for key, inner in items:
        yield (*at, key)
        yield from places(inner, (*at, key))


def replaced(value: Any, place: tuple[str | int, ...], hostile: str) -> bytes:
    copy = json.loads(json.dumps(value))
    owner = copy
    for key in place[:-1]:
        owner = owner[key]
    owner[place[-1]] = "@@here@@"
    return json.dumps(copy).replace('"@@here@@"', hostile).encode()


def with_toml(content: bytes) -> Iterator[bytes]:
    lines = content.decode().splitlines()
    rows = [row for row, line in enumerate(lines) if re.match(r"\w+ *= ", line)]
    for row in sampled(rows, every=3):
        key = lines[row].partition("=")[0]
        for hostile in TOML_VALUES:
            yield "\n".join([*lines[:row], f"{key}= {hostile}", *lines[row + 1 :]]).encode()
    yield from (f"{hostile} = 1\n".encode() for hostile in ('"\\u001b[31m"', "a." * 3_000 + "a"))


def with_cells(content: bytes) -> Iterator[bytes]:
    rows = [line.split(",") for line in content.decode().splitlines()]
    cells = [(row, column) for row, line in enumerate(rows[:3]) for column in range(len(line))]
    for row, column in sampled(cells, every=5):
        for hostile in CELLS:
            line = [*rows[row][:column], hostile, *rows[row][column + 1 :]]
            found = [*rows[:row], line, *rows[row + 1 :]]
            yield "\n".join(map(",".join, found)).encode(errors="surrogatepass")


def hostile_files(name: str) -> Iterator[bytes]:
    target = TARGETS[name]
    yield from BYTES
    if name == "dump, pickle":
        yield from with_pickles(TARGETS["dump, JSON"].seeds()[0])
    elif target.command is not None:
        yield from (hostile.encode() for hostile in JSON_VALUES)
    elif target.file.endswith(".toml"):
        yield from with_toml(seed_of(target))
    elif target.file.endswith(".csv"):
        yield from with_cells(seed_of(target))
    else:
        yield from with_json(seed_of(target))


def laughs(depth: int = 40) -> object:
    """A list of 2**depth texts, of ``depth`` lists."""
    found: object = ["x"]
    for _ in range(depth):
        found = [found, found]
    return found


def with_pickles(content: bytes) -> Iterator[bytes]:
    """The dump with what a pickle alone can hold at each of some places."""
    for place in sampled(list(places(json.loads(content))), every=3):
        for hostile in (laughs(), 10**5_000, b"x" * 1_000, ESCAPES, ("x",), 1e308, -1):
            value = owner = json.loads(content)
            for key in place[:-1]:
                owner = owner[key]
            owner[place[-1]] = hostile
            yield pickle.dumps(value, protocol=4)
    keys: Sequence[Hashable] = (10**5_000, ESCAPES, ("x",) * 3, 1.5, None, b"x")
    for name in keys:
        value = json.loads(content)
        yield pickle.dumps({**value, name: 1}, protocol=4)
        yield pickle.dumps({**value, "pg_config": {name: {"ranks": "[0, 1]"}}}, protocol=4)
        yield pickle.dumps({name: 1}, protocol=4)
    many = json.loads(content)
    yield pickle.dumps({**many, "entries": many["entries"][:1] * (MOST_CALLS + 1)}, protocol=4)


def told(read: Callable[[str], object], path: Path) -> str | None:
    """How the reader refuses the file; None where it takes it."""
    assert finding(read, str(path)) == "", path.read_bytes()[:300]
    try:
        read(str(path))
    except ValueError as error:
        return str(error)
    return None


@pytest.mark.sweep
@pytest.mark.parametrize("name", TARGETS)
def test_no_value_of_a_file_gets_past_its_reader(name: str, tmp_path: Path) -> None:
    target, path = TARGETS[name], tmp_path / TARGETS[name].file
    refused = 0
    for content in hostile_files(name):
        path.write_bytes(content)
        if (line := told(target.read, path)) is not None:
            refused += 1
            assert not CONTROL.search(line), content[:300]
            assert name in NAMELESS or path.name in line, (line, content[:300])
            assert len(line) <= LONGEST_LINE
    assert refused > 4


def test_a_number_without_end_is_no_span_of_a_trace(tmp_path: Path) -> None:
    path = tmp_path / "rank0.json"
    event = {"ph": "X", "cat": "user_annotation", "ts": 1, "dur": 1, "name": f"PP:0F{LONG}"}
    own = tmp_path / "names.toml"
    own.write_text("[[span]]\npattern = 'fwd (?P<stage>.*)/(?P<microbatch>.*)'\nkind = 'F'\n")
    group = {"rank": 0, "world_size": 1}
    for name, names in ((f"PP:0F{LONG}", PYTORCH), (f"fwd {LONG}/0", read_names(str(own)))):
        path.write_text(
            json.dumps({"distributedInfo": group, "traceEvents": [{**event, "name": name}]})
        )
        with pytest.raises(UnusableInput) as caught:
            read_trace(str(path), names)
        assert str(caught.value).startswith(f"{path}: expected ")
