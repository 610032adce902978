"""What the README and the pages of docs/ show is what the program prints.

Every ``$ bubbleproof ...`` line of a ``console`` block is run at the repository's root, page by
page and in order, and every ``>>>`` line of a ``python`` block; what they print must be what stands
below (``followed_pages.as_shown``). They run in this process: to load the program anew takes longer
than most commands. Pages that have files to save are followed in a folder of their own
(``test_followed_pages.py``).
Floating-point rounding differs between processors, so numbers such as ``1.0e-15`` are compared as
``<small>``, and times such as ``0.30 s`` as ``<seconds>``. What a page quotes of a report must
stand there. ``python -m proofs_tests.test_documents`` writes the current output into them.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from unittest.mock import patch

import pytest

import bubbleproof
from bubbleproof.cli import main
from proofs_tests.followed_pages import as_shown, is_followed
from proofs_tests.shown import PYTHON, normal, session

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
ALL = (README, *sorted((ROOT / "docs").glob("*/*.md")))
FOLLOWED = tuple(page for page in ALL if is_followed(page.read_text("utf-8")))  # another file's
PAGES = tuple(page for page in ALL if page not in FOLLOWED)
PLAIN = {"NO_COLOR": "1", "COLUMNS": "120"}
MOST_BYTES = 6 * 1024  # of the README
MADE = {"measured", "catalogue"}  # folders of pages that commands make
WRITTEN = (*(page for page in ALL if page.parent.name not in MADE), ROOT / "CONTRIBUTING.md")
BESIDE = (ROOT / "proofs" / "README.md", *sorted((ROOT / "examples").glob("*/README.md")))
MADE_PART = re.compile(r"<!-- (?!saved as|end)[^\n]*-->\n.*?<!-- end[^\n]*-->\n", re.DOTALL)
MOST_PAGES, MOST_WORDS = 50, 50_000  # written by hand; what commands print is among the words
BLOCK = re.compile(r"```console\n\$ (bubbleproof [^\n]*)\n(.*?)```", re.DOTALL)
QUOTE = re.compile(r"(<!-- quoted( grid)? from (docs/[\w./-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
LINK = re.compile(r"\]\(([^)#:]+)\)")


@dataclass(frozen=True, slots=True)
class Block:
    """A command of a page and the output that it shows."""

    page: str
    command: str
    shown: str


def blocks(page: Path) -> list[Block]:
    found = BLOCK.findall(page.read_text("utf-8"))
    return [Block(page.name, command, shown) for command, shown in found]


NEEDS_TORCH = re.compile(r"bubbleproof (run|replay) |bp\.replay\(")
BLOCKS = [block for page in PAGES for block in blocks(page)]
QUOTES = [match for page in PAGES for match in QUOTE.finditer(page.read_text("utf-8"))]


def output(command: str, folder: Path = ROOT) -> str:
    """What the command writes on standard output, and below it what it says is lost.

    Status 2, unusable input, is none that a page shows.
    """
    words = ["bubbleproof", *shlex.split(command)[1:]]
    out, err = StringIO(), StringIO()
    with (
        chdir(folder),
        patch.dict(os.environ, PLAIN),
        patch.object(sys, "argv", words),
        redirect_stdout(out),
        redirect_stderr(err),
        pytest.raises(SystemExit) as ended,
    ):
        main()
    assert ended.value.code in (0, 1), err.getvalue()
    assert "Traceback" not in err.getvalue()
    return as_shown(out.getvalue(), err.getvalue())


def output_of_a_process(command: str) -> str:
    """The same, of a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "bubbleproof", *shlex.split(command)[1:]],
        cwd=ROOT,
        env={**os.environ, **PLAIN},
        capture_output=True,
        text=True,
        check=True,
    )
    return as_shown(done.stdout, done.stderr)


def quotation(name: str, *, is_grid: bool) -> str:
    """What a page quotes of a generated report: a text whole, a page's findings or its grid."""
    text = (ROOT / name).read_text("utf-8")
    if name.endswith(".txt"):
        return f"```\n{text}```\n"
    if is_grid:
        return text[text.index("## One counterexample") :].split("\n\n", 3)[2] + "\n"
    findings = text[: text.index("\n## ")].splitlines(keepends=True)
    return "".join(line for line in findings if line.startswith("- "))


def marked(thing: object, text: str) -> object:
    """A parameter of a test, with the marker ``torch`` where its text replays."""
    marks = [pytest.mark.torch] if NEEDS_TORCH.search(text) else []
    return pytest.param(thing, marks=marks)


@pytest.mark.parametrize(
    "block",
    [marked(block, f"{block.command} ") for block in BLOCKS],
    ids=lambda b: f"{b.page}: {b.command[:50]}",
)
def test_a_page_shows_what_the_command_prints(block: Block) -> None:
    assert normal(output(block.command)) == normal(block.shown)


@pytest.mark.parametrize(
    "page",
    [marked(page, "".join(PYTHON.findall(page.read_text("utf-8")))) for page in PAGES],
    ids=lambda page: page.name,
)
def test_a_page_shows_what_python_prints(page: Path) -> None:
    names: dict[str, object] = {}  # of all blocks of the page
    for text in PYTHON.findall(page.read_text("utf-8")):
        assert normal(session(text, names)) == normal(text)


@pytest.mark.parametrize("match", QUOTES, ids=lambda m: m[3])
def test_a_page_quotes_the_reports(match: re.Match[str]) -> None:
    assert match[0] == match[1] + quotation(match[3], is_grid=bool(match[2])) + match[4]


def test_pages_by_hand_are_few_and_short() -> None:
    assert len(WRITTEN) <= MOST_PAGES
    texts = (MADE_PART.sub("", page.read_text("utf-8")) for page in WRITTEN)
    assert sum(len(text.split()) for text in texts) <= MOST_WORDS


@pytest.mark.parametrize(
    "page",
    [*WRITTEN, *BESIDE, *(page for page in ALL if page not in WRITTEN)],
    ids=lambda page: page.relative_to(ROOT).as_posix(),
)
def test_links_lead_somewhere(page: Path) -> None:
    lost = [
        target
        for target in LINK.findall(page.read_text("utf-8"))
        if not (page.parent / target).exists()
    ]
    assert lost == []


def test_no_title_stands_over_two_pages() -> None:
    titles = [page.read_text("utf-8").partition("\n")[0] for page in (ROOT / "docs").rglob("*.md")]
    assert all(title.startswith("# ") for title in titles)
    assert sorted(set(titles)) == sorted(titles)


def test_the_readme_is_short_and_the_pages_have_commands() -> None:
    assert len(README.read_bytes()) <= MOST_BYTES
    assert len(PYTHON.findall(README.read_text("utf-8"))[0].split(">>> ")) - 1 in range(9, 13)
    commands = {block.command.split()[1] for block in BLOCKS}
    assert {"run", "measure", "solve", "verify", "repair", "replay", "prove"} <= commands


def test_every_name_at_the_door_is_documented() -> None:
    for name in bubbleproof.__all__:
        assert (getattr(bubbleproof, name).__doc__ or "").strip(), name


def test_a_changed_output_is_noticed() -> None:
    block = Block("README.md", "bubbleproof measure 1f1b p=2 m=2", "makespan 10\n")
    assert normal(output(block.command)) != normal(block.shown)
    assert output(block.command) == output_of_a_process(block.command)
    assert session(">>> 1 + 1\n3\n") == ">>> 1 + 1\n2\n"
    assert session(">>> for i in (1, 2):\n...     print(i)\n") == (
        ">>> for i in (1, 2):\n...     print(i)\n1\n2\n"
    )


def write_pages() -> None:
    """Put the current output of every command and line into the pages."""

    def with_output(match: re.Match[str]) -> str:
        return f"```console\n$ {match[1]}\n{output(match[1])}```"

    names: dict[str, object] = {}

    def with_session(match: re.Match[str]) -> str:
        return f"```python\n{session(match[1], names)}```"

    def with_quotation(match: re.Match[str]) -> str:
        return match[1] + quotation(match[3], is_grid=bool(match[2])) + match[4]

    for page in PAGES:
        names.clear()
        text = BLOCK.sub(with_output, page.read_text("utf-8"))
        text = PYTHON.sub(with_session, text)
        page.write_text(QUOTE.sub(with_quotation, text), "utf-8")


if __name__ == "__main__":
    write_pages()
