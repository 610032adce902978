"""The same job on another cluster or with another batch, told by ``key=value`` words with commas.

A value is another one (``memory=141GiB``, ``card=h200``), a factor (``network=0.5x``), or what is
more or less of the cards, samples or tokens (``cards=-2``). Where the cards that are left divide
into no deployment, as many of them are used as do, of whole nodes. ``jobs_of`` are the changes of
ranges of these numbers: 64, [64, 256], "64,256", or "64..512", each twice the one before.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import product

from bubbleproof.costs.combinations import CombinationCosts
from bubbleproof.formats.clusters.cluster_toml import CARD, ClusterFile, cluster_file_of_text
from bubbleproof.formats.clusters.deployed_space import all_listed
from bubbleproof.formats.clusters.hardware_toml import read_hardware
from bubbleproof.formats.errors import about, quoted
from bubbleproof.formats.toml_text import parse_toml, toml_text

BATCH = ("samples", "sequence")
COUNTS = ("cards", *BATCH)
KEYS = ("card", *COUNTS, *CARD)
FACTOR = re.compile(r"([0-9]+(?:\.[0-9]+)?)x")
WHOLE = re.compile(r"[+-]?[0-9]{1,7}")
PLAIN = re.compile(r"[0-9]+(?:\.[0-9]+)?(?:e[0-9]{1,2})?")
RANGE = re.compile(r"([1-9][0-9]{0,6})\.\.([1-9][0-9]{0,6})")
MOST_NODES = 64  # that are left idle so that the others divide
MOST_JOBS = 512
Several = int | str | Sequence[int]


def changed_file(file: ClusterFile, change: str, asker: str = "--what-if") -> ClusterFile:
    """The file with its changes, all at once.

    Raises ``ValueError`` for a change that is none, and where no deployment is left.
    """
    told = dict(_change(file, each.strip(), asker) for each in change.split(","))
    with about(f"{asker} {change}"):
        if "cards" not in told:
            return _with(file, told)
        for cards in _fewer(int(str(told["cards"])), file.training.cluster.card.cards_per_node):
            with suppress(ValueError):
                found = _with(file, {**told, "cards": cards})
                every = map(found.counted, all_listed(found))
                if any(isinstance(one, CombinationCosts) for one in every):
                    return found
        return _with(file, told)


def with_hardware(file: ClusterFile, path: str) -> ClusterFile:
    """The file with the constants of a file of ``calibrate``.

    Raises ``ValueError`` for another card's, and where other software was fitted.
    """
    known, cluster = read_hardware(path), file.training.cluster
    if known.card.name != cluster.card.name:
        raise ValueError(
            f"--hardware must be of the file's card, {cluster.card.name}, {path} is of "
            f"{known.card.name}; calibrate on {cluster.card.name}, or change the file's card"
        )
    found = _with(file, {"hardware": path})
    if known.software and found.training.cluster.runs.name not in known.software:
        raise ValueError(
            f"--hardware must be of the file's software, {found.training.cluster.runs.name}, "
            f"{path} was fitted to {', '.join(known.software)}; leave framework of [cluster] out"
        )
    return found


def jobs_of(ranges: Mapping[str, Several | None]) -> list[str]:
    """The changes that go through all numbers of each key that has any; none: no change.

    Raises ``ValueError`` for what is no number, and for too many.
    """
    told = {key: numbers_of(key, given) for key, given in ranges.items() if given is not None}
    found = [dict(zip(told, each, strict=True)) for each in product(*told.values())]
    if len(found) > MOST_JOBS:
        raise ValueError(f"ranges must make {MOST_JOBS} jobs or less, got {len(found):,}")
    return [",".join(f"{key}={number}" for key, number in each.items()) for each in found if each]


def numbers_of(key: str, given: Several) -> tuple[int, ...]:
    """The numbers of a range, each once. Raises ``ValueError`` for what is none."""
    found: list[int] = []
    for each in given.split(",") if isinstance(given, str) else [given]:
        if not isinstance(each, str):
            found += [each] if isinstance(each, int) else each
        elif span := RANGE.fullmatch(each.strip()):
            first, last = int(span[1]), int(span[2])
            found += [first << n for n in range(32) if first << n <= last]
        elif each.strip().isdecimal():
            found.append(int(each))
        else:
            found.append(0)
    if not found or any(isinstance(n, bool) or not isinstance(n, int) or n < 1 for n in found):
        raise ValueError(
            f"{key} must be whole numbers above 0, got {quoted(str(given))}; use such as 256, "
            "256,512 or 64..512 (64, 128, 256, 512)"
        )
    return tuple(dict.fromkeys(found))


def _change(file: ClusterFile, change: str, asker: str) -> tuple[str, object]:
    """A key with its new value. Raises ``ValueError`` for what is none."""
    key, _, text = change.partition("=")
    value = _value(file, key, text) if key in KEYS and text else None
    if value is None:
        raise ValueError(
            f"{asker} takes key=value with {', '.join(KEYS)}, got {quoted(change)}; use such as "
            "network=0.5x, memory=141GiB, cards=-2 or card=h200, several with commas between"
        )
    return key, value


def _fewer(cards: int, per_node: int) -> Iterator[int]:
    """The cards, then the nodes that they fill, fewer and fewer."""
    yield cards
    nodes = cards // per_node
    for number in range(nodes, max(0, nodes - MOST_NODES), -1):
        yield number * per_node


def _with(file: ClusterFile, changes: Mapping[str, object]) -> ClusterFile:
    """The file with these keys; a card by name has its own numbers, in place of those told."""
    content, cluster = parse_toml(file.text), dict(file.cluster_keys)
    batch = dict(content["batch"])  # type: ignore[call-overload]  # it was read with one
    if "card" in changes:
        for key in (*CARD, "hardware"):
            cluster.pop(key, None)
    if "hardware" in changes:
        cluster.pop("card", None)
    for key, value in changes.items():
        (batch if key in BATCH else cluster)[key] = value
    text = toml_text({**content, "cluster": cluster, "batch": batch})
    return cluster_file_of_text(text, name=file.name)


def _value(file: ClusterFile, key: str, text: str) -> object:
    """The new value of a key; None for a text that is none."""
    if key == "card":
        return text
    now = _now(file, key)
    if (factor := FACTOR.fullmatch(text)) is not None:
        number = float(factor[1]) * now
        return int(number) if key in (*COUNTS, "memory") else number
    if key not in COUNTS:
        return float(text) if PLAIN.fullmatch(text) else text
    if WHOLE.fullmatch(text) is None:
        return None
    return int(text) + (int(now) if text[0] in "+-" else 0)


def _now(file: ClusterFile, key: str) -> int | float:
    """The file's number, in its unit."""
    job = file.training
    counts = {"cards": job.cluster.cards, "samples": job.samples}
    counts["sequence"] = job.deployment.sequence
    if key in counts:
        return counts[key]
    if key == "flops":
        return job.cluster.card.half_tflops * 1e12
    field, unit = CARD[key]
    return float(getattr(job.cluster.card, field)) * unit
