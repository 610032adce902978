"""An audit: many claims decided by many workers, and what is known when it is broken off.

A claim's verdict, its smallest counterexample and the number of cases checked are those of
``decide``, however many workers there are and whoever is first: of all failing cases the smallest
wins. A claim that holds and that a theorem implies is proved once the theorem is proved anew.
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
    Outcome,
    Shard,
    Slice,
    by_first_two,
    decide_shard,
    loads,
    packed,
)
from bubbleproof.papers.claims.claim import Claim, ClaimVerdict, Decision, undecidable
from bubbleproof.papers.claims.domain import Domain
from bubbleproof.papers.claims.standing import Standing
from bubbleproof.papers.theorems import ProofVerdict, theorems
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

    chosen: Mapping[str, Claim]
    library: Library
    is_wide: bool
    limit: int | None = None
    _left: Counter[str] | None = None
    _found: dict[str, Failure] = field(default_factory=dict)
    _refuted: dict[str, frozenset[int]] = field(default_factory=dict)
    _standing: dict[str, Standing] = field(default_factory=dict)

    def heads(self) -> list[Shard]:
        """One shard per claim that can be measured, with its smallest cases.

        Raises ``ValueError`` when the domain of one has no case.
        """
        shards = []
        for claim, domain in self._measurable():
            if not len(domain.points):
                raise ValueError(f"{claim.id}: the domain ({domain.text}) has no case")
            head = self._slice(claim, domain, slice(0, self._head(claim, domain)))
            shards.append(Shard.of(claim.paper, self.library, [head]))
        return shards

    def cells(self) -> list[Shard]:
        """The cases beyond the heads of the claims that have not failed, the largest first."""
        cells: dict[tuple[str, tuple[int, ...]], list[Slice]] = defaultdict(list)
        for claim, domain in self._measurable():
            if claim.id in self._found:
                continue
            rest = self._slice(claim, domain, slice(self._head(claim, domain), None))
            for key, part in by_first_two(rest):
                cells[claim.paper, key].append(part)
        papers = list(dict.fromkeys(claim.paper for claim in self.chosen.values()))
        cut = [Shard.of(paper, self.library, parts) for (paper, _), parts in cells.items()]
        cut.sort(key=lambda shard: (papers.index(shard.paper), -shard.load))
        shards = list(packed(cut))
        self._left = Counter(name for shard in shards for name in shard.claims)
        return shards

    def note(self, shard: Shard, outcomes: Iterable[Outcome]) -> None:
        """Keep the smallest failure of each claim, whichever comes first, and what else is told."""
        if self._left is not None:
            self._left.subtract(shard.claims)
        for outcome in outcomes:
            name, known, failing = outcome.claim, self._found.get(outcome.claim), outcome.failure
            if failing is not None and (known is None or failing.place < known.place):
                self._found[name] = failing
            self._refuted[name] = self._refuted.get(name, frozenset()) | outcome.refuted_mutants
            if outcome.standing is not None:
                self._standing[name] = outcome.standing

    def decisions(self) -> dict[str, Decision]:
        """What became of each claim once its shards are noted, in the order of the claims."""
        return {
            name: self._decision(claim)
            for name, claim in self.chosen.items()
            if self._is_decided(claim)
        }

    def num_left(self) -> int:
        """How many claims are not decided yet: all that have not failed before ``cells()``."""
        return sum(not self._is_decided(claim) for claim in self.chosen.values())

    def _is_decided(self, claim: Claim) -> bool:
        if self._left is None or claim.id in self._found:
            return claim.id in self._found
        return self._left[claim.id] <= 0

    def _decision(self, claim: Claim) -> Decision:
        domain = claim.domain_for(is_wide=self.is_wide)
        if claim.missing is not None:
            return undecidable(claim, domain)
        total, failing = len(domain.points), self._found.get(claim.id)
        looked_at = total if self.limit is None else min(total, self.limit)
        return Decision(
            claim=claim,
            domain=domain,
            verdict=ClaimVerdict.HOLDS if failing is None else ClaimVerdict.REFUTED,
            checked=looked_at if failing is None else failing.place + 1,
            total=total,
            standing=self._standing[claim.id],
            counterexample=None if failing is None else failing.counterexample,
            surviving=frozenset() if failing else claim.mutants - self._refuted[claim.id],
        )

    def _measurable(self) -> Iterator[tuple[Claim, Domain]]:
        for claim in self.chosen.values():
            if claim.missing is None:
                yield claim, claim.domain_for(is_wide=self.is_wide)

    def _head(self, claim: Claim, domain: Domain) -> int:
        """How many of the smallest cases make the head: up to HEAD, and LOAD in sum; or one."""
        sizes = loads(self._slice(claim, domain, slice(0, HEAD)))
        return max(1, int((np.cumsum(sizes) <= LOAD).sum()))

    def _slice(self, claim: Claim, domain: Domain, places: slice) -> Slice:
        table = domain.table[: self.limit]
        return Slice(
            claim=claim.id,
            names=domain.names,
            rows=table[places],
            place=np.arange(len(table))[places],
        )


def run(audit: Audit, executor: Executor | None, begin: Begin) -> dict[str, Decision]:
    """What becomes of each claim; the same whoever decides.

    Ctrl-C ends it with the claims that have been decided by then; the others are missing.
    """
    decided: dict[str, Decision] = {}
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
    def done(index: int, outcomes: Sequence[Outcome]) -> None:
        audit.note(shards[index], outcomes)
        advance(shards[index], audit.num_left())

    run_all(executor, decide_shard, shards, on_done=done)


def _with_proof(decision: Decision, proved: dict[str, bool]) -> Decision:
    """PROVED, where all measured cases hold and the theorem behind the claim proves anew."""
    name = decision.claim.theorem
    if name is None or decision.verdict is not ClaimVerdict.HOLDS:
        return decision
    if name not in proved:
        from bubbleproof.papers.theorems.prover import prove  # loads Z3

        proved[name] = prove(theorems()[name]).verdict is ProofVerdict.PROVED
    return replace(decision, verdict=ClaimVerdict.PROVED) if proved[name] else decision
