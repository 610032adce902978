"""BPipe's grid: its points by the printed constraints, and what fits against Eq. 1 to 12."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

from benchmarks.bpipe_grid_page import MARKED, compared
from benchmarks.bpipe_settings import LARGE, MIDDLE, NAMES, SMALL, point_of
from bubbleproof.costs import transformer
from bubbleproof.papers.bpipe.bpipe_grid import (
    NEAREST,
    PRINTED,
    Setting,
    bandwidth,
    forward_seconds,
    grid,
    is_hidden,
    least_recomputed,
    memory_bytes,
    saved_bytes,
)
from bubbleproof.papers.bpipe.node_places import DeviceMesh
from proofs_tests.papers.pair_search import fewest_by_search
from proofs_tests.sized import sized

GIB = 1 << 30


def test_the_points_are_those_of_the_constraints() -> None:
    # Section 4.2: H mod t, 8 mod t, L mod p and B mod (b d) are 0, and t p d is G.
    for setting in (MIDDLE, LARGE):
        model, found = setting.model, {(x.tensor, x.pipeline, x.micro_batch) for x in grid(setting)}
        wanted = set()
        for t, p, d in product(range(1, 9), range(1, 49), range(1, 49)):
            divides = (model.heads % t, 8 % t, model.layers % p)
            if t * p * d == setting.gpus and not any(divides):
                powers = [2**k for k in range(8)]
                wanted |= {(t, p, b) for b in powers if setting.batch % (b * d) == 0}
        assert found == wanted


def test_bytes_and_bandwidths_are_eq_4_to_12() -> None:
    for setting in (SMALL, MIDDLE, LARGE):
        model = setting.model
        layers, heads, h, sequence = model.layers, model.heads, model.hidden, 2048
        for point in list(grid(setting))[:20]:
            t, p, b = point.tensor, point.pipeline, point.micro_batch
            base = Fraction(layers * sequence * b * h, p)
            equations = {
                "none": base / t * (34 + Fraction(5 * heads * sequence, h)),
                "attention": 34 * base / t,
                "full": 2 * base,
            }
            assert setting.pace is not None
            forward = forward_seconds(setting.pace, point)
            for scope, kept in equations.items():
                assert saved_bytes(setting, point, scope) == kept
                assert bandwidth(setting, point, scope, forward) == kept / forward / 10**9
                relaxed = bandwidth(setting, point, scope, forward, is_relaxed=True)
                assert relaxed == 2 * kept / (3 * forward) / 10**9


def test_the_least_recomputation_that_fits_is_taken() -> None:
    scopes = ("none", "attention", "full")
    for setting, reading in product((MIDDLE, LARGE), (PRINTED, NEAREST)):
        for point in list(grid(setting))[:: sized(7, full=1)]:
            fitting = [
                (scope, balanced)
                for scope in scopes
                for balanced in (False, True)
                if memory_bytes(setting, point, scope, reading, is_balanced=balanced) <= 80 * GIB
                and not (balanced and (point.pipeline < 4 or not is_hidden(setting, point, scope)))
            ]
            found = least_recomputed(setting, point, reading)
            told = None if found is None else (found.scope, found.is_balanced)
            assert told == next(iter(fitting), None)


def test_pairs_of_whole_nodes_have_the_share_of_a_gpu() -> None:
    # t = 8: 100 GB/s over eight GPUs are 12.5. At the printed pace attention needs 2/3 of 24.25,
    # 16.2, and whole layers 7.6 (2 t / 34 of it).
    whole = point_of(8, 4, 1, 4, 128)
    assert [is_hidden(MIDDLE, whole, scope) for scope in ("none", "attention", "full")] == [
        False,
        False,
        True,
    ]
    half = point_of(4, 8, 1, 2, 128)
    assert all(is_hidden(MIDDLE, half, scope) for scope in ("none", "attention", "full"))


def test_transfers_hide_where_the_slowest_link_of_the_best_placement_carries_them() -> None:
    """Every point of a small grid: pairs placed by trying all assignments, bytes by Eq. 4 to 12."""
    model = transformer("gpt", layers=8, hidden=64, heads=8, vocabulary=1000, positions=2048)
    seen = set()
    # Attention needs 2.4 GB/s at this pace, whole layers 0.14 t.
    for node, within, between in ((2, 300, 100), (2, 3, 1), (4, 1, 4), (8, 3, 8), (3, 1, 9)):
        setting = Setting(
            model=model,
            gpus=16,
            batch=32,
            node=node,
            memory=1 << 34,
            pace=Fraction(1, 100),
            within=within * 10**9,
            between=between * 10**9,
        )
        for point in grid(setting):
            t, p, d, b = point.tensor, point.pipeline, point.data, point.micro_batch
            mesh = DeviceMesh(stages=p, tensor=t, replicas=d, node=node)
            moving = [s for s in range(p // 2) if min(p - s, point.microbatches) > -(-(p + 2) // 2)]
            crosses = fewest_by_search(mesh, tuple(moving)) > 0
            link = Fraction(between, node) if crosses else Fraction(within)
            forward = Fraction(b, 100 * t * p)
            for scope, kept in (("attention", Fraction(34, t)), ("full", Fraction(2))):
                moved = kept * 8 * 2048 * b * 64 / p / 10**9
                fits = moved / (forward * 3 / 2) <= link
                assert is_hidden(setting, point, scope) == fits, (node, point, scope)
                seen.add((crosses, fits))
    assert seen == {(False, False), (False, True), (True, False), (True, True)}


def test_no_weights_alike_for_equal_shares_give_table_2() -> None:
    """The page's sentence: a point that is listed keeps more than one that is not."""
    listed, missing = point_of(4, 4, 2, 1, 128), point_of(1, 16, 2, 2, 128)
    assert listed.tensor * listed.pipeline == missing.tensor * missing.pipeline
    kept = [
        point.pipeline * saved_bytes(MIDDLE, point, scope) / GIB
        for point, scope in ((listed, "attention"), (missing, "full"))
    ]
    assert [f"{float(each):.2f}" for each in kept] == ["12.95", "6.09"]
    by_key = {
        (p.tensor, p.pipeline, p.micro_batch): told for p, told, _, _ in compared("GPT-3 96B")
    }
    assert (by_key[4, 4, 1], by_key[1, 16, 2]) == ("attention", "")


def test_what_table_7_marks_needs_transfers() -> None:
    for name, t, p, b in MARKED:
        setting = NAMES[name]
        point = next(x for x in grid(setting) if (x.tensor, x.pipeline, x.micro_batch) == (t, p, b))
        fit = least_recomputed(setting, point, NEAREST)
        assert fit is not None
        assert (fit.scope, fit.is_balanced) == ("attention", True)
