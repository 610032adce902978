"""Ask Megatron-core's wheels for orders and layouts, and record what they answer.

``python -m benchmarks.frameworks.ask_megatron FOLDER`` makes an environment in the folder (torch
for CPUs and the wheels, from the package registry), asks each version for the shapes and strings
drawn here, compares them with each other and writes ``megatron_core.json`` beside this file. The
newest is asked of the arguments that hand-over writes of ``megatron_jobs``' plans, too, and of some
that contradict each other (``megatron_arguments.json``).
The test suite compares that with ours and needs no wheel; ``--strings N`` compares N more strings
that are not recorded.

Of an order a digest is recorded (``digest``), by which it is compared cell by cell.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.frameworks.megatron_jobs import JOBS, planned_arguments
from benchmarks.frameworks.wheels import TORCH, answers, environment, unpacked
from bubbleproof.formats.layout_string import layers_of

NEEDED = (TORCH, "numpy", "packaging", "pyyaml", "typing_extensions")
SCRIPT = "megatron_wheel"
VERSIONS = ("0.19.2", "0.16.1")  # the newest, and one for Python 3.11
RECORD = Path(__file__).with_name("megatron_core.json")
ARGUMENTS = Path(__file__).with_name("megatron_arguments.json")
SPOILED = {  # of which job's arguments what is changed: Megatron has to refuse each
    "cards": ("1F1B", "--tensor-model-parallel-size 2", "--tensor-model-parallel-size 3"),
    "layers": ("1F1B", "--num-layers 32", "--num-layers 31"),
    "batch": ("no pipeline", "--global-batch-size 8", "--global-batch-size 7"),
    "word": ("1F1B", "--swiglu", "--swiglue"),
    "experts": ("experts over more", "tensor-parallel-size 1", "tensor-parallel-size 2"),
}
SHAPES, STRINGS, SEED = 600, 600, 35
Shape = tuple[int, int, int, int | None]  # p, v, m, G


def drawn_shapes(count: int) -> list[Shape]:
    """Shapes with and without groups; group sizes that are too small, too large or uneven."""
    draw, found = random.Random(SEED), dict[Shape, None]()
    while len(found) < count:
        p, v, m = draw.choice((2, 3, 4, 5, 6, 8)), draw.choice((1, 2, 2, 3, 4)), draw.randint(1, 26)
        group = draw.choice((None, draw.randint(max(1, p - 1), max(p, m + 1))))
        found[p, v, m, group if v > 1 else None] = None
    return list(found)


def drawn_strings(count: int) -> list[str]:
    """Strings of the grammar's pieces, some of them with a letter more, less or other."""
    draw, found = random.Random(SEED), dict[str, None]()
    while len(found) < count:
        pieces = [_piece(draw) for _ in range(draw.randint(0, 5))]
        text = f"E{''.join(pieces)}{draw.choice(('', 'm', '|m', '|', 'm*2', '|m*2|'))}L"
        for _ in range(draw.choice((0, 0, 0, 1, 2))):
            at = draw.randrange(len(text) + 1)
            text = (
                text[:at]
                + draw.choice(("", "t", "|", "*2", "(", ")", "x", "m", "E", "*"))
                + (text[at + draw.randrange(2) :])
            )
        found[text] = None
    return list(found)


def _piece(draw: random.Random) -> str:
    inner = "".join(
        draw.choice(("t", "tt", "|", "t*3", "|t", ",")) for _ in range(draw.randint(0, 3))
    )
    number = draw.choice((0, 1, 2, 3, 10))
    return draw.choice(
        (inner, inner, f"({inner})*{number}", f"t*{number}", f"|*{number}", "|", "||")
    )


def digest(orders: Sequence[Sequence[tuple[str, int, int]]]) -> str:
    """Of the orders of all ranks: F or B, chunk and microbatch of each of their cells."""
    lines = (" ".join(f"{kind}{c}.{b}" for kind, c, b in order) for order in orders)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def stages_of(text: str) -> list[str] | None:
    """The letters of each stage as ours reads them; None where it refuses."""
    try:
        return ["".join(stage) for stage in layers_of(text)]
    except ValueError:
        return None


def recorded(found: dict[str, Any], asked: dict[str, Any]) -> dict[str, list[list[Any]]]:
    """Of a shape the digest of its orders, of a string its stages; else None and why."""
    told = {"shapes": [], "layouts": []}  # type: dict[str, list[list[Any]]]
    for kind, rows in told.items():
        for each, answer in zip(asked[kind], found[kind], strict=True):
            value = answer.get("told")
            if kind == "shapes" and value is not None:
                value = digest(value)
            why = [] if value is not None else [answer["refused"][:40]]
            rows.append([each, value, *why])
    return told


def planned_jobs() -> dict[str, tuple[int, str]]:
    """The cards and arguments of every job's plan, and of those that are spoiled."""
    found = {}
    for name, text in JOBS.items():
        with TemporaryDirectory() as folder:
            found[name] = planned_arguments(text, Path(folder))
    for name, (of, old, new) in SPOILED.items():
        found[f"spoiled {name}"] = (found[of][0], found[of][1].replace(old, new))
    return found


def main() -> None:
    """Ask, compare the versions, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--strings", type=int, default=0)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    python = environment(given.folder, NEEDED)
    shapes = [list(each) for each in drawn_shapes(SHAPES)]
    asked: dict[str, list[Any]] = {
        "shapes": shapes,
        "layouts": drawn_strings(max(STRINGS, given.strings)),
        "arguments": [],
    }
    jobs = planned_jobs()
    wheels = [unpacked(python, given.folder, f"megatron-core=={each}") for each in VERSIONS]
    found = [answers(python, each, SCRIPT, asked) for each in wheels]
    loaded = answers(
        python, wheels[0], SCRIPT, {"shapes": [], "layouts": [], "arguments": [*jobs.values()]}
    )
    rows = [
        {"job": name, "cards": cards, "arguments": text.splitlines(), **answer}
        for (name, (cards, text)), answer in zip(jobs.items(), loaded["arguments"], strict=True)
    ]
    ARGUMENTS.write_text(json.dumps(rows, indent=1) + "\n")
    refused = [(row["job"], row["refused"]) for row in rows if "refused" in row]
    sys.stdout.write(f"{len(rows)} lists of arguments, refused: {refused}\n")
    told = [recorded(each, asked) for each in found]
    same = {
        kind: [a[:2] for a in told[0][kind]] == [b[:2] for b in told[1][kind]] for kind in told[0]
    }
    differ = [text for text, value, *_ in told[0]["layouts"] if stages_of(text) != value]
    strings = f"{len(asked['layouts'])} strings, {len(differ)} read otherwise here {differ[:5]}"
    sys.stdout.write(f"versions agree: {same}; {strings}\n")
    layouts = told[0]["layouts"][:STRINGS]
    lines = [",\n".join(json.dumps(row) for row in part) for part in (told[0]["shapes"], layouts)]
    versions = json.dumps([each["version"] for each in found])
    text = (
        f'{{"versions": {versions},\n"shapes": [\n{lines[0]}\n],\n"layouts": [\n{lines[1]}\n]}}\n'
    )
    RECORD.write_text(text)


if __name__ == "__main__":
    main()
