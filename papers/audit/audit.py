"""An audit: many claims decided by many workers, and what is known when it is broken off.

What becomes of each reading, its smallest counterexample and the number of cases checked are those
of ``decide``, however many workers there are and whoever is first: of all failing cases the
smallest wins. A reading that holds and that a theorem implies is proved once the theorem is proved
anew.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace

import numpy as np

from bubbleproof.papers.audit.shards import (
    HEAD,
    LOAD,
    Failure,
    Library,
    ReadingKey,
    Shard,
    Slice,
    SliceOutcome,
    by_first_two,
    decide_shard,
    loads,
    packed,
)
from bubbleproof.papers.claims.claim import PaperClaim
from bubbleproof.papers.claims.decision import ClaimDecision, ReadingFinding, cases_of
from bubbleproof.papers.claims.domain import Domain
from bubbleproof.papers.claims.reading import Reading
from bubbleproof.papers.claims.standing import EvidenceKind
from bubbleproof.papers.theorems import ProofVerdict
from bubbleproof.papers.theorems.theorem_library import theorems
from bubbleproof.parallel import run_all

Advance = Callable[[Shard, int], None]  # a shard that is done, and how many claims are left
Begin = Callable[[str, int], Advance]  # a stage begins: its name and its load


@dataclass(slots=True, kw_only=True)
class Audit:
    """The claims under audit: which cases are still to be looked at, and what was found.

    ``heads()`` comes first; their outcomes go to ``note``, and so do those of ``cells()``, which
    leaves out the claims that have failed. Then ``decisions()``. ``limit`` takes only the smallest
    cases of each claim. Workers find the claims by ``library``.
    """

    chosen: Mapping[str, PaperClaim]
    library: Library
    is_wide: bool
    limit: int | None = None
    _left: Counter[ReadingKey] | None = None
    _found: dict[ReadingKey, Failure] = field(default_factory=dict)
    _refuted: dict[ReadingKey, frozenset[int]] = field(default_factory=dict)
    _standing: dict[ReadingKey, EvidenceKind] = field(default_factory=dict)

    def heads(self) -> list[Shard]:
        """One shard per reading, with its smallest cases.

        Raises ``ValueError`` when the domain of one has no case.
        """
        shards = []
        for claim, key, domain in self._measurable():
            cases_of(domain, claim.id)
            head = self._slice(key, domain, slice(0, self._head(key, domain)))
            shards.append(Shard.of(claim.paper, self.library, [head]))
        return shards

    def cells(self) -> list[Shard]:
        """The cases beyond the heads of the readings that have not failed, the largest first."""
        cells: dict[tuple[str, tuple[int, ...]], list[Slice]] = defaultdict(list)
        for claim, key, domain in self._measurable():
            if key in self._found:
                continue
            rest = self._slice(key, domain, slice(self._head(key, domain), None))
            for cell, part in by_first_two(rest):
                cells[claim.paper, cell].append(part)
        papers = list(dict.fromkeys(claim.paper for claim in self.chosen.values()))
        cut = [Shard.of(paper, self.library, parts) for (paper, _), parts in cells.items()]
        cut.sort(key=lambda shard: (papers.index(shard.paper), -shard.load))
        shards = list(packed(cut))
        self._left = Counter(key for shard in shards for key in shard.keys)
        return shards

    def note(self, shard: Shard, outcomes: Iterable[SliceOutcome]) -> None:
        """Keep the smallest failure of each reading, whoever comes first, and what else is told."""
        if self._left is not None:
            self._left.subtract(shard.keys)
        for outcome in outcomes:
            key, known, failing = outcome.key, self._found.get(outcome.key), outcome.failure
            if failing is not None and (known is None or failing.place < known.place):
                self._found[key] = failing
            self._refuted[key] = self._refuted.get(key, frozenset()) | outcome.refuted_mutants
            if outcome.standing is not None:
                self._standing[key] = outcome.standing

    def decisions(self) -> dict[str, ClaimDecision]:
        """What became of each claim once its shards are noted, in the order of the claims."""
        return {
            name: ClaimDecision(
                claim=claim, findings=tuple(self._finding(claim, each) for each in claim.readings)
            )
            for name, claim in self.chosen.items()
            if self._is_decided(claim)
        }

    def num_left(self) -> int:
        """How many claims are not decided yet: all that have not failed before ``cells()``."""
        return sum(not self._is_decided(claim) for claim in self.chosen.values())

    def _is_decided(self, claim: PaperClaim) -> bool:
        keys = [(claim.id, each.name) for each in claim.readings]
        if self._left is None:
            return bool(keys) and all(key in self._found for key in keys)
        return all(key in self._found or self._left[key] <= 0 for key in keys)

    def _finding(self, claim: PaperClaim, reading: Reading) -> ReadingFinding:
        key, domain = (claim.id, reading.name), reading.domain_for(is_wide=self.is_wide)
        total, failing = len(domain.points), self._found.get(key)
        looked_at = total if self.limit is None else min(total, self.limit)
        return ReadingFinding(
            reading=reading,
            domain=domain,
            checked=looked_at if failing is None else failing.place + 1,
            total=total,
            standing=self._standing[key],
            counterexample=None if failing is None else failing.counterexample,
            surviving=frozenset() if failing else reading.mutants - self._refuted[key],
        )

    def _measurable(self) -> Iterator[tuple[PaperClaim, ReadingKey, Domain]]:
        for claim in self.chosen.values():
            for reading in claim.readings:
                yield claim, (claim.id, reading.name), reading.domain_for(is_wide=self.is_wide)

    def _head(self, key: ReadingKey, domain: Domain) -> int:
        """How many of the smallest cases make the head: up to HEAD, and LOAD in sum; or one."""
        sizes = loads(self._slice(key, domain, slice(0, HEAD)))
        return max(1, int((np.cumsum(sizes) <= LOAD).sum()))

    def _slice(self, key: ReadingKey, domain: Domain, places: slice) -> Slice:
        table = domain.table[: self.limit]
        return Slice(
            key=key, names=domain.names, rows=table[places], place=np.arange(len(table))[places]
        )


def run(audit: Audit, executor: Executor | None, begin: Begin) -> dict[str, ClaimDecision]:
    """What becomes of each claim; the same whoever decides.

    Ctrl-C ends it with the claims that have been decided by then; the others are missing.
    """
    decided: dict[str, ClaimDecision] = {}
    try:
        for stage, make in (("smallest cases", audit.heads), ("other cases", audit.cells)):
            shards = make()
            _run_stage(audit, executor, shards, begin(stage, sum(shard.load for shard in shards)))
        proved: dict[str, bool] = {}
        for name, found in audit.decisions().items():
            decided[name] = _with_proof(found, proved)
    except KeyboardInterrupt:
        return decided if not audit.num_left() else audit.decisions()
    return decided


def _run_stage(
    audit: Audit, executor: Executor | None, shards: Sequence[Shard], advance: Advance
) -> None:
    def done(index: int, outcomes: Sequence[SliceOutcome]) -> None:
        audit.note(shards[index], outcomes)
        advance(shards[index], audit.num_left())

    run_all(executor, decide_shard, shards, on_done=done)


def _with_proof(decision: ClaimDecision, proved: dict[str, bool]) -> ClaimDecision:
    """The decision, each finding proved where its theorem proves anew."""
    findings = tuple(
        replace(each, is_proved=_is_proved(each, proved)) for each in decision.findings
    )
    return replace(decision, findings=findings)


def _is_proved(finding: ReadingFinding, proved: dict[str, bool]) -> bool:
    """Whether all measured cases hold and the theorem behind the reading, if any, proves anew."""
    name = finding.reading.theorem
    if name is None or not finding.holds:
        return False
    if name not in proved:
        from bubbleproof.papers.theorems.prover import prove  # loads Z3

        proved[name] = prove(theorems()[name]).verdict is ProofVerdict.PROVED
    return proved[name]
