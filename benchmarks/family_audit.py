"""Every family on every shape that it accepts, beside what its source says and its plain sibling.

    python -m benchmarks.family_audit [-p 6] [-m 12] [-v 4] [--only hanayo,svpp]

A statement is the source's own number for a shape: a makespan at the default ticks or at equal
ones, an idle time, a peak. A shape is the source's where ``Family.ours`` is None; there every
statement must hold, and each family needs one that speaks (a test asks it of all of them).
Elsewhere the order is ours in part; the table says how often the statement holds all the same. A
plain sibling is the order without what the family adds: balancing, recomputation and off-loading
never fill the fullest rank more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import product
from typing import Annotated, NamedTuple, cast

import typer

from benchmarks.markdown import markdown_table
from benchmarks.optimality_sources import authors
from bubbleproof.papers.formula import Formula
from bubbleproof.theory.families import FamilyMember, families, make_parameters
from bubbleproof.theory.families.base import Family
from bubbleproof.theory.model.measures import Measures, measure

Shape = tuple[int, int, int, int]  # p, m, v, s
EQUAL = (("tF", 1), ("tB", 1))
SIBLINGS = {
    "bpipe": "1f1b",
    "bpipe-interleaved": "interleaved",
    "1f1b-recompute": "interleaved",  # blocks of layers: of v chunks its ranks hold all in turn
    "trecomp": "tpipe",
    "trecomp-interleaved": "interleaved",
    "toffload": "tpipe",
}
HEADER = (
    "family", "shapes", "the source's", "statement", "speaks", "holds", "first exception",
    "fuller than sibling",
)  # fmt: skip


class SourceStatement(NamedTuple):
    """What a source says of p, m, v, s where it says something, and what is measured."""

    text: str
    says: str  # a formula of p, m, v, s
    measured: Callable[[Measures], int]
    where: str = "True"
    ticks: tuple[tuple[str, int], ...] = ()
    is_limit: bool = False  # "at most"

    def said(self, name: str, shape: Shape) -> int | None:
        """The number, or None where nothing is said; of an empty formula what ``authors`` knows."""
        at = dict(zip("pmvs", shape, strict=True))
        if not Formula(self.where)(at):
            return None
        if self.says:
            return cast("int", Formula(self.says)(at))
        known = authors(name, *shape)
        return None if known is None else known[0]


def _span(found: Measures) -> int:
    return found.makespan


def _fullest(found: Measures) -> int:
    return max(found.peak_activations)


def _idle(found: Measures) -> int:
    return found.span_idle


_WITHIN_F = SourceStatement(
    "Table 3: peak at most f = v max(p, s) + min(p, s) - 1",
    "v*max(p, s) + min(p, s) - 1",
    _fullest,
    is_limit=True,
)
STATEMENTS: dict[str, tuple[SourceStatement, ...]] = {
    "gpipe": (SourceStatement("peak m", "m", _fullest),),
    "1f1b": (SourceStatement("peak min(p, m)", "min(p, m)", _fullest),),
    "1f1b-recompute": (
        SourceStatement("T-Pipe App. C: (m+p-1)(v tF + v tB + k tF), k = v/2",
                        "(m + p - 1)*7*v//2", _span),
    ),
    "interleaved": (
        SourceStatement("BPipe App. A: peak min(p(v-1) + 2p-1, mv), p divides m",
                        "min(p*v + p - 1, m*v)", _fullest, "m % p == 0"),
    ),
    "hanayo": (
        SourceStatement("MEPipe Table 3 at tF = tB",
                        "2*(m*v + p-1 if m >= p else v*p + m-1)", _span, ticks=EQUAL),
        SourceStatement("Table 3: peak min(p, m) v", "min(p, m)*v", _fullest),
    ),
    "svpp": (
        SourceStatement("MEPipe Table 3 at tF = tB",
                        "2*(m*v*s + p-1 + (v-1)*max(p - s*m, 0))", _span, ticks=EQUAL),
        _WITHIN_F,
    ),
    "svpp-w": (_WITHIN_F,),
    "zb-h1": (
        SourceStatement("idles p-1, m >= p", "p-1", _idle, "m >= p"),
        SourceStatement("peak min(p, m)", "min(p, m)", _fullest),
    ),
    "zb-h2": (
        SourceStatement("idles nothing, m >= 2p-1", "0", _idle, "m >= 2*p-1"),
        SourceStatement("peak 2p-1, m >= 2p-1", "2*p-1", _fullest, "m >= 2*p-1"),
    ),
    "zb-v": (
        SourceStatement("idles nothing, m >= 2p-1", "0", _idle, "m >= 2*p-1"),
        SourceStatement("peak 2p, m >= p", "2*p", _fullest, "m >= p"),
    ),
    "v-half": (SourceStatement("peak 2((p+2) div 2), m >= p", "(p+2)//2*2", _fullest, "m >= p"),),
    "v-min": (SourceStatement("peak 2((p+4) div 3), m >= p", "(p+4)//3*2", _fullest, "m >= p"),),
    "chimera": (
        SourceStatement("2m + p-2 at tF = tB, full units", "2*m + p-2", _span, "m % p == 0", EQUAL),
        SourceStatement("section 3: peak p, full units", "p", _fullest, "m % p == 0"),
    ),
    "bpipe": (
        SourceStatement("makespan of 1F1B", "3*(m + p-1)", _span),
        SourceStatement("section 3.3: peak at most ceil((p+2)/2)", "(p+3)//2", _fullest,
                        is_limit=True),
    ),
    "bpipe-interleaved": (
        SourceStatement("makespan of Megatron-LM", "3*(m*v + p-1)", _span),
        SourceStatement("App. A: peak at most pv + 1", "p*v + 1", _fullest, is_limit=True),
    ),
    "pipemesh": (SourceStatement("(mv + p-1)(tF + tB), m >= p", "3*(m*v + p-1)", _span, "m >= p"),),
    "forward": (
        SourceStatement("(mv + p-1) tF, v = 1 or p divides m", "m*v + p-1", _span,
                        "v == 1 or m % p == 0"),
        SourceStatement("peak 1: nothing is kept for a backward", "1", _fullest),
    ),
    "trecomp-interleaved": (
        SourceStatement("Figure 6(e): at most half of what two chunks of p ranks hold, and p more",
                        "2*p", _fullest, "v == 2 and m % p == 0 and m >= 2*p", is_limit=True),
    ),
}  # fmt: skip
# What the optimality page knows: T-Pipe's of two chunks on two ranks or more.
_AUTHORS = SourceStatement("its makespan at the default ticks", "", _span)
_TWO_CHUNKS = _AUTHORS._replace(where="v == 2 and p > 1")
_OF_SOURCE = {
    "tpipe": _TWO_CHUNKS,
    "toffload": _TWO_CHUNKS,
    "trecomp": _TWO_CHUNKS._replace(is_limit=True),
}


def shapes(family: Family, p: int, m: int, v: int, s: int = 3) -> Iterator[Shape]:
    """All shapes up to these sizes, by what the family has parameters for."""
    fewest = 2 if family.has_two_chunks else 1
    chunks = range(fewest, v + 1) if "v" in family.options else (1,)
    slices = range(1, s + 1) if "s" in family.options else (1,)
    return product(range(1, p + 1), range(1, m + 1), chunks, slices)


@lru_cache(maxsize=4096)
def _made(name: str, shape: Shape, ticks: tuple[tuple[str, int], ...]) -> FamilyMember | None:
    """The family's schedule, or None where it refuses the shape."""
    family, given = families()[name], dict(zip("pmvs", shape, strict=True))
    asked = {key: n for key, n in given.items() if key in "pm" or key in family.options}
    try:
        return family.member(make_parameters({**asked, **dict(ticks)}))
    except ValueError:
        return None


@lru_cache(maxsize=4096)
def _measured(
    name: str, shape: Shape, ticks: tuple[tuple[str, int], ...] = ()
) -> tuple[Measures, str | None] | None:
    """What is measured of the family's schedule, and what of its order is ours."""
    if (made := _made(name, shape, ticks)) is None:
        return None
    return measure(made.problem, made.schedule), families()[name].ours(made.pipeline)


class StatementCount(NamedTuple):
    """A statement over the accepted shapes: how often it speaks and holds, and where it does not.

    ``broken`` are the shapes of the source's own order at which it does not.
    """

    statement: SourceStatement
    speaks: int
    holds: int
    exceptions: tuple[tuple[Shape, int, int], ...]  # shape, measured, said
    broken: tuple[Shape, ...]


class FamilyCount(NamedTuple):
    """A family over its shapes: how many it accepts, are its source's, are fuller than plain."""

    accepted: int
    published: int
    counts: tuple[StatementCount, ...]
    fuller: tuple[Shape, ...] | None


def audit(name: str, wanted: list[Shape]) -> FamilyCount:
    """The family on these shapes."""
    accepted = {shape: found for shape in wanted if (found := _measured(name, shape)) is not None}
    every = (_OF_SOURCE.get(name, _AUTHORS), *STATEMENTS.get(name, ()))
    counts = tuple(_counted(name, each, accepted) for each in every)
    return FamilyCount(
        accepted=len(accepted),
        published=sum(ours is None for _, ours in accepted.values()),
        counts=tuple(count for count in counts if count.speaks),
        fuller=_fuller(name, accepted),
    )


def _counted(
    name: str, statement: SourceStatement, accepted: dict[Shape, tuple[Measures, str | None]]
) -> StatementCount:
    speaks, exceptions, broken = 0, [], []
    for shape, (_, ours) in accepted.items():
        said, found = statement.said(name, shape), _measured(name, shape, statement.ticks)
        if said is None or found is None:
            continue
        speaks += 1
        got = statement.measured(found[0])
        if got > said if statement.is_limit else got != said:
            exceptions.append((shape, got, said))
            broken += [shape] if ours is None else []
    holds = speaks - len(exceptions)
    return StatementCount(statement, speaks, holds, tuple(exceptions), tuple(broken))


def _fuller(
    name: str, accepted: dict[Shape, tuple[Measures, str | None]]
) -> tuple[Shape, ...] | None:
    """The shapes at which the fullest rank holds more than the plain sibling's."""
    if (plain := SIBLINGS.get(name)) is None:
        return None
    beside = {shape: _measured(plain, shape) for shape in accepted}
    return tuple(
        shape
        for shape, (found, _) in accepted.items()
        if (other := beside[shape]) is not None and _fullest(found) > _fullest(other[0])
    )


def rows(name: str, found: FamilyCount) -> Iterator[tuple[object, ...]]:
    """The family's rows of the table."""
    sibling = SIBLINGS.get(name, "")
    fuller = "" if found.fuller is None else f"{len(found.fuller)} ({sibling})"
    for number, count in enumerate(found.counts or (None,)):
        first = (name, found.accepted, found.published) if not number else ("", "", "")
        if count is None:
            yield (*first, "none", "", "", "", fuller)
            continue
        told = ""
        if count.exceptions:
            shape, got, said = count.exceptions[0]
            told = f"p m v s = {' '.join(map(str, shape))}: {got}, said {said}"
        yield (*first, count.statement.text, count.speaks, count.holds, told,
               fuller if not number else "")  # fmt: skip


def main(
    p: Annotated[int, typer.Option("-p", help="Most ranks.")] = 6,
    m: Annotated[int, typer.Option("-m", help="Most microbatches.")] = 12,
    v: Annotated[int, typer.Option("-v", help="Most chunks of a rank.")] = 4,
    only: Annotated[str, typer.Option(help="Families, with commas.")] = "",
) -> None:
    """Print the table; see the module's text."""
    names = only.split(",") if only else list(families())
    found = {name: audit(name, list(shapes(families()[name], p, m, v))) for name in names}
    typer.echo(markdown_table(HEADER, (row for name in names for row in rows(name, found[name]))))


if __name__ == "__main__":
    typer.run(main)
