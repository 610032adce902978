"""Every number that the times and the memory of a job rest on, with its source.

The sheet is made of what declares the numbers: the constants of the model of times (where each
starts, which fields of the card that start is of, what the software's profile and the fit to
published rows make of it, and whether rows of one's own were fitted), the card's data sheet, the
profile of the software, and what the file tells of the cluster.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import ClassVar

from bubbleproof.costs.cluster import Cluster
from bubbleproof.costs.times.calibration import Calibration
from bubbleproof.costs.times.cards import Card
from bubbleproof.costs.times.constants import CONSTANTS, Constant, published_factors, starts
from bubbleproof.costs.times.software import Software
from bubbleproof.facts import Fact, FactCells, FactSource, keyed
from bubbleproof.formats.clusters.cluster_toml import ClusterFile, hardware_of
from bubbleproof.planners.cluster_results import estimate_error
from bubbleproof.planners.configuration_words import digits
from bubbleproof.report.amounts import memory

UNITS = {
    "memory_gib": "GiB", "memory_gbs": "GB/s", "link_gbs": "GB/s", "network_gbs": "GB/s",
    "tflops": "TFLOP/s",
}  # fmt: skip
OF_FIELD = {"half_tflops": "tflops", "fp8_gain": "tflops"}  # of a card, by what is made of it
KINDS = ("constant", "card", "cluster", "software")
TOLD_APART = 1e-6  # of a constant: less is rounding


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumption:
    """One number or choice: ``kind`` is one of ``KINDS``; ``source`` says where it is from."""

    kind: str
    name: str
    value: float | str
    unit: str
    used_for: str
    source: str

    def to_json(self) -> dict[str, object]:
        """For programs; what is no number is a text."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @property
    def fact(self) -> Fact:
        """For people."""
        return Fact(label=self.name, wanted=self.used_for, told=self.told, verdict=self.source)

    @property
    def told(self) -> str:
        """The value with its unit."""
        value = self.value if isinstance(self.value, str) else digits(self.value)
        return f"{value} {self.unit}" if self.unit not in ("", "1") else value


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AssumptionSheet(FactSource):
    """All of them, for a file."""

    name: str
    assumed: tuple[Assumption, ...]
    error: str
    columns: ClassVar[FactCells] = ("assumption", "used for", "value", "source")

    def __repr__(self) -> str:
        return f"<AssumptionSheet: {len(self.assumed)} assumptions, {self.error}>"

    def facts(self) -> list[Fact]:
        """A row each."""
        rows = [each.to_json() for each in self.assumed]
        told = keyed(name=self.name, error=self.error, assumptions=rows)
        return [*told, *(each.fact for each in self.assumed)]

    @property
    def lines(self) -> list[str]:
        """How many there are of each kind, and what they are from."""
        of = {kind: [each for each in self.assumed if each.kind == kind] for kind in KINDS}
        fitted = sum(" fitted to " in each.source for each in of["constant"])
        first = (
            f"{len(self.assumed)} assumptions: {len(of['constant'])} constants ({fitted} of them "
            f"fitted to rows), {len(of['card'])} numbers of the card, {len(of['cluster'])} of the "
            f"cluster, {len(of['software'])} of the software; together {self.error}"
        )
        rows = [f"{each.name:<11} {each.told}   ({each.source})" for each in of["cluster"]]
        return [first, *rows, "-v: each with its value, unit, use and source"]


def assumption_sheet(file: ClusterFile) -> AssumptionSheet:
    """The sheet of a file's job."""
    cluster = file.training.cluster
    assumed = (
        *_constants(cluster, hardware_of(file)),
        *_card(cluster.card),
        *_cluster(file, cluster),
        *_software(cluster.runs),
    )
    return AssumptionSheet(name=file.name, assumed=assumed, error=estimate_error(file).told)


def _constants(cluster: Cluster, own: Calibration | None) -> Iterator[Assumption]:
    card, runs = cluster.card, cluster.runs
    begun, profile = starts(card, runs), dict(runs.constants)
    fitted = published_factors(card, runs)
    for each in CONSTANTS:
        value = cluster.constants[each.name]
        told = [_start(each, card)]
        if each.name in profile:
            told.append(f"x {digits(profile[each.name])} by the profile of {runs.name}")
        told += [
            f"x {f:.4g} fitted to published rows ({of})" for n, of, f in fitted if n == each.name
        ]
        if abs(own_part := value / begun[each.name] - 1) > TOLD_APART:
            why = "as the file says"
            if own is not None and each.name in own.fitted:
                why = f"fitted to {own.rows} rows of {own.card.name}"
            told.append(f"x {1 + own_part:.4g} {why}")
        yield Assumption(
            kind="constant",
            name=each.name,
            value=value,
            unit=each.unit,
            used_for=each.meaning,
            source=" ".join(told),
        )


def _start(one: Constant, card: Card) -> str:
    """Where a constant starts: a part of what fields of the card say, or a number of its own."""
    names = {OF_FIELD.get(name, name) for name in (*one.of, one.per)}
    names |= set() if one.switched is None else {"switch_reduces"}
    of = [each.name for each in fields(card) if each.name in names]
    whose = f"from {' and '.join(of)} of {card.name}" if of else "(a prior)"
    return f"{digits(one.starts(card))} {whose}"


def _card(card: Card) -> Iterator[Assumption]:
    """What its data sheet says."""
    meanings = _meanings(Card.__module__)
    for each in fields(card):
        now = getattr(card, each.name)
        several = now if isinstance(now, Mapping) else {"": now}
        for kind, value in several.items():
            if isinstance(value, str):
                continue
            is_reached = each.name == "reached"
            yield Assumption(
                kind="card",
                name=f"{each.name} {kind}".strip(),
                value=str(value).lower() if isinstance(value, bool) else float(value),
                unit=UNITS.get(each.name, ""),
                used_for=meanings.get(each.name, ""),
                source=f"{'what is known of' if is_reached else 'data sheet of'} {card.title}",
            )


def _cluster(file: ClusterFile, cluster: Cluster) -> Iterator[Assumption]:
    """What is assumed of the machine, beside its card."""
    told = file.cluster_keys
    of_software = f"profile of {cluster.runs.name}"
    if cluster.runs.overlaps:
        of_software += " and exposed_gradient"
    rate = cluster.constants["matmul"] / cluster.card.half_tflops
    rows = (
        (
            "reserve",
            memory(cluster.reserve),
            "driver, libraries and communicators on each card",
            "",
        ),
        (
            "efficiency",
            rate,
            "share of the dense rate that large products reach",
            "constant matmul",
        ),
        ("overlap", cluster.hides, "share of gradients beside computation", of_software),
        ("products", cluster.runs.products, "numbers that a layer's linears are computed in", ""),
        ("software", cluster.runs.name, "whose times and bytes are taken", cluster.runs.source),
    )
    keys = {"overlap": "hidden", "software": "framework"}
    for name, value, used_for, otherwise in rows:
        is_told = keys.get(name, name) in told
        yield Assumption(
            kind="cluster",
            name=name,
            value=value,
            unit="",
            used_for=used_for,
            source="the file" if is_told and name != "software" else otherwise or "default",
        )


def _software(runs: Software) -> Iterator[Assumption]:
    """What the profile says."""
    meanings = _meanings(Software.__module__)
    for each in fields(runs):
        if each.name not in ("name", "source", "constants", "like", "products"):
            yield Assumption(
                kind="software",
                name=each.name,
                value=_choice(getattr(runs, each.name)),
                unit="",
                used_for=meanings.get(each.name, ""),
                source=f"profile of {runs.name}",
            )


def _choice(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _meanings(module: str) -> dict[str, str]:
    """What the text of a module that declares fields says of each."""
    text = " ".join((sys.modules[module].__doc__ or "").split())
    found: dict[str, str] = {}
    for piece in re.split(r"(?<=[.;:]) (?=``)", text):
        names = re.match(r"((?:``\w+``(?:,? and |, )?)+):? ?(.*)", piece)
        for name in re.findall(r"``(\w+)``", names[1]) if names else ():
            told = names[2].replace("``", "").rstrip(".;:") if names else ""
            found.setdefault(name, re.sub(r"^(is|are) ", "", told))
    return found
