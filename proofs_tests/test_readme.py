"""The README's commands run, and print what the README shows.

Every ``$ bubbleproof ...`` line of a ``console`` block is run at the repository's root; what it
writes on standard output must be what stands below it. Floating-point rounding differs between
processors, so numbers such as ``1.0e-15`` are compared as ``<small>``, and times such as ``0.30 s``
as ``<seconds>``. What the README quotes of the generated reports must stand there. Run this module
to write the current output into the README.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
BLOCK = re.compile(r"```console\n\$ (bubbleproof [^\n]*)\n(.*?)```", re.DOTALL)
SMALL = re.compile(r"\d\.\de-\d\d")


QUOTE = re.compile(r"(<!-- quoted( grid)? from (docs/[\w.-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
SECONDS = re.compile(r"\d+\.\d+ s")


@dataclass(frozen=True, slots=True)
class Block:
    """A command of the README and the output that it shows."""

    command: str
    shown: str


def blocks(text: str) -> list[Block]:
    return [Block(command, shown) for command, shown in BLOCK.findall(text)]


def output(command: str) -> str:
    """What the command writes on standard output; it must not be unusable input (status 2)."""
    words = [sys.executable, "-m", "bubbleproof", *shlex.split(command)[1:]]
    plain = {**os.environ, "NO_COLOR": "1", "COLUMNS": "120"}
    done = subprocess.run(
        words, cwd=ROOT, env=plain, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode in (0, 1), done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    return "\n".join(line.rstrip() for line in done.stdout.splitlines()) + "\n"


def normal(text: str) -> str:
    return SECONDS.sub("<seconds>", SMALL.sub("<small>", text))


def quotation(name: str, *, is_grid: bool) -> str:
    """What the README quotes of a generated report: a text whole, a page's findings or its grid."""
    text = (ROOT / name).read_text("utf-8")
    if name.endswith(".txt"):
        return f"```\n{text}```\n"
    if is_grid:
        return text[text.index("## One counterexample") :].split("\n\n", 3)[2] + "\n"
    findings = text[: text.index("\n## ")].splitlines(keepends=True)
    return "".join(line for line in findings if line.startswith("- "))


@pytest.mark.parametrize("block", blocks(README.read_text("utf-8")), ids=lambda b: b.command[:50])
def test_readme_shows_what_the_command_prints(block: Block) -> None:
    assert normal(output(block.command)) == normal(block.shown)


@pytest.mark.parametrize("match", QUOTE.finditer(README.read_text("utf-8")), ids=lambda m: m[3])
def test_readme_quotes_the_reports(match: re.Match[str]) -> None:
    assert match[0] == match[1] + quotation(match[3], is_grid=bool(match[2])) + match[4]


def test_the_readme_has_commands() -> None:
    commands = {block.command.split()[1] for block in blocks(README.read_text("utf-8"))}
    assert {"run", "measure", "solve", "verify", "show"} <= commands


def test_a_changed_output_is_noticed() -> None:
    block = Block("bubbleproof measure 1f1b p=2 m=2", "makespan 10\n")
    assert normal(output(block.command)) != normal(block.shown)


def write_readme() -> None:
    """Put the current output of every command into the README."""

    def with_output(match: re.Match[str]) -> str:
        return f"```console\n$ {match[1]}\n{output(match[1])}```"

    def with_quotation(match: re.Match[str]) -> str:
        return match[1] + quotation(match[3], is_grid=bool(match[2])) + match[4]

    text = BLOCK.sub(with_output, README.read_text("utf-8"))
    README.write_text(QUOTE.sub(with_quotation, text), "utf-8")


if __name__ == "__main__":
    write_readme()
