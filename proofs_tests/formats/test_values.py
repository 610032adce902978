"""Numbers with units: what is read, what is refused, and which tick a file gets."""

from __future__ import annotations

import logging
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubbleproof.formats.clusters.cluster_toml import cluster_file_of_text
from bubbleproof.formats.errors import UnusableInput
from bubbleproof.formats.problem_toml import problem_file_of_text
from bubbleproof.formats.values import (
    RATE,
    SIZE,
    SPEED,
    TIME,
    Quantity,
    Tick,
    bytes_of,
    common_divisor,
    fitting_tick,
    seconds_of,
    tick_unit,
    time_text,
)
from bubbleproof.theory.pipelines.sharding import Sharding
from bubbleproof.theory.pipelines.state_offload import StateOffload
from proofs_tests.formats.problem_texts import read, refusal

QUANTITIES = (TIME, SIZE, RATE, SPEED)
SHAPE = "ranks = 2\nmicrobatches = 3\n"
FEW = st.fractions(min_value=0, max_value=1000, max_denominator=1000)
TIMES = "[durations]\nforward = 4\nbackward = 8\n"


@pytest.mark.parametrize(
    ("text", "nanoseconds", "written", "unit"),
    [
        ("1ns", 1, "1 ns", "ns"),
        ("10us", 10_000, "10 us", "ticks of 10 us"),
        ("1000 us", 1_000_000, "1 ms", "ms"),
        ("1.5us", 1_500, "1500 ns", "ticks of 1500 ns"),
        ("2 s", 2_000_000_000, "2 s", "ticks of 2 s"),
    ],
)
def test_ticks_are_read_and_written(text: str, nanoseconds: int, written: str, unit: str) -> None:
    tick = Tick.parsed(text)
    assert (tick.nanoseconds, str(tick), tick.unit) == (nanoseconds, written, unit)


@pytest.mark.parametrize("text", ["", "10", "0us", "0.1ns", "us", "-1us", "1 day", "1us "])
def test_other_ticks_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="a tick must be a whole number of ns, us, ms or s"):
        Tick.parsed(text)


@pytest.mark.parametrize(
    ("shortest", "nanoseconds"),
    [
        (100e-6, 5_000),  # 100 us / 20 = 5 us
        (99e-6, 2_000),  # 4.95 us: the next shorter is 2 us
        (0.5, 20_000_000),  # 25 ms: 20 ms
        (1e-9, 1),  # less than 20 ns: a tick of a nanosecond
    ],
)
def test_a_fitting_tick_is_a_twentieth_of_the_shortest_time(
    shortest: float, nanoseconds: int
) -> None:
    assert fitting_tick([shortest * 3, shortest, 1.0]).nanoseconds == nanoseconds


@pytest.mark.parametrize(
    ("quantity", "text", "number"),
    [
        (TIME, "9 ms", Fraction(9, 1000)),
        (TIME, "10.5ms", Fraction(21, 2000)),
        (TIME, "1e3 ns", Fraction(1, 10**6)),
        (TIME, "2.5e-1 s", Fraction(1, 4)),
        (TIME, "2 min", Fraction(120)),
        (TIME, "1 h", Fraction(3600)),
        (SIZE, "24 GiB", Fraction(24 * 2**30)),
        (SIZE, "3.5 GiB", Fraction(7 * 2**29)),
        (SIZE, "80 GB", Fraction(80 * 10**9)),
        (SIZE, "1 B", Fraction(1)),
        (RATE, "25 GB/s", Fraction(25 * 10**9)),
        (RATE, "1 MiB/s", Fraction(2**20)),
        (RATE, "200 Gbit/s", Fraction(25 * 10**9)),
        (SPEED, "312 TFLOP/s", Fraction(312 * 10**12)),
        (SPEED, "1.5 PFLOP/s", Fraction(15 * 10**14)),
    ],
)
def test_texts_with_a_unit(quantity: Quantity, text: str, number: Fraction) -> None:
    assert quantity.read(text) == number


@pytest.mark.parametrize("text", ["", "9", "ms", "-1 ms", "1,5 ms", "1 ms ", "one ms", "1. ms"])
def test_texts_that_are_no_number_with_a_unit(text: str) -> None:
    with pytest.raises(UnusableInput, match='expected a time such as "9 ms"'):
        TIME.read(text)


@pytest.mark.parametrize(
    ("quantity", "text", "unit"),
    [
        (TIME, "9 sec", "sec"),
        (TIME, "9 GiB", "GiB"),
        (SIZE, "80 gb", "gb"),
        (SIZE, "25 GB/s", "GB/s"),
        (RATE, "25 GB", "GB"),
        (SPEED, "312 TFLOPS", "TFLOPS"),
    ],
)
def test_an_unknown_unit_is_refused_with_the_known_ones(
    quantity: Quantity, text: str, unit: str
) -> None:
    with pytest.raises(UnusableInput) as caught:
        quantity.read(text)
    known = ", ".join(quantity.units)
    assert str(caught.value) == (
        f"expected a {quantity.what} in one of {known}, found the unit '{unit}' of '{text}'"
    )


@given(
    pair=st.sampled_from([(quantity, unit) for quantity in QUANTITIES for unit in quantity.units]),
    thousandths=st.integers(0, 10**15),
    blank=st.sampled_from(["", " "]),
)
def test_what_is_written_with_a_unit_is_read_back(
    pair: tuple[Quantity, str], thousandths: int, blank: str
) -> None:
    quantity, unit = pair
    whole, part = divmod(thousandths, 1000)
    number = Fraction(thousandths, 1000) * quantity.units[unit]
    assert quantity.read(f"{whole}.{part:03d}{blank}{unit}") == number
    assert quantity.read(f"{thousandths}e-3{blank}{unit}") == number


@given(seconds=st.fractions(min_value=Fraction(1, 10**9), max_value=10**6, max_denominator=10**9))
def test_the_name_of_a_tick_says_how_long_it_is(seconds: Fraction) -> None:
    number, unit = time_text(seconds).split()
    assert Fraction(number) * TIME.units[unit] == seconds
    assert tick_unit(seconds).removeprefix("ticks of ") in (time_text(seconds), unit)


@given(values=st.lists(FEW, min_size=1, max_size=9).filter(any))
def test_the_common_divisor_divides_all_and_nothing_larger_does(values: list[Fraction]) -> None:
    found = common_divisor(values)
    counts = [value / found for value in values]
    assert {count.denominator for count in counts} == {1}
    assert common_divisor(counts) == 1  # a larger one would leave a common factor


def test_seconds_and_bytes_of_options() -> None:
    assert (seconds_of(10), seconds_of("10s"), seconds_of("1.5 min")) == (10, 10, 90)
    assert seconds_of("1 ms") == 1  # a part of a second counts as one
    assert (bytes_of("1.5 B"), bytes_of(7)) == (2, 7)
    with pytest.raises(UnusableInput, match="expected a number of 1 or more, found '0 s'"):
        seconds_of("0 s")


@pytest.mark.parametrize(
    ("text", "unit", "forward", "backward", "latency"),
    [
        # 10.5, 12 and 9 ms are 7, 8 and 6 times 1.5 ms, and no longer time divides them
        ('unit = "ms"\n|10.5|12|9', "ticks of 1500 us", 7, 8, 6),
        ('unit = "ms"\n|"9 ms"|20|1e1', "ms", 9, 20, 10),
        ('unit = "us"\n|"9 ms"|"1 s"|0', "us", 9000, 10**6, 0),
        ('unit = "ms"\n|"500 us"|1|0', "ticks of 500 us", 1, 2, 0),
        ('unit = "ms"\n|0.1|0.25|0', "ticks of 50 us", 2, 5, 0),
        ('unit = "ticks of 5 us"\n|"10 us"|3|0', "ticks of 5 us", 2, 3, 0),
        ('unit = "ticks of 5 us"\n|1|0.5|0', "ticks of 2500 ns", 2, 1, 0),
        ('|"9 ms"|"20 ms"|0', "ms", 9, 20, 0),  # in the finest unit that is named
        ('|"1 s"|"20 ms"|0', "ms", 1000, 20, 0),
        ("|1.5|2|0", "parts of 1/2 tick", 3, 4, 0),
        ('unit = "slot"\n|1.5|2|0', "parts of 1/2 slot", 3, 4, 0),
        ("|1e3|2e3|0", "tick", 1000, 2000, 0),
    ],
)
def test_one_tick_in_which_all_times_are_whole(
    text: str, unit: str, forward: int, backward: int, latency: int, tmp_path: Path
) -> None:
    head, one, other, wait = text.split("|")
    tables = f"[durations]\nforward = {one}\nbackward = {other}\n[links]\nlatency = {wait}\n"
    found = read(head + SHAPE + tables, tmp_path).pipeline
    assert (found.unit, found.forward, found.backward) == (unit, (forward,) * 2, (backward,) * 2)
    assert found.latency == latency


@pytest.mark.parametrize(
    ("text", "unit", "capacity", "activation"),
    [
        ('memory_unit = "GiB"\n|"24 GiB"|3', "GiB", 24, 3),
        ('memory_unit = "GiB"\n|24|3.5', "bytes", 24 * 2**30, 7 * 2**29),
        ('memory_unit = "GiB"\n|"24 GiB"|"512 MiB"', "bytes", 24 * 2**30, 2**29),
        ('memory_unit = "bytes"\n|"24 GiB"|"1.5 B"', "bytes", 24 * 2**30, 2),
        ('|"24 GiB"|"2 GiB"', "GiB", 24, 2),
        ("|3|1.5", "parts of 3/2 activation", 2, 1),
    ],
)
def test_one_unit_of_memory(
    text: str, unit: str, capacity: int, activation: int, tmp_path: Path
) -> None:
    head, room, held = text.split("|")
    memory = f"[memory]\ncapacity = {room}\nactivation = {held}\n"
    found = read(head + SHAPE + TIMES + memory, tmp_path).pipeline
    assert (found.memory_unit, found.capacity) == (unit, capacity)
    assert found.activation == (activation,) * 2


@pytest.mark.parametrize(
    ("units", "forward", "bandwidth", "per_tick"),
    [
        ("us bytes", "4", '"25 GB/s"', 25_000),
        ("ms GiB", "4", '"1 GiB/s"', Fraction(1, 1000)),
        ("ms GiB", "4", '"1/4"', Fraction(1, 4)),
        ("ms GiB", "4", "0.25", Fraction(1, 4)),
        ("ms GiB", "4.5", "1", Fraction(1, 2)),  # a tick is 500 us
        ("ms GiB", "4.5", '"1000 GiB/s"', Fraction(1, 2)),
    ],
)
def test_bandwidths(
    units: str, forward: str, bandwidth: str, per_tick: Fraction, tmp_path: Path
) -> None:
    unit, memory_unit = units.split()
    text = f'unit = "{unit}"\nmemory_unit = "{memory_unit}"\n{SHAPE}'
    text += TIMES.replace("4", forward) + f"[links]\nbandwidth = {bandwidth}\n"
    assert read(text, tmp_path).pipeline.bandwidth == per_tick


def test_what_is_chosen_and_what_a_solve_is_given_count_the_same_ticks(tmp_path: Path) -> None:
    text = 'unit = "ms"\n' + SHAPE + "[durations]\nforward = 1.5\ninput = 2\nweight = 2\n"
    solve = '[solve]\nwithin = "1 s"\ntime_limit = "2 min"\nmemory = "1.5 GiB"\n'
    sharding = '[choices.sharding]\nzero = 1\ngather = 1.5\nreduce = "2 ms"\n'
    found = read(text + sharding + solve, tmp_path)
    assert found.pipeline.choices.sharding == Sharding(zero=1, gather=3, reduce=4)
    assert (found.within, found.time_limit, found.memory) == (2000, 120, 3 * 2**29)
    # what a file does not tell of off-loaded state takes one tick of the file: two of these
    state = read(text + "[choices.state_offload]\nstages = [0]\n", tmp_path).pipeline
    assert state.choices.state_offload == StateOffload(stages=(0,), offload=2, step=2, reload=2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            TIMES.replace("4", '"4 ms"'),
            "unit: expected one of ns, us, ms, s, min, h, which the numbers without a unit count, "
            "found nothing",
        ),
        (
            'unit = "slot"\n' + TIMES.replace("4", '"4 ms"'),
            "durations.forward: expected a number (units need unit to be one of ns, us, ms, s, "
            "min, h), found '4 ms'",
        ),
        (
            TIMES + '[links]\nbandwidth = "25 GB/s"',
            "links.bandwidth: expected a number (rates need memory_unit and unit of bytes and "
            "seconds), found '25 GB/s'",
        ),
        (
            TIMES + "[links]\nbandwidth = 0",
            "links.bandwidth: expected a bandwidth above 0 (absent: no limit), found 0",
        ),
    ],
)
def test_numbers_that_do_not_go_together(text: str, message: str, tmp_path: Path) -> None:
    head, _, tables = text.partition("[durations]")
    assert refusal(f"{head}{SHAPE}[durations]{tables}", tmp_path) == message


def test_the_tick_that_is_chosen_and_times_of_nothing_are_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "bubbleproof"):
        for _ in range(2):
            read('name = "one"\nunit = "ms"\n' + SHAPE + TIMES.replace("4", "4.5"), tmp_path)
            read('name = "none"\n' + SHAPE + TIMES.replace("4", "0").replace("8", "0"), tmp_path)
            read('name = "plain"\nunit = "ms"\n' + SHAPE + TIMES, tmp_path)
    assert caplog.messages == [
        "one: times are counted in ticks of 500 us, in which all are whole",
        "none: all durations are 0",
    ]


@given(
    times=st.lists(
        st.tuples(st.integers(0, 10**6), st.sampled_from(["us", "ms", "s"])),
        min_size=2,
        max_size=2,
    ),
    latency=st.integers(0, 10**4),
)
def test_a_file_keeps_every_time_exactly(times: list[tuple[int, str]], latency: int) -> None:
    """Thousandths of any unit, beside plain tenths of ``unit``: nothing is rounded."""
    listed = ", ".join(f'"{count}e-3 {unit}"' for count, unit in times)
    text = f'unit = "us"\n{SHAPE}[durations]\nforward = [{listed}]\nbackward = 1\n'
    text += f"[links]\nlatency = {latency // 10}.{latency % 10}\n"
    found = problem_file_of_text(text, name="exact").pipeline
    number = found.unit.removeprefix("ticks of ")
    tick = TIME.read(number if number[0].isdigit() else f"1 {number}")
    wanted = [Fraction(count, 1000) * TIME.units[unit] for count, unit in times]
    assert [ticks * tick for ticks in found.ticks.forward[:, 0].tolist()] == wanted
    assert found.latency * tick == Fraction(latency, 10**7)
    assert tick <= TIME.units["us"]


def test_the_numbers_of_a_card_may_have_units() -> None:
    own = (
        '{0}memory = "80 GiB"\nmemory_bandwidth = "2 TB/s"\nnode_link = "300 GB/s"\n'
        'network = "800 Gbit/s"\n'
    )
    head = '[model]\nname = "llama-2-7b"\n[batch]\nsamples = 64\n[cluster]\ncards = 8\n'
    plain = cluster_file_of_text(head + own.format("flops = 312e12\n"), name="a")
    told = cluster_file_of_text(head + own.format('flops = "312 TFLOP/s"\n'), name="a")
    card = told.training.cluster.card
    assert card == plain.training.cluster.card
    assert (card.half_tflops, card.memory_gib, card.network_gbs) == (312, 80, 100)
