"""Problem files say what they look like they say, and nothing unknown passes."""

from __future__ import annotations

from pathlib import Path

import pytest

from bubbleproof.formats import ComparedFamily
from bubbleproof.theory.pipelines.links import Link
from bubbleproof.theory.pipelines.pipeline import Pipeline
from proofs_tests.formats.problem_texts import SMALL, read, refusal

FULL = """
name = "everything"
description = "each key once"
unit = "us"
memory_unit = "bytes"
ranks = 2
microbatches = 4
chunks = 2
slices = 3
placement = [0, 1, 1, 0]
split_backward = true
[durations]
forward = [1, 2, 3, 4]
backward = 19
input = 11
weight = [8, 8, 8, 8]
[memory]
capacity = ["1.5 GiB", "80 GB"]
activation = ["1 KiB", "2kB", 3, "4 B"]
released_at_input = [-1, 0, 1, 2]
static = "2 MiB"
[links]
latency = 5
[[link]]
ranks = [1, 0]
latency = 7
[compare]
families = ["1f1b", "interleaved v=4", "zb-h1"]
[solve]
objective = "makespan"
time_limit = 30
"""


def test_small_file_takes_the_defaults(tmp_path: Path) -> None:
    file = read(SMALL, tmp_path)
    expected = Pipeline(num_ranks=2, num_microbatches=4, forward=10, backward=20)
    assert file.pipeline == expected
    assert (file.name, file.description, file.objective) == ("small", "", "makespan")
    assert (file.time_limit, file.compare, file.has_split_ticks) == (None, (), False)


def test_full_file(tmp_path: Path) -> None:
    file = read(FULL, tmp_path)
    assert file.pipeline == Pipeline(
        num_ranks=2,
        num_microbatches=4,
        num_chunks=2,
        num_slices=3,
        placement=(0, 1, 1, 0),
        split_backward=True,
        forward=(1, 2, 3, 4),
        backward=19,
        input_backward=11,
        weight_backward=8,
        latency=5,
        links=(Link(ranks=(0, 1), latency=7),),
        activation=(1024, 2000, 3, 4),
        released_at_input=(-1, 0, 1, 2),
        static=2 * 1024**2,
        capacity=(3 * 512 * 1024**2, 80 * 10**9),
        unit="us",
        memory_unit="bytes",
    )
    assert file.compare == (
        ComparedFamily(family="1f1b"),
        ComparedFamily(family="interleaved", num_chunks=4),
        ComparedFamily(family="zb-h1"),
    )
    assert (file.name, file.objective, file.time_limit) == ("everything", "makespan", 30)


def test_backward_is_the_sum_of_its_parts(tmp_path: Path) -> None:
    file = read(SMALL.replace("backward = 20", "input = [11, 12]\nweight = 8"), tmp_path)
    assert file.pipeline.backward == (19, 20)
    assert file.has_split_ticks
    assert not file.pipeline.split_backward


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "forward = 10",
            "forwrd = 10",
            "durations: no key 'forwrd' (did you mean 'forward'?); the keys are forward, backward, "
            "input, weight, weight_parts",
        ),
        (
            "ranks = 2",
            "ranks = 2\nmicrobatch = 3",
            "no key 'microbatch' (did you mean 'microbatches'?); the keys are name, description, "
            "unit, memory_unit, ranks, microbatches, chunks, slices, placement, split_backward, "
            "durations, layers, memory, links, link, choices, compare, solve, plan, paper",
        ),
        ("forward = 10\n", "", "durations.forward: expected this key, found nothing"),
        ("backward = 20", "", "durations.backward: expected this key, found nothing"),
        ("ranks = 2\n", "", "ranks: expected this key, found nothing"),
        (
            "forward = 10",
            "forward = nan",
            'durations.forward: expected a number or a text such as "9 ms" or a list, found nan',
        ),
        (
            "forward = 10",
            "forward = true",
            'durations.forward: expected a number or a text such as "9 ms" or a list, found true',
        ),
        (
            "forward = 10",
            "forward = -1",
            "durations.forward: expected a number of 0 or more or a list, found -1",
        ),
        (
            "forward = 10",
            "forward = [1, 2, 3]",
            "durations.forward: expected one number or one per stage (2), found a list of 3",
        ),
        (
            "forward = 10",
            "forward = 2026-01-01",
            'durations.forward: expected a number or a text such as "9 ms" or a list, '
            "found 2026-01-01",
        ),
        ("ranks = 2", "ranks = 0", "ranks: expected a whole number of 1 or more, found 0"),
        ("ranks = 2", "ranks = 99999", "expected at most 4096 ranks, found 99999"),
        (
            "microbatches = 4",
            "microbatches = 9999999",
            "expected at most 4000000 actions, found 39999996",
        ),
        (
            "ranks = 2",
            'ranks = 2\nplacement = "ring"',
            "placement: expected 'loop', 'wave' or 'bidirectional' or a list, found 'ring'",
        ),
        (
            "ranks = 2",
            "ranks = 2\nplacement = [0, 0]",
            "placement must give each of 2 stages a rank and every rank 0..1 a stage, got (0, 0)",
        ),
        (
            "ranks = 2",
            "ranks = 2\nsplit_backward = true",
            "durations.input: expected input and weight (split_backward = true), found nothing",
        ),
        (
            "backward = 20",
            "backward = 20\ninput = 9",
            "durations.weight: expected both input and weight, found nothing",
        ),
        (
            "backward = 20",
            "backward = 20\nweight = 9",
            "durations.input: expected both input and weight, found nothing",
        ),
        (
            "backward = 20",
            "backward = 20\ninput = [10, 11]\nweight = 10",
            "durations.backward: expected input + weight = 21 on stage 1, found 20",
        ),
        (
            "backward = 20",
            'backward = 20\n[memory]\ncapacity = "80 GiB"',
            "memory_unit: expected one of B, kB, MB, GB, TB, KiB, MiB, GiB, TiB, which the numbers "
            "without a unit count, found nothing",
        ),
        (
            "backward = 20",
            "backward = 20\n[memory]\ncapacity = [1, 2, 3]",
            "capacity must be one number or one per rank (2), got 3",
        ),
        (
            "backward = 20",
            "backward = 20\n[memory]\nreleased_at_input = 2",
            "released_at_input (2) exceeds activation (1)",
        ),
        (
            "backward = 20",
            "backward = 20\n[[link]]\nranks = [0, 2]\nlatency = 1",
            "link[0].ranks: expected two different ranks of 0 to 1, found 0 and 2",
        ),
        (
            "backward = 20",
            "backward = 20\n[[link]]\nranks = [1, 1]\nlatency = 1",
            "link[0].ranks: expected two different ranks of 0 to 1, found 1 and 1",
        ),
        (
            "backward = 20",
            "backward = 20\n[[link]]\nranks = [0, 1]\nlatency = 1\n[[link]]\nranks = [1, "
            "0]\nlatency = 2",
            "link[1].ranks: expected another pair of ranks, found those of link[0]",
        ),
        (
            "backward = 20",
            "backward = 20\n[[link]]\nlatency = 1",
            "link[0].ranks: expected this key, found nothing",
        ),
        (
            "backward = 20",
            "backward = 20\n[links]\nlatncy = 1",
            "links: no key 'latncy' (did you mean 'latency'?); the keys are latency, bandwidth, "
            "duplex",
        ),
        (
            "backward = 20",
            'backward = 20\n[solve]\nobjective = "fast"',
            "solve.objective: expected 'makespan', 'span_idle', 'makespan-then-peak' or 'peak', "
            "found 'fast'",
        ),
        (
            "backward = 20",
            "backward = 20\n[solve]\ntime_limit = 0",
            "solve.time_limit: expected a number of 1 or more, found 0",
        ),
        (
            "backward = 20",
            "backward = 20\nbackward = 21",
            "not valid TOML: Cannot overwrite a value (at line 7, column 14)",
        ),
        (
            "backward = 20",
            "backward = ",
            "not valid TOML: Invalid value (at line 6, column 12)",
        ),
        (
            "backward = 20",
            f"backward = {'9' * 5000}",
            "expected numbers of at most 16 digits, found a longer one",
        ),
        (
            "backward = 20",
            f"backward = {'[' * 5000}",
            "expected a few levels of nesting, found many more",
        ),
    ],
)
def test_refusals(old: str, new: str, message: str, tmp_path: Path) -> None:
    assert refusal(SMALL.replace(old, new, 1), tmp_path) == message


@pytest.mark.parametrize(
    ("size", "found"),
    [
        (
            "80 GiBB",
            "expected a size in one of B, kB, MB, GB, TB, KiB, MiB, GiB, TiB, found the unit "
            "'GiBB' of '80 GiBB'",
        ),
        ("GiB", "expected a size such as \"80 GiB\", found 'GiB'"),
        ("-1 GiB", "expected a size such as \"80 GiB\", found '-1 GiB'"),
        ("80", "expected a size such as \"80 GiB\", found '80'"),
        (
            "9999999999 GB",
            "expected a whole number of 9007199254740991 or less, found '9999999999 GB'",
        ),
    ],
)
def test_sizes(size: str, found: str, tmp_path: Path) -> None:
    text = 'memory_unit = "bytes"' + SMALL + f'[memory]\nstatic = [1, "{size}"]\n'
    assert refusal(text, tmp_path) == f"memory.static[1]: {found}"


@pytest.mark.parametrize(
    ("family", "found"),
    [
        ("1f1b v=2", "expected no option after 1f1b, found 'v=2'"),
        ("bfs s=2", "expected v=<chunks> at most after bfs, found 's=2'"),
        ("bfs v=0", "expected v=<chunks> at most after bfs, found 'v=0'"),
        ("bfs v=99999", "expected at most 65535 stages, found 199998"),
        (
            "zb-h1",
            "expected durations.input and durations.weight, which zb-h1 needs, found neither",
        ),
    ],
)
def test_compared_families(family: str, found: str, tmp_path: Path) -> None:
    message = refusal(SMALL + f'[compare]\nfamilies = ["{family}"]\n', tmp_path)
    assert message.removeprefix("compare.families[0]: ") == found


def test_unknown_family_names_the_nearest(tmp_path: Path) -> None:
    message = refusal(SMALL + '[compare]\nfamilies = ["1f1b", "gpip"]\n', tmp_path)
    assert message.startswith("compare.families[1]: expected a family (gpipe 1f1b ")
    assert message.endswith("found 'gpip'; did you mean 'gpipe'?")


def test_deep_key_is_refused_at_once(tmp_path: Path) -> None:
    # Parsing it would take minutes.
    message = refusal(SMALL + "x" + ".x" * 400_000 + " = 1", tmp_path)
    assert message == "line 7: expected keys of one level, found 'x.x.x.x.x.x.x.x.x.'"


def test_file_of_more_than_a_mebibyte(tmp_path: Path) -> None:
    message = refusal(SMALL + "#" * (1 << 20), tmp_path)
    assert message == f"expected at most 1 MiB, found {len(SMALL) + (1 << 20)} bytes"
