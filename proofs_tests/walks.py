"""How five things travel through the house: ``python -m proofs_tests.walks --before COMMIT``.

A capacity, a forward's ticks, a choice, a certificate and a cluster's number are put into a small
file, ``bubbleproof`` solves or plans and verifies it, and ``walk_followed`` (which says what that
means) notes every function that handles the thing and from which function it has it. ``--write
PAGE.md`` makes a page of the walks at COMMIT and now, with a picture for each: files from top to
bottom in the order in which the thing first came to them, arcs from who handed it on.

The number of a walk stands nowhere else in its file; one that the program computes to be the same
would be followed too. What happens in other processes and in compiled code is not seen.
"""

from __future__ import annotations

import argparse
import html
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLLOWED = Path(__file__).with_name("walk_followed.py")
PIPELINE = """name = "followed"
ranks = 3
microbatches = 3
[durations]
forward = {forward}
backward = 200
[memory]
capacity = {capacity}
activation = 1000
[choices.evict]
pairs = [[0, 2]]
duration = {transfer}
"""
CLUSTER = """name = "followed"
[model]
name = "llama-2-7b"
[cluster]
card = "a100-80gb"
cards = 2
memory = {memory}
[batch]
samples = 4
sequence = 1024
[plan]
zero = [0]
chunks = [1]
"""
SOLVED = ("solve", "p.toml", "--work", "0.2", "-o", "s.json", "--certificate", "c.json")
JUDGED = (SOLVED, ("verify", "s.json", "--certificate", "c.json"))
PLANNED = (("plan", "p.toml", "--work", "1", "-o", "plan"), ("verify", "plan"))
HEAD = (
    "A thing is put into a small file that is solved or planned, and verified. A function handles",
    "a number when at its end one of its variables, or its result, is the number, or a list or",
    "table that has it; a certificate, when one is an object of its classes. What other processes",
    "and compiled code do is not seen. Each cell: before → now. A hand-over is a pair of files,",
    "one of which calls the other (maybe through others) and both handle the thing; what lies in",
    "an object between them is none. In the pictures files stand in the order in which the thing",
    "came to them, with how many functions handle it; grey arcs go down, red ones back up.",
)
ROW, WIDTH, ARCS = 17, 430, 90
COLOURS = {
    "commands": "#8c6bb1", "formats": "#41ab5d", "theory": "#4292c6", "verify": "#ef6548",
    "solvers": "#fe9929", "planners": "#dd3497", "costs": "#807d00", "papers": "#888888",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """What is followed, in which file and through which command lines."""

    name: str
    told: str
    order: Mapping[str, object]
    text: str
    commands: Sequence[Sequence[str]]


def _pipeline(forward: object = 100, capacity: int = 3000, transfer: int = 1) -> str:
    return PIPELINE.format(forward=forward, capacity=capacity, transfer=transfer)


THINGS = (
    Followed(
        name="capacity", told="`[memory] capacity` of a rank",
        order={"number": 3007}, text=_pipeline(capacity=3007), commands=JUDGED,
    ),
    Followed(
        name="forward", told="the ticks of the last stage's forward",
        order={"number": 10007}, text=_pipeline(forward=[100, 100, 10007]), commands=JUDGED,
    ),
    Followed(
        name="choice", told="the ticks of an eviction that is allowed",
        order={"number": 10007}, text=_pipeline(transfer=10007), commands=JUDGED,
    ),
    Followed(
        name="certificate", told="objects of the classes of `verify/certificates`",
        order={"module": r"verify\.certificates"}, text=_pipeline(), commands=JUDGED,
    ),
    Followed(
        name="cluster", told="the memory of a card in `[cluster]`",
        order={"number": 81_000_000_007}, text=CLUSTER.format(memory=81_000_000_007),
        commands=PLANNED,
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkedFiles:
    """A walk by files: functions of each, in the order of first handling, and who hands to whom."""

    functions: Mapping[str, int]
    steps: Mapping[tuple[str, str], int]

    @property
    def num_functions(self) -> int:
        return sum(self.functions.values())

    @property
    def num_rooms(self) -> int:
        return len({room_of(file) for file in self.functions})


def room_of(file: str) -> str:
    """The room that a file stands in."""
    return file.partition("/")[0] if "/" in file else "door"


def walked(tree: Path, thing: Followed) -> WalkedFiles:
    """The walk of a thing in the program of a tree. Raises ``RuntimeError`` where that fails."""
    order = json.dumps({**thing.order, "commands": thing.commands})
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "p.toml").write_text(thing.text, encoding="utf-8")
        done = subprocess.run(
            [sys.executable, str(FOLLOWED)],
            input=order,
            capture_output=True,
            text=True,
            check=False,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(tree)},
        )
    if done.returncode:
        raise RuntimeError(f"{thing.name}: {done.stderr.strip().splitlines()[-1:]}")
    found = json.loads(done.stdout)
    steps = Counter((giver, taker) for (giver, _), (taker, _) in found["steps"] if giver != taker)
    return WalkedFiles(functions=Counter(file for file, _ in found["functions"]), steps=steps)


@contextmanager
def tree_at(commit: str) -> Iterator[Path]:
    """The files of a commit in a folder. Raises ``ValueError`` where there is no such commit."""
    packed = subprocess.run(
        ["git", "-C", str(ROOT), "archive", commit], capture_output=True, check=False
    )
    if packed.returncode:
        raise ValueError(f"no commit {commit} in this clone; fetch the history")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["tar", "x", "-C", folder], input=packed.stdout, check=True)
        yield Path(folder)


def _column(title: str, walk: WalkedFiles, left: int) -> Iterator[str]:
    """Files from top to bottom, arcs on their left."""
    yield f'<text x="{left + ARCS}" y="14" font-weight="bold">{html.escape(title)}</text>'
    rows = {file: 34 + ROW * number for number, file in enumerate(walk.functions)}
    edge = left + ARCS
    for (giver, taker), times in walk.steps.items():
        start, end = rows[giver], rows[taker]
        reach = edge - 10 - min(ARCS - 12, 4 * abs(start - end) // ROW + 6)
        wide = min(3.0, 0.8 + 0.3 * times)
        colour = "#555" if end > start else "#c0392b"
        yield (
            f'<path d="M{edge - 2},{start - 4} C{reach},{start - 4} {reach},{end - 4} '
            f'{edge - 3},{end - 4}" fill="none" stroke="{colour}" stroke-width="{wide:.1f}" '
            f'stroke-opacity="0.6" marker-end="url(#to)"/>'
        )
    for file, at in rows.items():
        colour = COLOURS.get(room_of(file), "#333333")
        number = walk.functions[file]
        yield f'<rect x="{edge}" y="{at - 11}" width="5" height="14" fill="{colour}"/>'
        yield f'<text x="{edge + 10}" y="{at}">{html.escape(file)}  {number}</text>'


def picture(thing: Followed, before: WalkedFiles, now: WalkedFiles, commit: str) -> str:
    """Both walks beside each other, as SVG."""
    height = 44 + ROW * max(len(before.functions), len(now.functions))
    titles = (f"{thing.name}: at {commit}", f"{thing.name}: now")
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{2 * WIDTH}" height="{height}" '
        'font-family="DejaVu Sans, sans-serif" font-size="11">',
        '<defs><marker id="to" viewBox="0 0 6 6" refX="5" refY="3" markerWidth="5" '
        'markerHeight="5" markerUnits="userSpaceOnUse" orient="auto">'
        '<path d="M0,0 L6,3 L0,6 z"/></marker></defs>',
        f'<rect width="{2 * WIDTH}" height="{height}" fill="#ffffff"/>',
        *_column(titles[0], before, 0),
        *_column(titles[1], now, WIDTH),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _cells(walk: WalkedFiles) -> tuple[int, int, int, int]:
    return walk.num_rooms, len(walk.functions), walk.num_functions, len(walk.steps)


def page(walks: Mapping[str, tuple[WalkedFiles, WalkedFiles]], commit: str) -> str:
    """The page: what a walk is, the counts at the commit and now, the pictures."""
    lines = [
        "# Walks",
        "",
        f"Made by `python -m proofs_tests.walks --before {commit} --write docs/measured/walks.md`.",
        *HEAD,
        "",
        "| thing | what is followed | rooms | files | functions | hand-overs |",
        "|---|---|---|---|---|---|",
    ]
    for thing in THINGS:
        before, now = walks[thing.name]
        cells = " | ".join(f"{a} → {b}" for a, b in zip(_cells(before), _cells(now), strict=True))
        lines.append(f"| {thing.name} | {thing.told} | {cells} |")
    for thing in THINGS:
        lines += ["", f"![the walk of a {thing.name}](pictures/walk-{thing.name}.svg)"]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Walk at a commit and now, and write the page with its pictures, or print the counts."""
    parser = argparse.ArgumentParser(prog="walks")
    parser.add_argument("--before", default="86932d5", metavar="COMMIT")
    parser.add_argument("--write", type=Path, metavar="PAGE.md")
    asked = parser.parse_args()
    with tree_at(asked.before) as tree, ThreadPoolExecutor(2) as pool:
        before = pool.map(lambda thing: walked(tree, thing), THINGS)
        now = pool.map(lambda thing: walked(ROOT, thing), THINGS)
        pairs = zip(before, now, strict=True)
        walks = {thing.name: pair for thing, pair in zip(THINGS, pairs, strict=True)}
    text = page(walks, asked.before)
    if asked.write is None:
        sys.stdout.write(text)
        return
    asked.write.write_text(text, encoding="utf-8")
    pictures = asked.write.parent / "pictures"
    pictures.mkdir(exist_ok=True)
    for thing in THINGS:
        drawn = picture(thing, *walks[thing.name], asked.before)
        (pictures / f"walk-{thing.name}.svg").write_text(drawn, encoding="utf-8")


if __name__ == "__main__":
    main()
