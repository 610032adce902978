"""What people hold at the door: lists, mappings, programs, paths, words, tables; one answer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import bubbleproof as bp
from bubbleproof.formats.pytorch_csv import read_table
from bubbleproof.theory.model.actions import Action
from bubbleproof.theory.model.schedule import Program

MEMBER = bp.family("1f1b")(p=2, m=3)
ROWS = [
    ["0F0", "0F1", "0B0", "0F2", "0B1", "0B2"],
    ["1F0", "1B0", "1F1", "1B1", "1F2", "1B2"],
]
ACTIONS = [[Action.parse(text) for text in row] for row in ROWS]
PIPELINE = bp.Pipeline(num_ranks=2, num_microbatches=3, capacity=2)
# Rank 0 runs 0B0 before 0F0, which 1F0 waits for, and so 1B0, and so 0B0.
STUCK = [["0B0", "0F0"], ["1F0", "1B0"]]


def held(folder: Path) -> dict[str, Any]:
    """The same schedule in every form."""
    bp.write(folder / "s.csv", MEMBER)
    bp.write(folder / "s.json", MEMBER)
    return {
        "texts": ROWS,
        "actions": ACTIONS,
        "tuples": tuple(map(tuple, ROWS)),
        "idle steps": [[*ROWS[0], None], [None, *ROWS[1]]],
        "a mapping": {1: ROWS[1], 0: ROWS[0]},
        "a program": Program.from_orders(ROWS),
        "a path": folder / "s.csv",
        "a path's text": str(folder / "s.json"),
        "a family's words": "1f1b p=2 m=3",
        "a table": read_table(folder / "s.csv"),
        "what read gave": bp.read(folder / "s.csv"),
        "a member": MEMBER,
        "torch's": SimpleNamespace(pipeline_order={0: ROWS[0], 1: ROWS[1]}),
    }


def test_every_form_gets_the_same_answer(tmp_path: Path) -> None:
    for name, form in held(tmp_path).items():
        assert bp.check(form).ok, name
        assert bp.measure(form) == bp.measure(MEMBER), name
        assert str(bp.show(form)) == str(bp.show(MEMBER)), name
        assert bp.idle(form).idle_ticks() == (3, 3), name


def test_every_form_stands_on_a_pipeline_that_is_given(tmp_path: Path) -> None:
    """Whose durations are others: 3 + 5 ticks a microbatch, (3 + 2 - 1) * 8 = 32 in all."""
    slow = bp.Pipeline(num_ranks=2, num_microbatches=3, forward=3, backward=5)
    for name, form in held(tmp_path).items():
        if name not in ("what read gave", "a member"):  # which keep their own starts
            assert bp.measure(slow, form).makespan == 32, name
    assert not bp.check(slow.with_changes(capacity=1), ROWS).ok


@pytest.mark.torch
def test_lists_are_replayed() -> None:
    assert bp.replay(PIPELINE, ROWS).ok
    assert bp.replay(ROWS).ok


def test_what_stands_still_has_a_verdict_and_no_measures() -> None:
    assert {rule.name for rule in bp.check(STUCK).broken} >= {"DEPENDENCIES", "DATAFLOW"}
    for function in (bp.measure, bp.show, bp.idle):
        with pytest.raises(ValueError, match=rf"^{function.__name__}: deadlock: .* waits for "):
            function(STUCK)


def test_messages_and_collectives_may_stand_in_lists() -> None:
    rows = [
        ["0UNSHARD", "0F0", "0SEND_F0", "0RECV_B0", "0B0", "0RESHARD", "0REDUCE_GRAD"],
        ["1UNSHARD", "1RECV_F0", "1F0", "1B0", "1SEND_B0", "1RESHARD", "1REDUCE_GRAD"],
    ]
    assert bp.check(rows).ok
    crossed = [[*rows[0][:2], "0RECV_B0", "0SEND_F0", *rows[0][4:]], rows[1]]
    assert "COMMUNICATION" in {rule.name for rule in bp.check(crossed).broken}


@pytest.mark.parametrize(
    ("form", "told"),
    [
        ([["0F0", "0X0"]], "rank 0, entry 1: expected an action such as 0F0, its text or None"),
        ([["0F0"], ["1F0", 7]], "rank 1, entry 1: expected an action"),
        ({1: ["0F0"]}, "expected the ranks 0 to 0 as keys, found '1'"),
        ([[]], "expected actions, found none"),
        ("1f1v p=2 m=3", "no schedule '1f1v' (did you mean '1f1b'?)"),
        ("1f1b p=2 q=3", "no parameter 'q=3'; the parameters are"),
        ("nowhere.csv", "nowhere.csv: expected a file, found no such file"),
    ],
)
def test_what_cannot_be_used_says_where(form: Any, told: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is what is looked at
        bp.check(form)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: bp.solve(PIPELINE, time_limits=3), "solve: no argument 'time_limits' (did you "),  # type: ignore[call-arg]  # misspelt
        (lambda: bp.show(MEMBER, titel="x"), "(did you mean 'title'?)"),  # type: ignore[call-arg]  # misspelt
        (lambda: bp.check(MEMBER, certificat=3), "(did you mean 'certificate'?)"),  # type: ignore[call-overload]  # misspelt
        (lambda: bp.measure(MEMBER, zzz=1), "measure: no argument 'zzz'; it takes problem, sch"),  # type: ignore[call-arg]  # misspelt
        (lambda: bp.plan(PIPELINE, chunk=[1]), "plan: no argument 'chunk' (did you mean 'chunks'?"),  # type: ignore[call-arg]  # misspelt
        (lambda: bp.estimate("r.csv", hardwre="h100"), "(did you mean 'hardware'?)"),  # type: ignore[call-arg]  # misspelt
        (lambda: bp.Pipeline(num_ranks=2, microbatches=4), "the nearest are num_microbatches"),  # type: ignore[call-arg]  # misspelt
        (lambda: bp.Pipeline(ranks=2), "no field 'ranks'; the nearest are num_ranks"),  # type: ignore[call-arg]  # misspelt
        (lambda: PIPELINE.with_changes(capcity=2), "the nearest are capacity, "),
    ],
)  # fmt: skip
def test_a_misspelt_keyword_names_the_nearest(call: Callable[[], object], told: str) -> None:
    with pytest.raises(TypeError) as caught:
        call()
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: bp.solve(PIPELINE, objective="makspan"), "(did you mean 'makespan'?)"),
        (lambda: bp.solve(PIPELINE, engine="cpsta"), "(did you mean 'cpsat'?)"),
        (lambda: bp.plan(PIPELINE, placements=["lop"]), "(did you mean 'loop'?)"),
        (lambda: bp.plan(PIPELINE, backward=["whle"]), "(did you mean 'whole'?)"),
    ],
)
def test_a_misspelt_value_names_the_nearest(call: Callable[[], object], told: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is what is looked at
        call()
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_path_of_a_problem_file_states_its_problem(tmp_path: Path) -> None:
    """3 + 5 ticks a microbatch on one rank, (3 + 2 - 1) * 8 = 32 on two: 1F1B is the best."""
    path = tmp_path / "p.toml"
    path.write_text("ranks = 2\nmicrobatches = 3\n[durations]\nforward = 3\nbackward = 5\n")
    for given in (path, str(path), bp.read(path)):
        found = bp.solve(given)
        assert (found.makespan, found.lower_bound) == (32, 32)
    assert bp.pareto(path).points[-1].makespan == 32
    assert bp.measure(path, ROWS).makespan == 32
    assert bp.check(path, bp.solve(path)).ok
    for function in (bp.check, bp.measure):
        with pytest.raises(ValueError, match=r"p\.toml is a problem: solve it first"):
            function(path)
    with pytest.raises(ValueError, match=r"no\.toml: expected a file, found no such file"):
        bp.solve(tmp_path / "no.toml")


def test_a_problem_file_serves_as_its_pipeline(tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    path.write_text("ranks = 2\nmicrobatches = 3\n[durations]\nforward = 3\nbackward = 5\n")
    given = bp.read(path)
    assert bp.measure(given, ROWS).makespan == 32
