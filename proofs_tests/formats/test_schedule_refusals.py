"""What no schedule file may hold, each with the sentence that says so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bubbleproof.formats import UnusableInput, read_schedule

RAW = {
    "resources": [{"name": "rank 0", "rank": 0}],
    "tasks": [["0F0", 1, ["rank 0"]], ["0B0", 2, ["rank 0"]]],
    "edges": [["0F0", "0B0", 0]],
    "stores": [{"name": "memory"}],
    "events": [["0F0", "start", "memory", 1]],
}
FILE: dict[str, object] = {
    "format": "bubbleproof/schedule",
    "version": 1,
    "pipeline": {"num_ranks": 2, "num_microbatches": 1},
    "program": {"rank 0": ["0F0", "0B0"], "rank 1": ["1F0", "1B0"]},
}


def refusal(text: str, tmp_path: Path) -> str:
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(UnusableInput) as caught:
        read_schedule(path)
    return str(caught.value).replace(f"{tmp_path}/a.json: ", "")


def changed(tmp_path: Path, **changes: object) -> str:
    content = {key: value for key, value in (FILE | changes).items() if value is not None}
    return refusal(json.dumps(content), tmp_path)


def pipeline(tmp_path: Path, **changes: object) -> str:
    return changed(tmp_path, pipeline={"num_ranks": 2, "num_microbatches": 1} | changes)


def raw(tmp_path: Path, **changes: object) -> str:
    return changed(tmp_path, pipeline=None, problem=RAW | changes, program={})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a JSON object, found an empty file"),
        ("[1]", "expected a JSON object, found '[1]'"),
        ("0F0,0F1", "expected a JSON object, found '0F0,0F1'"),
        (
            "{}",
            'format: expected "bubbleproof/schedule", found no such key at the beginning of the '
            "file",
        ),
        ('{"format": "tessel"}', "format: expected \"bubbleproof/schedule\", found 'tessel'"),
        ('{"format": "bubbleproof/schedule", "version": 3}', "version: expected 1 or 2, found '3'"),
        ('{"format": "bubbleproof/schedule", "version": ""}', "version: expected 1 or 2, found ''"),
        ('{"format": "bubbleproof/schedule"}', "version: expected this key, found nothing"),
        (
            '{"format": "bubbleproof/schedule", "version": 1, "pipeline": {',
            "line 1, column 63: expected valid JSON, found the end of the file",
        ),
        (
            '{"format": "bubbleproof/schedule", "version": 1, "name": "x',
            "line 1, column 58: expected valid JSON, found a string without end",
        ),
        (
            '{"format": "bubbleproof/schedule",\n "version": 1, name: 2}',
            "line 2, column 16: expected valid JSON, found 'name: 2}'",
        ),
        (
            '{"format": "bubbleproof/schedule", "version": 1, "name": "a", "name": "b"}',
            "expected keys that differ, found 'name' twice",
        ),
        (
            '{"format": "bubbleproof/schedule", "version": 1, "name": ' + "9" * 5000 + "}",
            "expected numbers of at most 16 digits, found a longer one",
        ),
    ],
)
def test_what_is_no_schedule_file(text: str, message: str, tmp_path: Path) -> None:
    assert refusal(text, tmp_path) == message


def test_every_truncation_is_refused(tmp_path: Path) -> None:
    text = json.dumps(FILE)
    for length in range(len(text)):
        assert "expected" in refusal(text[:length], tmp_path)


def test_keys(tmp_path: Path) -> None:
    assert changed(tmp_path, pipline={}) == (
        "no key 'pipline' (did you mean 'pipeline'?); the keys are format, name, problem, orders, "
        "program, claims, version, pipeline"
    )
    told = "pipeline: no key 'forwrd' (did you mean 'forward'?); the keys are "
    assert told in pipeline(tmp_path, forwrd=1)
    either = "expected either the key {} or the key {}, found {}"
    assert changed(tmp_path, pipeline=None) == either.format("pipeline", "problem", "neither")
    assert changed(tmp_path, problem=RAW) == either.format("pipeline", "problem", "both")
    assert changed(tmp_path, program=None) == either.format("orders", "program", "neither")
    assert changed(tmp_path, orders={}) == either.format("orders", "program", "both")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_ranks": 2.0}, "pipeline.num_ranks: expected a whole number, found 2.0"),
        ({"num_ranks": True}, "pipeline.num_ranks: expected a whole number, found true"),
        ({"num_ranks": "2"}, "pipeline.num_ranks: expected a whole number, found '2'"),
        ({"num_ranks": 0}, "pipeline.num_ranks: expected a whole number of 1 or more, found 0"),
        ({"num_ranks": None}, "pipeline.num_ranks: expected a whole number, found nothing"),
        ({"latency": -1}, "pipeline.latency: expected a whole number of 0 or more, found -1"),
        (
            {"latency": 1 << 53},
            "pipeline.latency: expected a whole number of 9007199254740991 or less, "
            "found 9007199254740992",
        ),
        ({"latency": float("nan")}, "pipeline.latency: expected a whole number, found nan"),
        ({"forward": "x"}, "pipeline.forward: expected a whole number or a list, found 'x'"),
        (
            {"forward": [1, 1.5]},
            "pipeline.forward[1]: expected a whole number or a list, found 1.5",
        ),
        (
            {"forward": [1, 1, 1]},
            "pipeline: forward must be one number or one per stage (2), got 3",
        ),
        (
            {"capacity": [1, -1]},
            "pipeline.capacity[1]: expected a whole number of 0 or more, found -1",
        ),
        (
            {"placement": "ring"},
            "pipeline.placement: expected 'loop', 'wave' or 'bidirectional' or a list, "
            "found 'ring'",
        ),
        (
            {"links": [{"ranks": [0, 1]}]},
            "pipeline.links[0].latency: expected this key, found nothing",
        ),
        (
            {"links": [{"ranks": [0], "latency": 1}]},
            "pipeline.links[0].ranks: expected more entries, found a list of 1",
        ),
        (
            {"overlaps": [["0F0", "x"]]},
            "pipeline.overlaps[0][1]: expected an action "
            "<stage><KIND><microbatch>[.<slice>][#<part>], found 'x'",
        ),
        (
            {"overlaps": [["0B0", "0F0"]]},
            "pipeline.overlaps[0]: expected an F and a B action, found '0B0 0F0'",
        ),
        (
            {"overlaps": [["0F0", "1B0"]]},
            "pipeline: overlap needs 0F0 and 1B0 as tasks of one rank",
        ),
        (
            {"weight_backward": 5},
            "pipeline: input_backward and weight_backward are ticks of split backwards, but "
            "split_backward is False; add split_backward=True, or backward, the ticks of a whole "
            "one",
        ),
        ({"num_ranks": 5000}, "expected at most 4096 ranks, found 5000"),
        (
            {"num_microbatches": 10**15},
            "expected at most 4000000 actions, found 4000000000000000",
        ),
        ({"num_microbatches": 10**7}, "expected at most 4000000 actions, found 40000000"),
        (
            {"forward": 1 << 44, "num_microbatches": 1024},
            # (2 stages * (2^44 + 2 + 1 + 1) + 0) ticks per microbatch, 1024 microbatches
            f"expected at most {(1 << 53) - 1} ticks in total, found {2 * ((1 << 44) + 4) * 1024}",
        ),
    ],
)
def test_pipelines(changes: dict[str, object], message: str, tmp_path: Path) -> None:
    assert pipeline(tmp_path, **changes) == message


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"tasks": [["0X0", 1, ["rank 0"]]]},
            "problem.tasks[0][0]: expected an action <stage><KIND><microbatch>[.<slice>][#<part>]"
            ", found '0X0'",
        ),
        (
            {"tasks": [["0F0", -1, ["rank 0"]]]},
            "problem.tasks[0][1]: expected a whole number of 0 or more, found -1",
        ),
        ({"tasks": [["0F0", 1]]}, "problem.tasks[0]: expected more entries, found a list of 2"),
        (
            {"tasks": [["0F0", 1, ["rank 9"]]]},
            "problem.tasks[0][2]: expected a resource of the problem, found 'rank 9'",
        ),
        (
            {"tasks": [["0F0", 1, []], ["0B0", 1, ["rank 0"]]]},
            "problem: task 0F0 occupies no resource",
        ),
        (
            {"tasks": [["0F0", 1, ["rank 0"]], ["0B0", 1, ["rank 0"]], ["0F0.0", 1, ["rank 0"]]]},
            "problem: task 0F0 stands twice in the problem",
        ),
        (
            {"edges": [["0F0", "9F9", 0]]},
            "problem.edges[0][1]: expected a task of the problem, found '9F9'",
        ),
        (
            {"events": [["0F0", "middle", "memory", 1]]},
            "problem.events[0][1]: expected 'start' or 'end', found 'middle'",
        ),
        (
            {"events": [["0F0", "end", "x", 1]]},
            "problem.events[0][2]: expected a store of the problem, found 'x'",
        ),
        (
            {"stores": [{"name": "memory", "base": -1}]},
            "problem.stores[0].base: expected a whole number of 0 or more, found -1",
        ),
        (
            {"stores": [{"name": "memory"}, {"name": "memory"}]},
            "problem.stores: expected names that differ, found 'memory' twice",
        ),
        (
            {"resources": []},
            "problem.tasks[0][2]: expected a resource of the problem, found 'rank 0'",
        ),
        (
            {"resources": [], "tasks": [], "edges": [], "events": []},
            "problem: compute resources must carry ranks 0, 1, ... in order, got []",
        ),
    ],
)
def test_hand_built_problems(changes: dict[str, object], message: str, tmp_path: Path) -> None:
    assert raw(tmp_path, **changes) == message


@pytest.mark.parametrize(
    ("orders", "message"),
    [
        ({"rank 0": [["0F0", 1.5]]}, 'orders."rank 0"[0][1]: expected a whole number, found 1.5'),
        (
            {"rank 0": [["0F0", -1]]},
            'orders."rank 0"[0][1]: expected a whole number of 0 or more, found -1',
        ),
        ({"rank 0": [["0F0", True]]}, 'orders."rank 0"[0][1]: expected a whole number, found true'),
        ({"rank 0": ["0F0"]}, "orders.\"rank 0\"[0]: expected a list, found '0F0'"),
        (
            {"rank 0": [["0F0", 0, 0]]},
            'orders."rank 0"[0]: expected at most 2 entries, found a list of 3',
        ),
        (
            {"rank 0": [["0F0", 0], ["0F0x", 1]]},
            'orders."rank 0"[1]: expected an action <stage><KIND><microbatch>[.<slice>][#<part>], '
            "found '0F0x'",
        ),
        ({"rank 7": []}, "orders: expected resources such as rank 0, rank 1, found 'rank 7'"),
    ],
)
def test_orders(orders: dict[str, object], message: str, tmp_path: Path) -> None:
    assert changed(tmp_path, program=None, orders=orders) == message


@pytest.mark.parametrize(
    ("claims", "message"),
    [
        (
            {"makespan": 1.5},
            "claims.makespan: expected a whole number or a string or a list, found 1.5",
        ),
        ({"makespan": "3/2"}, "claims.makespan: expected a whole number, found '3/2'"),
        ({"makespan": [1]}, "claims.makespan: expected a whole number, found a list of 1"),
        (
            {"idle_ratio": "1/0"},
            "claims.idle_ratio: expected a whole number or a ratio \"a/b\", found '1/0'",
        ),
        (
            {"idle_ratio": "0.5"},
            "claims.idle_ratio: expected a whole number or a ratio \"a/b\", found '0.5'",
        ),
        ({"peak_memory": 3}, "claims.peak_memory: expected a list of whole numbers, found 3"),
        (
            {"peak_memory": [1, None]},
            "claims.peak_memory[1]: expected a whole number, found nothing",
        ),
        (
            {"makespn": 3},
            "claims: no key 'makespn' (did you mean 'makespan'?); the keys are makespan, work, "
            "idle_ratio, idle_over_work, idle_ticks, rank_spans, span_idle, peak_memory, "
            "peak_activations",
        ),
    ],
)
def test_claims(claims: dict[str, object], message: str, tmp_path: Path) -> None:
    assert changed(tmp_path, claims=claims) == message
