"""A page that shows a file of the repository, or lists what a folder holds."""

from __future__ import annotations

import re
from pathlib import Path

LANGUAGES = {
    ".json": "json", ".py": "python", ".sh": "bash", ".toml": "toml", ".yaml": "yaml",
    ".yml": "yaml", ".v": "coq",
}  # fmt: skip
MOST_BYTES = 60_000  # a larger file is offered, not shown
_TICKS = re.compile(r"`{3,}")


def shown_file(path: Path, name: str) -> str:
    """The page as Markdown; ``name`` is the path in the repository."""
    head = f"---\norphan: true\n---\n\n# `{name}`\n\n"
    if path.is_dir():
        inner = sorted(each for each in path.rglob("*") if each.is_file())
        names = (each.relative_to(path).as_posix() for each in inner)
        return f"{head}A folder of the repository:\n\n" + "".join(f"- `{each}`\n" for each in names)
    size = path.stat().st_size
    offered = f"A file of the repository, {size:,} bytes: [download](<{path.name}>).\n"
    if size > MOST_BYTES or not (text := _text(path)):
        return head + offered
    longest = max((len(each) for each in _TICKS.findall(text)), default=2)
    fence = "`" * (longest + 1)
    language = LANGUAGES.get(path.suffix, "text")
    return f"{head}{offered}\n{fence}{language}\n{text.rstrip()}\n{fence}\n"


def _text(path: Path) -> str:
    """What a file of text holds; empty for any other."""
    try:
        return path.read_text("utf-8")
    except UnicodeDecodeError:
        return ""
