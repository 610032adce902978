"""The page of one family: picture, source, parameters, formulas, measures, messages, theorems."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from fractions import Fraction
from pathlib import Path

from benchmarks.catalogue import slimpipe_figures
from benchmarks.catalogue.standing_formulas import formulas, theorem_rows
from benchmarks.markdown import markdown_table
from benchmarks.verdicts.generated import BEFORE_USE, OWN, Generator, NotGenerated
from benchmarks.verdicts.judged import MATCHES, communication
from benchmarks.verdicts.our_generators import our_generators
from bubbleproof.report.picture import Picture
from bubbleproof.solvers.shortening.known_orders import IMPROVED, improved
from bubbleproof.theory.families import FamilyMember, families, make_parameters
from bubbleproof.theory.families.base import Family
from bubbleproof.theory.families.forward import forwards_alone
from bubbleproof.theory.model.measures import measure
from bubbleproof.theory.pipelines.timing import left_shift
from bubbleproof.verify import Semantics

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
# What a source draws or counts at a size: where, ticks at tF = 1 and tB = 2, activations of rank 0.
FIGURES: dict[str, tuple[tuple[str, dict[str, int], int | None, int], ...]] = {
    "1f1b": (("Seq1F1B Figure 1", {"p": 4, "m": 8}, 33, 4),),
    "seq1f1b": (("Figure 1", {"p": 4, "m": 8, "s": 2}, 57, 5),),
    "bpipe": (("Figure 4", {"p": 4, "m": 8}, None, 3),),
    "svpp": (
        ("MEPipe Figure 4", {"p": 4, "m": 4, "s": 2, "v": 1}, None, 5),
        ("MEPipe Figure 4", {"p": 4, "m": 4, "s": 2, "v": 2}, None, 9),
    ),
}

AGAINST = {"slimpipe": slimpipe_figures.section}  # a paper's own figures beside what is measured


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
            formula_section(name),
            "## Measured\n",
            _measured(family),
            *([AGAINST[name]()] if name in AGAINST else []),
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
    backward = "none" if forwards_alone(shown(family)[0].pipeline) else backward
    rows = [("p", "ranks"), ("m", "microbatches")]
    rows += [(key, MEANINGS[key]) for key in MEANINGS if key in family.options]
    extra = f"Adds: {', '.join(sorted(family.adds))}. " if family.adds else ""
    line = f"Placement `{family.placement}`, backwards {backward}. {extra}\n".replace(" \n", "\n")
    return f"{line}\n{markdown_table(('parameter', 'is'), rows)}"


def plain(value: Fraction) -> str:
    """A whole number, or a ratio."""
    return str(value)


def formula_section(name: str) -> str:
    """What the claims say of a family's peak, bubble or makespan, at a few sizes."""
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
    return f"{lead}\n\n{markdown_table(header, rows)}{_figures(family)}"


def _figures(family: Family) -> str:
    """What the sources draw beside what is measured; empty where no figure is among ``FIGURES``."""
    rows = []
    for place, size, ticks, peak in FIGURES.get(family.name, ()):
        made = family.member(make_parameters(size))
        found = measure(made.problem, made.schedule)
        ours = ("" if ticks is None else found.makespan, found.peak_activations[0])
        at = " ".join(f"{key}={value}" for key, value in size.items())
        rows.append((place, at, "" if ticks is None else ticks, ours[0], peak, ours[1]))
    if not rows:
        return ""
    header = ("figure", "at", "makespan there", "here", "peak of rank 0 there", "here")
    return f"\nWhat the sources' figures show:\n\n{markdown_table(header, rows)}"


def _improved(name: str, made: FamilyMember) -> object:
    """The makespan of the family's improved order, empty where there is none."""
    found = improved(name, made.pipeline)
    if found is None:
        return ""
    return measure(made.problem, left_shift(made.problem, found)).makespan


POSTED = {OWN: "As `lower` posts them", BEFORE_USE: "With each RECV right before its use"}


def _messages(name: str) -> str:
    generators = [each for each in our_generators() if each.name.partition(" ")[0] == name]
    told = []
    for placement, title in POSTED.items():
        programs = [*_programs(generators, placement)]
        wrong = {
            each: tuple(f"`{size}` ({at[each]})" for size, at in programs if at[each] != MATCHES)
            for each in Semantics
        }
        alike: dict[tuple[str, ...], list[str]] = {}
        for semantics, sizes in wrong.items():
            alike.setdefault(sizes, []).append(semantics.value)
        right = ", ".join(alike.pop((), ["none"]))
        told.append(f"{title}, {len(programs)} programs: right under {right}.")
        told += [
            f"- {', '.join(names)}: {len(sizes)} are not, the smallest {sizes[0]}."
            for sizes, names in alike.items()
        ]
        told.append("")
    return "\n".join([*told, "More sizes: [verdicts](../measured/verdicts.md).\n"])


def _programs(
    generators: Sequence[Generator], placement: str
) -> Iterator[tuple[str, dict[Semantics, str]]]:
    """The words of each program of the grid, by size, and its verdicts."""
    for p, m in GRID:
        for each in generators:
            with suppress(NotGenerated):
                made = each.make(p, m)
                if placement in made.placed:
                    found = communication(made.problem, made.placed[placement])
                    family, _, options = each.name.partition(" ")
                    yield " ".join([family, f"p={p}", f"m={m}", *options.split()]), found


def _theorems(name: str) -> str:
    rows = [(f"`{theorem}`", sizes) for theorem, sizes in theorem_rows(name)]
    if not rows:
        return "No theorem is about this family alone; [what is proved](../guide/formal.md).\n"
    lead = (
        "`bubbleproof prove THEOREM` proves one. By what, and what is assumed:\n"
        "[formal.md](../guide/formal.md).\n"
    )
    return f"{lead}\n{markdown_table(('theorem', 'sizes'), rows)}"
