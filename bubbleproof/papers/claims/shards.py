"""Cutting the cases of many claims into shards that workers decide apart, and joining the outcome.

A shard holds cases of some claims of one paper. It travels to another process, so it names claims
by id and cases by numbers (claims hold functions, which do not travel). ``decide_shard`` is what a
worker does; it looks claims up by ``claims()``.

Shards come in two kinds. A *head* holds the smallest cases of one claim: most refuted claims fail
there, and are done. The *cells* hold the rest: all cases of a paper that agree in their first two
parameters (ranks and microbatches for schedules), so that claims that measure the same schedule
meet in one worker and its caches.

A claim's verdict, its smallest counterexample and the number of cases checked are those of
``decide``, however many workers there are and whoever is first: of all failing cases the smallest
wins.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from bubbleproof.papers.claims.claim import (
    Claim,
    ClaimVerdict,
    Counterexample,
    Decision,
    Domain,
)
from bubbleproof.papers.claims.registry import claims
from bubbleproof.papers.claims.standing import Standing, watched

Table = np.ndarray[tuple[int, int], np.dtype[np.int64]]
HEAD = 96  # cases of a head, fewer where their schedules are large
LOAD = 30_000  # about how many actions the schedules of a shard have in sum


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Slice:
    """Cases of one claim, smallest first: ``place[i]`` is where ``rows[i]`` is in the domain."""

    claim: str
    names: tuple[str, ...]
    rows: Table
    place: np.ndarray[tuple[int], np.dtype[np.int64]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shard:
    """Work for one call of a worker; ``load`` estimates it, in actions."""

    paper: str
    slices: tuple[Slice, ...]
    load: int

    @property
    def num_cases(self) -> int:
        return sum(len(part.rows) for part in self.slices)

    @property
    def claims(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(part.claim for part in self.slices))


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A failing case, at its place in the claim's domain."""

    place: int
    counterexample: Counterexample


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of a slice: its first failing case, and the mutants that its cases refute.

    ``standing`` is that of the claim, told by the slice that holds the domain's first case.
    """

    claim: str
    failure: Failure | None
    refuted_mutants: frozenset[int]
    standing: Standing | None


def decide_shard(shard: Shard) -> tuple[Outcome, ...]:
    """What came of every slice; an error names the claim and the case."""
    known = _claims()
    return tuple(_outcome(known[part.claim], part) for part in shard.slices)


@cache
def _claims() -> dict[str, Claim]:
    return claims()


def _outcome(claim: Claim, part: Slice) -> Outcome:
    """Cases are taken in the order of their values, so that those of one shape stand together."""
    first: Failure | None = None
    refuted: frozenset[int] = frozenset()
    standing: Standing | None = None
    cases = sorted(zip(part.rows.tolist(), part.place.tolist(), strict=True))
    for row, place in cases:
        if first is not None and first.place < place:
            continue
        params = dict(zip(part.names, row, strict=True))
        try:
            if place == 0 and claim.measured is not None:
                standing = watched(claim.measured, params)
            predicted, measured = claim.values(params)
        except Exception as error:
            error.add_note(f"while measuring {claim.id} at {params}")
            raise
        if claim.accepts(predicted, measured):
            refuted |= claim.refuted_mutants(predicted, measured)
        else:
            case = Counterexample(params=params, predicted=predicted, measured=measured)
            first = Failure(place=place, counterexample=case)
    return Outcome(claim=claim.id, failure=first, refuted_mutants=refuted, standing=standing)


@dataclass(slots=True, kw_only=True)
class Audit:
    """The claims under audit: which cases are still to be looked at, and what was found.

    ``heads()`` comes first; their outcomes go to ``note``, and so do those of ``cells()``, which
    leaves out the claims that have failed. Then ``decisions()``. ``limit`` takes only the smallest
    cases of each claim.
    """

    chosen: Mapping[str, Claim]
    is_wide: bool
    limit: int | None = None
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
            shards.append(_shard(claim.paper, [head]))
        return shards

    def cells(self) -> list[Shard]:
        """The cases beyond the heads of the claims that have not failed, the largest first."""
        cells: dict[tuple[str, tuple[int, ...]], list[Slice]] = defaultdict(list)
        for claim, domain in self._measurable():
            if claim.id in self._found:
                continue
            rest = self._slice(claim, domain, slice(self._head(claim, domain), None))
            for key, part in _by_first_two(rest):
                cells[claim.paper, key].append(part)
        papers = list(dict.fromkeys(claim.paper for claim in self.chosen.values()))
        shards = [_shard(paper, parts) for (paper, _), parts in cells.items()]
        shards.sort(key=lambda shard: (papers.index(shard.paper), -shard.load))
        return list(_packed(shards))

    def note(self, outcomes: Iterable[Outcome]) -> None:
        """Keep the smallest failure of each claim, whichever comes first, and what else is told."""
        for outcome in outcomes:
            name, known, failing = outcome.claim, self._found.get(outcome.claim), outcome.failure
            if failing is not None and (known is None or failing.place < known.place):
                self._found[name] = failing
            self._refuted[name] = self._refuted.get(name, frozenset()) | outcome.refuted_mutants
            if outcome.standing is not None:
                self._standing[name] = outcome.standing

    def decisions(self) -> dict[str, Decision]:
        """What became of each claim once all shards are noted, in the order of the claims."""
        return {name: self._decision(claim) for name, claim in self.chosen.items()}

    def _decision(self, claim: Claim) -> Decision:
        domain = claim.domain_for(is_wide=self.is_wide)
        if claim.missing is not None:
            return Decision(
                claim=claim,
                domain=domain,
                verdict=ClaimVerdict.NOT_REPRODUCIBLE,
                checked=0,
                total=0,
            )
        total, failing = len(domain.points), self._found.get(claim.id)
        taken = total if self.limit is None else min(total, self.limit)
        return Decision(
            claim=claim,
            domain=domain,
            verdict=ClaimVerdict.HOLDS if failing is None else ClaimVerdict.REFUTED,
            checked=taken if failing is None else failing.place + 1,
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
        loads = _loads(self._slice(claim, domain, slice(0, HEAD)))
        return max(1, int((np.cumsum(loads) <= LOAD).sum()))

    def _slice(self, claim: Claim, domain: Domain, places: slice) -> Slice:
        table = domain.table[: self.limit]
        return Slice(
            claim=claim.id,
            names=domain.names,
            rows=table[places],
            place=np.arange(len(table))[places],
        )


def _by_first_two(part: Slice) -> Iterator[tuple[tuple[int, ...], Slice]]:
    """The slice cut by the values of its first two parameters, each part in the same order."""
    if not len(part.rows):
        return
    keys, owner = np.unique(part.rows[:, :2], axis=0, return_inverse=True)
    order = np.argsort(owner.ravel(), kind="stable")
    ends = np.cumsum(np.bincount(owner.ravel()))
    for key, rows in zip(keys.tolist(), np.split(order, ends[:-1]), strict=True):
        yield (
            tuple(key),
            Slice(claim=part.claim, names=part.names, rows=part.rows[rows], place=part.place[rows]),
        )


def _shard(paper: str, parts: Sequence[Slice]) -> Shard:
    return Shard(paper=paper, slices=tuple(parts), load=sum(map(_load, parts)))


def _load(part: Slice) -> int:
    return int(_loads(part).sum())


def _loads(part: Slice) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Estimates: a case costs what p m v s actions cost, or little where it has no schedule."""
    sizes = [part.rows[:, part.names.index(name)] for name in "pmvs" if name in part.names]
    if "p" not in part.names or "m" not in part.names:
        return np.ones(len(part.rows), dtype=np.int64)
    loads: np.ndarray[tuple[int], np.dtype[np.int64]] = np.prod(np.maximum(sizes, 1), axis=0)
    return loads


def _packed(shards: Iterable[Shard]) -> Iterator[Shard]:
    """Neighbouring shards of one paper joined up to ``LOAD``, so that none is tiny."""
    waiting: list[Shard] = []
    for shard in shards:
        joined = sum(each.load for each in waiting) + shard.load
        if waiting and (joined > LOAD or shard.paper != waiting[0].paper):
            yield _shard(waiting[0].paper, [part for each in waiting for part in each.slices])
            waiting = []
        waiting.append(shard)
    if waiting:
        yield _shard(waiting[0].paper, [part for each in waiting for part in each.slices])
