"""Papers at the door: their claims, claims of your own, and theorems for all sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from bubbleproof.arguments import door_function, number, text, whole, wrong
from bubbleproof.door_given import pair
from bubbleproof.suggestions import did_you_mean
from bubbleproof.theory.families import Family, family
from bubbleproof.theory.model.measures import Measures, measure

if TYPE_CHECKING:
    from bubbleproof.papers.claims.claim import PaperClaim
    from bubbleproof.papers.claims.own_formula import FormulaVerdict
    from bubbleproof.papers.theorems import TheoremProof


@door_function
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
    from bubbleproof.papers.theorems.theorem_library import theorems

    known, name = theorems(), text(theorem, "theorem", asker="prove")
    if name not in known:
        hint = did_you_mean(name, known)
        raise ValueError(f"prove: no theorem {name!r}{hint}; the theorems are {' '.join(known)}")
    seconds = number(timeout, "timeout", asker="prove")
    from bubbleproof.papers.theorems.prover import prove as proved

    return proved(known[name], int(seconds * 1000))


@door_function
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
    from bubbleproof.papers.registry import claims as registered

    return registered(None if paper is None else text(paper, "paper", asker="claims"))


@door_function
def claim(
    made: str | Family | Callable[..., object],
    statement: str,
    *,
    where: str | None = None,
    **domain: Iterable[int] | int,
) -> FormulaVerdict:
    """Decide a formula of yours about a family, over a domain; refuted by its smallest case.

    >>> import bubbleproof as bp
    >>> bp.claim("1f1b", "idle_ratio == (p-1)/(m+p-1)", p=range(2, 6), m=range(1, 9))
    <FormulaVerdict: holds in all 32 cases>
    >>> bp.claim("1f1b", "peak_activations == p", p=range(2, 6), m=range(1, 9))
    <FormulaVerdict: refuted by p=2 m=1: claimed 2, measured 1>

    Parameters
    ----------
    made
        A family, by its name or itself; or a function of the domain's parameters that gives
        anything ``measure`` takes, such as lists of actions per rank.
    statement
        A measure, ``==``, ``<=`` or ``>=``, and a formula of the domain's parameters. Of a measure
        that has a number for each rank the largest counts, unless a rank is named:
        ``peak_activations[0] <= min(p, m)``.
    where
        A condition of the parameters, such as ``m >= p``; other cases are left out.
    **domain
        The values of each parameter: whole numbers, a range, or one of them. Of a family those that
        it takes (``p m v s f tF tB tI tW``).

    Returns
    -------
    FormulaVerdict
        Whether it holds in every case, and the ``counterexample``: parameters, what was claimed and
        what was measured.

    Raises
    ------
    TypeError, ValueError
        For what is no family, no statement or no domain, and for names that the domain has not.
    """
    from bubbleproof.papers.claims.own_formula import decided

    columns = {name: _column(name, values) for name, values in domain.items()}
    if not columns:
        raise ValueError("claim: a domain is needed, such as p=range(2, 9), m=range(1, 17)")
    condition = None if where is None else text(where, "where", asker="claim")
    statement = text(statement, "statement", asker="claim")
    return decided(statement, _measured(made), columns, condition)


def _column(name: str, values: object) -> tuple[int, ...]:
    """The values of one parameter."""
    if isinstance(values, Iterable) and not isinstance(values, str):
        return tuple(whole(value, f"each {name}", asker="claim") for value in values)
    return (whole(values, name, asker="claim"),)


def _measured(made: object) -> Callable[[Mapping[str, int]], Measures]:
    """What measures one case."""
    if isinstance(made, str):
        made = family(made)
    if isinstance(made, Family):
        chosen = made

        def of_family(at: Mapping[str, int]) -> Measures:
            member = chosen(**at)
            return measure(member.problem, member.schedule)

        return of_family
    if not callable(made):
        raise wrong(made, "the family", "a name, a Family or a function", asker="claim")
    function: Callable[..., object] = made

    def of_function(at: Mapping[str, int]) -> Measures:
        problem, schedule, _ = pair(function(**at), None, asker="claim")
        return measure(problem, schedule)

    return of_function
