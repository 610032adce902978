"""Users' models that keep more than their graphs: what grows is seen, what stays is told."""

from __future__ import annotations

import re

import pytest

from bubbleproof.reference_exec.broken import BrokenProgram
from bubbleproof.reference_exec.models.examined import examined
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from proofs_tests.old_objects import hide_what_is_old
from proofs_tests.reference_exec.cases import family_case, run
from proofs_tests.reference_exec.own_hoarders import EXTRA
from proofs_tests.sized import paired, sampled

INPUT = 96  # 3 x 4 float64


def own(name: str, module: str = "own_hoarders") -> ModelSpec:
    return ModelSpec(kind="own", factory=f"proofs_tests.reference_exec.{module}:{name}")


KEPT = [
    ("scratch", rf"rank 0: .*: {4 << 20} bytes beyond them at 0F0 \(action 0\)"),
    # x and the sigmoid, which the backward lets go
    ("hoarding", rf"rank 1: .*: {INPUT * 2} bytes beyond them at 1[BW]0 "),
    ("growing", r"rank 0: .*: \d+ bytes beyond them at 0F\d"),
    ("hooked", rf"rank 0: .*: {INPUT} bytes beyond them at 0[BI]0"),
]


@pytest.mark.sweep
@pytest.mark.parametrize(("kept", "family"), paired(KEPT, ("1f1b", "zb-h1")))
def test_what_a_model_keeps_is_seen_and_named(kept: tuple[str, str], family: str) -> None:
    name, told = kept
    report = run(family_case(family, p=2, m=3), own(name))
    assert report.gradients_equal
    assert report.losses_equal
    assert not report.ok
    assert any(re.search(told, failure) for failure in report.failures), report.failures


@pytest.mark.parametrize(
    ("name", "told"),
    sampled(
        [
            ("resizing", rf"{EXTRA} bytes beyond them at 0F0 \(action 0\); {3 * EXTRA} bytes"),
            ("resizing_in_a_box", rf"{EXTRA} bytes beyond them at 0F0 "),
            ("resizing_at_the_class", rf"{EXTRA} bytes beyond them at 0F0 "),
            ("resizing_in_the_file", rf"{EXTRA} bytes beyond them at 0F0 "),
            ("stretching", rf"{EXTRA} bytes beyond them at 0F0 \(action 0\); {3 * EXTRA} bytes"),
            ("swapping_by_set", r"\d+ bytes beyond them at 0F\d"),
            ("swapping_by_data", r"\d+ bytes beyond them at 0F\d"),
        ],
        every=2,
    ),
)
def test_what_an_old_tensor_grows_or_swaps_is_seen(name: str, told: str) -> None:
    report = run(family_case("1f1b", p=2, m=3), own(name))
    assert report.gradients_equal
    assert any(re.search(rf"rank 0: .*: {told}", each) for each in report.failures), report.failures
    assert not any("rank 1:" in failure for failure in report.failures)


def test_a_model_that_freezes_what_it_keeps_is_refused() -> None:
    try:
        with pytest.raises(ValueError, match=r"^model stage 1: gc\.freeze\(\) or the like hid"):
            run(family_case("1f1b", p=2, m=3), own("freezing"))
    finally:
        hide_what_is_old()


def test_what_lies_on_a_context_counts_as_what_is_saved() -> None:
    with_context, plain = examined(own("on_context"))[0], examined(own("doubled"))[0]
    assert with_context.activation_bytes == plain.activation_bytes + INPUT
    assert with_context.operand_bytes == plain.operand_bytes
    for name in ("on_context", "doubled"):
        report = run(family_case("1f1b", p=2, m=3), own(name))
        assert report.ok, str(report)


def test_what_a_model_makes_once_is_a_constant() -> None:
    first, plain = examined(own("constant"))[0], examined(own("doubled"))[0]
    # a product saves both factors where both could need a gradient; the table takes none, so that
    # beside the table nothing is saved that doubling does not save
    assert (first.activation_bytes, first.kept_bytes) == (plain.activation_bytes, 0)
    report = run(family_case("1f1b", p=2, m=3), own("constant"))
    assert report.ok, str(report)
    assert not any("until the next" in line for line in report.not_counted)


def test_what_a_model_keeps_until_its_next_forward_is_told() -> None:
    report = run(family_case("1f1b", p=2, m=3), own("caching", "own_graphs"))
    assert report.ok, str(report)
    # a softmax; its graph keeps the stage's input and that one's gradient where it takes one
    facts = examined(own("caching", "own_graphs"))
    assert [stage.kept_bytes for stage in facts] == [INPUT, 3 * INPUT]
    told = "What stages keep of their last forward until the next: at most 96, 288 bytes by rank."
    assert report.not_counted[-1] == told


def test_saved_bytes_that_depend_on_the_data_are_the_models_doing() -> None:
    for backend in ("virtual", "gloo"):
        report = run(family_case("1f1b", p=2, m=4), own("masked"), backend=backend)
        assert report.gradients_equal
        work, failure = report.failures
        assert work.startswith("the model's work depends on its data")
        assert re.fullmatch(
            r"the model's saved bytes depend on its data: stage 0 saved \d+ of microbatch 0, \d+ "
            r"of microbatch \d; no schedule's bytes can be predicted with it",
            failure,
        ), failure
    case = family_case("1f1b", p=2, m=4)
    assert run(case, own("masked"), count_bytes=False, count_work=False).ok


def test_a_transfer_of_a_model_whose_bytes_depend_on_its_data_says_so() -> None:
    why = r"moves \d+ bytes, \d+ were expected; what the model saves depends on its data"
    with pytest.raises(BrokenProgram, match=why):
        run(family_case("bpipe", p=4, m=6), own("masked_in_four"))
