"""What the page of ``serve`` is told: verdicts and files as of the same schedule from a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bubbleproof.commands.serving.judged_view import FILES, JudgedView, judged_view
from bubbleproof.commands.serving.offered_schedules import (
    OfferedSchedule,
    controls,
    offered_schedules,
)
from bubbleproof.commands.serving.view_request import SolveRequest, ViewRequest, read_request
from bubbleproof.formats.inputs import read_schedule_input
from bubbleproof.theory.families import families
from bubbleproof.verify.every_rule import check_every_rule

GIVEN = [OfferedSchedule.of(read_schedule_input(["1f1b", "p=2", "m=3"]))]


def view(**asked: object) -> JudgedView:
    return judged_view(read_request(json.dumps({"family": None, **asked}), ViewRequest), GIVEN)


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


def test_the_caps_and_latencies_of_a_file_are_told(tmp_path: Path) -> None:
    path = tmp_path / "linked.toml"
    path.write_text(
        'ranks = 2\nmicrobatches = 2\nunit = "ms"\n[durations]\nforward = 1\nbackward = 2\n'
        '[memory]\ncapacity = ["2 GiB", "1 GiB"]\nactivation = "1 GiB"\n'
        "[[link]]\nranks = [0, 1]\nlatency = 3\n"
    )
    asked = read_request('{"family": null}', ViewRequest)
    told = str(judged_view(asked, offered_schedules([str(path)])).told["measures"])
    assert "('caps', '2, 1 GiB'), ('latency of link 0-1', '3 ms')" in told
    assert "caps" not in str(view().told["measures"])


def test_caps_differ_between_ranks() -> None:
    """1F1B holds p - r activations on rank r: 2 and 1."""
    tight, enough = (view(capacity={"units": units}).told for units in ([2, 0], [2, 1]))
    assert (tight["status"], enough["status"]) == (1, 0)
    assert "memory of rank 1" in str(tight["violations"])
    assert enough["capacity"] == [2, 1]


def test_links_and_ticks_are_changed_and_the_orders_kept() -> None:
    """1F1B of 2 ranks, 3 microbatches, F 2 and B 3, each message 1 late: rank 1 runs F0 3-5 and
    B0 5-8, rank 0 then B0 9-12 and F2 12-14, rank 1 F2 15-17 and B2 17-20, rank 0 B2 21-24."""
    told = view(changes={"forward": 2, "backward": [3, 3], "latency": 1}).told
    assert str(told["headline"]).startswith("24 ticks")
    assert told["orders"] == view().told["orders"]
    with pytest.raises(ValueError, match="ranks: the orders of 1f1b p=2 m=3 are those of its own"):
        view(changes={"ranks": 4})


PROBLEM = """ranks = 2
microbatches = 4
[durations]
forward = 1
backward = 2
[memory]
capacity = 2
"""


def test_every_number_of_a_problem_is_changed(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(PROBLEM)
    offered = offered_schedules([str(tmp_path / "a.toml")])
    names = [each.name for each in offered]
    shown = controls([str(tmp_path / "a.toml")], offered)["given"]
    assert isinstance(shown, list)
    wanted = {"ranks": "2", "microbatches": "4", "chunks": "1", "forward": "1", "backward": "2"}
    assert shown[0]["numbers"] == {**wanted, "latency": "0"}

    def told(name: str, **changes: object) -> dict[str, object]:
        asked = {"family": None, "given": names.index(name), "changes": changes}
        return judged_view(read_request(json.dumps(asked), ViewRequest), offered).told

    assert str(told("1f1b")["headline"]).startswith("15 ticks")  # (4 + 2 - 1) * 3
    wider = told("1f1b", ranks=3, microbatches=8, forward=2)
    assert str(wider["headline"]).startswith("40 ticks")  # (8 + 3 - 1) * (2 + 2)
    assert wider["resources"] == ["rank 0", "rank 1", "rank 2"]
    assert wider["status"] == 1  # rank 0 would hold 3, and has room for 2
    chunks = told("interleaved", chunks=2)
    assert str(chunks["orders"]).count("3F") == 4  # the fourth stage
    for changes, line in (
        ({"chunks": 2}, "1f1b"),
        ({"forward": [1, 2, 3]}, "forward"),
        ({"ranks": 0}, "ranks"),
        ({"ranks": 4000, "microbatches": 4000}, "4000000 actions"),
        ({"ranks": 400, "microbatches": 400}, "200,000 actions"),
        ({"rank": 3}, "did you mean 'ranks'"),
    ):
        with pytest.raises(ValueError, match=r"\A.*\Z") as error:
            told("1f1b", **changes)
        assert line in str(error.value)


def test_the_order_as_given_is_drawn_beside_on_request() -> None:
    orders = rows("0F0 0F1 0F2 0B0 0B1 0B2", "1F0 1B0 1F1 1B1 1F2 1B2")
    shown = view(orders=orders, beside=True).told["schedules"]
    assert isinstance(shown, list)
    assert [one["name"] for one in shown] == ["1f1b p=2 m=3, reordered", "1f1b p=2 m=3"]


@pytest.mark.parametrize("name", sorted(families()))
def test_the_controls_of_every_family_are_its_parameters(name: str) -> None:
    """What the controls begin with is a schedule of each family."""
    settings = json.loads(json.dumps(controls(["1f1b", "p=4", "m=8"], GIVEN)))
    family = settings["families"][name]
    assert set(family["values"]) <= set(family["fields"])
    given = {"family": name, "parameters": family["values"]}
    assert judged_view(read_request(json.dumps(given), ViewRequest), GIVEN).told["num_actions"] != 0


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_what_was_judged(tmp_path: Path, name: str) -> None:
    content = view(capacity={"units": 2}).file(name)
    (tmp_path / name).write_bytes(content)
    if name == "schedule.html":
        assert b"every rule holds" in content or b"holds" in content
        return
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
        judged_view(read_request(asked, ViewRequest), GIVEN)
    assert told in str(error.value)


@pytest.mark.parametrize("around", ["", "view"])
def test_a_number_is_refused_by_the_name_that_the_page_shows(around: str) -> None:
    view: dict[str, object] = {"family": None, "changes": {"forward": [4, "x"]}}
    asked = {"view": view, "seconds": 1} if around else view
    with pytest.raises(ValueError, match=r"\Aforward\[1\]: expected a whole number, found 'x'\Z"):
        read_request(json.dumps(asked), SolveRequest if around else ViewRequest)
