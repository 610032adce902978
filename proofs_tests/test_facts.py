"""Facts: one statement of a result, and every form that is made of it."""

from __future__ import annotations

import json
import math
import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from bubbleproof.facts import Fact, FactSource, broken, rows, tree, valued, verdict


class Weighed(FactSource):
    """Two facts that people read, one of them broken, and one for programs alone."""

    __slots__ = ()

    def facts(self) -> Sequence[Fact]:
        off = ("rank 1 weighs 4, not 5",)
        return [
            Fact(
                key="weight.measured",
                label="weight <kg>",
                value=(8, 4),
                expected=(8, 5),
                unit="kg",
                verdict=verdict(False),
                detail=off,
            ),
            Fact(key="colour", label="colour", value="red", told="reddish", verdict=verdict(True)),
            *valued("weight", error=math.inf, each=(1.5, math.nan)),
        ]


def test_people_read_what_has_a_label() -> None:
    assert rows(Weighed().facts()) == [
        ("weight <kg>", "8 5 kg", "8 4 kg", "violated"),
        ("colour", "", "reddish", "holds"),
    ]


def test_programs_read_exact_values_by_key() -> None:
    found = tree(Weighed().facts())
    assert json.loads(json.dumps(found)) == {
        "weight": {"measured": [8, 4], "predicted": [8, 5], "error": None, "each": [1.5, None]},
        "colour": "red",
    }


def test_a_list_has_a_fact_for_each_of_its_rows() -> None:
    facts = [Fact(key="of.rows", value=()), Fact(key="of.rows[]", value={"share": 1})]
    assert tree(facts) == {"of": {"rows": [{"share": 1}]}}
    assert tree([Fact(key="measured", value=Fraction(3, 1))]) == {"measured": "3/1"}


def test_what_is_broken_is_said_in_sentences() -> None:
    assert broken(Weighed().facts()) == ("rank 1 weighs 4, not 5",)


def test_a_notebook_shows_the_rows_and_escapes_them() -> None:
    text = Weighed()._repr_html_()
    assert text.count("<tr>") == 3
    assert "<td>weight &lt;kg&gt;</td><td>8 5 kg</td><td>8 4 kg</td><td>violated</td>" in text


def test_a_frame_has_the_rows_with_keys_and_values() -> None:
    pytest.importorskip("pandas")
    frame = Weighed().to_frame()
    assert [*frame.columns] == ["key", *Weighed.columns, "value", "unit"]
    assert [*frame["key"]] == ["weight.measured", "colour"]
    assert [*frame["value"]] == [(8, 4), "red"]


def test_a_key_within_a_value_is_refused() -> None:
    with pytest.raises(ValueError, match=r"the fact a\.b lies within the value of another"):
        tree([Fact(key="a", value=1), Fact(key="a.b", value=2)])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Columns(FactSource):
    """A result of columns, and of what holds some."""

    ticks: np.ndarray[tuple[int], np.dtype[np.int64]]
    parts: tuple[Columns, ...] = ()

    def facts(self) -> Sequence[Fact]:
        return [Fact(key="ticks", label="ticks", value=self.ticks.tolist())]


def test_results_of_equal_content_are_equal() -> None:
    one, other = (Columns(ticks=np.array([1, 2])) for _ in range(2))
    assert one == other == pickle.loads(pickle.dumps(one))
    assert len({one, other}) == 1
    assert one != Columns(ticks=np.array([1, 3]))
    assert one != Weighed()
    within, beside = (Columns(ticks=np.array([1]), parts=(each,)) for each in (one, other))
    assert within == beside != Columns(ticks=np.array([1]))


def test_a_table_has_the_columns_that_are_used() -> None:
    assert Columns(ticks=np.array([1])).table() == [("evidence", "found"), ("ticks", "[1]")]
    assert [*Weighed().to_frame().columns][:5] == ["key", *Weighed.columns]
