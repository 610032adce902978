"""Recomputation, eviction, two directions and slices: equal bits, predicted bytes, and teeth."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch

from bubbleproof.reference_exec.bits import are_equal
from bubbleproof.reference_exec.broken import BrokenProgram, MessageMismatch
from bubbleproof.reference_exec.drivers.virtual import ReplayStalled, run_virtual
from bubbleproof.reference_exec.evidence.compare import summed_replicas
from bubbleproof.reference_exec.evidence.oracle import order_matched
from bubbleproof.reference_exec.models.footprint import footprint, input_bytes
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.plans import prediction
from bubbleproof.reference_exec.replaying import replay
from bubbleproof.theory.families import families
from bubbleproof.theory.model.memory import memory_profile
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.placement import num_downward
from bubbleproof.verify.communication.semantics import USUAL, Semantics
from proofs_tests.reference_exec.cases import TINY, Case, family_case, random_case, run
from proofs_tests.sized import paired, sampled, sized

WIDE = ModelSpec(kind="transformer", hidden=4, heads=2, sequence=5, batch=2)
Params = dict[str, int]
FAMILIES: list[tuple[str, Params]] = [
    ("trecomp", {"p": 3, "m": 4}),
    ("trecomp", {"p": 2, "m": 3, "v": 3, "R": 67}),
    ("trecomp-interleaved", {"p": 2, "m": 4}),
    ("bpipe", {"p": 4, "m": 6}),
    ("bpipe", {"p": 5, "m": 7, "tF": 2, "tB": 3}),
    ("bpipe-interleaved", {"p": 4, "m": 4, "v": 2}),
    ("chimera", {"p": 4, "m": 6}),
    ("dualpipe", {"p": 4, "m": 8}),
    ("terapipe", {"p": 2, "m": 2, "s": 3}),
    ("svpp", {"p": 3, "m": 3, "s": 2, "v": 2}),
    ("svpp-w", {"p": 2, "m": 3, "s": 4}),
    ("toffload", {"p": 3, "m": 4}),
    ("toffload", {"p": 2, "m": 3, "v": 4}),
]
KINDS, DTYPES = ("mlp", "transformer"), ("float64", "float32")


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("family", "seeded", "kind", "dtype"),
    sampled(paired(FAMILIES, [*enumerate(USUAL)], KINDS, DTYPES), every=2),
)
def test_families_replay_under_every_semantics(
    family: tuple[str, Params], seeded: tuple[int, Semantics], kind: str, dtype: str
) -> None:
    (name, params), (seed, semantics) = family, seeded
    spec = replace(WIDE, kind=kind, dtype=dtype, seed=seed)
    report = run(family_case(name, **params), spec, seed=seed, semantics=semantics)
    assert report.gradients_equal
    assert report.peak_bytes.measured == report.peak_bytes.predicted
    assert report.ok, str(report)


# Recomputation


def test_live_bytes_around_a_recomputation() -> None:
    # one rank, two stages, stage 0 recomputed: TINY is 720 bytes on stage 0 (input 12 * 8 = 96 of
    # them), 728 on the last. 0F0 holds 720 while it runs, then 96; 1F0 adds 728, 1B0 gives it back;
    # R makes 720 again, B releases all
    case = family_case("trecomp", p=1, m=1)
    assert case.orders() == [["0F0", "1F0", "1B0", "0R0", "0B0"]]
    (result,) = run_virtual(case.plan())
    assert result.live_bytes == (720, 96, 96 + 728, 96, 720, 0)


def test_a_forward_is_sampled_before_it_drops() -> None:
    # theory counts all of a recomputed forward while it runs; so a rank's peak may be there
    report = run(family_case("trecomp", p=4, m=8), TINY)
    without = run(family_case("tpipe", p=4, m=8), TINY)
    assert report.ok
    assert without.ok
    assert sum(report.peak_bytes.measured) < sum(without.peak_bytes.measured)
    assert input_bytes(TINY) == 96


# Evictions


@pytest.mark.sweep
def test_bpipe_stays_within_mu_opt_in_measured_bytes_and_1f1b_does_not() -> None:
    for p, m in sized([(4, 6)], full=[(4, 8), (6, 9)]):
        report = run(family_case("bpipe", p=p, m=m), WIDE)
        plain = run(family_case("1f1b", p=p, m=m), WIDE)
        optimum = -(-(p + 2) // 2)
        unit = footprint(WIDE, p - 1, p).activation_bytes  # the last stage's, the largest
        assert report.ok
        assert max(report.peak_bytes.measured) <= optimum * unit
        assert plain.peak_bytes.measured[0] == p * footprint(WIDE, 0, p).activation_bytes
        assert plain.peak_bytes.measured[0] > optimum * unit


def changes(case: Case, rank: int) -> dict[tuple[str, int], int]:
    """By how much the live bytes of a rank change at the n-th standing of each action."""
    live = run_virtual(case.plan())[rank].live_bytes
    steps = [a for a in case.orders()[rank] if "SEND" not in a and "RECV" not in a]
    names = [(a, steps[:i].count(a)) for i, a in enumerate(steps)]
    deltas = (after - before for before, after in pairwise((0, *live)))
    return dict(zip(names, deltas, strict=True))


def test_a_transfer_counts_on_both_ends_until_it_has_ended() -> None:
    # stage 0 holds 720 bytes. Posting an EVICT empties the storages into the message, which is
    # freed when it has left; the other end has its buffer from the post on. LOAD likewise.
    case = family_case("bpipe", p=4, m=5)
    evictor, acceptor = changes(case, 0), changes(case, 3)
    assert (evictor["0EVICT1", 0], evictor["0EVICT1", 1]) == (0, -720)
    assert (acceptor["0EVICT1", 0], acceptor["0EVICT1", 1]) == (720, 0)
    assert (evictor["0LOAD1", 0], evictor["0LOAD1", 1]) == (720, 0)
    assert (acceptor["0LOAD1", 0], acceptor["0LOAD1", 1]) == (0, -720)


@pytest.mark.parametrize(("tF", "tB", "transfer"), [(1, 1, 1), (2, 3, 2), (3, 5, 1), (4, 4, 3)])
def test_measured_peaks_are_the_timed_models(tF: int, tB: int, transfer: int) -> None:  # noqa: N803 - as the command has them
    # the schedule's own profile, at any ticks: transfers begin and end within computations here
    bpipe = families()["bpipe"]
    plain = Pipeline(num_ranks=5, num_microbatches=7, forward=tF, backward=tB, activation=1000)
    pipeline = bpipe.balanced(plain, transfer=transfer)  # type: ignore[attr-defined]  # BPipe's own
    problem, schedule = pipeline.problem(), bpipe.schedule(pipeline)
    profile = memory_profile(problem, problem.locate(schedule.program.actions), schedule.start)
    report = replay(pipeline, schedule, TINY)
    assert report.ok
    units = [(peak - peak % 720) // 720 for peak in report.peak_bytes.measured]
    assert [1000 * u for u in units] == profile.peaks(problem).tolist()


@pytest.mark.parametrize(
    ("at", "old", "new", "message"),
    [
        (0, ["0LOAD1", "0LOAD1"], [], "while its activation is away|never loaded|not waited for"),
        (0, ["0EVICT1", "0EVICT1"], [], "0EVICT1|without its forward"),
        (3, ["0EVICT1"], [], "0LOAD1|0EVICT1|waits for"),
    ],
)
def test_a_dropped_transfer_is_noticed(
    at: int, old: list[str], new: list[str], message: str
) -> None:
    case = family_case("bpipe", p=4, m=6)
    orders = case.orders()
    flat = [action for action in orders[at] if action not in old] + new
    orders[at] = flat
    with pytest.raises((BrokenProgram, ReplayStalled, MessageMismatch), match=message):
        run_virtual(case.plan(program=Program.from_orders(orders)))


# Stages on two ranks


@pytest.mark.sweep
@pytest.mark.parametrize(("p", "m"), [(2, 1), (2, 2), (2, 5), (3, 1), (3, 4)])
def test_random_bidirectional_programs_replay(p: int, m: int) -> None:
    pipeline = Pipeline(num_ranks=p, num_microbatches=m, placement="bidirectional")
    for seed in range(sized(1, full=3)):
        assert run(random_case(pipeline, seed), WIDE, seed=seed).ok


def test_gradients_are_those_of_both_replicas() -> None:
    case = family_case("chimera", p=2, m=4)
    results = run_virtual(case.plan(WIDE))
    matched, _ = order_matched(case.plan(WIDE))
    assert are_equal(summed_replicas(results), matched)
    assert not are_equal(results[0].gradients, matched)
    assert num_downward(4) == 2
    for first, second in ((0, 0), (1, 1)):  # one replica twice in the place of both
        assert not are_equal(summed_replicas([results[first], results[second]]), matched)


# Slices


def test_slices_are_as_even_as_they_can_be() -> None:
    spec = ModelSpec(sequence=7)
    assert [spec.slice_length(k, 3) for k in range(3)] == [3, 2, 2]
    assert [spec.slice_start(k, 3) for k in range(3)] == [0, 3, 5]
    with pytest.raises(ValueError, match="sequence must be 4 or more, one token per slice, got 3"):
        run(family_case("svpp", p=2, m=2, s=4), TINY)


def test_the_footprint_of_a_slice() -> None:
    # N = 2 * 2 = 4 tokens of 5, d = 4: 16 * 16 + 4 * 4 = 272 and probabilities 2 * 2 * 2 * (3 + 2)
    # = 40, output 16: 328 * 8 bytes; the first slice has N = 6: 384 + 24 + 36 + 24 = 468
    first, second = (footprint(WIDE, 0, 2, slice_index=k, num_slices=2) for k in range(2))
    assert (first.activation_bytes, second.activation_bytes) == (468 * 8, 328 * 8)
    assert second.weight_bytes == 256 * 8


@pytest.mark.sweep
@pytest.mark.parametrize("seed", sampled(range(4), every=3))
def test_random_sliced_programs_replay(seed: int) -> None:
    flags = tuple(tuple(bool((g + j + seed) % 2) for j in range(2)) for g in range(4))
    pipeline = Pipeline(
        num_ranks=2,
        num_microbatches=2,
        num_chunks=2,
        num_slices=3,
        placement="wave",
        split_backward=flags,
    )
    layers = tuple(1 + (g + seed) % 2 for g in range(4))
    semantics = USUAL[seed]
    shapes = ((1, 3), (2, 7))
    for heads, sequence in sized(shapes[seed % 2 :][:1], full=shapes):
        spec = replace(WIDE, heads=heads, sequence=sequence, layers=layers, seed=seed)
        assert run(random_case(pipeline, seed), spec, semantics=semantics, seed=seed).ok


def test_sliced_gradients_are_the_whole_samples() -> None:
    # slicing rounds otherwise, but computes the same: against the unsliced replay
    whole = run_virtual(family_case("gpipe", p=2, m=2).plan(WIDE))
    parts = run_virtual(family_case("terapipe", p=2, m=2, s=5).plan(WIDE))
    expected = summed_replicas(whole)
    for key, found in summed_replicas(parts).items():
        assert torch.allclose(found, expected[key], rtol=0, atol=1e-14)


@pytest.mark.parametrize(
    ("order", "message"),
    [
        (["0F0.1", "0F0.0", "0B0.1", "0B0.0"], "0F0.1 before an earlier slice's"),
        (["0F0.0", "0F0.1", "0B0.0", "0B0.1"], "0B0 before a later slice's"),
        (["0F0.0", "0B0.0", "0F0.1", "0B0.1"], "0F0.1 before an earlier slice's"),
    ],
)
def test_slices_in_a_wrong_order_are_noticed(order: list[str], message: str) -> None:
    case = random_case(Pipeline(num_ranks=1, num_microbatches=1, num_slices=2), 0)
    plan = case.plan(WIDE, program=Program.from_orders([order]))
    with pytest.raises(BrokenProgram, match=message):
        run_virtual(plan)


def test_live_bytes_of_slices_follow_the_model_after_every_action() -> None:
    case = family_case("svpp-w", p=2, m=3, s=3)
    problem = prediction.problem_in_bytes(case.pipeline, WIDE)
    change = np.zeros(problem.num_tasks, dtype=np.int64)
    np.add.at(change, problem.events.task, problem.events.delta)
    task, where = problem.locate(case.schedule.program.actions), case.schedule.program.resource
    expected = [np.cumsum(change[task[where == r]]).tolist() for r in range(problem.num_ranks)]
    assert [list(curve) for curve in run(case, WIDE).live_bytes] == expected
