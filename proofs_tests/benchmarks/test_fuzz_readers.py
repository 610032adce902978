"""What the fuzzer calls a finding, and every reader on changed files; the fuzzer is not needed."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from benchmarks.fuzz_readers import FuzzRow, page
from benchmarks.fuzz_targets import LONGEST_LINE, TARGETS, finding

MOST_BYTES = 16384
HERE = [name for name, target in TARGETS.items() if target.command is None]


def raising(error: Exception) -> str:
    def read(_: str) -> object:
        raise error

    return finding(read, "")


def test_one_line_is_an_answer_and_all_else_a_finding() -> None:
    assert finding(lambda path: path, "a") == ""
    assert raising(ValueError("a: expected b, found c")) == ""
    assert raising(ValueError("two\nlines")).startswith("no line, or several: ValueError at ")
    assert raising(ValueError("")).startswith("no line, or several: ")
    assert raising(ValueError("x" * (LONGEST_LINE + 1))).startswith("a long line: ")
    assert raising(KeyError("x")).startswith("KeyError at ")
    assert raising(RecursionError()).startswith("RecursionError at ")
    assert raising(UnicodeDecodeError("utf-8", b"\xff", 0, 1, "x")).startswith("UnicodeDecode")


@pytest.mark.parametrize("name", HERE)
def test_good_files_are_read_and_changed_ones_end_in_a_value_or_a_line(
    name: str, tmp_path: Path
) -> None:
    target, random = TARGETS[name], Random(1)
    path = tmp_path / target.file
    contents = [content for content in target.seeds() if len(content) <= MOST_BYTES]
    assert contents
    path.write_bytes(contents[0])
    target.read(str(path))  # the first file is a good one: the fuzzer begins within the reader
    for _ in range(10):
        changed = bytearray(random.choice(contents))
        for _ in range(random.randint(1, 4)):
            changed[random.randrange(len(changed))] = random.choice(b'0-9[]{}",=x\n\x80')
        path.write_bytes(changed)
        assert finding(target.read, str(path)) == ""


def test_the_page_counts_inputs_and_findings() -> None:
    quiet = FuzzRow(reader="a", inputs=1000, seconds=2, places=3, kept=4, findings=())
    loud = FuzzRow(reader="b", inputs=500, seconds=2, places=3, kept=4, findings=("KeyError", "x"))
    text = page([quiet, loud])
    assert "1,500 inputs in all, 500 inputs or more of each reader, 2 findings.\n" in text
    assert "| a | 1,000 | 2 | 3 | 4 | none |" in text
    assert "| b | 500 | 2 | 3 | 4 | KeyError; x |" in text
