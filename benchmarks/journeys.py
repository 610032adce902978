"""What a newcomer waits for: installing, starting, and the pages that a new user follows; a table.

    python -m benchmarks.journeys [--write records/journeys.md]

A wheel is built and installed into an environment of its own, with the versions of
``constraints.txt``. There each page's commands and Python lines are run as they stand, in a copy of
``examples/`` and ``docs/`` alone; pages that replay have torch lent from the environment that runs
this (it is not counted in what is installed). What a page shows is compared by the suite
(``proofs_tests/test_documents.py``); here a command must end, and its seconds are counted. Reading
and typing take a person longer.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from benchmarks.markdown import markdown_table, put_out
from bubbleproof.reference_exec.evidence.machine_versions import this_machine

ROOT = Path(__file__).resolve().parents[1]
SOURCES = (
    "bubbleproof",
    "src",
    "theory",
    "verify",
    "solvers",
    "reference_exec",
    "papers",
    "setup.py",
    "pyproject.toml",
    "README.md",
    "LICENSE",
)
PAGES = (
    ("README.md", "the README"),
    ("docs/guide/planning.md", "tutorial: an odd cluster, planned"),
    ("docs/own/family.md", "tutorial: a family of one's own (researcher)"),
    ("docs/own/model.md", "tutorial: a model of one's own"),
    ("docs/own/formula.md", "a formula of one's own"),
    ("docs/own/hardware.md", "hardware of one's own"),
    ("docs/guide/idle.md", "why it is idle"),
    ("docs/guide/traces.md", "a trace of one's own"),
    ("docs/guide/hangs.md", "why it hung"),
)
STARTS = (
    (("--version",), 0.1),
    (("verify", "1f1b", "p=4", "m=8"), 0.4),
    (("replay", "1f1b", "p=2", "m=2"), 3.0),
)
BLOCK = re.compile(r"```(console|python)\n(.*?)```", re.DOTALL)
MOST_SECONDS = 600.0
ROUNDS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """An interpreter with the wheel, and the folder in which pages are followed."""

    python: Path
    folder: Path

    def run(self, *words: str, given: str | None = None) -> float:
        """The seconds of a call. Raises ``RuntimeError`` where it fails by more than a verdict."""
        began = time.perf_counter()
        done = subprocess.run(
            [str(self.python), *words],
            cwd=self.folder,
            env={**_plain(), "NO_COLOR": "1"},
            input=given,
            capture_output=True,
            text=True,
            timeout=MOST_SECONDS,
            check=False,
        )
        if done.returncode not in (0, 1):
            raise RuntimeError(f"{words} ended with {done.returncode}: {done.stderr[-600:]}")
        return time.perf_counter() - began

    def command(self, *words: str) -> float:
        """The seconds of ``bubbleproof`` with these words."""
        return self.run("-m", "bubbleproof", *words)


def _plain() -> dict[str, str]:
    """The environment's variables without paths to this source."""
    return {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}


def built_wheel(folder: Path) -> Path:
    """A wheel of a copy of the sources."""
    sources = folder / "sources"
    sources.mkdir()
    for name in SOURCES:
        if (ROOT / name).is_dir():
            skipped = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, sources / name, symlinks=True, ignore=skipped)
        else:
            shutil.copy(ROOT / name, sources)
    words = ["pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(folder), "."]
    subprocess.run([sys.executable, "-m", *words], cwd=sources, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def environment(folder: Path, wheel: Path, *, lends_torch: bool) -> tuple[Environment, float]:
    """An environment with the wheel, and the seconds that its installation took."""
    home, here = folder / ("lent" if lends_torch else "clean"), folder / "user"
    if not here.exists():
        for name in ("examples", "docs"):
            shutil.copytree(ROOT / name, here / name)
    began = time.perf_counter()
    subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
    python = home / "bin" / "python"
    limits = ["--no-deps"] if lends_torch else ["-c", str(ROOT / "constraints.txt")]
    words = ["-m", "pip", "install", "-q", *limits, str(wheel)]
    subprocess.run([str(python), *words], check=True, capture_output=True, env=_plain())
    if lends_torch:
        [packages] = home.glob("lib/python*/site-packages")
        (packages / "lent.pth").write_text(f"{_home_of_torch()}\n", encoding="utf-8")
    return Environment(python=python, folder=here), time.perf_counter() - began


def _home_of_torch() -> Path:
    """The folder of packages that has torch, be it this environment's own or one that it uses."""
    found = find_spec("torch")
    if found is None or found.origin is None:
        raise ModuleNotFoundError(
            "torch is lent from the environment that runs this, which has none"
        )
    return Path(found.origin).parents[1]


def followed(at: Environment, page: str) -> tuple[int, float]:
    """How many commands and lines a page has, and the seconds that they take."""
    number, seconds = 0, 0.0
    for kind, text in BLOCK.findall((ROOT / page).read_text("utf-8")):
        if kind == "console":
            for line in re.findall(r"^\$ bubbleproof (.*)$", text, re.MULTILINE):
                seconds += at.command(*shlex.split(line))
                number += 1
    lines = [
        line[4:]
        for kind, text in BLOCK.findall((ROOT / page).read_text("utf-8"))
        if kind == "python"
        for line in text.splitlines()
        if line.startswith((">>> ", "... "))
    ]
    if lines:
        path = at.folder / "followed.py"
        path.write_text(_script(lines), encoding="utf-8")
        seconds += at.run(str(path))
    return number + len(lines), seconds


def _script(lines: list[str]) -> str:
    """The lines as a script, whose processes begin it anew without its work."""
    body = "\n".join(f"    {line}" for line in lines)
    return f"def page():\n{body}\n\nif __name__ == '__main__':\n    page()\n"


def size(path: Path) -> int:
    """Bytes of a file, or of all files in a folder."""
    return path.stat().st_size if path.is_file() else sum(map(size, path.iterdir()))


def _rows(folder: Path, console: Console) -> list[tuple[str, str, str]]:
    wheel = built_wheel(folder)
    clean, seconds = environment(folder, wheel, lends_torch=False)
    lent, _ = environment(folder, wheel, lends_torch=True)
    [packages] = (folder / "clean").glob("lib/python*/site-packages")
    beside = sum(
        size(packages / name) for name in ("pip", "setuptools") if (packages / name).exists()
    )
    rows = [
        ("wheel", f"{size(wheel) / 1e6:.2f} MB", ""),
        ("installed, all that it needs", f"{(size(packages) - beside) / 1e6:.0f} MB", "300 MB"),
        ("installing it", f"{seconds:.0f} s", ""),
    ]
    for words, asked in STARTS:
        at = lent if words[0] == "replay" else clean
        took = statistics.median(at.command(*words) for _ in range(ROUNDS))
        rows.append((f"`bubbleproof {' '.join(words)}`", f"{took:.2f} s", f"{asked:g} s"))
        console.print(*rows[-1])
    rows += _pages_of_ours(clean)
    for page, name in PAGES:
        text = (ROOT / page).read_text("utf-8")
        needs_torch = re.search(r"bubbleproof (run|replay|trace|hang) |bp\.replay\(|torch", text)
        number, took = followed(lent if needs_torch else clean, page)
        lender = ", torch lent" if needs_torch else ""
        rows.append((f"{name} (`{page}`)", f"{took:.0f} s, {number} steps{lender}", "10 min"))
        console.print(*rows[-1])
    return [*rows, *_fuzzed()]


def _pages_of_ours(at: Environment) -> list[tuple[str, str, str]]:
    """Sizes of pages that are written."""
    at.command("show", "1f1b", "p=4", "m=8", "-o", "small.html")
    at.command("show", "1f1b", "p=64", "m=4096", "-o", "large.html")
    at.command("plan", "examples/researcher/plan.toml", "--work", "1", "-o", "plan")
    return [
        ("page of 1F1B, p = 4", f"{size(at.folder / 'small.html') / 1e3:.0f} kB", "400 kB"),
        ("page of 524,288 tasks", f"{size(at.folder / 'large.html') / 1e3:.0f} kB", ""),
        ("page of a plan", f"{size(at.folder / 'plan' / 'plan.html') / 1e3:.0f} kB", "1 MB"),
    ]


def _fuzzed() -> list[tuple[str, str, str]]:
    """What the page of the fuzzer counts, where there is one."""
    path = ROOT / "records" / "fuzz.md"
    least = r"([\d,]+) inputs or more of each reader"
    found = re.search(least, path.read_text("utf-8")) if path.exists() else None
    return [
        ("inputs of each reader, fuzzed", f"{found[1]} or more" if found else "not run", "10^6")
    ]


def page_of(rows: list[tuple[str, str, str]], target: str = "PAGE") -> str:
    """The page as Markdown, for the file ``target``."""
    machine = this_machine()
    versions = ", ".join(f"{name} {number}" for name, number in machine.versions.items())
    return (
        "# What a newcomer waits for\n\n"
        f"Generated by `python -m benchmarks.journeys --write {target}`\nwith {versions}, on "
        f"{machine.cores} cores, {machine.memory_text}.\n\n"
        "A wheel in an environment of its own, with what it needs and no more; *torch lent* where "
        "a page replays. Starts are\nmedians of five. The seconds of a page are those of its "
        "commands; a step is a command or a line of Python.\n\n"
        f"{markdown_table(('what', 'measured', 'asked'), rows)}"
    )


def main(
    write: Annotated[Path | None, typer.Option(help="Write the page to this file.")] = None,
) -> None:
    """Build, install, follow, and print or write; see the module's text."""
    with tempfile.TemporaryDirectory() as name:
        rows = _rows(Path(name), Console(stderr=True))
    put_out(page_of(rows, str(write or "PAGE")), write)


if __name__ == "__main__":
    typer.run(main)
