"""Papers at the door: their claims, and theorems about their orders for all sizes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from bubbleproof.arguments import number, text
from bubbleproof.suggestions import did_you_mean, with_named_keywords

if TYPE_CHECKING:
    from bubbleproof.papers.claims.claim import PaperClaim
    from bubbleproof.papers.theorems import TheoremProof


@with_named_keywords
def prove(theorem: str, *, timeout: float = 60.0) -> TheoremProof:
    """Prove a theorem for all its sizes by Z3.

    Parameters
    ----------
    theorem
        Its id, such as ``1f1b``.
    timeout
        Seconds for each obligation.

    Returns
    -------
    TheoremProof
        The verdict, the assumptions and what became of each obligation.

    Raises
    ------
    TypeError, ValueError
        For a timeout that is no number, and, listing the theorems, where there is none of that id.
    """
    from bubbleproof.papers.theorems.prover import prove as proved
    from bubbleproof.papers.theorems.theorem_library import theorems

    known, name = theorems(), text(theorem, "theorem", asker="prove")
    if name not in known:
        hint = did_you_mean(name, known)
        raise ValueError(f"prove: no theorem {name!r}{hint}; the theorems are {' '.join(known)}")
    seconds = number(timeout, "timeout", asker="prove")
    return proved(known[name], int(seconds * 1000))


@with_named_keywords
def claims(paper: str | None = None) -> Mapping[str, PaperClaim]:
    """What the papers claim.

    Parameters
    ----------
    paper
        ``bpipe``, ``mepipe``, ``pipemesh``, ``tpipe`` or ``field``; None for all of them.

    Returns
    -------
    mapping of str to PaperClaim
        The claims by their ids.

    Raises
    ------
    TypeError, ValueError
        For what is no name, and, listing them, for a paper that is none of these.
    """
    from bubbleproof.papers.claims.registry import claims as registered

    return registered(None if paper is None else text(paper, "paper", asker="claims"))
