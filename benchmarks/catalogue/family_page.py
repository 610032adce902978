"""The page of one family: picture, source, parameters, formulas, measures, messages, theorems."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from pathlib import Path

from benchmarks.catalogue.standing_formulas import formulas, theorem_rows
from benchmarks.markdown import markdown_table
from bubbleproof.report.picture import Picture
from bubbleproof.solvers.shortening.known_orders import IMPROVED, improved
from bubbleproof.theory.families import FamilyMember, families, make_parameters
from bubbleproof.theory.families.base import Family
from bubbleproof.theory.model.measures import measure
from bubbleproof.theory.pipelines.timing import left_shift
from bubbleproof.verify import Semantics

MEASURED = Path(__file__).parents[2] / "docs" / "measured"
ROWS, SUMMARY = MEASURED / "verdicts.csv", MEASURED / "verdict-examples.md"
PICTURED = ((4, 6), (4, 8))  # the first that a family takes is drawn
GRID = tuple((p, m) for p in (2, 4, 8) for m in (p, 2 * p, 4 * p))
MEANINGS = {
    "v": "chunks per rank",
    "s": "slices of a sample",
    "f": "forwards before the first backward",
    "R": "per cent of a rank's layers that are recomputed",
    "e": "enqueue sequence",
    "d": "dequeue sequence",
}
OUTCOMES = ("deadlock", "crossed")
Row = dict[str, str]


def shown(family: Family) -> tuple[FamilyMember, str]:
    """The member that is drawn, and its words for the command. Raises ``ValueError`` for none."""
    for p, m in PICTURED:
        options = {"s": 2} if "s" in family.options else {}
        try:
            found = family.member(make_parameters({"p": p, "m": m, **options}))
        except ValueError:
            continue
        told = {"p": p, "m": m, **options}
        return found, " ".join([family.name, *(f"{key}={value}" for key, value in told.items())])
    raise ValueError(f"{family.name} takes none of {PICTURED}")


def draw(family: Family, folder: Path) -> None:
    """Write the family's picture to ``folder/pictures``."""
    found, words = shown(family)
    (folder / "pictures").mkdir(parents=True, exist_ok=True)
    picture = Picture(problem=found.problem, schedule=found.schedule, title=words)
    picture.save(folder / "pictures" / f"{family.name}.svg")


def page(name: str) -> str:
    """The family's page as Markdown."""
    family = families()[name]
    found, words = shown(family)
    ours = family.ours(found.pipeline)
    return "\n".join(
        [
            f"# {family.title}: `{name}`\n",
            f"{_sentence(family)} Source: {family.source}.\n",
            *([] if ours is None else [f"Not the source's: {ours}\n"]),
            f"![{words}](pictures/{name}.svg)\n",
            f"Drawn by `bubbleproof show {words} -o {name}.svg`.\n",
            "## What it takes\n",
            _parameters(family),
            "## Peak and bubble as formulas\n",
            _formulas(name),
            "## Measured\n",
            _measured(family),
            "## Messages\n",
            _messages(name),
            "## Proved\n",
            _theorems(name),
        ]
    )


def _sentence(family: Family) -> str:
    return (type(family).__doc__ or family.title).strip().partition("\n")[0].replace("``", "`")


def _parameters(family: Family) -> str:
    backward = "split into I and W" if family.is_split else "whole (B)"
    rows = [("p", "ranks"), ("m", "microbatches")]
    rows += [(key, MEANINGS[key]) for key in MEANINGS if key in family.options]
    extra = f"Adds: {', '.join(sorted(family.adds))}. " if family.adds else ""
    line = f"Placement `{family.placement}`, backwards {backward}. {extra}\n".replace(" \n", "\n")
    return f"{line}\n{markdown_table(('parameter', 'is'), rows)}"


def plain(value: Fraction) -> str:
    """A whole number, or a ratio."""
    return str(value)


def _formulas(name: str) -> str:
    rows = [
        (
            f"`{claim.id}`" if i == 0 else "",
            claim.statement if i == 0 else "",
            each.at,
            f"{reading.relation.value} {plain(each.predicted)}",
            plain(each.measured),
        )
        for claim, reading, sizes in formulas(name)
        for i, each in enumerate(sizes)
    ]
    if not rows:
        return "No formula of its peak or bubble stands.\n"
    lead = (
        "Claims that stand, with their sources and domains in\n[claims.md](../measured/claims.md); "
        "the measured side builds the schedule.\n\n"
    )
    return lead + markdown_table(("claim", "says", "at", "formula", "measured"), rows)


def _measured(family: Family) -> str:
    rows: list[list[object]] = []
    for p, m in GRID:
        try:
            made = family.member(make_parameters({"p": p, "m": m}))
        except ValueError:
            continue
        found = measure(made.problem, made.schedule)
        peak = max(found.peak_activations)
        rows.append([f"{p} {m}", found.makespan, found.idle_ratio, found.span_idle, peak])
        if family.name in IMPROVED:
            rows[-1].append(_improved(family.name, made))
    if not rows:
        return "None of these sizes.\n"
    header = ["p m", "makespan", "idle_ratio", "span_idle", "peak (units)"]
    lead = "Default parameters, tF = 1, tB = 2 or tI = tW = 1; one unit is one action's activation."
    if family.name in IMPROVED:
        header.append("improved: makespan")
        lead += (
            f"\n`solve` and `plan` begin from this order and from one that they call "
            f"`{family.name}, improved`:\nbubbleproof's, shorter within the same memory, and never "
            "run under the family's name."
        )
    return f"{lead}\n\n{markdown_table(header, rows)}"


def _improved(name: str, made: FamilyMember) -> object:
    """The makespan of the family's improved order, empty where there is none."""
    found = improved(name, made.pipeline)
    if found is None:
        return ""
    return measure(made.problem, left_shift(made.problem, found)).makespan


def _messages(name: str) -> str:
    mine = [row for row in _rows() if row["generator"].partition(" ")[0] == name]
    if not mine:
        return "Not judged.\n"
    lines = [*_placement(mine, "own", "As `lower` posts them"), ""]
    lines += _placement(mine, "before use", "With each RECV right before its use")
    link = "All sizes: [verdicts](../measured/verdicts.md).\n"
    return "\n".join([*lines, "", link])


def _placement(mine: list[Row], placement: str, title: str) -> Iterator[str]:
    """The semantics under which every program ends, and of the others the smallest that do not."""
    judged = [row for row in mine if row["placement"] == placement]
    wrong = {name: [row for row in judged if row[name] in OUTCOMES] for name in map(str, Semantics)}
    right = [name for name, rows in wrong.items() if not rows]
    yield f"{title}, {len(judged)} programs: right under {', '.join(right) or 'none'}."
    for name, rows in wrong.items():
        if rows:
            first = min(rows, key=lambda row: (int(row["p"]), int(row["m"])))
            size = f"`{first['generator']}` p={first['p']} m={first['m']}"
            target = f"../measured/verdict-examples.md#{_anchor(first, placement, name)}"
            yield f"- {name}: {len(rows)} are not, the smallest [{size}]({target}): {first[name]}."


@cache
def _rows() -> list[Row]:
    with ROWS.open(encoding="utf-8", newline="") as stream:
        return [row for row in csv.DictReader(stream) if row["source"] == "bubbleproof"]


def _anchor(row: Row, placement: str, semantics: str) -> str:
    """The section of the counterexample: the one whose heading and sentence name all of it."""
    size = f"`{row['generator']}` at p={row['p']} m={row['m']},"
    for heading, sentence in _sections():
        told = re.split(r", under |, |:$", sentence)
        is_his = heading.startswith(row["source"]) and sentence.startswith(size)
        if is_his and f"*{placement}*" in sentence and semantics in told:
            return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
    raise LookupError(f"no counterexample of {size} {placement}, {semantics}")


@cache
def _sections() -> list[tuple[str, str]]:
    text = SUMMARY.read_text("utf-8")
    return re.findall(r"^## ([^\n]+)\n\n([^\n]+)\n", text, re.MULTILINE)


def _theorems(name: str) -> str:
    rows = [(f"`{theorem}`", sizes) for theorem, sizes in theorem_rows(name)]
    if not rows:
        return "No theorem is about this family alone; [what is proved](../guide/formal.md).\n"
    lead = (
        "`bubbleproof prove THEOREM` proves one. By what, and what is assumed:\n"
        "[formal.md](../guide/formal.md).\n"
    )
    return f"{lead}\n{markdown_table(('theorem', 'sizes'), rows)}"
