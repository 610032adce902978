"""One list of frameworks: who hands over, judges and counts by it knows every name in it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bubbleproof.costs.known_models import known_model
from bubbleproof.costs.layer_extras import layer_extras
from bubbleproof.costs.times.profiles import software
from bubbleproof.costs.transformer import LayerRun
from bubbleproof.frameworks import FRAMEWORKS, framework_named
from bubbleproof.hand_over.targets_list import WRITERS, require_target
from bubbleproof.verify import Semantics


def test_every_framework_waits_as_a_semantics_says() -> None:
    for each in FRAMEWORKS:
        assert {Semantics(name) for name in each.waits}


def test_every_name_means_one_framework_and_every_writer_has_one() -> None:
    names = [name for each in FRAMEWORKS for name in each.names]
    assert len(names) == len(set(names))
    assert WRITERS.keys() <= {each.family for each in FRAMEWORKS}
    for each in FRAMEWORKS:
        assert each.name == f"{each.product}-{each.version}"
        if each.family in WRITERS:
            require_target(each.name)


def test_what_reads_no_order_is_refused_with_what_there_is() -> None:
    with pytest.raises(ValueError, match=r"--to deepspeed: .* verify --runtime deepspeed"):
        require_target("deepspeed")


def test_an_unknown_name_or_version_is_told_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"did you mean 'megatron-core'\?"):
        framework_named("megatron-cor", "--runtime")
    with pytest.raises(ValueError, match=r"torchtitan-0\.3, .*got 'torchtitan-0\.1'"):
        framework_named("torchtitan-0.1", "--to")


def test_a_framework_counts_with_its_own_constants() -> None:
    told = {each.product: software(each.costs).name for each in FRAMEWORKS if each.costs}
    assert told == {
        "megatron-core": "megatron-core",
        "deepspeed": "megatron-deepspeed",
        "torch": "torch",
        "torchtitan": "torchtitan",
        "automodel": "automodel",
    }


def test_torchtitan_lays_experts_over_shards_and_not_over_whole_replicas() -> None:
    """Its mesh of replicate 8, shard 1, expert 8 is refused; of shard 8 it is built."""
    titan = framework_named("torchtitan", "--to")
    degrees = {"expert": 8, "data": 8, "context": 1, "tensor": 1}
    assert titan.experts_refused(**degrees, zero=0) == (
        "torchtitan-0.3 cuts experts from shard 1 x context 1 x tensor 1 = 1, which expert 8 does "
        "not divide; use zero = [2, 3]"
    )
    assert titan.experts_refused(**degrees, zero=2) == ""
    assert titan.experts_refused(**{**degrees, "context": 2, "tensor": 4}, zero=0) == ""
    assert framework_named("automodel", "--to").experts_refused(**degrees, zero=0) == ""


def test_models_that_a_framework_would_build_otherwise_are_refused() -> None:
    """Llama 3 8B is torchtitan's; windows, towers and unlike layers would be dropped."""
    titan, model = framework_named("torchtitan", "--to"), known_model("llama-3-8b").model
    assert titan.model_refused(model) == ""
    assert framework_named("torchtitan-0.2", "--to").model_refused(model) == ""
    named = titan.model_refused(replace(model, window=4096))
    assert named == ("torchtitan-0.3 has no model with attention in windows or chunks; use torch")
    assert "learned positions" in titan.model_refused(replace(model, positions=2048))
    shape = {"hidden": 4096, "heads": 32, "kv_heads": 8, "width": 128, "experts": 0}
    normed = replace(model, extras=layer_extras(shape, qk_norm="head"))
    assert titan.model_refused(normed) == ""
    gated = replace(model, extras=layer_extras(shape, sinks=True))
    assert "gates, sinks or biases" in titan.model_refused(gated)


def test_megatron_refuses_kinds_of_layers_by_name() -> None:
    """Layers with experts beside such without are its own; windows, mixers and two widths not."""
    megatron, plain = framework_named("megatron-core", "--to"), known_model("mixtral-8x7b").model

    def refused(**changes: object) -> str:
        kind = LayerRun(count=31, kind="others", changes=tuple(changes.items()))
        return megatron.model_refused(replace(plain, runs=(LayerRun(count=1, kind="plain"), kind)))

    dense = {"experts": 0, "experts_per_token": 0}
    assert refused(**dense, feed_forward=28672) == ""
    assert refused(window=4096).endswith("a part of the sequence; use torch (its layers 'others')")
    assert "layers without attention" in refused(mixer=())
    assert refused(gated=False).endswith("no layers that differ in gated, as 'others'; use torch")
    assert "several mixtures or several widths" in refused(feed_forward=4096)
    for name in ("torchtitan", "automodel"):
        told = framework_named(name, "--to").model_refused(
            replace(plain, runs=(LayerRun(count=32, kind="plain"),))
        )
        assert "layers of several kinds" in told
