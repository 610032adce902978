"""Names that a file brings: nothing of them reaches the terminal raw, or breaks a picture."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.dom import minidom

import pytest

from bubbleproof.formats import ScheduleFile, write_schedule
from bubbleproof.formats.printable import harmless
from bubbleproof.theory.families import member
from proofs_tests.commands.conftest import Answer, Run

# A colour, a window title, a C1 control, text turned round, HTML, mathematics and rich's markup.
EVIL = "\x1b[31m\x1b]0;owned\x07\x9b1m\u202e<b onload=x>&$\\frac{1$[bold red]x[/bold red]\rcd"
RAW = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]")


def hostile(folder: Path) -> Path:
    """A schedule that breaks its memory, with every name and unit of it hostile."""
    small, path = member("1f1b", p=2, m=2), folder / "x.json"
    write_schedule(path, ScheduleFile.of(small.problem, small.schedule))
    content = json.loads(path.read_text())
    problem = content["problem"]
    names = [thing["name"] for kind in ("resources", "stores") for thing in problem[kind]]
    text = json.dumps(content)
    for name in names:
        text = text.replace(json.dumps(name), json.dumps(name + EVIL))
    content = json.loads(text)
    content["name"] = f"schedule {EVIL}"
    content["problem"] |= {"unit": f"u{EVIL}", "memory_unit": f"m{EVIL}"}
    for store in content["problem"]["stores"]:
        store["capacity"] = 1
    path.write_text(json.dumps(content))
    return path


def require_harmless(answer: Answer) -> None:
    assert not RAW.search(answer.out), answer.out
    assert not RAW.search(answer.err), answer.err


@pytest.mark.parametrize("verb", ["verify", "show", "repair", "solve", "replay", "pareto"])
def test_no_command_prints_a_control_character(command: Run, tmp_path: Path, verb: str) -> None:
    answer = command(verb, hostile(tmp_path))
    assert answer.status in (0, 1, 2), answer.err
    require_harmless(answer)
    shown = answer.out + answer.err
    if verb in ("verify", "show"):  # which print names: spelled out, and markup as it is written
        assert "\\x1b]0;owned\\x07" in shown.replace("\n", "")
    if verb == "verify":
        assert "[bold red]x[/bold red]" in shown


def test_control_characters_are_in_the_json_as_escapes(command: Run, tmp_path: Path) -> None:
    answer = command("verify", hostile(tmp_path), "--json")
    require_harmless(answer)
    assert json.loads(answer.out)["name"] == f"schedule {EVIL}"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a\x1b]0;owned\x07.json", "{"),
        ("b.json", '{"format": "bubbleproof/schedule", "version": 1, "\x1b[31m": 1}'),
        ("c.toml", 'ranks = 2\n"\\u001b[31m" = 1\n'),
        ("d.toml", 'ranks = "\\u001b[31m"\n'),
        ("e.csv", "0F0,\x1b[31m0B0\n"),
        ("f.csv", "0F0,0B0\x07\n"),
    ],
)
def test_messages_of_readers_are_harmless(
    command: Run, tmp_path: Path, name: str, text: str
) -> None:
    path = tmp_path / name
    path.write_text(text)
    answer = command("solve" if name.endswith("toml") else "verify", path)
    assert answer.status == 2
    assert answer.err.count("\n") == 1
    require_harmless(answer)


@pytest.mark.parametrize("words", [["measure", EVIL], ["show", "1f1b", EVIL], [EVIL]])
def test_words_of_the_command_line_are_harmless(command: Run, words: list[str]) -> None:
    answer = command(*words)
    assert answer.status == 2
    require_harmless(answer)


def test_pictures_are_drawn_of_hostile_names(command: Run, tmp_path: Path) -> None:
    path = hostile(tmp_path)
    for ending in ("svg", "png", "html", "perfetto.json"):
        answer = command("show", path, "-o", tmp_path / f"y.{ending}")
        assert answer.status == 0, answer.err
    front = command("pareto", path, "--workers", "1", "-o", tmp_path / "front.svg")
    assert front.status == 0, front.err
    for name in ("y.svg", "front.svg"):
        text = (tmp_path / name).read_text()
        minidom.parseString(text)
        assert not RAW.search(text)
        assert "<b onload" not in text
    page = (tmp_path / "y.html").read_text()
    assert "<b onload" not in page
    assert "&lt;b onload" in page
    assert "\x1b" not in page
    assert "\u202e" not in page


def test_half_a_character_is_refused(command: Run, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('{"format": "bubbleproof/schedule", "version": 1, "name": "\\ud800"}')
    answer = command("verify", path)
    assert answer.status == 2
    assert r"expected whole characters, found half of one (\ud800 alone)" in answer.err
    path.write_text('{"format": "bubbleproof/schedule", "version": 1, "name": "\\ud83d\\ude00"}')
    assert "half of" not in command("verify", path).err  # a pair is a character


def test_printable_text_stays_as_it_is() -> None:
    assert (
        harmless("rank 0 \u00e9 \u2713 \U0001f600\n[red]")
        == "rank 0 \u00e9 \u2713 \U0001f600\n[red]"
    )
