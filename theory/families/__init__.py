"""Published schedules; ``families()`` lists them by their command-line names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bubbleproof.theory.families.adapipe import AdaPipe
from bubbleproof.theory.families.base import Family, FamilyMember
from bubbleproof.theory.families.chimera import Chimera
from bubbleproof.theory.families.dualpipe import DualPipe, DualPipeV
from bubbleproof.theory.families.evicting.bpipe import BPipe, BPipeInterleaved
from bubbleproof.theory.families.forward import ForwardOnly
from bubbleproof.theory.families.gpipe import BreadthFirst, GPipe, TeraPipe
from bubbleproof.theory.families.hanayo import Hanayo
from bubbleproof.theory.families.interleaved import InterleavedOneForwardOneBackward
from bubbleproof.theory.families.one_f_one_b import OneForwardOneBackward
from bubbleproof.theory.families.parameters import (
    FamilyParameters,
    make_parameters,
    parse_parameters,
)
from bubbleproof.theory.families.pipemesh import PipeMesh
from bubbleproof.theory.families.printed import printed
from bubbleproof.theory.families.recomputed_1f1b import RecomputedOneForwardOneBackward
from bubbleproof.theory.families.registration import register, registered
from bubbleproof.theory.families.seq1f1b import SeqOneForwardOneBackward
from bubbleproof.theory.families.slimpipe import SlimPipe
from bubbleproof.theory.families.svpp import SVPP, SVPPWeights
from bubbleproof.theory.families.toffload import TOffload
from bubbleproof.theory.families.tpipe import TPipe
from bubbleproof.theory.families.trecomp import TRecomp, TRecompInterleaved
from bubbleproof.theory.families.v_shape import VHalf, VMin
from bubbleproof.theory.families.zb_h import ZeroBubbleH1, ZeroBubbleH2
from bubbleproof.theory.families.zb_v import ZeroBubbleV
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.near_names import did_you_mean
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.programs.messages_in_programs import with_messages_in_order

__all__ = [
    "Family",
    "FamilyMember",
    "FamilyParameters",
    "families",
    "family",
    "make_parameters",
    "member",
    "parse_parameters",
    "published_in_turn",
    "register",
]

_FAMILIES: tuple[Family, ...] = (
    GPipe(),
    OneForwardOneBackward(),
    RecomputedOneForwardOneBackward(),
    AdaPipe(),
    InterleavedOneForwardOneBackward(),
    BreadthFirst(),
    TeraPipe(),
    SeqOneForwardOneBackward(),
    SlimPipe(),
    Hanayo(),
    ZeroBubbleH1(),
    ZeroBubbleH2(),
    ZeroBubbleV(),
    VHalf(),
    VMin(),
    Chimera(),
    DualPipe(),
    DualPipeV(),
    BPipe(),
    BPipeInterleaved(),
    SVPP(),
    SVPPWeights(),
    TPipe(),
    TRecomp(),
    TRecompInterleaved(),
    TOffload(),
    PipeMesh(),
    ForwardOnly(),
)


def families() -> dict[str, Family]:
    """Every family by its name: ours in the order of the documentation, then users' own."""
    ours = {family.name: family for family in _FAMILIES}
    return {**ours, **registered(reserved=(*ours, *printed()))}


def family(name: str) -> Family:
    """The family, or printed generator, of that name.

    Parameters
    ----------
    name
        Such as ``1f1b``; ``families`` lists them all.

    Returns
    -------
    Family
        Called with its parameters it gives a member: ``family("1f1b")(p=4, m=8)``.

    Raises
    ------
    ValueError
        Listing the names, when there is none of that name.
    """
    known = {**families(), **printed()}
    if not isinstance(name, str) or name not in known:
        hint = did_you_mean(str(name), known)
        raise ValueError(f"no family {name!r}{hint}; the families are {' '.join(known)}")
    return known[name]


def published_in_turn(
    pipeline: Pipeline, only: Sequence[str] = ()
) -> Iterator[tuple[str, Program]]:
    """The orders of all families that take the pipeline as it is, each made when it is asked for.

    Parameters
    ----------
    only
        Names of families; all that there are where it is empty. A name with " G" behind it stands
        for the family's orders as its source runs them (``Family.grouped``).

    Returns
    -------
    Iterator[tuple[str, Program]]
        The family's name and its program of the pipeline, its messages in order too.
    """
    problem = pipeline.problem()
    for family_name, known in families().items():
        chosen = known.grouped(pipeline) if f"{family_name} G" in only else {family_name: known}
        if not only or {family_name, f"{family_name} G"}.intersection(only):
            for name, each in chosen.items():
                if each.refusal(pipeline) is None:
                    yield name, with_messages_in_order(problem, each.program(pipeline))


def member(name: str, **params: int | tuple[int, ...]) -> FamilyMember:
    """The schedule of a family, by the parameters' short names.

    Parameters
    ----------
    name
        The family's name.
    params
        Parameters by their short names, such as ``p`` and ``m``.

    Examples
    --------
    >>> print(*member("1f1b", p=2, m=2).schedule.program.orders(2)[1])
    1F0 1B0 1F1 1B1
    """
    return family(name)(**params)
