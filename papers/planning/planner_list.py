"""The papers' own planners (``plan FILE --paper NAME``), each as printed and as it should be.

A planner takes the space of a problem file and the numbers of its table ``[paper.NAME]``
(``paper_choice.PaperInput``) and says what the paper would run (``paper_choice.PaperChoice``). A
new one is a function in a module of its own and a line in ``planners``.
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches

from bubbleproof.papers.bpipe.bpipe_planner import bpipe_choice
from bubbleproof.papers.mepipe.mepipe_planner import mepipe_choice
from bubbleproof.papers.pipemesh.pipemesh_planner import pipemesh_choice
from bubbleproof.papers.planning.paper_choice import PaperChoice, PaperInput
from bubbleproof.papers.tpipe.tpipe_planner import tpipe_choice

Planner = Callable[[PaperInput], PaperChoice]

_PLANNERS: dict[str, Planner] = {
    "bpipe": bpipe_choice,
    "mepipe": mepipe_choice,
    "pipemesh": pipemesh_choice,
    "tpipe": tpipe_choice,
}


def planners() -> dict[str, Planner]:
    """Every paper's planner by its name."""
    return dict(_PLANNERS)


def paper_choice(name: str, given: PaperInput) -> PaperChoice:
    """What a paper's planner chooses. Raises ``ValueError`` for a name or numbers it has not."""
    require_paper(name)
    return _PLANNERS[name](given)


def require_paper(name: str) -> None:
    """Raise ``ValueError`` naming the papers where there is none of that name."""
    if name not in _PLANNERS:
        close = get_close_matches(name[:60], _PLANNERS, n=1, cutoff=0.4)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise ValueError(f"paper must be one of {', '.join(_PLANNERS)}, got {name[:60]!r}{hint}")
