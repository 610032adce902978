"""Words in and words out: the loss is the cross-entropy, ties sum two ranks' gradients."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
import torch

from bubbleproof.reference_exec.drivers.virtual import run_virtual
from bubbleproof.reference_exec.models.footprint import footprint, input_bytes, weight_bytes
from bubbleproof.reference_exec.models.model_spec import EMBEDDING, HEAD, ModelSpec
from bubbleproof.reference_exec.models.reference import (
    Stage,
    cross_entropy,
    microbatch_input,
    microbatch_target,
)
from bubbleproof.reference_exec.plans.training import Training
from bubbleproof.reference_exec.replaying import replay
from bubbleproof.reference_exec.runtime.updates import exchanging
from bubbleproof.verify.communication.semantics import USUAL, Semantics
from proofs_tests.reference_exec.cases import family_case, run
from proofs_tests.reference_exec.meshes import mesh
from proofs_tests.reference_exec.training_cases import training_plan
from proofs_tests.sized import sampled, sized

GPT = ModelSpec(kind="transformer", hidden=4, heads=2, sequence=3, batch=2, vocabulary=7, tied=True)
STEPS = Training(optimizer="adam", steps=2)
FORMS = [("float64", True), ("float32", False)]


FAMILIES = [
    ("1f1b", {"p": 3, "m": 4}),
    ("zb-h1", {"p": 2, "m": 3}),
    ("zb-v", {"p": 2, "m": 4}),  # the first and the last stage on one rank
    ("svpp", {"p": 2, "m": 2, "s": 2}),
    ("bpipe", {"p": 4, "m": 5}),
    ("chimera", {"p": 2, "m": 4}),  # both on two ranks
]


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("family", "kind", "forms"),
    sized(
        [
            (each, ("transformer", "llama")[place % 2], FORMS[place // 2 % 2 :][:1])
            for place, each in enumerate(FAMILIES)
        ],
        full=[*product(FAMILIES, ("transformer", "llama"), [FORMS])],
    ),
)
def test_tied_models_replay_and_train(
    family: tuple[str, dict[str, int]], kind: str, forms: list[tuple[str, bool]]
) -> None:
    name, params = family
    case = family_case(name, **params)
    for dtype, tied in forms:
        spec = replace(GPT, kind=kind, dtype=dtype, tied=tied)
        report = run(case, spec, training=STEPS)
        assert report.peak_bytes.measured == report.peak_bytes.predicted
        assert report.weights_equal
        assert report.ok, str(report)


@pytest.mark.parametrize("semantics", sampled(USUAL, every=3))
def test_the_exchange_stalls_under_no_semantics(semantics: Semantics) -> None:
    case = family_case("1f1b", p=4, m=4)
    training = replace(STEPS, has_barrier=True)
    for seed in range(sized(1, full=2)):
        assert run(case, GPT, semantics=semantics, seed=seed, training=training).ok


def test_tied_weights_are_and_stay_one_matrix() -> None:
    case, spec = family_case("1f1b", p=3, m=4), GPT.on(3)
    first, last = Stage(spec, 0), Stage(spec, 2)
    assert torch.equal(first.get_parameter(EMBEDDING), last.get_parameter(HEAD))
    results = run_virtual(training_plan(case, STEPS, spec))
    trained = results[0].updated[0, EMBEDDING]
    assert torch.equal(trained, results[2].updated[2, HEAD])
    assert not torch.equal(trained, first.get_parameter(EMBEDDING))


def test_the_loss_is_the_mean_cross_entropy() -> None:
    spec = replace(GPT, layers=1).on(1 + 1)
    case = family_case("1f1b", p=2, m=3)
    stages, total = [Stage(spec, stage) for stage in range(2)], 0.0
    for microbatch in range(3):
        scores = stages[1](stages[0](microbatch_input(spec, microbatch), None), None)
        chances = scores.exp() / scores.exp().sum(-1, keepdim=True)
        words = microbatch_target(spec, microbatch)
        for sample in range(2):
            for token in range(3):
                total -= chances[sample, token, words[sample, token]].log().item()
    assert run(case, spec).loss == pytest.approx(total / (3 * 2 * 3), rel=1e-12)


def test_the_derivative_of_the_loss_agrees_with_finite_differences() -> None:
    scores = microbatch_input(ModelSpec(hidden=5, heads=1), 0).requires_grad_()
    words = torch.tensor([[0, 4, 2, 2], [1, 1, 3, 0]])
    assert torch.autograd.gradcheck(lambda s: cross_entropy(s, words, 0.7), (scores,))


def test_footprints_of_the_first_and_the_last_stage() -> None:
    # N = 6 tokens, d = 4, V = 7, B h T^2 = 2 * 2 * 9 = 36. One layer saves 6 * (64 + 4) + 36 = 444
    # elements. First: also the output 24; words 6 * 8 = 48 bytes: 468 * 8 + 48 = 3792.
    # Last: also the norm's input and output 48, its statistics 12, the error 42 and the loss:
    # 547 * 8 = 4376. Operands of a layer 6 * 64 = 384; on the last 6 * (4 + 7) = 66 more.
    first, middle, last = (footprint(GPT, stage, 3) for stage in range(3))
    assert (first.activation_bytes, first.weight_bytes) == (3792, 3072)
    assert middle.activation_bytes == 468 * 8
    assert (last.activation_bytes, last.weight_bytes) == (4376, 3600)
    assert (input_bytes(GPT, 0), input_bytes(GPT, 1)) == (48, 24 * 8)
    # llama: the norm's input, x / rms and output 72 and 1 / rms 6 in the place of 60: 18 more
    llama = replace(GPT, kind="llama", vocabulary=7)
    plain = replace(llama, vocabulary=0, tied=False)
    more = footprint(llama, 2, 3).activation_bytes - footprint(plain, 2, 3).activation_bytes
    assert more == (72 + 6 + 42 - 24) * 8


@pytest.mark.parametrize("kind", ["mlp", "transformer", "llama"])
def test_weight_bytes_are_those_of_the_parameters(kind: str) -> None:
    spec = replace(GPT, kind=kind).on(3)
    for stage in range(3):
        total = sum(p.untyped_storage().nbytes() for p in Stage(spec, stage).parameters())
        assert weight_bytes(spec, stage) == total


def test_who_exchanges_what() -> None:
    case = family_case("1f1b", p=4, m=4)
    plan = case.plan(GPT.on(4))
    assert exchanging(plan) == frozenset()
    assert exchanging(replace(plan, training=STEPS)) == {(0, 3)}
    waits = replace(plan, training=replace(STEPS, has_barrier=True))
    assert exchanging(waits) == {(0, 1), (0, 2), (0, 3)}


# What must not pass.


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"vocabulary": 1}, "vocabulary must be 2 or more words"),
        ({"vocabulary": 0}, "tied needs a vocabulary"),
    ],
)
def test_impossible_vocabularies_are_refused(changes: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(GPT, **changes)  # type: ignore[arg-type]  # wrong on purpose


def test_what_a_tie_cannot_do_is_refused() -> None:
    with pytest.raises(ValueError, match="tied needs 2 or more stages, got 1"):
        run(family_case("1f1b", p=1, m=2), GPT)
    with pytest.raises(ValueError, match="tied embeddings cannot be sharded"):
        replay(*mesh(1), GPT)
    with pytest.raises(ValueError, match=r"tied stages \(0 and 1\) must step on their ranks"):
        run(family_case("toffload", p=1, m=2), GPT)
