"""One list of frameworks: who hands over, judges and counts by it knows every name in it."""

from __future__ import annotations

import pytest

from bubbleproof.costs.times.software import software
from bubbleproof.hand_over.targets_list import WRITERS, require_target
from bubbleproof.theory.pipelines.programs.target_runtimes import RUNTIMES, runtime_named
from bubbleproof.verify import Semantics


def test_every_runtime_waits_as_a_semantics_says() -> None:
    for runtime in RUNTIMES:
        assert {Semantics(name) for name in runtime.waits}


def test_every_name_means_one_runtime_and_every_writer_has_one() -> None:
    names = [name for each in RUNTIMES for name in (each.name, *each.also)]
    assert len(names) == len(set(names))
    assert WRITERS.keys() <= {each.family for each in RUNTIMES}
    for each in RUNTIMES:
        if each.family in WRITERS:
            require_target(each.name)


def test_what_reads_no_order_is_refused_with_what_there_is() -> None:
    with pytest.raises(ValueError, match=r"--to deepspeed: .* verify --runtime deepspeed"):
        require_target("deepspeed")


def test_an_unknown_name_is_told_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"did you mean 'megatron-core'\?"):
        runtime_named("megatron-cor", "--runtime")


def test_a_framework_counts_with_its_own_constants() -> None:
    told = {each.name: software(each.costs).name for each in RUNTIMES if each.costs}
    assert told == {"megatron-core": "megatron-core", "deepspeed": "megatron-deepspeed"}
