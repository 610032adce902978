"""All readers under a coverage-guided fuzzer: how many inputs, and what was found.

    pip install atheris
    python -m benchmarks.fuzz_readers [--inputs N] [--seconds S] [--write records/fuzz.md]

Atheris (libFuzzer for Python) changes files that are read, keeps what reaches new lines, and goes
on from there. Every input has to end in a value or in one line (``fuzz_targets``), within
``LIMIT`` seconds and ``MEMORY`` MiB. Each reader has a process of its own.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import typer

from benchmarks.fuzz_targets import TARGETS, FuzzTarget
from benchmarks.markdown import cell, markdown_table, put_out
from bubbleproof.reference_exec.evidence.machine_versions import this_machine

LIMIT, MEMORY, LONGEST_INPUT = 10, 2048, 16384  # seconds, MiB, bytes
_STATUS = re.compile(r"^#(\d+)\s+\w+\s+cov: (\d+)", re.MULTILINE)
_ENDED = re.compile(r"^Done (\d+) runs in (\d+) second", re.MULTILINE)
_KILLED = re.compile(r"ERROR: libFuzzer: ([\w-]+)")
HEADER = ("reader", "inputs", "seconds", "places reached", "files kept", "findings")
TEXT = f"""\
# Readers under a fuzzer

Made by `python -m benchmarks.fuzz_readers`: what each reader did with files that Atheris (libFuzzer
for Python) made from good ones, guided by which branches of ours they reach (*places reached*;
*files kept* reached new ones). An input has to end in a value or in a `ValueError` of one line,
within {LIMIT} s and {MEMORY} MiB; inputs have at most {LONGEST_INPUT} bytes. A *page* is drawn of
each schedule that its reader accepts. Anything else is a finding and stands in the last column.

"""


@dataclass(frozen=True, slots=True, kw_only=True)
class FuzzRow:
    """What came of one reader."""

    reader: str
    inputs: int
    seconds: int
    places: int
    kept: int
    findings: tuple[str, ...]


def fuzzed(reader: str, inputs: int, seconds: int, folder: Path) -> FuzzRow:
    """Fuzz one reader, until there are so many inputs or seconds; ``folder`` keeps what it finds.

    Raises ``ChildProcessError`` where the fuzzer did not run.
    """
    corpus, found = folder / "corpus", folder / "findings"
    corpus.mkdir(parents=True, exist_ok=True)
    found.mkdir(exist_ok=True)
    for number, content in enumerate(seeds(TARGETS[reader])):
        (corpus / f"seed-{number}").write_bytes(content[:LONGEST_INPUT])
    options = [f"-runs={inputs}", f"-max_total_time={seconds}", f"-timeout={LIMIT}"]
    options += [f"-rss_limit_mb={MEMORY}", f"-max_len={LONGEST_INPUT}", "-seed=1"]
    command = [sys.executable, "-m", "benchmarks.fuzz_one", reader, str(folder), *options]
    with open(folder / "log", "w+b") as log:
        artifacts = f"-artifact_prefix={found}/"
        subprocess.run([*command, artifacts], stdout=log, stderr=log, check=False)
    told = (folder / "log").read_text("utf-8", errors="replace")
    status = _STATUS.findall(told)
    if not status:
        raise ChildProcessError(f"the fuzzer did not run {reader}: {told[-500:]}")
    ended = _ENDED.search(told)
    return FuzzRow(
        reader=reader,
        inputs=int(ended[1] if ended else status[-1][0]),
        seconds=int(ended[2]) if ended else seconds,
        places=int(status[-1][1]),
        kept=sum(1 for _ in corpus.iterdir()),
        findings=(*_texts(found), *sorted(set(_KILLED.findall(told)))),
    )


def seeds(target: FuzzTarget) -> Iterator[bytes]:
    """The files to begin from."""
    yield from target.seeds()
    if target.command is not None:
        words, written = target.command
        with TemporaryDirectory() as folder:
            (Path(folder) / "out").mkdir()
            line = [sys.executable, "-m", "bubbleproof", *words]
            subprocess.run(line, cwd=folder, check=True, capture_output=True)
            yield (Path(folder) / written).read_bytes()


def _texts(found: Path) -> list[str]:
    return [each.read_text("utf-8") for each in sorted(found.glob("*.txt"))]


def page(rows: list[FuzzRow]) -> str:
    """The page with a row for each reader."""
    lines = [
        (row.reader, f"{row.inputs:,}", row.seconds, row.places, row.kept, _said(row.findings))
        for row in rows
    ]
    total = f"{sum(row.inputs for row in rows):,} inputs in all"
    least = f"{min(row.inputs for row in rows):,} inputs or more of each reader"
    found = sum(len(row.findings) for row in rows)
    machine = this_machine(("bubbleproof", "pydantic"))
    head = f"{TEXT}{machine}.\n\n{total}, {least}, {found} findings."
    return f"{head}\n\n{markdown_table(HEADER, lines)}"


def _said(findings: tuple[str, ...]) -> str:
    return cell("; ".join(findings)) if findings else "none"


def main(
    inputs: int = 1_000_000,
    seconds: int = 3600,
    workers: int = 1,
    reader: list[str] | None = None,
    keep: Path | None = None,
    write: Path | None = None,
) -> None:
    """Fuzz the readers (or those of ``--reader``), each until ``inputs`` or ``seconds`` are spent.

    ``keep`` is a folder for what is found, and where a later run goes on.
    """
    names = reader or list(TARGETS)
    if unknown := set(names) - set(TARGETS):
        raise typer.BadParameter(f"--reader must be one of {', '.join(TARGETS)}, got {unknown}")
    with TemporaryDirectory() as temporary, ThreadPoolExecutor(workers) as pool:
        folders = [(keep or Path(temporary)) / re.sub(r"\W+", "-", name) for name in names]
        count = len(names)
        rows = list(pool.map(fuzzed, names, [inputs] * count, [seconds] * count, folders))
    put_out(page(rows), write)


if __name__ == "__main__":
    typer.run(main)
