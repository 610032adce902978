"""MEPipe's page: its numbers by hand, and the misprint that it names."""

from __future__ import annotations

from fractions import Fraction

from benchmarks.mepipe_page import drawn, headed_table, memory, runs, table_6, table_7, table_9
from benchmarks.paper_numbers import Number


def by_name(numbers: list[Number], name: str) -> Number:
    return next(one for one in numbers if one.name == name)


def test_bubbles_are_those_of_1f1b() -> None:
    # (p-1)/(n+p-1) with n = 64/8, 64/4, 64/2 as read, and 32/8, 32/4, 32/2.
    wanted = [Fraction(p - 1, n + p - 1) for p, n in ((2, 8), (4, 16), (8, 32))]
    wanted += [Fraction(7, n + 7) for n in (4, 8, 16)]
    found = [one for one in (*table_6(), *table_7()) if "bubble" in one.name]
    assert [one.ours for one in found] == [100 * each for each in wanted]
    for one in found:
        assert isinstance(one.ours, Fraction)
        assert one.value is not None
        assert abs(one.ours - one.value) < 1


def test_as_headed_table_6_contradicts_itself() -> None:
    # (2, 4, 8) as headed runs 16 samples: 1/17; (8, 4, 2) runs 16 too: 7/23.
    text = headed_table()
    assert "| (2, 4, 8) | 11.1 % | 11.1 % | 5.9 % |" in text
    assert "| (8, 4, 2) | 18 % | 17.9 % | 30.4 % |" in text


def test_two_stages_do_not_fit_and_four_do() -> None:
    # Per layer and sample, in 16-bit numbers: two norms, queries, keys, values, the attention, and
    # the two residual sums of 5120 each, up and gate of 13824 each.
    each = 2 * 4096 * (8 * 5120 + 2 * 13824)
    for p, context, replicas, saved, fits in ((2, 4, 8, 2, False), (4, 4, 4, 4, True)):
        activations = Fraction(40 * each * saved, p * context * 10**9)
        need = Fraction(4 * 13, p) + Fraction(12 * 13, 64) + activations
        assert memory(p, context, replicas) == need
        assert (need <= 24) is fits


def test_times_are_drawn_by_slots_and_work() -> None:
    # 8 stages: 16 + 7 slots of half a batch, 32 + 7 of the whole: 3772.9 * 39/23.
    last = by_name(table_6(), "(8, 4, 2): time, ms").ours
    assert last == Fraction("3772.9") * 39 / 23
    # 4 + 7 slots without CP, 8 + 7 of half the work with two.
    assert by_name(table_7(), "(8, 4, 2): time, ms").ours == Fraction("3619.0") * 15 / (11 * 2)
    # 32 + 7 slots of 5 layers, 16 + 3 of 10.
    assert drawn("1", given=(8, 32, 4), wanted=(4, 16, 4)) == Fraction(19 * 2, 39)


def test_rates_are_in_the_order_of_the_table() -> None:
    assert [(at["gpus"], at["ms"]) for at in runs()] == [
        (32, 3216),
        (32, 6131),
        (32, 16167),
        (64, 3171),
        (64, 5852),
        (64, 17043),
    ]
    rates = [one for one in table_9() if "TFLOPS" in one.name and one.name.startswith("Llama")]
    for one in rates[:6]:
        assert one.deviation is not None
        assert abs(one.deviation) < Fraction(1, 20)
