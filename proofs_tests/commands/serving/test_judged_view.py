"""What the page of ``serve`` is told: verdicts and files as of the same schedule from a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bubbleproof.commands.inputs import read_schedule_input
from bubbleproof.commands.serving.judged_view import FILES, JudgedView, judged_view
from bubbleproof.commands.serving.offered_schedules import controls, offered_schedules
from bubbleproof.commands.serving.view_request import read_request
from bubbleproof.theory.families import families
from bubbleproof.verify.every_rule import check_every_rule

GIVEN = [read_schedule_input(["1f1b", "p=2", "m=3"])]


def view(**asked: object) -> JudgedView:
    return judged_view(read_request(json.dumps({"family": None, **asked})), GIVEN)


def rows(*orders: str) -> list[list[str]]:
    return [order.split() for order in orders]


def test_the_given_schedule_is_told_as_it_is() -> None:
    told = view().told
    assert told["status"] == 0
    assert told["orders"] == rows("0F0 0F1 0B0 0F2 0B1 0B2", "1F0 1B0 1F1 1B1 1F2 1B2")
    assert str(told["headline"]).startswith("12 ticks")  # (m + p - 1) * (tF + tB) = 4 * 3


def test_another_order_is_judged_by_its_own_starts() -> None:
    """GPipe's order on rank 0: as long, since rank 1 is the slow one, and it holds 3 and not 2."""
    orders = rows("0F0 0F1 0F2 0B0 0B1 0B2", "1F0 1B0 1F1 1B1 1F2 1B2")
    told = view(orders=orders).told
    assert told["orders"] == orders
    assert str(told["headline"]).startswith("12 ticks")  # rank 1: 1 + 3 * 3, then B2 on rank 0
    assert view(orders=orders, capacity={"units": 2}).told["status"] == 1
    assert view(orders=orders, capacity={"units": 3}).told["status"] == 0


def test_orders_that_wait_for_each_other_stand_still() -> None:
    """Rank 1 wants B1 before its F1."""
    found = view(orders=rows("0F0 0F1 0B0 0F2 0B1 0B2", "1F0 1B0 1B1 1F1 1F2 1B2"))
    assert found.told["status"] == 1
    assert "1B1" in str(found.told["standstill"])
    assert "schedule.perfetto.json" not in str(found.told["files"])  # it has no times


def test_a_capacity_is_the_checkers() -> None:
    """1F1B holds p = 2 activations on rank 0: one is too few, two are enough."""
    tight, enough = (view(capacity={"units": units}).told for units in (1, 2))
    assert (tight["status"], enough["status"]) == (1, 0)
    assert "memory" in str(tight["violations"])


@pytest.mark.parametrize("name", sorted(families()))
def test_the_controls_of_every_family_are_its_parameters(name: str) -> None:
    """What the controls begin with is a schedule of each family."""
    settings = json.loads(json.dumps(controls(["1f1b", "p=4", "m=8"], GIVEN)))
    family = settings["families"][name]
    assert set(family["values"]) <= set(family["fields"])
    given = {"family": name, "parameters": family["values"]}
    assert judged_view(read_request(json.dumps(given)), GIVEN).told["num_actions"] != 0


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_what_was_judged(tmp_path: Path, name: str) -> None:
    content = view(capacity={"units": 2}).file(name)
    (tmp_path / name).write_bytes(content)
    if name == "schedule.perfetto.json":
        events = json.loads(content)["traceEvents"]
        assert sum(event["ph"] == "X" for event in events) >= 12  # 2 ranks, 3 F and 3 B each
        return
    read = read_schedule_input([str(tmp_path / name)])
    assert check_every_rule(read.to_judge).ok
    assert [len(row) for row in read.program.orders(2)] == [6, 6]


def test_a_problem_offers_its_published_orders_the_best_first(tmp_path: Path) -> None:
    problem = tmp_path / "a.toml"
    problem.write_text(
        "ranks = 2\nmicrobatches = 4\n[durations]\nforward = 1\nbackward = 2\n"
        "[memory]\ncapacity = 2\n"
    )
    names = [each.name for each in offered_schedules([str(problem)])]
    assert names.index("1f1b") < names.index("gpipe")  # gpipe holds 4
    with pytest.raises(ValueError, match="expected nothing after the problem"):
        offered_schedules([str(problem), "p=2"])


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("[]", "one object"),
        ("{", "JSON"),
        ('{"family": "1f1v"}', "did you mean '1f1b'"),
        ('{"family": "1f1b", "parameters": {"p": "4"}}', "m is missing"),
        ('{"family": "1f1b", "parameters": {"p": "4", "m": "99999"}}', "200,000 actions"),
        ('{"family": "1f1b", "parameters": {"p": "4", "m": "9999999"}}', "4000000 actions"),
        ('{"family": null, "given": 7}', "given must be below 1, got 7"),
        ('{"family": null, "orders": [["what?"], [], []]}', "orders must be 2 lists"),
        ('{"family": null, "orders": [["what?"], []]}', "what?"),
        ('{"family": null, "capacity": {"units": -1}}', "-1"),
        ('{"family": null, "more": 1}', "more"),
    ],
)
def test_a_question_that_cannot_be_judged_is_refused_in_one_line(asked: str, told: str) -> None:
    with pytest.raises(ValueError, match=r"\A.*\Z") as error:
        judged_view(read_request(asked), GIVEN)
    assert told in str(error.value)
