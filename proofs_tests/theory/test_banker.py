"""The banker's argument: what is safe, by trying every order of completion and by hand."""

from __future__ import annotations

from collections import Counter
from itertools import permutations
from random import Random

import numpy as np
import pytest

from bubbleproof.theory.orders.bankers import RankBank, StoreBank, is_safe
from bubbleproof.theory.orders.periods import Band, bands, longest, with_periods


def test_a_line_is_safe_where_each_finds_what_it_lacks() -> None:
    # 1 is free: the first lacks 1 and gives 2 back, then 3 are free for the second's 3.
    assert is_safe([(1, 2), (3, 0)], 1)
    assert not is_safe([(1, 2), (4, 0)], 1)
    assert not is_safe([(2, 2), (0, 0)], 1)
    assert is_safe([], 0)


@pytest.mark.parametrize("seed", range(40))
def test_a_safe_state_can_be_completed_and_a_first_in_line_is_never_refused(seed: int) -> None:
    rng = Random(seed)
    limit = rng.randint(2, 5)
    needs = [rng.randint(1, limit) for _ in range(4)]
    bank = RankBank(needs)
    while any(bank.lacking) or bank.load:
        lacking = [j for j, left in enumerate(bank.lacking) if left]
        done = [j for j, left in enumerate(bank.lacking) if not left and bank.held[j]]
        allowed = [j for j in lacking if bank.load < limit and bank.allows(j, 1, 1, limit)]
        for j in allowed:
            state = [(need, held) for need, held in zip(bank.lacking, bank.held, strict=True)]
            state[j] = state[j][0] - 1, state[j][1] + 1
            free = limit - bank.load - 1
            assert any(is_safe(line, free) for line in permutations(state))
        assert allowed or done, "stuck"
        if done and (not allowed or rng.random() < 0.5):
            j = rng.choice(done)
            bank.give(j, bank.held[j])
        else:
            bank.take(rng.choice(allowed), 1, 1)


def test_without_a_bank_two_can_lock_each_other_out() -> None:
    # Both need 2 of 2: once each holds 1 neither can go on, and the bank does not let it happen.
    bank = RankBank([2, 2])
    bank.take(0, 1, 1)
    assert not bank.allows(1, 1, 1, 2)
    assert bank.allows(0, 1, 1, 2)
    assert bank.allows(1, 1, 1, 3)


def test_a_bank_of_stores_knows_who_began_and_who_takes_no_more() -> None:
    bank = StoreBank({(0, 0): (2, 2), (0, 1): (2, 2)}, Counter({0: 2, 1: 2}))
    bank.change(0, 1, 1)
    assert not bank.allows(0, 0, 1, 0)  # microbatch 1 began, and lacks 1 more
    assert bank.allows(0, 1, 1, 0)  # its last acquisition: nothing is lacked
    bank.change(0, 1, 1)
    bank.end(1)
    bank.change(0, 1, -2)
    bank.end(1)
    assert bank.allows(0, 0, 1, 1)


def test_periods_may_be_inserted_anywhere_in_a_band() -> None:
    starts = np.array([[0, 1, 4, 7, 10, 13, 15], [2, 3, 6, 9, 12, 15, 19]])
    found = longest(bands(starts, 1))
    assert found == Band(first=1, last=6, count=1, ticks=3)
    longer = with_periods(starts, found, 2)
    assert longer.tolist()[0] == [0, 1, 4, 7, 10, 13, 16, 19, 21]
    for first in range(2, 6):
        later = Band(first=first, last=6, count=1, ticks=3)
        assert (with_periods(starts, later, 2) == longer).all()
