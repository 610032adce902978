"""Actions in text, as objects and as columns."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubbleproof.testing.strategies import actions
from bubbleproof.theory.model.actions import (
    MAX_MICROBATCH,
    MAX_PART,
    MAX_SLICE,
    MAX_STAGE,
    NONE,
    STAGE_KINDS,
    Action,
    ActionTable,
    Kind,
)
from bubbleproof.theory.model.schedule import Program


@given(actions())
def test_the_text_form_reads_back(action: Action) -> None:
    assert Action.parse(str(action)) == action


@given(actions())
def test_the_sliced_text_form_reads_back(action: Action) -> None:
    if action.kind not in STAGE_KINDS:
        assert Action.parse(action.label(sliced=True)) == action


@given(st.lists(actions(), max_size=8))
def test_a_table_gives_its_actions_back(listed: list[Action]) -> None:
    table = ActionTable.from_actions(listed)
    assert list(table) == listed
    assert list(ActionTable.concatenate([table, table])) == listed * 2
    reverse = np.arange(len(listed))[::-1]
    assert list(table.take(reverse)) == listed[::-1]


@given(actions(), actions())
def test_keys_are_equal_exactly_for_equal_actions_up_to_partners(a: Action, b: Action) -> None:
    one, two = ActionTable.from_actions([a, b]).keys()
    assert (one == two) == (name(a) == name(b))


def name(action: Action) -> tuple[int, ...]:
    return (action.kind, action.stage, action.microbatch, action.slice, action.part)


@pytest.mark.parametrize(
    "text",
    [
        "0BW0",
        "0F0x",
        "F0",
        "0F",
        "0f0",
        "",
        " 0F0",
        "0F0 ",
        "0F0.",
        "0F.1",
        "-1F0",
        "0F-1",
        "0F0.-1",
        "0Q0",
        "0F1.2.3",
        "0OVERLAP_F_B0",
        "0STEP1",
        "(0F0;0B0)",
        "(0F0)OVERLAP_F_B",
        "(0B0;0F0)OVERLAP_F_B",
        "(0F0;0W0)OVERLAP_F_B",
        "(0F0.1;0B0)OVERLAP_F_B",
        "0F1e3",
        "٣F0",
        "65535F0",
        "0F16777215",
        "0F0.4095",
        "0F9999999999",
        "0W0#",
        "0W0#-1",
        "0W0#1.2",
        "0W0#1#2",
        "0W0#63",
        "0F0#0",
        "0I0#1",
        "0STEP#1",
        "(0F0;0B0#1)OVERLAP_F_B",
    ],
)
def test_text_that_is_no_action_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected|must be|takes|only W"):
        Action.parse(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0BW0", "expected <stage><KIND><microbatch>[.<slice>][#<part>], got '0BW0'"),
        (
            "(0F0;0W0)OVERLAP_F_B",
            "expected (<F action>;<B action>)OVERLAP_F_B, got '(0F0;0W0)OVERLAP_F_B'",
        ),
        ("0F", "F takes a microbatch, got -1"),
        ("3STEP1", "STEP takes no microbatch, got 1"),
        ("65535F0", "stage must be 0 to 65534, got 65535"),
        ("0F16777215", "microbatch must be 0 to 16777214, got 16777215"),
        ("0F0.4095", "slice must be 0 to 4094, got 4095"),
        ("0W0#63", "part must be 0 to 62, got 63"),
        ("0I0.2#1", "only W is cut into parts, got part 1 of I"),
    ],
)
def test_the_refusal_says_what_was_expected(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        Action.parse(text)
    assert str(caught.value) == message


def test_the_largest_action_can_be_written() -> None:
    text = f"{MAX_STAGE}F{MAX_MICROBATCH}.{MAX_SLICE}"
    assert str(Action.parse(text)) == text
    assert ActionTable.from_actions([Action.parse(text)]).keys()[0] > 0


def test_the_largest_keys_differ_in_every_number() -> None:
    # Bit fields that were one bit short would overlap exactly here.
    top = [MAX_STAGE, MAX_MICROBATCH, MAX_SLICE, MAX_PART]
    texts = ["{}W{}.{}#{}".format(*top)]
    texts += ["{}W{}.{}#{}".format(*(n - (i == at) for i, n in enumerate(top))) for at in range(4)]
    keys = ActionTable.from_actions(map(Action.parse, [*texts, "0STEP", "0W0#0", "0W0"])).keys()
    assert len(set(keys.tolist())) == len(keys)
    assert keys.min() > 0
    assert keys.argmax() == 5  # STEP has the highest kind of them


def test_an_overlap_names_its_backward() -> None:
    with pytest.raises(ValueError, match="exactly OVERLAP_F_B has a partner action"):
        Action(stage=0, kind=Kind.OVERLAP_F_B, microbatch=0)
    with pytest.raises(ValueError, match="exactly OVERLAP_F_B has a partner action"):
        Action(stage=0, kind=Kind.F, microbatch=0, partner=Action.parse("0B0"))
    with pytest.raises(ValueError, match="OVERLAP_F_B pairs an F with a B, got 0W0"):
        Action(stage=0, kind=Kind.OVERLAP_F_B, microbatch=0, partner=Action.parse("0W0"))


def test_columns_of_different_lengths_are_refused() -> None:
    table = ActionTable.of(int(Kind.F), 0, np.arange(3))
    with pytest.raises(ValueError, match="columns of an ActionTable differ in length"):
        ActionTable(
            kind=table.kind[:2],
            stage=table.stage,
            microbatch=table.microbatch,
            slice=table.slice,
            part=table.part,
            partner_stage=table.partner_stage,
            partner_microbatch=table.partner_microbatch,
        )


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("microbatch", 1 << 25, "microbatch must be -1 to 16777214, got 33554432"),
        ("microbatch", -2, "microbatch must be -1 to 16777214, got -2"),
        ("stage", -2, "stage must be -1 to 65534, got -2"),
        ("stage", MAX_STAGE + 1, "stage must be -1 to 65534, got 65535"),
        ("slice", 1 << 13, "slice must be 0 to 4094, got 8192"),
        ("kind", len(Kind), f"kind must be 0 to {len(Kind) - 1}, got {len(Kind)}"),
    ],
)
def test_columns_out_of_range_are_refused(column: str, value: int, message: str) -> None:
    # Unchecked, 0F33554432 would have the packed key of 0F0 and pass for it.
    given = {"kind": 0, "stage": 0, "microbatch": 0, "slice": 0, column: value}
    with pytest.raises(ValueError, match="must be") as caught:
        ActionTable.of(given["kind"], given["stage"], given["microbatch"], given["slice"])
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (ActionTable.of(int(Kind.F), NONE, NONE), "stage must be 0 to 65534, got -1 in row 0"),
        (ActionTable.of(int(Kind.F), NONE, 0), "stage must be 0 to 65534, got -1 in row 0"),
        (
            ActionTable.of(int(Kind.F), 0, 0, 0, 1),
            "only W is cut into parts, got part 1 of F in row 0",
        ),
        (
            ActionTable.of(int(Kind.F), 0, np.array([0, NONE])),
            "F takes a microbatch, got -1 in row 1",
        ),
        (ActionTable.of(int(Kind.STEP), 0, 3), "STEP takes no microbatch, got 3 in row 0"),
        (
            ActionTable.of(int(Kind.OVERLAP_F_B), 0, 3),
            "OVERLAP_F_B: exactly OVERLAP_F_B has a partner action in row 0",
        ),
    ],
)
def test_programs_hold_actions_only(table: ActionTable, message: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        Program(actions=table, resource=np.zeros(len(table), dtype=np.int64))
    assert str(caught.value) == message


def test_scalars_and_columns_broadcast() -> None:
    table = ActionTable.of(int(Kind.B), np.arange(2)[:, None], np.arange(3)[None, :])
    assert [str(a) for a in table] == ["0B0", "0B1", "0B2", "1B0", "1B1", "1B2"]
    assert (table.partner_stage == NONE).all()


def test_slices_are_written_out_where_any_is_above_zero() -> None:
    sliced = ActionTable.from_actions([Action.parse("0F0"), Action.parse("0F0.1")])
    assert [sliced.label(0), sliced.label(1)] == ["0F0.0", "0F0.1"]
    assert ActionTable.from_actions([Action.parse("0F0")]).label(0) == "0F0"


def test_masks_select_kinds() -> None:
    table = ActionTable.from_actions(Action.parse(t) for t in ("0F0", "0B0", "0W0", "0F1"))
    assert table.is_kind(Kind.F, Kind.W).tolist() == [True, False, True, True]
