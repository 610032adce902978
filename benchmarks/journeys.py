"""What a newcomer waits for: installing, starting, and the pages that a new user follows; a table.

    python -m benchmarks.journeys [--write records/journeys.md]

The tree is cloned as it is committed. The lines of the install page and of the README's block are
run as they stand, in an environment of their own; torch alone comes from the package index that pip
knows, at one version, since the index of CPU builds may be out of reach. A wheel of the clone is
installed into a second environment, with what the tutorials ask for. There each page is followed
block by block, with the code of the suite (``proofs_tests.followed_pages``): a file is saved,
commands and lines of Python run, and what they print must stand below. Tutorials begin in an empty
folder, other pages in one with ``examples/`` and ``docs/`` alone. What fails is in the table, and
the other pages are followed all the same. A person also reads and copies: counted at 200 words a
minute and ten seconds a block.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from benchmarks.markdown import markdown_table, put_out
from bubbleproof.reference_exec.evidence.machine_versions import this_machine
from proofs_tests.followed_pages import FollowedStep, StepKind, as_shown, save, steps_of
from proofs_tests.shown import normal

ROOT = Path(__file__).resolve().parents[1]
INSTALLING = ("docs/guide/install.md", "README.md")  # in this order, in one environment
TUTORIALS = tuple(
    f"docs/tutorials/{name}.md" for name in ("ci", "odd-cluster", "researcher", "model-owner")
)
PAGES = (
    "README.md",
    "docs/guide/planning.md",
    "docs/own/cookbook.md",
    "docs/own/family.md",
    "docs/own/model.md",
    "docs/own/formula.md",
    "docs/own/hardware.md",
    "docs/guide/idle.md",
    "docs/guide/traces.md",
    "docs/guide/hangs.md",
)
STARTS = (
    (("--version",), 0.1),
    (("verify", "1f1b", "p=4", "m=8"), 0.4),
    (("replay", "1f1b", "p=2", "m=2"), 3.0),
)
TORCH = "torch==2.13.0"
ASKED_FOR = (TORCH, "pytest", "hypothesis", "matplotlib")  # beside the wheel, by the pages
WORDS_A_MINUTE, SECONDS_A_BLOCK, MOST_MINUTES = 200, 10, 10
MOST_SECONDS = 900.0  # of one command
ROUNDS = 5
TYPED = re.compile(r"```sh\n(.*?)```", re.DOTALL)
_INDEX = re.compile(r"'torch<[^']*' --index-url \S+")
_FENCED = re.compile(r"```.*?```", re.DOTALL)
_IN = re.compile(r"in \d+\.\d+s")
_SESSION = """
import json, sys
sys.path[:0] = [".", sys.argv[1]]
from shown import session
names = {}
for line in sys.stdin:
    try:
        told = session(json.loads(line), names)
    except BaseException as error:
        told = f"{type(error).__name__}: {error}"
    sys.stdout.write(json.dumps(told) + "\\n")
    sys.stdout.flush()
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """A folder of programs, and one in which pages are followed."""

    programs: Path
    folder: Path

    def ran(self, *words: str, columns: int = 120) -> subprocess.CompletedProcess[str]:
        """A program of the environment, by its name."""
        return subprocess.run(
            [str(self.programs / words[0]), *words[1:]],
            cwd=self.folder,
            env={**_variables(), "COLUMNS": str(columns)},
            capture_output=True,
            text=True,
            timeout=MOST_SECONDS,
            check=False,
        )

    def seconds(self, *words: str) -> float:
        """How long ``bubbleproof`` takes with these words; raises where it fails."""
        began = time.perf_counter()
        self.ran("bubbleproof", *words).check_returncode()
        return time.perf_counter() - began


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """A page that was followed: its blocks, seconds of commands, words, and what went wrong."""

    page: str
    blocks: int
    seconds: float
    words: int
    failures: Sequence[str] = ()

    @property
    def minutes(self) -> float:
        """What a person takes: commands, reading and copying."""
        return (self.seconds + SECONDS_A_BLOCK * self.blocks) / 60 + self.words / WORDS_A_MINUTE

    @property
    def row(self) -> tuple[str, ...]:
        told = "; ".join(self.failures) or "nothing"
        minutes = f"{self.minutes:.0f} min"
        return (
            f"`{self.page}`",
            f"{self.blocks}",
            f"{self.seconds:.0f} s",
            f"{self.words}",
            minutes,
            told,
        )


def _variables() -> dict[str, str]:
    """The environment's variables without paths to this source."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    kept.pop("CI", None)  # there pytest cuts no line
    return {**kept, "NO_COLOR": "1", "PYTEST_ADDOPTS": ""}


def words_of(page: str) -> int:
    """The words of a page, what stands in blocks apart."""
    return len(_FENCED.sub("", (ROOT / page).read_text("utf-8")).split())


def typed_lines(text: str) -> list[str]:
    """The first block of a page that is for a shell, torch from the index that pip knows."""
    found = TYPED.search(text)
    assert found is not None
    return [_INDEX.sub(TORCH, line) for line in found[1].splitlines() if line.strip()]


def installed(clone: Path, page: str) -> Followed:
    """Run a page's block for a shell in the clone, as it stands but for torch's index."""
    lines = typed_lines((ROOT / page).read_text("utf-8"))
    began = time.perf_counter()
    done = subprocess.run(
        ["bash", "-ec", "\n".join(lines)],
        cwd=clone,
        env=_variables(),
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.perf_counter() - began
    failures = [] if done.returncode == 0 else [_last(done.stderr or done.stdout)]
    name = f"{page}, its block for a shell"
    return Followed(page=name, blocks=1, seconds=seconds, words=words_of(page), failures=failures)


def _last(text: str) -> str:
    """The last line that says something."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "no word")


@contextmanager
def _interpreter(at: Environment) -> Iterator[subprocess.Popen[str]]:
    """A Python that stays, as the reader's does: a block at a time, names kept."""
    process = subprocess.Popen(
        [str(at.programs / "python"), "-c", _SESSION, str(ROOT / "proofs_tests")],
        cwd=at.folder, env=_variables(), text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def _answer(process: subprocess.Popen[str], text: str) -> str:
    """What a block of Python shows; of one that raises, the error."""
    told, heard = process.stdin, process.stdout
    assert told is not None
    assert heard is not None
    told.write(json.dumps(text) + "\n")
    told.flush()
    line = heard.readline()
    return str(json.loads(line)) if line else "the reader's Python has ended"


def _printed(at: Environment, text: str) -> str:
    """What a command shows; of one that is refused, why."""
    words = shlex.split(text)
    if words[0] == "python":  # pytest, whose own width a page shows
        done = at.ran(*words, "--rootdir", ".", "-c", os.devnull, columns=80)
    else:
        done = at.ran(*words)
    if done.returncode not in (0, 1):
        return f"status {done.returncode}: {_last(done.stderr)}"
    return as_shown(done.stdout, done.stderr)


def followed(at: Environment, page: str) -> Followed:
    """Follow a page in the folder of the environment; goes on where a block fails."""
    text = (ROOT / page).read_text("utf-8")
    steps = steps_of(text)
    failures = []
    began = time.perf_counter()
    with _interpreter(at) as process:
        for step in steps:
            if step.kind is StepKind.FILE:
                save(step, at.folder)
            elif step.kind is StepKind.PYTHON:
                failures += _difference(step, _answer(process, step.text))
            else:
                failures += _difference(step, _printed(at, step.text))
    seconds = time.perf_counter() - began
    return Followed(
        page=page,
        blocks=len(steps),
        seconds=seconds,
        words=words_of(page),
        failures=failures,
    )


def _difference(step: FollowedStep, printed: str) -> list[str]:
    """Empty where a block shows what stands below it; else the first line that differs."""
    now, shown = (_lines(normal(_IN.sub("", text))) for text in (printed, step.shown))
    if now == shown:
        return []
    same = len([*takewhile(lambda pair: pair[0] == pair[1], zip(now, shown, strict=False))])
    told = now[same] if same < len(now) else "nothing more"
    return [f"`{step.text.splitlines()[0]}` line {same + 1}: {told}"]


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip().splitlines()]


def cloned(folder: Path) -> Path:
    """The tree as it is committed."""
    subprocess.run(["git", "clone", "-q", f"file://{ROOT}", str(folder)], check=True)
    return folder


def built_wheel(clone: Path, folder: Path) -> Path:
    """A wheel of the clone."""
    words = ["pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(folder), "."]
    subprocess.run([sys.executable, "-m", *words], cwd=clone, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def environment(home: Path, *packages: str) -> tuple[Environment, float]:
    """An environment with packages in the versions of ``constraints.txt``, and its seconds."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
    words = ["install", "-q", "-c", str(ROOT / "constraints.txt"), *packages]
    pip = str(home / "bin" / "pip")
    subprocess.run([pip, *words], check=True, capture_output=True, env=_variables())
    return Environment(programs=home / "bin", folder=home), time.perf_counter() - began


def size(path: Path) -> int:
    """Bytes of a file, or of all files in a folder."""
    return path.stat().st_size if path.is_file() else sum(map(size, path.iterdir()))


def _waits(home: Path, wheel: Path) -> Iterator[tuple[str, str, str]]:
    """What is waited for before a page is read: sizes, installing, starts, pages of ours."""
    clean, seconds = environment(home, str(wheel))
    [packages] = home.glob("lib/python*/site-packages")
    parts = [packages / name for name in ("pip", "setuptools") if (packages / name).exists()]
    beside = sum(map(size, parts))
    yield "wheel", f"{size(wheel) / 1e6:.2f} MB", ""
    yield "installed, all that it needs", f"{(size(packages) - beside) / 1e6:.0f} MB", "300 MB"
    yield "installing it", f"{seconds:.0f} s", ""
    _, more = environment(home, *ASKED_FOR)
    yield "installing torch for the CPU, pytest and matplotlib beside it", f"{more:.0f} s", ""
    for words, asked in STARTS:
        took = statistics.median(clean.seconds(*words) for _ in range(ROUNDS))
        yield f"`bubbleproof {' '.join(words)}`", f"{took:.2f} s", f"{asked:g} s"
    yield from _pages_of_ours(clean)
    yield from _fuzzed()


def _pages_of_ours(at: Environment) -> Iterator[tuple[str, str, str]]:
    """Sizes of pages that are written."""
    plan = str(ROOT / "examples/researcher/plan.toml")
    at.seconds("show", "1f1b", "p=4", "m=8", "-o", "small.html")
    at.seconds("show", "1f1b", "p=64", "m=4096", "-o", "large.html")
    at.seconds("plan", plan, "--work", "1", "-o", "plan")
    yield "page of 1F1B, p = 4", f"{size(at.folder / 'small.html') / 1e3:.0f} kB", "400 kB"
    yield "page of 524,288 tasks", f"{size(at.folder / 'large.html') / 1e3:.0f} kB", ""
    yield "page of a plan", f"{size(at.folder / 'plan' / 'plan.html') / 1e3:.0f} kB", "1 MB"


def _fuzzed() -> Iterator[tuple[str, str, str]]:
    """What the page of the fuzzer counts, where there is one."""
    path = ROOT / "records" / "fuzz.md"
    least = r"([\d,]+) inputs or more of each reader"
    found = re.search(least, path.read_text("utf-8")) if path.exists() else None
    told = f"{found[1]} or more" if found else "not run"
    yield "inputs of each reader, fuzzed", told, "10^6"


def journeys(home: Path, clone: Path, programs: Path) -> Iterator[Followed]:
    """The pages, one after another."""
    for page in INSTALLING:
        yield installed(clone, page)
    for page in (*TUTORIALS, *PAGES):
        folder = home / "readers" / Path(page).stem
        folder.mkdir(parents=True)
        if page not in TUTORIALS:
            for name in ("examples", "docs"):
                shutil.copytree(clone / name, folder / name)
        yield followed(Environment(programs=programs, folder=folder), page)


def page_of(
    waits: Sequence[tuple[str, str, str]], found: Sequence[Followed], target: str = "PAGE"
) -> str:
    """The page as Markdown, for the file ``target``."""
    machine = this_machine()
    versions = ", ".join(f"{name} {number}" for name, number in machine.versions.items())
    header = ("page", "blocks", "commands and Python", "words", "a person takes", "what failed")
    return (
        "# What a newcomer waits for\n\n"
        f"Generated by `python -m benchmarks.journeys --write {target}`\nwith {versions}, on "
        f"{machine.cores} cores, {machine.memory_text}, at a load of "
        f"{os.getloadavg()[2]:.0f} (mean of its last quarter of an hour).\n\n"
        "A clone of the tree; a wheel of it in an environment of its own. Starts are medians of "
        f"{ROUNDS}.\n\n"
        f"{markdown_table(('what', 'measured', 'asked'), waits)}\n"
        "Each page was followed block by block, and had to print what it shows: tutorials in an "
        "empty folder, others in one with\n`examples` and `docs`. The blocks for a shell ran as "
        f"they stand, but for torch's index (`{TORCH}` from pip's own).\nA person takes the "
        f"seconds of the commands, {SECONDS_A_BLOCK} seconds for each block that is copied, and "
        f"reads {WORDS_A_MINUTE} words a minute; {MOST_MINUTES} minutes\nare asked of each.\n\n"
        f"{markdown_table(header, [each.row for each in found])}"
    )


def main(
    write: Annotated[Path | None, typer.Option(help="Write the page to this file.")] = None,
) -> None:
    """Clone, build, install, follow, and print or write; see the module's text."""
    console = Console(stderr=True)
    waits, found = [], []
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        clone, clean = cloned(home / "clone"), home / "clean"
        for row in _waits(clean, built_wheel(clone, home)):
            console.print(*row)
            waits.append(row)
        for one in journeys(home, clone, clean / "bin"):
            console.print(*one.row, markup=False)
            found.append(one)
    put_out(page_of(waits, found, str(write or "PAGE")), write)
    raise typer.Exit(1 if any(one.failures for one in found) else 0)


if __name__ == "__main__":
    typer.run(main)
