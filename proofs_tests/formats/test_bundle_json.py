"""Bundles in files: what is written is read back, and what is changed in one is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bubbleproof.formats import UnusableInput
from bubbleproof.formats.plans.bundle_json import read_bundle, write_bundle
from bubbleproof.planners import Plan, PlanOptions, plan
from bubbleproof.theory.pipelines.allowed import AllowedChoices, AllowedEvictions
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.shapes.cut_lists import NamedCuts
from bubbleproof.theory.pipelines.shapes.layer_cuts import LayerPart, Layers
from bubbleproof.theory.pipelines.shapes.plan_space import PlanSpace
from bubbleproof.verify.candidates.bundle import CandidateBound, check_bundle
from proofs_tests.patience import PATIENCE
from proofs_tests.planners.found_plans import found_plan

SPACE = PlanSpace(
    pipeline=Pipeline(
        num_ranks=2,
        num_microbatches=3,
        forward=2,
        backward=4,
        input_backward=2,
        weight_backward=2,
        activation=2,
        capacity=6,
        latency=1,
        message=1,
        bandwidth=1,
    ),
    allowed=AllowedChoices(evict=AllowedEvictions(pairs=((0, 1),), duration=2)),
    chunks=(1, 2),
    placements=("loop", (0, 1, 1, 0)),
    backward=("whole", (True, False)),
)
Content = dict[str, Any]  # a JSON object, whatever is in it


@pytest.fixture(scope="module")
def made() -> Plan:
    return found_plan(plan(SPACE, PlanOptions(time_limit=PATIENCE, threads=1)))


@pytest.fixture
def file(made: Plan, tmp_path: Path) -> Path:
    write_bundle(tmp_path / "bundle.json", SPACE, made.bundle, name="small")
    return tmp_path / "bundle.json"


def test_what_is_written_is_read_back(made: Plan, file: Path) -> None:
    assert json.loads(file.read_text())["name"] == "small"
    found = read_bundle(file, SPACE)
    assert found == made.bundle
    assert check_bundle(SPACE, found) == check_bundle(SPACE, made.bundle)
    assert check_bundle(SPACE, found).bound == made.lower_bound
    assert check_bundle(SPACE, found).num_proved >= 1


def test_layers_and_a_word_are_read_back(tmp_path: Path) -> None:
    space = PlanSpace(
        pipeline=SPACE.pipeline,
        layers=Layers(
            runs=((LayerPart(forward=1, backward=2, activation=1), 5),), rule=NamedCuts(spread=0)
        ),
    )
    bundle = tuple(
        CandidateBound(candidate=candidate, bound=7, word="cpsat")
        for candidate in space.candidates()
    )
    assert [entry.candidate.layers for entry in bundle] == [(2, 3), (3, 2)]
    write_bundle(tmp_path / "bundle.json", space, bundle)
    assert read_bundle(tmp_path / "bundle.json", space) == bundle


def changed(file: Path, change: Callable[[Content], object]) -> Path:
    content = json.loads(file.read_text())
    change(content)
    file.write_text(json.dumps(content))
    return file


def first(content: Content) -> Content:
    """The first candidate that has a certificate."""
    found: Content = next(row for row in content["candidates"] if "certificate" in row)
    return found


def raised(content: Content) -> None:
    row = first(content)
    row["bound"] += 1
    row["certificate"]["bound"] += 1


WRONG: dict[str, Callable[[Content], object]] = {
    "removed": lambda content: content["candidates"].pop(),
    "doubled": lambda content: content["candidates"].append(content["candidates"][0]),
    "bound": lambda content: first(content).update(bound=first(content)["bound"] + 1),
    "both bounds": raised,
    "objective": lambda content: first(content)["certificate"].update(objective="span_idle"),
    "no proof": lambda content: first(content).pop("certificate"),
}


@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG)
def test_a_changed_bundle_is_read_and_not_accepted(
    change: Callable[[Content], object], file: Path
) -> None:
    verdict = check_bundle(SPACE, read_bundle(changed(file, change), SPACE))
    assert len(verdict.refusals) == 1
    assert verdict.bound is None


UNREADABLE: dict[str, tuple[Callable[[Content], object], str]] = {
    "foreign": (
        lambda content: content["candidates"][0].update(chunks=7),
        "candidates[0]: expected a candidate of the problem, found v=7 loop whole",
    ),
    "placement": (
        lambda content: content["candidates"][0].update(placement=[1, 0]),
        "candidates[0]: expected a candidate of the problem",
    ),
    "layers": (
        lambda content: content["candidates"][0].update(layers=[]),
        "candidates[0]: expected a candidate of the problem",
    ),
    "negative": (
        lambda content: content["candidates"][0].update(bound=-1),
        "candidates[0].bound: expected a whole number of 0 or more, found -1",
    ),
    "key": (lambda content: content["candidates"][0].update(reason="so"), "no key 'reason'"),
    "missing": (
        lambda content: content["candidates"][0].pop("slices"),
        "candidates[0].slices: expected this key, found nothing",
    ),
    "kind": (
        lambda content: first(content)["certificate"].update(kind="oath"),
        ".certificate.kind: expected one of",
    ),
    "certificate": (
        lambda content: first(content)["certificate"].update(bound="9"),
        ".certificate.bound: expected a whole number",
    ),
    "version": (lambda content: content.update(version=2), "version: expected"),
    "format": (lambda content: content.update(format="csv"), "format: expected"),
    "list": (lambda content: content.update(candidates={}), "candidates: expected a list"),
}


@pytest.mark.parametrize(("change", "message"), UNREADABLE.values(), ids=UNREADABLE)
def test_what_is_no_bundle_of_the_problem_is_named(
    change: Callable[[Content], object], message: str, file: Path
) -> None:
    with pytest.raises(UnusableInput) as caught:
        read_bundle(changed(file, change), SPACE)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_certificate_of_a_candidate_that_is_not_legal_is_refused(file: Path) -> None:
    odd = replace(SPACE, pipeline=SPACE.pipeline.with_changes(forward=3))
    two = changed(
        file,
        lambda content: content.update(
            candidates=[
                row
                for row in content["candidates"]
                if row["chunks"] == 2 and row["placement"] == "loop" and "certificate" in row
            ]
        ),
    )
    with pytest.raises(UnusableInput, match="a legal candidate, found forward 3 is not divisible"):
        read_bundle(two, odd)


def test_a_bundle_for_another_problem_is_refused(file: Path) -> None:
    longer = replace(SPACE, pipeline=SPACE.pipeline.with_changes(forward=4, backward=2))
    assert check_bundle(longer, read_bundle(file, longer)).refusals
    fewer = replace(SPACE, pipeline=SPACE.pipeline.with_changes(num_microbatches=2))
    with pytest.raises(UnusableInput, match="a task of the schedule's problem"):
        read_bundle(file, fewer)
    less = replace(SPACE, chunks=(1,))
    with pytest.raises(UnusableInput, match="expected a candidate of the problem"):
        read_bundle(file, less)


def test_a_bound_that_no_file_holds_is_not_written(made: Plan, tmp_path: Path) -> None:
    huge = [
        replace(entry, bound=1 << 60, certificate=replace(entry.certificate, bound=1 << 60))
        for entry in made.bundle
        if entry.certificate is not None
    ]
    with pytest.raises(UnusableInput, match="bound: expected at most"):
        write_bundle(tmp_path / "bundle.json", SPACE, huge)
    assert not (tmp_path / "bundle.json").exists()
