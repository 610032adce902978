"""State bytes: ZeRO, tensor, expert and pipeline parallelism against sums written out."""

from __future__ import annotations

from fractions import Fraction

import pytest

from bubbleproof.costs import Deployment, known_model, known_models, model_costs, parameters
from bubbleproof.costs.accounting import PRECISIONS
from bubbleproof.costs.state import bytes_per_parameter, stage_weights

SPLIT = ("gpt2-xl", "llama-2-13b", "llama-3-70b", "mixtral-8x7b", "falcon-40b", "deepseek-v2")


@pytest.mark.parametrize(
    ("zero", "bytes_"),
    # bf16: weights 2, gradients 4, optimizer 12 bytes, over 4 replicas from levels 3, 2, 1 on.
    [(0, 18), (1, 2 + 4 + 3), (2, 2 + 1 + 3), (3, Fraction(18, 4))],
)
def test_zero_levels(zero: int, bytes_: Fraction) -> None:
    assert bytes_per_parameter(PRECISIONS["bf16"], zero=zero, replicas=4) == bytes_


@pytest.mark.parametrize("name", SPLIT)
def test_stages_hold_all_weights_once(name: str) -> None:
    """A tied head has a copy of the embedding on the last stage, and there only."""
    model = known_model(name).model
    stages = model_costs(model, Deployment(pipeline=4, zero=0, sequence=1024)).stages
    copied = model.vocabulary * model.hidden if model.tied else 0
    assert sum(stage.parameters for stage in stages) == parameters(model).total + copied
    assert sum(stage.state_bytes for stage in stages) == 18 * (parameters(model).total + copied)


def test_tensor_parallel_ranks_share_what_is_split() -> None:
    """llama-2-70b over 8: linears and words divided, the norms (2 a layer, 1 last) on each."""
    model = known_model("llama-2-70b").model
    at = Deployment(tensor=8, sequence=4096)
    norms = (2 * model.layers + 1) * model.hidden
    found = stage_weights(model, at, layers=80, is_first=True, is_last=True).total
    assert found == Fraction(parameters(model).total - norms, 8) + norms


def test_a_rank_holds_one_head_of_keys_at_least() -> None:
    """Falcon 7B has one head of keys and values: not divided over tensor ranks; 71 heads, so 71."""
    model = known_model("falcon-7b").model
    h, w = model.hidden, model.head_width
    found = stage_weights(
        model, Deployment(tensor=71, sequence=71), layers=1, is_first=False, is_last=False
    ).total
    # query and output h x 71 w over 71, key and value h x w each, up and down 4 h h over 71, norm.
    assert found == 2 * h * w + 2 * h * w + 8 * h * h // 71 + 2 * h


def test_experts_are_spread_over_replicas() -> None:
    """Mixtral 8x7B over 8 replicas: with expert 8 each holds one expert a layer, unshared."""
    model = known_model("mixtral-8x7b").model
    expert = 3 * model.hidden * model.feed_forward
    plain = model_costs(model, Deployment(data=8, sequence=1024))
    spread = model_costs(model, Deployment(data=8, expert=8, sequence=1024))
    assert plain.state_bytes - spread.state_bytes == 18 * model.layers * 7 * expert
    # Under ZeRO 3 both share everything among the eight.
    shares = {
        model_costs(model, Deployment(data=8, expert=e, zero=3, sequence=1024)).state_bytes
        for e in (1, 2, 4, 8)
    }
    assert shares == {18 * parameters(model).total // 8}


@pytest.mark.parametrize("name", [n for n, k in known_models().items() if not k.model.heads % 2])
def test_more_sharding_is_never_more_bytes(name: str) -> None:
    known = known_models()[name]
    at = Deployment(data=8, sequence=1024)
    found = [model_costs(known.model, at.with_changes(zero=zero)).state_bytes for zero in range(4)]
    assert found == sorted(found, reverse=True)
    two = model_costs(known.model, at.with_changes(tensor=2))
    one = model_costs(known.model, at)
    assert two.state_bytes < one.state_bytes
    assert two.flops.forward * 2 >= one.flops.forward  # a head of keys may be computed twice
    saved = two.saved_bytes
    assert saved["none"] >= saved["attention"] >= saved["full"]


def test_context_divides_tokens_and_shares_state() -> None:
    model = known_model("llama-3-8b").model
    one = model_costs(model, Deployment(sequence=8192, zero=1, data=4))
    two = model_costs(model, Deployment(sequence=8192, zero=1, data=2, context=2))
    assert two.state_bytes == one.state_bytes  # four devices hold the same weights in both
    assert two.flops.forward * 2 == one.flops.forward
    assert two.saved_bytes["none"] * 2 == one.saved_bytes["none"]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"tensor": 5}, "tensor must divide heads 32, got 5; use tensor = 4"),
        ({"pipeline": 7}, "pipeline must divide layers 32, got 7; use pipeline = 8"),
        ({"context": 3}, "context must divide sequence 2048, got 3; use context = 2"),
        ({"zero": 4}, "zero must be 0 to 3, got 4"),
        (
            {"scope": "some"},
            "scope must be one of none, attention, full, norm+act, op, or",
        ),
        ({"data": 0}, "data must be 1 or more, got 0"),
        ({"accounting": "x"}, "accounting must be one of megatron"),
    ],
)
def test_what_cannot_be_cut_is_told(changes: dict[str, int], told: str) -> None:
    with pytest.raises(ValueError, match="must") as error:
        model_costs(known_model("llama-2-7b").model, Deployment(**changes))  # type: ignore[arg-type]  # the point
    assert told in str(error.value)
