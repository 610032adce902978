"""The papers' formulas, written down again as they are printed, against the one inventory."""

from __future__ import annotations

from fractions import Fraction

import pytest

from bubbleproof.costs import (
    Deployment,
    known_model,
    layer_flops,
    layer_operations,
    layer_saved,
    model_costs,
    transformer,
)
from bubbleproof.costs.accounting import PRECISIONS
from bubbleproof.costs.flops import operation_flops
from bubbleproof.costs.saved_bytes import operation_saved
from bubbleproof.costs.state import bytes_per_parameter

BPIPE = [("gpt3-13b", 8, 1, 1), ("gpt3-96b", 8, 4, 2), ("gpt3-134b", 12, 4, 2)]


@pytest.mark.parametrize(("name", "p", "t", "b"), BPIPE)
def test_bpipe_equations_4_to_6(name: str, p: int, t: int, b: int) -> None:
    model = known_model(name).model
    at = Deployment(pipeline=p, tensor=t, micro_batch=b, sequence=2048, accounting="bpipe")
    L, l, h, H = model.layers, 2048, model.hidden, model.heads  # noqa: E741, N806 - Table 5's
    unit = Fraction(L * l * b * h, p)
    assert model_costs(model, at).saved_bytes == {
        "none": unit / t * (34 + Fraction(5 * H * l, h)),  # Eq. 4
        "attention": 34 * unit / t,  # Eq. 5
        "full": 2 * unit,  # Eq. 6: whole on each of the t ranks
    }


def test_bpipe_counts_20_bytes_of_a_parameter() -> None:
    assert PRECISIONS["bpipe"].total == 20


# PipeMesh, end of §II-B, and the sums of Tables I and II in s b h^2 (linears) and s^2 b h (4).
PIPEMESH: list[tuple[str, Fraction, Fraction | int]] = [
    ("pipemesh-gpt3-58b", Fraction(34), 4 * 2 + 8 + 8),
    ("pipemesh-llama2-55b", Fraction(203, 6), 2 * 2 + Fraction(1, 4) * 2 + 3 * Fraction(16, 3)),
    ("pipemesh-falcon-66b", Fraction(53, 2), 2 * 2 + Fraction(1, 4) * 2 + 8 + 8),
]


@pytest.mark.parametrize(("name", "kept", "products"), PIPEMESH)
def test_pipemesh_tables_1_and_2(name: str, kept: Fraction, products: Fraction) -> None:
    known = known_model(name)
    s, h = known.sequence, known.model.hidden
    at = Deployment(sequence=s, accounting="pipemesh")
    assert layer_saved(known.model, at) == kept * s * h
    assert layer_flops(known.model, at).forward == products * s * h**2 + 4 * s**2 * h


def test_pipemesh_table_2_operation_by_operation() -> None:
    """Llama 2's rows: FLOPs per sbh (pointwise) or sbh^2, and S_out per sbh."""
    known = known_model("pipemesh-llama2-55b")
    s, h = known.sequence, known.model.hidden
    at = Deployment(sequence=s, accounting="pipemesh")
    wide = Fraction(16, 3)
    # The table gives Linear.Down the output of a wider layer; 2 sbh is what sums up (papers).
    rows: dict[str, tuple[Fraction | int, Fraction | int]]
    rows = {
        "query": (2, 2),
        "key": (Fraction(1, 4), Fraction(1, 4)),
        "up": (wide, wide),
        "gate": (wide, wide),
        "down": (wide, 2),
        "output": (2, 2),
    }
    operations = {o.name: o for o in layer_operations(known.model)}
    for name, (products, kept) in rows.items():
        assert operation_flops(operations[name], known.model, at).forward == products * s * h**2
        assert operation_saved(operations[name], known.model, at) == kept * s * h
    assert operations["silu"].pointwise == Fraction(40, 3) * h
    assert operations["product"].pointwise == Fraction(8, 3) * h
    gpt = {o.name: o for o in layer_operations(known_model("pipemesh-gpt3-58b").model)}
    assert gpt["gelu"].pointwise == 56 * h


def test_korthikanti_without_sequence_parallelism() -> None:
    """Their Table 2: s b h (10 + 24 / t + 5 a s / (h t)); with it, (34 + 5 a s / h) / t."""
    model, s, t = known_model("gpt3-175b").model, 2048, 8
    plain = Deployment(tensor=t, sequence=s, sequence_parallel=False)
    split = 24 + Fraction(5 * model.heads * s, model.hidden)
    unit = s * model.hidden
    assert layer_saved(model, plain) == unit * (10 + split / t)
    assert layer_saved(model, plain.with_changes(sequence_parallel=True)) == unit * (10 + split) / t


def test_mepipe_static_memory() -> None:
    """§4.5: 4m/p + 8m/(dp) of half precision and Adam; §7.4's 6.375 GB are 12m/(dp)."""
    printed = bytes_per_parameter(PRECISIONS["no-main-weights"], zero=1, replicas=4)
    assert printed == 4 + Fraction(8, 4)
    counted = bytes_per_parameter(PRECISIONS["bf16-gradients"], zero=1, replicas=4)
    # 34 G parameters on p = 16 stages and d = 4 replicas: the optimizer's share.
    assert Fraction(34, 16) * (counted - 4) == Fraction("6.375")


def test_tpipe_keeps_the_inputs_of_columns_whole() -> None:
    """Of T-Pipe's (PP, TP) = (8, 8): norm outputs, 2 x 2 sbh, lie whole on each of the 8 ranks."""
    model = transformer(
        "llama", layers=48, hidden=8192, heads=64, feed_forward=24576, vocabulary=32000
    )
    split = Deployment(tensor=8, sequence=4096, micro_batch=2, accounting="pipemesh")
    unit = 4096 * 2 * 8192
    whole = layer_saved(model, split.with_changes(accounting="tpipe"))
    assert whole - layer_saved(model, split) == 4 * unit * Fraction(7, 8)
