"""Certificates by windows: what successive microbatches need alone, they need within any schedule.

A lifecycle (``verify.certificates.index_order``, hypothesis 3) begins with a task ``first`` and
ends with a task ``last`` of each of the m microbatches of a group; K of them may be within it at
once (lemma 2 there). A *window* is q successive microbatches, and a proof that their excerpt
(``verify.certificates.excerpt``) takes b ticks or more: by any other kind of certificate, of that
short problem.

Let n windows have q_1 ... q_n microbatches and take b_1 ... b_n ticks, each as often as it says.
With j_1 = 0 and j_(i+1) = j_i + q_i - 1 + K let window i be that of microbatches j_i ... l_i, where
l_i = j_i + q_i - 1.

Hypotheses, each of which is checked, beside those of lemma 2 there and of the excerpts:

1. all uses of the lifecycle's store are lifecycles, and the store has a capacity, which K comes
   from; a single window needs no K;
2. the last window ends within the group: l_n <= m - 1;
3. each proof is of its excerpt's makespan, and proves b_i; ``times`` is 1 or more.

Lemma 2. makespan >= head of first(0) + b_1 + ... + b_n + tail of last(l_n), head and tail being the
longest paths from a computation to the start of the one, and from the end of the other to one
(``verify.certificates.one_machine``).
Proof. Take a schedule in index order (lemma 1 of ``index_order``; the makespan is the same). By
lemma 1 of ``excerpt`` window i takes b_i ticks or more from the start of first(j_i) to the end of
last(l_i). By lemma 2 of ``index_order`` first(j_(i+1)), whose number is l_i + K, starts no earlier
than last(l_i) ends, so that one window follows the other. Before the first of them lies its head,
after the last its tail.

Windows may be of several ranks: the more ranks an excerpt keeps, the more it takes, and the harder
its proof. How much the ranks get in each other's way is learnt by a short proof once, and counts in
each window.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bubbleproof.theory.model.problem import Problem
from bubbleproof.verify.certificates.chains import Lifecycle
from bubbleproof.verify.certificates.excerpt import excerpt
from bubbleproof.verify.certificates.index_order import IndexOrder, index_order
from bubbleproof.verify.certificates.one_machine import longest_paths

if TYPE_CHECKING:
    from bubbleproof.verify.certificates.certificate import Drup
    from bubbleproof.verify.certificates.one_machine import OneMachine
    from bubbleproof.verify.certificates.one_store import OneStore
    from bubbleproof.verify.certificates.tick_prices import TickPrices
    from bubbleproof.verify.certificates.volume import Volume

MOST_WINDOWS = 1_000  # with proofs of their own, each of which is checked


@dataclass(frozen=True, slots=True, kw_only=True)
class MicrobatchWindow:
    """``count`` successive microbatches on ``ranks`` take ``proof.bound`` ticks, ``times`` over."""

    count: int
    ranks: tuple[int, ...]
    proof: OneMachine | OneStore | Volume | TickPrices | Drup
    times: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class MicrobatchWindows:
    """Claims ``makespan >= bound`` by windows one after another.

    ``first`` is the task that begins the lifecycle of microbatch 0 of its group, ``store`` the
    store that it is one in.
    """

    first: int
    store: int
    windows: tuple[MicrobatchWindow, ...]
    bound: int
    objective: str = "makespan"


Refusal = Callable[[Problem, "OneMachine | OneStore | Volume | TickPrices | Drup"], str | None]


def windows_refusal(
    problem: Problem, certificate: MicrobatchWindows, refusal: Refusal
) -> str | None:
    """Why the certificate does not prove its bound; None where it does.

    ``refusal`` says the same of a window's proof and its excerpt.
    """
    if certificate.objective != "makespan":
        return f"windows bound the makespan, not {certificate.objective!r}"
    if type(certificate.bound) is not int:
        return f"windows prove a whole bound, got {certificate.bound}"
    if not 1 <= len(certificate.windows) <= MOST_WINDOWS:
        return f"windows must be 1 to {MOST_WINDOWS}, got {len(certificate.windows)}"
    if (paths := longest_paths(problem, "makespan", 0)) is None:
        return "the problem's precedences have a cycle"
    excerpts = Excerpts(problem, certificate.first, certificate.store)
    if (life := excerpts.life) is None:
        return "no lifecycle of that store begins with that task"
    for number, window in enumerate(certificate.windows):
        short = excerpts.of(window.count, window.ranks)
        why = short if isinstance(short, str) else _unusable(window) or refusal(short, window.proof)
        if why is not None:
            return f"window {number}: {why}"
    if isinstance(last := _last(excerpts.order, life, certificate.windows), str):
        return last
    heads, tails = paths
    head, tail = heads[life.first], tails[int(excerpts.order.row_of[life.last][last])]
    taken = head + tail + sum(each.times * each.proof.bound for each in certificate.windows)
    if min(head, tail) < 0 or taken < certificate.bound:
        return f"the windows do not prove a bound of {certificate.bound}"
    return None


class Excerpts:
    """The excerpts from the lifecycle in ``store`` (index) that the task ``first`` begins.

    ``life`` is None where there is no such lifecycle.
    """

    def __init__(self, problem: Problem, first: int, store: int) -> None:
        self.problem, self.order = problem, index_order(problem)
        lives = self.order.lifecycles
        named = (life for life in lives if (life.first, life.store) == (first, store))
        self.life: Lifecycle | None = next(named, None)

    def of(self, count: int, ranks: tuple[int, ...]) -> Problem | str:
        """Of so many microbatches on these ranks; or why there is none.

        Parameters
        ----------
        count
            How many microbatches; judged here, whatever it is.
        ranks
            Numbers of ranks; judged here as well.
        """
        if self.life is None:
            return "no lifecycle of that store begins with that task"
        if any(type(number) is not int for number in (count, *ranks)):
            return "counts and ranks must be whole numbers"
        have = len(self.order.row_of[self.life.first])
        if not 1 <= count <= have:
            return f"a window has 1 to {have} identical microbatches, got {count}"
        if not set(ranks) <= set(range(self.problem.num_ranks)):
            return f"its ranks must be some of the problem's {self.problem.num_ranks}"
        return excerpt(self.problem, self.order, self.life, count, ranks)


def _unusable(window: MicrobatchWindow) -> str | None:
    """Why the window's numbers prove nothing."""
    if type(window.times) is not int or window.times < 1:
        return f"it must be taken once or more, got {window.times}"
    if window.proof.objective != "makespan" or type(window.proof.bound) is not int:
        return "its proof must be of a whole makespan"
    return None


def _last(order: IndexOrder, life: Lifecycle, windows: tuple[MicrobatchWindow, ...]) -> int | str:
    """The microbatch that the last window ends with; or why there is none."""
    limit, number = order.limit(life), sum(window.times for window in windows)
    if number > 1 and (limit is None or limit < 1):
        return "the store has no capacity, or no room for one microbatch"
    last = sum(window.times * (window.count - 1) for window in windows)
    last += (number - 1) * (limit or 0)
    if last >= (have := len(order.row_of[life.first])):
        return f"the windows need {last + 1} identical microbatches, and there are {have}"
    return last
