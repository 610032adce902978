"""Our families as generators: messages as ``lower`` places them."""

from __future__ import annotations

from functools import partial

from benchmarks.verdicts.generated import (
    BEFORE_USE,
    OWN,
    Generated,
    Generator,
    NotGenerated,
    with_late_receives,
)
from bubbleproof.theory.families import families, make_parameters
from bubbleproof.theory.pipelines.programs.lowering import lower

SOURCE = "bubbleproof"
CHUNKS: tuple[dict[str, int], ...] = ({}, {"v": 4})
SLICES = ({"s": 2}, {"v": 2, "s": 2})


def our_generators() -> list[Generator]:
    """Every family; at its default chunks and at 4, or with 2 slices, where it takes them."""
    found = []
    for name, family in families().items():
        options: tuple[dict[str, int], ...] = ({},)
        if "s" in family.options:
            options = SLICES if "v" in family.options else SLICES[:1]
        elif "v" in family.options:
            options = CHUNKS
        for each in options:
            label = " ".join([name, *(f"{key}={value}" for key, value in each.items())])
            make = partial(_member, name, tuple(each.items()))
            found.append(Generator(name=label, source=SOURCE, make=make))
    return found


def _member(name: str, options: tuple[tuple[str, int], ...], p: int, m: int) -> Generated:
    try:
        made = families()[name].member(make_parameters({"p": p, "m": m, **dict(options)}))
    except ValueError as error:
        raise NotGenerated(str(error)) from None
    lowered = lower(made.problem, made.schedule)
    late = with_late_receives(made.problem, lowered)
    return Generated(
        problem=made.problem,
        order=made.schedule.program,
        placed={OWN: lowered, BEFORE_USE: late},
    )
