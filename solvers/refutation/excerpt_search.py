"""Bounds by windows: a few microbatches on neighbouring ranks are proved about, again and again.

Of the tightest store the lifecycle is cut into windows (``verify.certificates.microbatch_windows``)
that use up the group, as few as can be proved about. Their numbers of microbatches are those that
take longest together by one machine or store of each excerpt. What a window takes is for the caller
to prove, on few ranks first and then on more: each of these is a problem of its own, whose proof
counts as soon as it says more than that of fewer ranks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import combinations_with_replacement

import numpy as np

from bubbleproof.solvers.bounds import Bounds, lower_bounds
from bubbleproof.solvers.refutation.store_bounds import volumes
from bubbleproof.theory.model.problem import Problem
from bubbleproof.verify.certificates.certificate_rule import DirectCertificate
from bubbleproof.verify.certificates.chains import Lifecycle
from bubbleproof.verify.certificates.microbatch_windows import (
    Excerpts,
    MicrobatchWindow,
    MicrobatchWindows,
)
from bubbleproof.verify.certificates.one_machine import longest_paths

# Proves what it can about an excerpt, in so large a share of the caller's time.
ProveExcerpt = Callable[[Problem, float], DirectCertificate | None]

FEWEST, STEP = 4, 2  # ranks: what few of them take hardly says more than one machine does
MOST_TASKS = 720  # of the longest window on the fewest ranks: beyond, it is not proved in a minute
MOST_ON_MORE = 1_200  # of one on more of them
MOST_WINDOWS = 8  # of two or three numbers of microbatches, each of which takes time of its own
NEAR = 3  # by how many microbatches windows may differ from what is even
# A window's microbatches by how many a store holds: fewer hardly get in each other's way, and of
# more a proof is as hard as that of the whole problem.
LEAST_CAPS, MOST_CAPS = 2, 6


def excerpts_beyond(
    known: int, problem: Problem, bounds: Bounds, prove: ProveExcerpt
) -> Iterator[MicrobatchWindows]:
    """Certificates of more than ``known``, each of more than those before; often none.

    Parameters
    ----------
    known
        A bound in ticks.
    """
    search = ExcerptSearch.of(problem, bounds, prove)
    return iter(()) if search is None else search.certificates(known)


class ExcerptSearch:
    """The windows of one problem; ``counts`` says how often each number of microbatches occurs."""

    def __init__(
        self,
        problem: Problem,
        bounds: Bounds,
        prove: ProveExcerpt,
        life: Lifecycle,
        counts: Counter[int],
    ) -> None:
        self.problem, self.prove, self.life, self.counts = problem, prove, life, counts
        self.excerpts = Excerpts(problem, life.first, life.store)
        self.around = _around(problem, life, int(bounds.order.row_of[life.last][-1]))
        self.best: dict[int, MicrobatchWindow] = {}

    @classmethod
    def of(cls, problem: Problem, bounds: Bounds, prove: ProveExcerpt) -> ExcerptSearch | None:
        """The search; None where no store asks for one, or all windows are beyond reach."""
        life = tightest(problem, bounds)
        if life is None:
            return None
        group = next(group for group in bounds.order.groups if life.first in group[:, 0])
        ranks = _nearest(problem, life, FEWEST)
        each = int(np.isin(problem.rank_of_task[group[:, 0]], ranks).sum())
        room = bounds.order.limit(life) or 0
        excerpts = Excerpts(problem, life.first, life.store)

        def ticks(count: int) -> int:
            short = excerpts.of(count, ranks)
            return 0 if isinstance(short, str) else lower_bounds(short).best.bound

        most = min(MOST_TASKS // each, MOST_CAPS * room)
        counts = window_counts(group.shape[1], room, most, ticks)
        return cls(problem, bounds, prove, life, counts) if counts else None

    def certificates(self, known: int) -> Iterator[MicrobatchWindows]:
        """Certificates of more than ``known``, on ever more ranks.

        Parameters
        ----------
        known
            A bound in ticks.
        """
        every = self.problem.num_ranks
        for number in (*range(FEWEST, every, STEP), every):
            ranks = _nearest(self.problem, self.life, number)
            if not self._are_proved(ranks, is_last=number == every):
                return
            claim = self._claim()
            if claim.bound > known:
                known = claim.bound
                yield claim

    def _are_proved(self, ranks: tuple[int, ...], *, is_last: bool) -> bool:
        """Prove about each window on these ranks; whether none of them was beyond reach.

        Each has the same time, and as much is left for more ranks unless these are the last.
        """
        for place, count in enumerate(sorted(self.counts)):
            short = self.excerpts.of(count, ranks)
            if isinstance(short, str) or short.num_tasks > MOST_ON_MORE:
                return False
            proof = self.prove(short, 1 / (len(self.counts) - place + (not is_last)))
            if proof is None:
                return False
            if count not in self.best or proof.bound > self.best[count].proof.bound:
                times = self.counts[count]
                self.best[count] = MicrobatchWindow(
                    count=count, ranks=ranks, proof=proof, times=times
                )
        return True

    def _claim(self) -> MicrobatchWindows:
        windows = tuple(self.best.values())
        taken = sum(window.times * window.proof.bound for window in windows)
        return MicrobatchWindows(
            first=self.life.first,
            store=self.life.store,
            windows=windows,
            bound=self.around + taken,
        )


def _around(problem: Problem, life: Lifecycle, last: int) -> int:
    """The ticks from a computation to the first window, and from the last one to one.

    0, which is surely no more, where the bounds are cyclic.
    """
    paths = longest_paths(problem, "makespan", 0)
    if paths is None:
        return 0
    heads, tails = paths
    return heads[life.first] + tails[last]


def tightest(problem: Problem, bounds: Bounds) -> Lifecycle | None:
    """The lifecycle whose store shows most by its volume, if it is alone in it."""
    claims = volumes(problem, bounds.order, bounds.heads, bounds.tails)
    best = max(claims, key=lambda claim: claim.bound, default=None)
    if best is None:
        return None
    lives = [life for life in bounds.order.lifecycles if life.store == best.store]
    return lives[0] if len(lives) == 1 and problem.rank_of_task[lives[0].first] >= 0 else None


def window_counts(
    num_microbatches: int, room: int, most: int, ticks: Callable[[int], int]
) -> Counter[int]:
    """How many windows of which number of microbatches take the most ``ticks``; none if too short.

    ``room`` (K) of them are in the store at once: between two windows K - 1 microbatches are in no
    window, and one of fewer than ``LEAST_CAPS`` times K says no more than a volume. They are as few
    as leaves them ``most`` microbatches or fewer on average, and as alike as can be.

    Parameters
    ----------
    num_microbatches
        Those of the group.
    room
        K, how many of them are in the store at once.
    most
        Microbatches of a window, on average.
    ticks
        What a window of so many microbatches takes.
    """
    for windows in range(1, MOST_WINDOWS + 1):
        inside = num_microbatches - (windows - 1) * (room - 1)
        if room < 1 or inside < LEAST_CAPS * room * windows:
            break
        if inside <= most * windows:
            each, spread = inside // windows, min(NEAR, room) if windows > 1 else 0
            known = {count: ticks(count) for count in range(each - spread, each + spread + 2)}
            rows = combinations_with_replacement(known, windows)
            fitting = [row for row in rows if sum(row) == inside]
            ranked = [(sum(known[count] for count in row), row) for row in fitting]
            return Counter(max(ranked)[1])
    return Counter()


def _nearest(problem: Problem, life: Lifecycle, number: int) -> tuple[int, ...]:
    """So many ranks around that of the lifecycle."""
    home = int(problem.rank_of_task[life.first])
    ranks = sorted(range(problem.num_ranks), key=lambda rank: (abs(rank - home), rank))
    return tuple(sorted(ranks[:number]))
