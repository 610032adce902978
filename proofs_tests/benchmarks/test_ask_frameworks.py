"""What torchtitan, Automodel, DeepSpeed and torch answered, recorded, against what we say."""

from __future__ import annotations

import json
from typing import Any

import pytest

from benchmarks.frameworks.ask_frameworks import (
    QUESTIONS,
    UNTOLD,
    Question,
    differences,
    record_of,
    torch_answers,
)
from benchmarks.frameworks.ask_megatron import RECORD as MEGATRON
from benchmarks.frameworks.hand_over_jobs import JOBS, RECORD, TARGETS
from bubbleproof.frameworks import TORCH_CLASSES, TorchClass, framework_named
from bubbleproof.hand_over.launched.read_torchtitan import refusal_of_parts
from proofs_tests.sized import sampled

LARGEST = 100_000  # bytes of a record


def told(question: Question) -> list[Any]:
    """The recorded answers; None for what is refused."""
    rows = json.loads(record_of(question.kind).read_text())["told"]
    return [None if isinstance(row, dict) and "refused" in row else row for row in rows]


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda each: each.kind)
def test_every_answer_is_the_frameworks(question: Question) -> None:
    assert differences(question, told(question)) == []


def test_records_are_small_and_of_the_versions_that_are_told() -> None:
    for question in QUESTIONS:
        path = record_of(question.kind)
        assert path.stat().st_size < LARGEST
        of = json.loads(path.read_text())["asked"]["of"]
        assert question.wheels == () or of == [*question.wheels]
        for wheel in of:
            product, version = wheel.removeprefix("nemo-").split("==")
            known = [f"{product}-{version}".startswith(f"{each}.") for each in names()]
            assert any(known), wheel


def names() -> list[str]:
    products = ("torch-2.13", "torchtitan", "torchtitan-0.2", "automodel", "deepspeed")
    return [framework_named(each, "test").name for each in products]


def test_two_thousand_configurations_were_asked_of_which_a_third_is_illegal() -> None:
    every = [answer for question in QUESTIONS for answer in told(question)]
    assert len(every) >= 2_000
    assert every.count(None) >= 0.3 * len(every)
    silent = sum(question.ours(*row) == UNTOLD for question in QUESTIONS for row in question.rows)
    assert silent <= 0.2 * len(every)


def test_a_stage_has_the_whole_output_layer_or_none_of_it() -> None:
    """As the page of vocabulary parallelism says: no answer has a part of an embedding or a head.

    Megatron's layouts have each of the two once. The stages of torchtitan and Automodel have whole
    modules of the names they were given; DeepSpeed's cuts lie between modules.
    """
    layouts = [row[1] for row in json.loads(MEGATRON.read_text())["layouts"] if row[1]]
    assert {("".join(row).count("E"), "".join(row).count("L")) for row in layouts} == {(1, 1)}
    of = {each.kind: each for each in QUESTIONS}
    titan, model = (told(of[kind]) for kind in ("titan_stages", "automodel_stages"))
    stages = titan + [[stage for rank in row for _, stage in rank] for row in model if row]
    heads = [sum("lm_head" in stage for stage in row) for row in stages]
    assert set(heads) == {0, 1}  # without where its name was dropped
    cuts = zip(of["partition"].rows, told(of["partition"]), strict=True)
    assert all(sum(cut) == layers for (_, layers, _), cut in cuts if cut)


@pytest.mark.parametrize("kind", ["mesh", "section", "torch", "steps", "partition"])
def test_a_wrong_rule_is_seen(kind: str) -> None:
    """Negative control: the answers of the next row are others."""
    (question,) = (each for each in QUESTIONS if each.kind == kind)
    answers = told(question)
    assert differences(question, [*answers[1:], answers[0]])


@pytest.mark.torch
def test_the_installed_torch_answers_as_it_is_recorded() -> None:
    pytest.importorskip("torch", minversion="2.13", reason="asked of torch 2.13")
    (question,) = (each for each in QUESTIONS if each.kind == "torch")
    rows = question.rows
    places = sampled(range(len(rows)), every=10)
    found = torch_answers([rows[at] for at in places])
    assert [each.get("told") for each in found] == [told(question)[at] for at in places]


def test_a_class_says_what_it_takes() -> None:
    classes: dict[str, TorchClass] = {each.name: each for each in TORCH_CLASSES}
    rounds = classes["Interleaved1F1B"].refusal
    assert rounds(ranks=4, chunks=2, microbatches=9) == (
        "Interleaved1F1B runs a multiple of 2 microbatches, not 9"
    )
    assert not rounds(ranks=4, chunks=2, microbatches=10)
    assert "6 microbatches or more" in classes["DualPipeV"].refusal(
        ranks=3, chunks=2, microbatches=5
    )
    assert "runs 2 chunks" in classes["ZBVZeroBubble"].refusal(ranks=3, chunks=3, microbatches=9)


def test_jobs_are_loaded_by_their_readers_or_refused_by_name() -> None:
    rows = json.loads(RECORD.read_text())
    assert [(row["job"], row["target"]) for row in rows] == [
        (job, target) for target in TARGETS for job in JOBS
    ]
    assert not [row for row in rows if row["fault"]]
    assert all(bool(row["loaded"]) != bool(row["refused"]) for row in rows)
    loaded = [row for row in rows if row["loaded"]]
    assert len(loaded) >= 2 * len(rows) // 3
    for row in rows:
        product = framework_named(row["target"], "test").product
        assert not row["refused"] or product in row["refused"]


class Part:
    """A module with children."""

    def __init__(self, **children: Part) -> None:
        self.children_by_name = children

    def named_children(self) -> list[tuple[str, Part]]:
        return [*self.children_by_name.items()]


class ModuleList(Part):
    """Of this name are lists of layers."""


def test_a_head_that_no_stage_names_is_refused_where_the_model_is_built() -> None:
    model = Part(
        tok_embeddings=Part(), layers=ModuleList(**{"0": Part()}), norm=Part(), lm_head=Part()
    )
    first = ["tok_embeddings", "layers.0"]
    assert refusal_of_parts(model, [first, ["norm", "lm_head"]]) == ""
    assert refusal_of_parts(model, [first, ["norm", "output"]]) == (
        "no stage has lm_head of the model"
    )
    assert "no output" in refusal_of_parts(model, [first, ["norm", "lm_head", "output"]])
