"""An audit: many claims decided by many workers, and what is known when it is broken off.

What becomes of each reading, its smallest counterexample and the number of cases checked are those
of ``decide``, however many workers there are and whoever is first: of all failing cases the
smallest wins. A reading that holds and that a theorem implies is proved once the theorem is proved
anew.

A *shard* holds cases of some readings of one paper's claims, for one call of a worker: all that
agree in their first two parameters (ranks and microbatches for schedules), so that claims that
measure the same schedule meet in one worker and its caches. It travels to another process, so it
names claims by id, readings by name and cases by numbers (readings hold functions, which do not
travel); workers look claims up by the shard's ``library``, a function that is imported by name.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np

from bubbleproof.papers.claims.claim import PaperClaim
from bubbleproof.papers.claims.decision import (
    CaseOutcome,
    ClaimDecision,
    ReadingFinding,
    cases_of,
    finding_of,
    outcome_of,
)
from bubbleproof.papers.claims.domain import CaseTable, Domain
from bubbleproof.papers.theorems import ProofVerdict
from bubbleproof.papers.theorems.theorem_library import theorems
from bubbleproof.parallel import run_all

Library = Callable[[], Mapping[str, PaperClaim]]
ReadingKey = tuple[str, str]  # the id of a claim and the name of one of its readings
Integers = np.ndarray[tuple[int], np.dtype[np.int64]]
LOAD = 30_000  # about how many actions the schedules of a shard have in sum


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Slice:
    """Cases of one reading: ``place[i]`` is where ``rows[i]`` is in the domain, smallest first."""

    key: ReadingKey
    names: tuple[str, ...]
    rows: CaseTable
    place: Integers

    def of(self, places: Integers | slice) -> Slice:
        """Some of the cases."""
        return replace(self, rows=self.rows[places], place=self.place[places])

    @property
    def loads(self) -> Integers:
        """Estimates: a case costs what p m v s actions cost, or 1 where it has no schedule."""
        if not {"p", "m"} <= {*self.names}:
            return np.ones(len(self.rows), dtype=np.int64)
        sizes = [self.rows[:, self.names.index(name)] for name in "pmvs" if name in self.names]
        found: Integers = np.prod(np.maximum(sizes, 1), axis=0)
        return found

    def cells(self) -> Iterator[tuple[tuple[int, ...], Slice]]:
        """The slice cut by the values of its first two parameters, each part in the same order."""
        if not len(self.rows):
            return
        keys, owner = np.unique(self.rows[:, :2], axis=0, return_inverse=True)
        order = np.argsort(owner.ravel(), kind="stable")
        ends = np.cumsum(np.bincount(owner.ravel()))
        for key, places in zip(keys.tolist(), np.split(order, ends[:-1]), strict=True):
            yield tuple(key), self.of(places)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shard:
    """Work for one call of a worker; ``load`` estimates it, in actions."""

    paper: str
    library: Library
    slices: tuple[Slice, ...]
    load: int

    @property
    def claims(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(part.key[0] for part in self.slices))

    @property
    def keys(self) -> tuple[ReadingKey, ...]:
        return tuple(dict.fromkeys(part.key for part in self.slices))

    def joined(self, other: Shard) -> Shard:
        """Both of one paper."""
        return replace(self, slices=self.slices + other.slices, load=self.load + other.load)


Advance = Callable[[Shard, int], None]  # a shard that is done, and how many claims are left
Begin = Callable[[int], Advance]  # it begins, with so much load
Outcomes = Sequence[tuple[ReadingKey, CaseOutcome]]


def decide_shard(shard: Shard) -> Outcomes:
    """What came of every slice, for a worker; an error names the claim and the case.

    Cases are decided in the order of their values, so that those of one shape stand together.
    """
    known = _known(shard.library)
    found = []
    for part in shard.slices:
        claim, name = part.key
        rows = sorted(zip(part.rows.tolist(), part.place.tolist(), strict=True))
        cases = ((place, dict(zip(part.names, row, strict=True))) for row, place in rows)
        found.append((part.key, outcome_of(claim, known[claim].reading(name), cases)))
    return found


@cache
def _known(library: Library) -> Mapping[str, PaperClaim]:
    return library()


@dataclass(slots=True, kw_only=True)
class Audit:
    """The claims under audit: which cases are still to be looked at, and what was found.

    The outcomes of ``shards()`` go to ``note``; then ``decisions()``. ``limit`` takes only the
    smallest cases of each claim. Workers find the claims by ``library``.
    """

    chosen: Mapping[str, PaperClaim]
    library: Library
    is_wide: bool
    limit: int | None = None
    _left: Counter[ReadingKey] = field(default_factory=Counter)
    _found: dict[ReadingKey, CaseOutcome] = field(default_factory=dict)

    def shards(self) -> list[Shard]:
        """The cases of all readings, of each paper the largest first.

        Neighbours of one paper are joined up to ``LOAD``, so that none is tiny. Raises
        ``ValueError`` when the domain of a reading has no case.
        """
        cells: dict[tuple[str, tuple[int, ...]], list[Slice]] = defaultdict(list)
        for paper, every in self._slices():
            for cell, part in every.cells():
                cells[paper, cell].append(part)
        papers = list(dict.fromkeys(claim.paper for claim in self.chosen.values()))
        cut = [self._shard(paper, parts) for (paper, _), parts in cells.items()]
        shards: list[Shard] = []
        for shard in sorted(cut, key=lambda each: (papers.index(each.paper), -each.load)):
            last = shards[-1] if shards else None
            if last and last.paper == shard.paper and last.load + shard.load <= LOAD:
                shards[-1] = last.joined(shard)
            else:
                shards.append(shard)
        self._left = Counter(key for shard in shards for key in shard.keys)
        return shards

    def note(self, shard: Shard, outcomes: Outcomes) -> None:
        """Keep the smallest failure of each reading, whoever comes first, and what else is told."""
        self._left.subtract(shard.keys)
        for key, outcome in outcomes:
            self._found[key] = self._found.get(key, CaseOutcome()).joined(outcome)

    def decisions(self) -> dict[str, ClaimDecision]:
        """What became of each claim once its shards are noted, in the order of the claims."""
        return {
            name: ClaimDecision(
                claim=claim,
                findings=tuple(
                    finding_of(
                        each,
                        each.domain_for(is_wide=self.is_wide),
                        self.limit,
                        self._found[name, each.name],
                    )
                    for each in claim.readings
                ),
            )
            for name, claim in self.chosen.items()
            if self._is_decided(claim)
        }

    def num_left(self) -> int:
        """How many claims are not decided yet."""
        return sum(not self._is_decided(claim) for claim in self.chosen.values())

    def _is_decided(self, claim: PaperClaim) -> bool:
        keys = [(claim.id, each.name) for each in claim.readings]
        return all(key in self._found and self._left[key] <= 0 for key in keys)

    def _slices(self) -> Iterator[tuple[str, Slice]]:
        """The paper and all cases of each reading."""
        for claim in self.chosen.values():
            for reading in claim.readings:
                domain: Domain = reading.domain_for(is_wide=self.is_wide)
                cases_of(domain, claim.id)
                rows = domain.table[: self.limit]
                key, place = (claim.id, reading.name), np.arange(len(rows))
                yield claim.paper, Slice(key=key, names=domain.names, rows=rows, place=place)

    def _shard(self, paper: str, slices: Iterable[Slice]) -> Shard:
        parts = tuple(slices)
        load = sum(int(part.loads.sum()) for part in parts)
        return Shard(paper=paper, library=self.library, slices=parts, load=load)


def run(audit: Audit, executor: Executor | None, begin: Begin) -> dict[str, ClaimDecision]:
    """What becomes of each claim; the same whoever decides.

    Ctrl-C ends it with the claims that have been decided by then; the others are missing.
    """
    decided: dict[str, ClaimDecision] = {}
    shards = audit.shards()
    advance = begin(sum(shard.load for shard in shards))

    def done(index: int, outcomes: Outcomes) -> None:
        audit.note(shards[index], outcomes)
        advance(shards[index], audit.num_left())

    try:
        run_all(executor, decide_shard, shards, on_done=done)
        proved: dict[str, bool] = {}
        for name, found in audit.decisions().items():
            findings = (replace(f, is_proved=_is_proved(f, proved)) for f in found.findings)
            decided[name] = replace(found, findings=tuple(findings))
    except KeyboardInterrupt:
        return decided if not audit.num_left() else audit.decisions()
    return decided


def _is_proved(finding: ReadingFinding, proved: dict[str, bool]) -> bool:
    """Whether all measured cases hold and the theorem behind the reading, if any, proves anew."""
    name = finding.reading.theorem
    if name is None or not finding.holds:
        return False
    if name not in proved:
        from bubbleproof.papers.theorems.prover import prove  # loads Z3

        proved[name] = prove(theorems()[name]).verdict is ProofVerdict.PROVED
    return proved[name]
