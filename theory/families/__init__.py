"""Published schedules; ``families()`` lists them by their command-line names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module

from bubbleproof.theory.families.base import Family, FamilyMember
from bubbleproof.theory.families.parameters import (
    FamilyParameters,
    make_parameters,
    parse_parameters,
)
from bubbleproof.theory.families.registration import announced, is_name, own, register
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

# The class of each family, in its module here, which is loaded when the family is asked for.
_OURS = {
    "gpipe": "gpipe.GPipe",
    "1f1b": "one_f_one_b.OneForwardOneBackward",
    "1f1b-recompute": "recomputed_1f1b.RecomputedOneForwardOneBackward",
    "adapipe": "adapipe.AdaPipe",
    "interleaved": "interleaved.InterleavedOneForwardOneBackward",
    "bfs": "gpipe.BreadthFirst",
    "terapipe": "gpipe.TeraPipe",
    "seq1f1b": "seq1f1b.SeqOneForwardOneBackward",
    "slimpipe": "slimpipe.SlimPipe",
    "hanayo": "hanayo.Hanayo",
    "zb-h1": "zb_h.ZeroBubbleH1",
    "zb-h2": "zb_h.ZeroBubbleH2",
    "zb-v": "zb_v.ZeroBubbleV",
    "v-half": "v_shape.VHalf",
    "v-min": "v_shape.VMin",
    "chimera": "chimera.Chimera",
    "dualpipe": "dualpipe.DualPipe",
    "dualpipev": "dualpipe.DualPipeV",
    "bpipe": "evicting.bpipe.BPipe",
    "bpipe-interleaved": "evicting.bpipe.BPipeInterleaved",
    "svpp": "svpp.SVPP",
    "svpp-w": "svpp.SVPPWeights",
    "tpipe": "tpipe.TPipe",
    "trecomp": "trecomp.TRecomp",
    "trecomp-interleaved": "trecomp.TRecompInterleaved",
    "toffload": "toffload.TOffload",
    "pipemesh": "pipemesh.PipeMesh",
    "forward": "forward.ForwardOnly",
}
PRINTED = {  # of generators as papers print them, which are not listed
    "svpp-printed": "printed.PrintedSVPP",
    "svpp-filled": "printed.FilledSVPP",
    "svpp-of-samples": "printed.SampledSVPP",
    "pipemesh-printed": "printed.PrintedPipeMesh",
    "interleaved-spread": "interleaved.DepthFirst",
}
_RESERVED = (*_OURS, *PRINTED)


class _Families(Mapping[str, Family]):
    """Every family by its name, loaded when it is asked for.

    Others' are looked for where all are listed and for a name that is none of ours. Raises
    ``ValueError`` where one of them has a name of ours.
    """

    def __getitem__(self, name: str) -> Family:
        return _loaded(_OURS[name]) if name in _OURS else self._others()[name]

    def __contains__(self, name: object) -> bool:
        return name in _OURS or (is_name(name) and name in self._others())

    def __iter__(self) -> Iterator[str]:
        return iter([*_OURS, *self._others()])

    def __len__(self) -> int:
        return len(_OURS) + len(self._others())

    def _others(self) -> dict[str, Family]:
        return {**announced(reserved=_RESERVED), **own(reserved=_RESERVED)}

    def __repr__(self) -> str:
        return repr(dict(self))


@cache
def _loaded(place: str) -> Family:
    module, _, name = place.rpartition(".")
    made: Family = getattr(import_module(f"{__name__}.{module}"), name)()
    return made


def families() -> Mapping[str, Family]:
    """Every family by its name: ours in the order of the documentation, then users' own."""
    own(reserved=_RESERVED)
    return _Families()


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
    known = families()
    if isinstance(name, str):
        if name in known:
            return known[name]
        if name in PRINTED:
            return _loaded(PRINTED[name])
    names = [*known, *PRINTED]
    hint = did_you_mean(str(name), names)
    raise ValueError(f"no family {name!r}{hint}; the families are {' '.join(names)}")


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
    return family(name).member(make_parameters(params))
