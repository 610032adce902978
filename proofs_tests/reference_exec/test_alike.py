"""Microbatches with the same data are told: numbers do not show which of them went where."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bubbleproof.reference_exec.evidence.notes import added_first, alike_data
from bubbleproof.reference_exec.evidence.replay_record import not_checked
from bubbleproof.reference_exec.plans.training import Training
from proofs_tests.reference_exec.cases import TINY, family_case, own, run
from proofs_tests.reference_exec.training_cases import training_plan

CASE = family_case("1f1b", p=2, m=3)


def test_microbatches_that_are_alike_are_told() -> None:
    report = run(CASE, own("alike"))
    assert report.ok  # what ran is right; what it shows is less
    first, second = report.alike
    assert first.startswith("Which input went where: microbatch 0 and microbatch 1 have the same")
    assert "as 1 more repeat another's" in first
    assert second.startswith("Which target went where: microbatch 0 and microbatch 1 have")
    assert {first, second} <= {*not_checked(report)}


def test_two_of_many_are_enough() -> None:
    (told,) = alike_data(CASE.plan(own("twins")))
    assert "microbatch 1 and microbatch 2 have the same input; numbers" in told


def test_different_microbatches_are_no_matter() -> None:
    assert run(CASE).alike == run(CASE, own("plain")).alike == ()
    assert run(CASE, replace(TINY, vocabulary=50)).alike == ()


def test_few_words_come_again() -> None:
    # 4 inputs of one word out of two cannot all differ
    spec = replace(TINY, vocabulary=2, sequence=1).on(2)
    assert alike_data(family_case("1f1b", p=2, m=4).plan(spec))


def test_steps_with_one_batch_are_alike() -> None:
    training = Training(steps=2)
    told = alike_data(training_plan(CASE, training, own("plain")))
    assert "microbatch 0 of step 0 and microbatch 0 of step 1 have the same input" in told[0]
    assert alike_data(training_plan(CASE, training, own("stepwise"))) == ()


@pytest.mark.parametrize(
    ("family", "shape", "first_words"),
    [
        ("1f1b", {"p": 2, "m": 3}, ["Whether microbatches 0 and 1 ran"]),
        (
            "zb-h1",
            {"p": 2, "m": 3},
            ["Whether microbatches 0 and 1 ran", "Which of the first two W"],
        ),
        ("1f1b", {"p": 2, "m": 1}, []),
        ("chimera", {"p": 2, "m": 4}, []),  # each direction adds two of its own
        ("svpp", {"p": 2, "m": 2, "s": 2}, []),  # two slices of one microbatch are added first
    ],
)
def test_what_is_added_first_is_told_where_it_can_change_places(
    family: str, shape: dict[str, int], first_words: list[str]
) -> None:
    told = added_first(family_case(family, **shape).plan(TINY))
    assert [line.startswith(words) for line, words in zip(told, first_words, strict=True)] == [
        True
    ] * len(first_words)
