"""Where a process stands among those that were started, and how ranks are named to people."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")
_AGENT = "TORCHELASTIC_RUN_ID"  # set by a torchrun that started this process


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessPlace:
    """A process among those that were started: its rank, their number, its number on its node.

    ``address`` and ``port`` are where all meet; ``node`` names its machine to people. With an agent
    (torchrun) the process ends when that, its ``parent``, does; ``has_store`` where it also keeps
    the store. ``attempt`` counts the agent's restarts.
    """

    rank: int
    world_size: int
    local_rank: int
    address: str = "localhost"
    port: int = 29500
    node: str = ""
    has_agent: bool = False
    has_store: bool = False
    attempt: int = 0
    parent: int = 0

    @property
    def is_first(self) -> bool:
        return self.rank == 0

    @property
    def is_orphan(self) -> bool:
        """Whether the agent is gone."""
        return self.has_agent and os.getppid() != self.parent

    @classmethod
    def of(cls, environment: Mapping[str, str] = os.environ, *, parent: int = 0) -> ProcessPlace:
        """The place that torchrun's variables tell; ``parent`` started this process.

        Raises ``ValueError`` where one is missing, no number, or beyond the number of processes.
        """
        missing = [name for name in VARIABLES if name not in environment]
        if missing:
            raise ValueError(
                f"a replay under torchrun needs {', '.join(VARIABLES)}; {missing[0]} is not set: "
                "start it by torchrun --nproc-per-node RANKS -m bubbleproof.reference_exec SCHEDULE"
            )
        rank, world_size = (_number(environment, name) for name in ("RANK", "WORLD_SIZE"))
        if rank >= world_size:
            raise ValueError(f"RANK must be less than WORLD_SIZE ({world_size}), got {rank}")
        return cls(
            rank=rank,
            world_size=world_size,
            local_rank=_number(environment, "LOCAL_RANK"),
            address=environment["MASTER_ADDR"],
            port=_number(environment, "MASTER_PORT"),
            node=_node(environment),
            parent=parent,
            has_agent=_AGENT in environment,
            has_store=environment.get("TORCHELASTIC_USE_AGENT_STORE") == "True",
            attempt=_number(environment, "TORCHELASTIC_RESTART_COUNT", "0"),
        )


def _number(environment: Mapping[str, str], name: str, default: str = "") -> int:
    text = environment.get(name, default)
    if not text.isdecimal():
        raise ValueError(f"{name} must be a whole number, got {text!r}")
    return int(text)


def _node(environment: Mapping[str, str]) -> str:
    number, name = environment.get("GROUP_RANK"), socket.gethostname()
    return name if number is None else f"node {number} ({name})"


def ranges(numbers: Iterable[int]) -> str:
    """Numbers as people write them.

    >>> ranges([0, 1, 2, 5])
    '0-2, 5'
    """
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)


def named(ranks: Iterable[int]) -> str:
    """Ranks in words.

    >>> named([2]), named([0, 1])
    ('rank 2', 'ranks 0-1')
    """
    listed = set(ranks)
    return f"rank{'s' * (len(listed) > 1)} {ranges(listed)}"


def at_nodes(ranks: Sequence[int], nodes: Mapping[int, str]) -> str:
    """Ranks with the nodes they are on, where there are several; ``nodes`` has those of all ranks.

    >>> at_nodes([0, 1], {0: "a", 1: "a", 2: "b"}), at_nodes([0], {0: "a", 1: "a"})
    ('ranks 0-1 on a', 'rank 0')
    """
    if len(set(nodes.values())) < 2:
        return named(ranks)
    found = dict.fromkeys(nodes[rank] for rank in sorted(ranks) if rank in nodes)
    return f"{named(ranks)} on {', '.join(found)}" if found else named(ranks)
