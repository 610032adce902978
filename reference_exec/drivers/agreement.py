"""Whether all processes were given the same: each says what it would run, and one compares.

Processes that others start, on one machine or many, have a command line, files and packages each.
A replay that joined two schedules could look as if each held. So nothing runs before all have said
the same of every ``IdentityPart``, and the refusal names who differs from whom, and in what.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from bubbleproof.reference_exec.drivers.place import at_nodes

MAX_GROUPS = 4  # of ranks that differ in one part, before the rest is counted
OUTCOME = "program"  # what differs wherever anything else does; told where nothing else is


@dataclass(frozen=True, slots=True, kw_only=True)
class Paper:
    """What one process would run: (mark, text) of each part; or why it cannot run it.

    A process that cannot may have come to know some parts only.
    """

    rank: int
    node: str
    parts: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    refusal: str | None = None

    @classmethod
    def from_json(cls, said: object) -> Paper:
        """What ``asdict`` of one became on its way. Raises ``ValueError`` for what is no paper."""
        match said:
            case {
                "rank": int(rank),
                "node": str(node),
                "parts": dict(parts),
                "refusal": None | str() as refusal,
            }:
                pairs = {str(name): _pair(part) for name, part in parts.items()}
                return cls(rank=rank, node=node, parts=pairs, refusal=refusal)
        raise ValueError(f"a process said nothing of what it runs, got {said!r:.80}")


def _pair(part: object) -> tuple[str, str]:
    match part:
        case (str(mark), str(text)):
            return mark, text
    raise ValueError(f"a process said nothing of a part of it, got {part!r:.80}")


def disagreement(papers: Sequence[Paper]) -> str | None:
    """In what the processes differ, and who says what; None where they agree.

    Parts that some have not come to know are compared among the others.
    """
    names = dict.fromkeys(name for paper in papers for name in paper.parts)
    differing = [name for name in names if len(_marks(papers, name)) > 1]
    causes = [name for name in differing if name != OUTCOME] or differing
    told = [f"{name}: {_who_says_what(papers, name)}" for name in causes]
    if not told:
        return None
    return (
        f"the processes differ, nothing was run: {'; '.join(told)}; "
        "start all of them with one schedule, one model, the same options and versions"
    )


def refusal(papers: Sequence[Paper]) -> str | None:
    """Why one cannot run what it was given, its rank in front unless all say so; None if all can.

    Precondition: the processes agree.
    """
    refusing = [paper for paper in papers if paper.refusal is not None]
    if not refusing:
        return None
    first = min(refusing, key=lambda paper: paper.rank)
    if all(paper.refusal == first.refusal for paper in papers):
        return first.refusal
    nodes = {paper.rank: paper.node for paper in papers}
    return f"{at_nodes([first.rank], nodes)}: {first.refusal}"


def _marks(papers: Iterable[Paper], name: str) -> dict[str, list[Paper]]:
    """The papers by what they say of a part."""
    found: dict[str, list[Paper]] = {}
    for paper in papers:
        if name in paper.parts:
            found.setdefault(paper.parts[name][0], []).append(paper)
    return found


def _who_says_what(papers: Sequence[Paper], name: str) -> str:
    nodes = {paper.rank: paper.node for paper in papers}
    groups = sorted(_marks(papers, name).values(), key=lambda group: group[0].rank)
    said = [
        f"{group[0].parts[name][1]} on {at_nodes([paper.rank for paper in group], nodes)}"
        for group in groups[:MAX_GROUPS]
    ]
    if len(groups) > MAX_GROUPS:
        said.append(f"others on {len(groups) - MAX_GROUPS} groups of ranks")
    return ", ".join(said)
