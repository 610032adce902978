"""What the generators of ``examples/researcher/plans`` share: a file's head, its place, writing it.

A file is ``PAPER-CONFIGURATION.toml``. Ticks are microseconds, memory is bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "examples" / "researcher" / "plans"


def path_of(paper: str, name: str) -> Path:
    """Where the file of a configuration lies."""
    return FOLDER / f"{paper}-{name}.toml"


def head(
    title: str, module: str, name: str, *, ranks: int, microbatches: int, ticks: tuple[int, int]
) -> list[str]:
    """The lines of a file down to the ticks of a rank's forward and backward."""
    forward, backward = ticks
    return [
        f"# {title}",
        f"# Made by python -m {module}, which tells where each number comes from.",
        f'name = "{name}"',
        'unit = "us"',
        'memory_unit = "bytes"',
        f"ranks = {ranks}",
        f"microbatches = {microbatches}",
        "",
        "[durations]",
        f"forward = {forward}",
        f"backward = {backward}",
        "",
    ]


def plan_of(chunks: Sequence[int], seconds: int) -> list[str]:
    """The chunks to try, and how long."""
    return ["[plan]", f"chunks = {list(chunks)}", "", "[solve]", f"time_limit = {seconds}", ""]


def write(files: Iterable[tuple[Path, str]]) -> int:
    """Write the files; the exit status of a command that does."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for path, text in files:
        path.write_text(text, encoding="utf-8")
    return 0
