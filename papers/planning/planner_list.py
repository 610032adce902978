"""The papers' own planners (``plan FILE --paper NAME``), each as printed and as it should be.

A planner takes the space of a problem file and the numbers of its table ``[paper.NAME]``
(``paper_choice.PaperInput``) and says what the paper would run (``paper_choice.PaperChoice``). A
new one is a function in a module of its own and a line in ``planners``. ``OF_MODELS`` take a model
on a cluster alone.
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

OF_MODELS = ("vocabulary",)


def planners() -> dict[str, Planner]:
    """Every paper's planner by its name."""
    return dict(_PLANNERS)


def paper_choice(name: str, given: PaperInput) -> PaperChoice:
    """What a paper's planner chooses. Raises ``ValueError`` for a name or numbers it has not."""
    require_paper(name)
    if name in OF_MODELS:
        raise ValueError(
            f"{name} divides the embedding and the output layer of a model, which a problem file "
            "does not tell apart; use a file with [model], [cluster] and [batch]"
        )
    return _PLANNERS[name](given)


def require_paper(name: str) -> None:
    """Raise ``ValueError`` naming the papers where there is none of that name."""
    if name not in (known := (*_PLANNERS, *OF_MODELS)):
        close = get_close_matches(name[:60], known, n=1, cutoff=0.4)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise ValueError(f"paper must be one of {', '.join(known)}, got {name[:60]!r}{hint}")
