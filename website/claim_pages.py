"""A page a paper: every claim with its readings and its verdict, counterexamples drawn.

Made from the registry and the recorded decisions (``decided_claims``); nothing here is typed in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from bubbleproof.papers.claims.claim import TITLES
from bubbleproof.papers.claims.domain import Params
from bubbleproof.papers.claims.reading import Reading
from bubbleproof.papers.formula import Formula
from website.decided_claims import DecidedClaim, DecidedReading, confirmed, decided_claims
from website.drawn_cases import drawn_case

FIELD = "The field"
Drawer = Callable[[Reading, Params], str | None]


def claim_pages(papers: Iterable[str] = (), drawer: Drawer = drawn_case) -> dict[str, str]:
    """The pages and pictures by their place; of these papers, or of all."""
    decided = decided_claims()
    made: dict[str, str] = {}
    for paper in papers or decided:
        made |= _paper(paper, decided[paper], drawer)
    return made


def _paper(paper: str, found: list[DecidedClaim], drawer: Drawer) -> dict[str, str]:
    counts = Counter(each.state for each in found)
    counted = ", ".join(f"{n} {name}" for name, n in counts.most_common())
    lines = [f"# {TITLES.get(paper, FIELD)}", "", f"{len(found)} claims: {counted}.", ""]
    lines += [
        "Decided by `bubbleproof claims --audit` ([the record](../measured/claims.md) says what "
        "the verdicts mean); `bubbleproof claims ID --set ...` evaluates one at a case of yours.",
        "",
        *_table(found),
    ]
    made: dict[str, str] = {}
    for each in found:
        lines += _claim(each, drawer, made)
    made[f"claims/{paper}.md"] = "\n".join(lines) + "\n"
    return made


def _table(found: list[DecidedClaim]) -> list[str]:
    """What does not simply hold, first."""
    rows = [each for each in found if each.state not in ("holds", "proved", "arithmetic holds")]
    if not rows:
        return []
    lines = ["| does not hold as printed | verdict |", "|---|---|"]
    lines += [f"| [`{each.claim.id}`](#{_anchor(each)}) | {each.state} |" for each in rows]
    return [*lines, ""]


def _anchor(each: DecidedClaim) -> str:
    return each.claim.id.lower().replace(".", "")


def _claim(each: DecidedClaim, drawer: Drawer, made: dict[str, str]) -> list[str]:
    claim = each.claim
    lines = [f"## {claim.id}", "", f"> {claim.statement}", "", f"{claim.source}", ""]
    lines += [f"**{each.state.capitalize()}**{each.verdict[len(each.state) :]}", ""]
    if claim.missing is not None:
        lines += [f"Missing: {claim.missing.input}", ""]
    for number, read in enumerate(each.readings):
        lines += _reading(each, read)
        if (case := confirmed(read)) is not None and case.how == "measured":
            place = f"claims/pictures/{claim.id}-{number}.svg"
            if (svg := drawer(read.reading, case.params)) is not None:
                made[place] = svg
                words = f"the schedule that {claim.id} measures at its smallest counterexample"
                lines += [f"![{words}](pictures/{claim.id}-{number}.svg)", ""]
    return lines


def _reading(each: DecidedClaim, read: DecidedReading) -> list[str]:
    """A reading as a definition list: what is compared, where, and what came of it."""
    reading = read.reading
    predicted = reading.predicted
    formula = f"`{predicted.text}`" if isinstance(predicted, Formula) else "what the paper gives"
    is_one_of_several = len(each.readings) > 1
    head = f"Reading: {reading.name}" if is_one_of_several else "Reading"
    lines = [f"{head}", f": {each.claim.quantity} {reading.relation.value} {formula}"]
    if is_one_of_several:
        whose = "" if reading.is_admissible else ", a contrast of ours"
        lines += [f": Supported by {reading.support}{whose}"]
    lines += [f": Given {premise.text}" for premise in reading.premises]
    lines += [f": Domain: {reading.domain_for(is_wide=True).text}"]
    if reading.theorem is not None:
        lines += [f": Theorem: [`{reading.theorem}`](../theorems/index.md#{reading.theorem})"]
    lines += [f": Outcome: {_outcome(read)}", ""]
    return [
        line.replace("<", "&lt;").replace("*", "\\*") if "`" not in line else line for line in lines
    ]


def _outcome(read: DecidedReading) -> str:
    """What the record says, without what stands above it already."""
    domain = f"{read.reading.domain_for(is_wide=True).text}: "
    _, mark, outcome = read.told.rpartition(domain)
    return outcome if mark else read.told
