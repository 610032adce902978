"""The same job on another cluster, told by ``key=value``: half the network, larger cards, fewer.

A value is another one (``memory=141GiB``, ``card=h200``), a factor (``network=0.5x``), or what is
more or less of the cards (``cards=-2``). Where the cards that are left divide into no deployment,
as many of them are used as do, of whole nodes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress

from bubbleproof.costs.combinations import CombinationCosts
from bubbleproof.formats.clusters.cluster_toml import CARD, ClusterFile, cluster_file_of_text
from bubbleproof.formats.clusters.deployed_space import all_listed
from bubbleproof.formats.errors import about, quoted
from bubbleproof.formats.toml_text import parse_toml

KEYS = ("card", "cards", *CARD)
FACTOR = re.compile(r"([0-9]+(?:\.[0-9]+)?)x")
WHOLE = re.compile(r"[+-]?[0-9]{1,6}")
PLAIN = re.compile(r"[0-9]+(?:\.[0-9]+)?(?:e[0-9]{1,2})?")
MOST_NODES = 64  # that are left idle so that the others divide


def changed_file(file: ClusterFile, change: str) -> ClusterFile:
    """The file with one change of its cluster.

    Raises ``ValueError`` for a change that is none, and where no deployment is left.
    """
    key, _, text = change.partition("=")
    value = _value(file, key, text) if key in KEYS and text else None
    if value is None:
        raise ValueError(
            f"--what-if takes key=value with {', '.join(KEYS)}, got {quoted(change)}; use such as "
            "network=0.5x, memory=141GiB, cards=-2 or card=h200"
        )
    with about(f"--what-if {change}"):
        if key != "cards":
            return _with(file, {key: value})
        for cards in _fewer(int(str(value)), file.training.cluster.card.cards_per_node):
            with suppress(ValueError):
                found = _with(file, {key: cards})
                every = map(found.counted, all_listed(found))
                if any(isinstance(one, CombinationCosts) for one in every):
                    return found
        return _with(file, {key: value})


def _fewer(cards: int, per_node: int) -> Iterator[int]:
    """The cards, then the nodes that they fill, fewer and fewer."""
    yield cards
    nodes = cards // per_node
    for number in range(nodes, max(0, nodes - MOST_NODES), -1):
        yield number * per_node


def _with(file: ClusterFile, changes: dict[str, object]) -> ClusterFile:
    """The file with these keys; a card by name has its own numbers, in place of those told."""
    cluster = dict(parse_toml(file.text)["cluster"])  # type: ignore[call-overload]  # it was read with one
    if "card" in changes:
        for key in (*CARD, "hardware"):
            cluster.pop(key, None)
    return cluster_file_of_text(file.text, name=file.name, cluster=cluster | changes)


def _value(file: ClusterFile, key: str, text: str) -> object:
    """The new value of a key; None for a text that is none."""
    if key == "card":
        return text
    now = _now(file, key)
    if (factor := FACTOR.fullmatch(text)) is not None:
        number = float(factor[1]) * now
        return int(number) if key in ("cards", "memory") else number
    if key != "cards":
        return float(text) if PLAIN.fullmatch(text) else text
    if WHOLE.fullmatch(text) is None:
        return None
    return int(text) + (now if text[0] in "+-" else 0)


def _now(file: ClusterFile, key: str) -> int | float:
    """The cluster's number, in the unit of the file."""
    cluster = file.training.cluster
    if key == "cards":
        return cluster.cards
    if key == "flops":
        return cluster.card.half_tflops * 1e12
    field, unit = CARD[key]
    return float(getattr(cluster.card, field)) * unit
