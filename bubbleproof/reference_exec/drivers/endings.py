"""How processes end that should not have, and what is said of it, the gravest first.

What comes later in ``Ending`` often only follows from what comes earlier: a stall from a death, a
signal of torchrun's from a failure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from bubbleproof.reference_exec.drivers.place import at_nodes


class Ending(Enum):
    """How a process ended; the value says how long to listen for others' endings, in seconds."""

    INTERRUPTED = ("interrupted", 0.2)  # by Ctrl-C
    DIED = ("died", 1.0)  # its connection closed without a word
    ORPHANED = ("orphaned", 1.5)  # its agent (torchrun) is gone
    TERMINATED = ("terminated", 1.5)  # by SIGTERM, which torchrun sends where another one ended
    FAILED = ("failed", 1.5)  # by an error of its own
    STALLED = ("stalled", 1.5)  # it waited too long

    def __init__(self, label: str, patience: float) -> None:
        self.label = label
        self.patience = patience

    @classmethod
    def of(cls, label: object) -> Ending:
        """The ending of a label; what nobody knows is a failure."""
        return next((ending for ending in cls if ending.label == label), cls.FAILED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How one process ended, in words that follow its rank."""

    ending: Ending
    text: str


def gravest_of(ended: Mapping[int, Ended], nodes: Mapping[int, str]) -> str:
    """One line on the gravest kind of ending there is; nodes are named where there are several.

    >>> died = Ended(ending=Ending.DIED, text="died")
    >>> stalled = Ended(ending=Ending.STALLED, text="stalled: 0B0 waits")
    >>> gravest_of({0: stalled, 2: died, 3: died}, {0: "a", 2: "b", 3: "b"})
    'ranks 2-3 on b died'
    """
    kind = next(kind for kind in Ending if any(e.ending is kind for e in ended.values()))
    alike: dict[tuple[str, str], list[int]] = {}
    for rank in sorted(rank for rank in ended if ended[rank].ending is kind):
        alike.setdefault((nodes.get(rank, ""), ended[rank].text), []).append(rank)
    return "; ".join(f"{at_nodes(ranks, nodes)} {text}" for (_, text), ranks in alike.items())


def speakers(ranks: Iterable[int], nodes: Mapping[int, str]) -> set[int]:
    """The lowest of the ranks on each node: those that print what all know."""
    lowest: dict[str, int] = {}
    for rank in sorted(ranks):
        lowest.setdefault(nodes.get(rank, ""), rank)
    return set(lowest.values())
