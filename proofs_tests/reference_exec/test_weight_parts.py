"""Weight gradients cut into parts: each part runs its GEMMs, once, and lets their operands go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, product
from pathlib import Path

import pytest
import torch
from torch import nn

from bubbleproof.reference_exec.bits import are_equal
from bubbleproof.reference_exec.broken import BrokenProgram
from bubbleproof.reference_exec.drivers.virtual import run_virtual
from bubbleproof.reference_exec.evidence.oracle import order_matched, single_threaded
from bubbleproof.reference_exec.evidence.replay_report import ReplayReport
from bubbleproof.reference_exec.ledger import Ledger
from bubbleproof.reference_exec.models.footprint import footprint, shares
from bubbleproof.reference_exec.models.linear import WeightGradStore
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.models.reference import Stage
from bubbleproof.reference_exec.plans.replay_plan import ReplayPlan
from bubbleproof.reference_exec.plans.replicated import replicated
from bubbleproof.reference_exec.plans.run_options import ReplayOptions
from bubbleproof.reference_exec.pytorch.table import require_sayable
from bubbleproof.reference_exec.replaying import NotVerified, replay
from bubbleproof.reference_exec.runtime import compute
from bubbleproof.theory.families.svpp import SVPPWeights
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.programs.lowering import lower
from bubbleproof.theory.pipelines.state_offload import StateOffload
from proofs_tests.reference_exec.cases import TINY, Case, random_case, run
from proofs_tests.sized import sampled
from proofs_tests.verify.dataflow.samples import retimed, swapped, texts, without

WIDE = ModelSpec(hidden=8, heads=4, kv_heads=2, sequence=5, batch=2, layers=2)
KINDS = ("mlp", "transformer", "llama")
EXAMPLE = ModelSpec(
    kind="own", factory=f"{Path(__file__).resolve().parents[2]}/examples/model/own_model.py:build"
)


def cut(p: int, m: int, s: int, parts: Sequence[int], v: int = 1) -> Pipeline:
    """F, I and W take 6 ticks each; W is cut into ``parts``, which add up to that."""
    return Pipeline(
        num_ranks=p,
        num_microbatches=m,
        num_chunks=v,
        num_slices=s,
        split_backward=True,
        forward=6,
        input_backward=6,
        weight_backward=6,
        weight_parts=tuple(parts),
    )


def svpp_case(pipeline: Pipeline) -> Case:
    problem = pipeline.problem()
    schedule = SVPPWeights().schedule(pipeline, problem)
    return Case(
        pipeline=pipeline, problem=problem, schedule=schedule, lowered=lower(problem, schedule)
    )


def assert_as_predicted(report: ReplayReport) -> None:
    assert report.ok, report.failures
    assert report.gradients_equal
    assert report.peak_bytes.measured == report.peak_bytes.predicted
    assert all(trace.predicted for trace in report.traces)  # ok compares every action's bytes


def alone(*actions: str, num_parts: int, spec: ModelSpec = TINY, m: int = 1) -> ReplayPlan:
    """A plan of one rank and one stage, whose W has ``num_parts`` parts."""
    return ReplayPlan(
        spec=spec,
        program=Program.from_orders([actions]),
        stage_ranks=(0,),
        num_microbatches=m,
        weight_parts={0: num_parts},
    )


# Live bytes by hand. TINY has N = 3 tokens, d = 4, 8 bytes an element; a GEMM lets go
#   mlp          down 4 d + d, up d + 4 d: 2 * 20 elements a token, 480 bytes each
#   transformer  down 5 d, up 5 d, output 2 d, value d, key d, query 2 d (d of it the input of the
#                three): 5 5 2 1 1 2 times 96 bytes
#   llama        with f = 11 and e = 2: down d + f, up f, gate f + d, output 2 d, value e, key e,
#                query d + d: 15 11 15 8 2 2 8 times 24 bytes
AFTER = {
    ("mlp", 2): (960, 480, 0),
    ("mlp", 3): (960, 480, 0, 0),  # two GEMMs, the last part is empty
    ("transformer", 2): (16 * 96, 4 * 96, 0),
    ("transformer", 3): (16 * 96, 6 * 96, 3 * 96, 0),
    ("llama", 2): (61 * 24, 12 * 24, 0),  # 4 + 3 GEMMs
    ("llama", 3): (61 * 24, 20 * 24, 10 * 24, 0),  # 3 + 2 + 2
}


@pytest.mark.parametrize(("kind", "num_parts"), AFTER)
def test_live_bytes_fall_part_by_part(kind: str, num_parts: int) -> None:
    weights = [f"0W0#{part}" for part in range(num_parts)]
    spec = replace(TINY, kind=kind)
    (result,) = run_virtual(alone("0F0", "0I0", *weights, num_parts=num_parts, spec=spec))
    assert result.live_bytes[1:] == AFTER[kind, num_parts]


def test_peaks_by_hand() -> None:
    # one rank, 728 bytes from F to I, 960 from I on, 480 after part 0 and 0 after part 1: the
    # second F finds 480, not 960, which is what stays to the last part in theory's model
    pipeline = cut(1, 2, 1, (3, 3))
    problem = pipeline.problem()
    order = ["0F0", "0I0", "0W0#0", "0F1", "0W0#1", "0I1", "0W1#0", "0W1#1"]
    schedule = retimed(problem, [order])
    case = Case(
        pipeline=pipeline, problem=problem, schedule=schedule, lowered=lower(problem, schedule)
    )
    report = run(case)
    assert_as_predicted(report)
    assert report.live_bytes == ((728, 960, 480, 480 + 728, 728, 960, 480, 0),)
    assert report.peak_bytes.measured == (1208,)
    whole = retimed(
        pipeline.with_changes(weight_parts=()).problem(),
        [["0F0", "0I0", "0F1", "0W0", "0I1", "0W1"]],
    )
    plain = pipeline.with_changes(weight_parts=())
    assert replicated(plain, whole, TINY).peak_bytes() == (1688,)


def test_gemms_are_left_in_the_order_of_the_shares() -> None:
    for kind in KINDS:
        spec = replace(WIDE, kind=kind, vocabulary=5).on(1)
        stage, store = Stage(spec, 0), WeightGradStore(Ledger())
        store.is_deferring = True
        words = torch.zeros(spec.shape[:2], dtype=torch.int64)
        stage(words, store).sum().backward()
        names = {id(weight): name for name, weight in stage.named_parameters()}
        assert tuple(names[id(weight)] for weight, *_ in store._left) == stage.gemms()
        assert len(footprint(spec, 0, 1).gemm_bytes) == len(stage.gemms())


@pytest.mark.parametrize("num_gemms", [0, 1, 2, 7, 12])
@pytest.mark.parametrize("num_parts", [1, 2, 3, 5])
def test_shares_are_contiguous_and_even(num_gemms: int, num_parts: int) -> None:
    found = shares(num_gemms, num_parts)
    assert [k for share in found for k in share] == list(range(num_gemms))
    assert len(found) == num_parts
    sizes = [len(share) for share in found]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] - sizes[-1] <= 1


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("kind", "cut_up", "dtype"),
    sampled(
        [
            *product(
                KINDS,
                (((3, 3), "pair-stream"), ((2, 3, 1), "rendezvous")),
                ("float64", "float32"),
            )
        ],
        every=3,
    ),
)
def test_single_gemms_in_the_waits_replay(
    kind: str, cut_up: tuple[tuple[int, ...], str], dtype: str
) -> None:
    parts, semantics = cut_up
    case = svpp_case(cut(2, 3, 2, parts))
    assert any(action.part == len(parts) - 1 for action in case.lowered.actions)
    spec = replace(WIDE, kind=kind, dtype=dtype)
    assert_as_predicted(run(case, spec, semantics=semantics, seed=len(parts)))


@pytest.mark.parametrize("seed", range(3))
def test_random_programs_with_parts_replay(seed: int) -> None:
    # stages with other numbers of parts, full backwards between them, and a head
    flags = tuple(tuple((g + j + seed) % 3 > 0 for j in range(3)) for g in range(4))
    rows = ((1, 1), (), (1, 1, 1), (2,))
    pipeline = Pipeline(
        num_ranks=2,
        num_microbatches=3,
        num_chunks=2,
        placement="wave",
        split_backward=flags,
        weight_backward=(2, 1, 3, 2),
        weight_parts=rows,
    )
    case = random_case(pipeline, seed)
    spec = replace(WIDE, kind=KINDS[seed], layers=(1, 2, 1, 2), vocabulary=5)
    assert_as_predicted(run(case, spec, seed=seed))


def test_parts_on_processes_replay() -> None:
    case = svpp_case(cut(2, 2, 2, (2, 3, 1)))
    assert_as_predicted(run(case, replace(WIDE, kind="transformer"), backend="gloo"))


def test_parts_of_stages_that_a_host_updates_replay() -> None:
    pipeline = Pipeline(
        num_ranks=2,
        num_microbatches=2,
        split_backward=True,
        weight_backward=2,
        weight_parts=(1, 1),
        state_offload=StateOffload(stages=(1,)),
    )
    report = run(random_case(pipeline, 0))
    assert report.ok, report.failures
    assert report.weights_equal
    assert report.num_updated_stages == 1


def test_parts_of_a_user_s_own_model_replay() -> None:
    # 10 words of 12 elements; of a block outer lets go 36 + 12 and inner 12 + 36 elements a word,
    # the scores 12 + 11: three parts, the last of them always empty
    stages = [footprint(EXAMPLE, stage, 4) for stage in range(4)]
    assert [stage.gemm_bytes for stage in stages] == [(), *[(3840, 3840)] * 2, (1840,)]
    assert_as_predicted(run(random_case(cut(2, 2, 1, (2, 3, 1), v=2), 3), EXAMPLE))


def test_each_part_adds_in_an_order_of_its_own() -> None:
    # down (part 0) adds microbatches 0 1 2, up (part 1) 2 1 0: neither order fits both
    opening = [f"0{kind}{j}" for j in range(3) for kind in "FI"]
    first, last = [f"0W{j}#0" for j in range(3)], [f"0W{j}#1" for j in range(3)]
    spec = replace(TINY, dtype="float32", hidden=16, sequence=9)
    plans = [
        alone(*opening, *first, *order, num_parts=2, spec=spec, m=3) for order in (last[::-1], last)
    ]
    with single_threaded():
        (result,) = run_virtual(plans[0])
        assert are_equal(result.gradients, order_matched(plans[0])[0])
        other = order_matched(plans[1])[0]
    differing = {n for (_, n), g in result.gradients.items() if not torch.equal(g, other[0, n])}
    assert differing == {"layers.0.up.weight"}


# What must not run, or not pass.


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        (("0F0", "0I0", "0W0#0"), "rank 0, action 2: left over: 0I0 without W#1"),
        (("0F0", "0I0"), "left over: 0I0 without W#0, 0I0 without W#1"),
        (("0F0", "0I0", "0W0#0", "0W0#0"), "rank 0, action 3: 0W0#0 runs twice"),
        (("0F0", "0I0", "0W0#0", "0W0#1", "0W0#1"), "0W0#1 without its I, or again"),
        (("0F0", "0W0#0"), "0W0#0 without its I, or again"),
        (("0F0", "0I0", "0W0#2"), "0W0#2 of a weight gradient that is cut into 2 parts"),
        (("0F0", "0I0", "0W0"), "0W0 of a weight gradient that is cut into 2 parts"),
    ],
)
def test_missing_and_repeated_parts_are_noticed(actions: tuple[str, ...], message: str) -> None:
    with pytest.raises(BrokenProgram, match=message):
        run_virtual(alone(*actions, num_parts=2))


def test_a_part_of_a_whole_weight_gradient_is_noticed() -> None:
    plan = replace(alone("0F0", "0I0", "0W0#0", num_parts=1), weight_parts={})
    with pytest.raises(BrokenProgram, match="0W0#0 of a weight gradient that is whole"):
        run_virtual(plan)


def test_a_dropped_part_is_refused_and_shows_where_it_is_forced() -> None:
    case = svpp_case(cut(2, 2, 1, (3, 3)))
    short = without(case.schedule, "0W1#1")
    with pytest.raises(NotVerified, match="0W1#1 is missing"):
        replay(case.pipeline, short, TINY)
    report = replay(case.pipeline, short, TINY, ReplayOptions(unsafe=True))
    assert report.broken_rules == ("complete", "dataflow")
    assert "left over: 0I1 without W#1" in report.stopped
    assert not report.gradients_equal
    assert not report.ok


def test_a_repeated_part_is_refused_and_shows_where_it_is_forced() -> None:
    # 0W0#0 stands in the place of 0W0#1
    case = svpp_case(cut(2, 2, 1, (3, 3)))
    orders = texts(case.schedule, case.problem)
    twice = Program.from_orders([["0W0#0" if a == "0W0#1" else a for a in o] for o in orders])
    wrong = replace(case.schedule, program=twice)
    with pytest.raises(NotVerified, match="0W0#"):
        replay(case.pipeline, wrong, TINY)
    report = replay(case.pipeline, wrong, TINY, ReplayOptions(unsafe=True))
    assert {"complete", "dataflow"} <= set(report.broken_rules)
    assert "0W0#0 runs twice" in report.stopped
    assert not report.ok


def test_parts_out_of_their_order_are_refused_and_right_all_the_same() -> None:
    # rule 3 knows the queue; no part needs another, so forcing it changes no bit
    case = svpp_case(cut(1, 2, 1, (3, 3)))
    orders = swapped(texts(case.schedule, case.problem), "0W0#0", "0W0#1")
    wrong = replace(case.schedule, program=Program.from_orders(orders))
    with pytest.raises(NotVerified):
        replay(case.pipeline, wrong, TINY)
    assert replay(case.pipeline, wrong, TINY, ReplayOptions(unsafe=True)).gradients_equal


def test_a_gemm_that_is_forgotten_once_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    right, calls = WeightGradStore.run, list[int]()

    def forgetful(store: WeightGradStore, weights: Sequence[nn.Parameter]) -> None:
        calls.append(len(weights))
        right(store, weights[: 1 if len(calls) == 1 else None])

    monkeypatch.setattr(WeightGradStore, "run", forgetful)
    report = run(svpp_case(cut(1, 2, 1, (3, 3))), replace(TINY, kind="transformer"))
    assert calls == [3, 3, 3, 3]
    assert not report.gradients_equal
    assert not report.ok


def test_parts_of_other_gemms_than_predicted_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    # 6 GEMMs in 4 parts: 2 2 1 1, which let go 10 3 1 2 units, against 1 1 2 2: 5 5 3 3
    def longer_last(num_gemms: int, num_parts: int) -> tuple[range, ...]:
        ends = [0, *accumulate(map(len, reversed(shares(num_gemms, num_parts))))]
        return tuple(map(range, ends, ends[1:]))

    monkeypatch.setattr(compute, "shares", longer_last)
    order = ["0F0", "0I0", *(f"0W0#{part}" for part in range(4))]
    case = svpp_case(cut(1, 1, 1, (2, 2, 1, 1)))
    assert texts(case.schedule, case.problem) == [order]
    report = run(case, replace(TINY, kind="transformer"))
    assert report.gradients_equal
    assert report.live_bytes == ((1880, 16 * 96, 11 * 96, 6 * 96, 3 * 96, 0),)
    # 6 3 2 0 units were predicted after the parts
    told = "the bytes of 3 actions are not the model's: 480 bytes beyond them at 0W0#0 (action 2)"
    assert f"rank 0: {told}" in report.failures
    works = [failure for failure in report.failures if failure != f"rank 0: {told}"]
    assert len(works) == 2  # the parts' operations, and to how many gradients they add
    assert all(work.startswith("rank 0: 0W0#0 (action 2) ") for work in works)


def test_pytorch_s_tables_have_no_parts() -> None:
    plan = svpp_case(cut(2, 2, 1, (3, 3))).plan()
    with pytest.raises(ValueError, match=r"PyTorch table says whole weight gradients; got .W0#0"):
        require_sayable(plan)
