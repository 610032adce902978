"""Printed generators: known by name, not listed, refused where the print asks the impossible."""

from __future__ import annotations

import pytest

from bubbleproof.theory.families import PRINTED, families, family, member
from bubbleproof.theory.families.pipemesh_order import literal_orders
from bubbleproof.theory.families.svpp_literal import svpp_literal
from bubbleproof.theory.model.measures import measure
from bubbleproof.theory.pipelines.timing import Deadlock
from bubbleproof.verify import check


def test_they_are_known_and_not_listed() -> None:
    assert not PRINTED.keys() & families().keys()
    for name in PRINTED:
        assert family(name).name == name
    with pytest.raises(ValueError, match=rf"no family 'nosuch'.* {[*families()][-1]} svpp-printed"):
        family("nosuch")


@pytest.mark.parametrize(
    ("name", "is_rescheduled"), [("svpp-printed", True), ("svpp-filled", False)]
)
def test_svpps_orders_are_those_of_the_print(name: str, is_rescheduled: bool) -> None:
    made = member(name, p=3, m=4, v=2, s=2, f=5)
    expected = svpp_literal(made.pipeline, 5, rescheduled=is_rescheduled)
    assert made.schedule.program.orders(3) == expected.orders(3)
    assert check(made.problem, made.schedule).ok


def test_figure_5_by_hand() -> None:
    # MEPipe section 4.2 draws 5(a) and 5(c); the steps give 25 ticks at f = 8 and 32 at f = 4.
    for forwards, ticks in ((8, 25), (4, 32)):
        made = member("svpp-filled", p=4, m=2, v=2, s=2, f=forwards, tF=1, tB=1)
        assert measure(made.problem, made.schedule).makespan == ticks


def test_algorithm_1_to_the_letter() -> None:
    made = member("pipemesh-printed", p=2, m=4, v=2, e=(2, 2), d=(2, 2))
    orders = [list(map(str, order)) for order in made.schedule.program.orders(2)]
    assert orders == literal_orders(2, 2, (2, 2), (2, 2))
    # One rank, M = 2, e = (1, 1), d = (2): n_fwd = 1, so 0F0 1F0 1B0 0F1 1B1, which needs 1F1.
    with pytest.raises(Deadlock, match="1B1 waits for 1F1"):
        member("pipemesh-printed", p=1, m=2, v=2, e=(1, 1), d=(2,))
    # P = 3, M = 1, B = 3: 2(P-1) = 4 forwards before the first pair, of 3.
    with pytest.raises(ValueError, match="warms up with 4 forwards of 3 on rank 0"):
        member("pipemesh-printed", p=3, m=3, v=1)
