"""What the claims of the field and of MEPipe measure: families at the claims' parameters.

Parameters are those of the families (``p m v s f tF tB tI tW``) and ``r``, a rank. ``A`` is one
sample through all layers: with v chunks and s slices one action's activation is A/(vsp). For a
pipeline whose stages are on two ranks, as on any other, units are counted where they lie.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import product
from math import prod

from bubbleproof.papers.claims.claim import Claim, Domain, Params, Relation, Value, listed
from bubbleproof.papers.claims.points import Row
from bubbleproof.papers.claims.ranges import RATIOS
from bubbleproof.papers.claims.retiming import Template, retimed, template
from bubbleproof.papers.claims.scope import Cases, Scope, small, wide
from bubbleproof.theory.families import FamilyMember, family, make_parameters
from bubbleproof.theory.families.parameters import COUNTS, NAMES, TICKS
from bubbleproof.theory.model.measures import Measures

_SHAPES = frozenset("vsf")  # parameters that only some families take
Given = tuple[tuple[str, int], ...]
Ticks = Mapping[str, int]

RANKS = (2, 3, 4, 5, 6, 7, 8, 11, 16)
FEWER_RANKS = (2, 3, 4, 5, 6, 7, 8, 16)
FULL_TICKS = ({"tF": 1, "tB": 1}, {"tF": 1, "tB": 2}, {"tF": 2, "tB": 1}, {"tF": 3, "tB": 5})
WIDE_TICKS = tuple({"tF": forward, "tB": backward} for forward, backward in RATIOS)
ALL_RANKS = range(2, 17)
EVERY_M = 5  # up to so many ranks every m is looked at, beyond it those around multiples of p


def made(name: str, at: Params) -> FamilyMember:
    """The family's schedule; a chunk, slice or forward count that it does not take is left out."""
    chosen = family(name)
    taken = [n for n in NAMES if n in at and (n not in _SHAPES or n in chosen.options)]
    return chosen.member(make_parameters({n: at[n] for n in taken}))


@lru_cache(maxsize=8192)  # numbers only: the schedules themselves are not kept
def _measures(name: str, shape: Given, ticks: Given) -> Measures:
    return retimed(_template(name, shape), dict(ticks))


@lru_cache(maxsize=24)  # a sweep on p ranks and m microbatches meets up to 20 shapes in turn
def _template(name: str, shape: Given) -> Template:
    return template(name, dict(shape))


def measures(name: str, at: Params) -> Measures:
    """The measures of the family's schedule; what it does not take is left out."""
    options = family(name).options
    shape = tuple((n, at[n]) for n in COUNTS if n in at and (n not in _SHAPES or n in options))
    return _measures(name, shape, tuple((n, at[n]) for n in TICKS if n in at))


def idle_ratio(name: str) -> Value:
    """Idle share of all ranks' time until the last one ends."""
    return lambda at: measures(name, at).idle_ratio


def idle_over_work(name: str) -> Value:
    """Idle time over working time."""
    return lambda at: measures(name, at).idle_over_work


def makespan(name: str) -> Value:
    """Ticks from the first start to the last end."""
    return lambda at: Fraction(measures(name, at).makespan)


def span_idle(name: str) -> Value:
    """The zero-bubble papers' bubble: idle ticks within a rank's own span, on the worst rank."""
    return lambda at: Fraction(measures(name, at).span_idle)


def idle_ticks(name: str) -> Value:
    """Idle ticks of the worst rank until the last rank ends."""
    return lambda at: Fraction(max(measures(name, at).idle_ticks))


def peak(name: str) -> Value:
    """The most units that any rank holds."""
    return lambda at: Fraction(max(measures(name, at).peak_activations))


def peak_of_rank(name: str) -> Value:
    """The most units that rank r holds."""
    return lambda at: Fraction(measures(name, at).peak_activations[at["r"]])


def peak_of_a(name: str) -> Value:
    """The most that any rank holds, as a fraction of A."""

    def value(at: Params) -> Fraction:
        options = family(name).options
        units = at["p"] * prod(at[n] for n in "vs" if n in at and n in options)
        return Fraction(max(measures(name, at).peak_activations), units)

    return value


def constant(value: Fraction) -> Value:
    """The same value at all parameters."""

    def fixed(at: Params) -> Fraction:
        del at
        return value

    return fixed


def is_looked_at(at: Params) -> bool:
    """m <= 4p; beyond ``EVERY_M`` ranks only m within 1 of a multiple of p, and m <= 2."""
    p, m = at["p"], at["m"]
    return m <= 4 * p and (p <= EVERY_M or m <= 2 or m % p in (0, 1, p - 1))


def shapes(
    condition: str = "any durations",
    where: Callable[[Params], bool] | None = None,
    *,
    ranks: Sequence[int] = RANKS,
    ticks: Sequence[Ticks] = FULL_TICKS,
    wide_ticks: Sequence[Ticks] = WIDE_TICKS,
    **others: Sequence[int],
) -> Scope:
    """The m looked at on the given ranks, and every m <= 4p on up to 16, where ``where`` holds.

    Both with all durations and other parameters. The text names all of it and ends with
    ``condition``, which says in words what ``where`` does.
    """
    shape = {name: tuple(values) for name, values in others.items()}
    few = ((p, m) for p in ranks for m in range(1, 4 * p + 1) if is_looked_at({"p": p, "m": m}))
    every = ((p, m) for p in ALL_RANKS for m in range(1, 4 * p + 1))
    few_text = (
        f"p in {_spelled(ranks)}; m <= 4p (from p = 6 on only m <= 2 and m within 1 of a multiple "
        "of p)"
    )
    return Scope(
        small=_shaped(few_text, condition, where, tuple(few), ticks, shape),
        wide=_shaped("2 <= p <= 16; m <= 4p", condition, where, tuple(every), wide_ticks, shape),
    )


def _shaped(
    counted: str,
    condition: str,
    where: Callable[[Params], bool] | None,
    pairs: Sequence[tuple[int, int]],
    ticks: Sequence[Ticks],
    shape: Mapping[str, Sequence[int]],
) -> Domain:
    names = ("p", "m", *shape, *ticks[0])

    def rows() -> Iterator[Row]:
        for pair, chosen, durations in product(pairs, product(*shape.values()), ticks):
            row = (*pair, *chosen, *durations.values())
            if where is None or where(dict(zip(names, row, strict=True))):
                yield row

    parts = [
        counted,
        *(f"{name} in {_spelled(values)}" for name, values in shape.items()),
        _spelled_ticks(ticks),
        condition,
    ]
    return listed("; ".join(parts), names, rows)


def _spelled_ticks(ticks: Sequence[Ticks]) -> str:
    """Each row of ticks, or that each of them runs through the same range."""
    names, rows = " ".join(ticks[0]), [tuple(each.values()) for each in ticks]
    most = max(max(row) for row in rows)
    if len(rows) > 1 and rows == list(product(range(1, most + 1), repeat=len(ticks[0]))):
        return f"{names} each in 1 to {most}"
    return f"{names} in {', '.join(map(_spelled, rows))}"


def _spelled(values: Iterable[int]) -> str:
    return " ".join(map(str, values))


def stated(
    name: str,
    source: str,
    statement: str,
    quantity: str,
    cases: Cases,
    predicted: Value,
    measured: Value,
    *,
    relation: Relation = Relation.EQUAL,
    corrected: str | None = None,
    places: int = 0,
    slack: str | None = None,
) -> Claim:
    """A claim of the paper that ``name`` begins with."""
    return Claim(
        id=name,
        paper=name.partition(".")[0],
        source=source,
        statement=statement,
        quantity=quantity,
        relation=relation,
        domain=small(cases),
        wide=wide(cases),
        predicted=predicted,
        measured=measured,
        corrected=corrected,
        places=places,
        slack=slack,
    )
