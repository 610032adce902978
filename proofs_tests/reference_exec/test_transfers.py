"""Transfers stand in programs where memory and order in time are those of the schedule."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from bubbleproof.reference_exec.plans.run_options import ReplayOptions
from bubbleproof.reference_exec.plans.transfer_rows import with_transfers
from bubbleproof.reference_exec.replaying import NotVerified, replay
from bubbleproof.theory.families.evicting.bpipe import BPipe
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.theory.pipelines.activation_offload import ActivationOffload
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.recompute import Recompute
from bubbleproof.theory.pipelines.timing import left_shift
from bubbleproof.theory.pipelines.transfers import Eviction
from bubbleproof.verify.check import check
from bubbleproof.verify.communication.semantics import USUAL
from proofs_tests.reference_exec.cases import TINY, Case, family_case, random_case
from proofs_tests.sized import sampled, sized
from proofs_tests.verify.dataflow.samples import without_edge


def random_choices(seed: int) -> Case:
    """A random program whose samples are recomputed, evicted, off-loaded, or none of these."""
    choice, aside = random.Random(seed), random.Random(-seed)
    p, v, m = choice.choice([2, 3, 4]), choice.choice([1, 2]), choice.choice([2, 3, 4])
    stages = range(p * v)
    base = Pipeline(
        num_ranks=p,
        num_microbatches=m,
        num_chunks=v,
        placement=choice.choice(["loop", "wave"]),
        split_backward=tuple(tuple(choice.random() < 0.5 for _ in range(m)) for _ in stages),
        forward=choice.randint(1, 3),
        backward=choice.randint(1, 4),
        input_backward=choice.randint(1, 3),
        weight_backward=choice.randint(1, 3),
    )
    samples, evictions, offloads = [], [], []
    for stage in stages:
        source = base.stage_ranks[stage]
        for microbatch in range(m):
            drawn = choice.random()
            if drawn < 0.3:
                samples.append((stage, microbatch))
            elif drawn < 0.7:
                target = choice.choice([rank for rank in range(p) if rank != source])
                evictions.append(
                    Eviction(
                        stage=stage,
                        microbatch=microbatch,
                        source=source,
                        target=target,
                        duration=choice.randint(1, 4),
                    )
                )
            elif drawn < 0.8:
                ticks = aside.randint(0, 3), aside.randint(1, 4)
                offloads.append(
                    ActivationOffload(
                        stage=stage, microbatch=microbatch, offload=ticks[0], reload=ticks[1]
                    )
                )
    fields = {name: getattr(base, name) for name in Pipeline.__dataclass_fields__}
    recompute = Recompute(samples=tuple(samples)) if samples else None
    chosen = Pipeline(
        **fields, recompute=recompute, evictions=tuple(evictions), offloads=tuple(offloads)
    )
    return random_case(chosen, seed)


# 8 and 26 are where moments first went wrong: ranks that waited for each other under rendezvous,
# and a forward that drops while a transfer begins beside it
@pytest.mark.sweep
@pytest.mark.parametrize("seed", sampled([0, 1, 2, 3, 8, 26, 45, 51], every=3))
def test_random_choices_replay(seed: int) -> None:
    case = random_choices(seed)
    kind = ["mlp", "transformer"][seed % 2]
    for semantics in sized(USUAL[seed % 3 :: 3], full=USUAL):
        spec = replace(TINY, kind=kind, seed=seed)
        report = replay(
            case.pipeline, case.schedule, spec, ReplayOptions(seed=seed, semantics=semantics)
        )
        assert report.ok, str(report)


def test_rows_are_merged_by_time() -> None:
    # one stage per rank, one microbatch, rank 1 is the host of 0F0's activation:
    #   rank 0   F [0,2)                      B [9,10)       EVICT [2,4)   LOAD [5,7)
    #   rank 1          F [2,4)    B [6,9)
    # 1F counts at 2, after the post at 2 that was there first; 1B counts at 9, its end, after both
    # the LOAD's post at 5 and its end at 7, which free rank 1 before 9 and are not kept waiting
    pipeline = Pipeline(
        num_ranks=2,
        num_microbatches=1,
        evictions=(Eviction(stage=0, microbatch=0, source=0, target=1, duration=2),),
    )
    problem = pipeline.problem()
    program = Program.from_orders([["0F0", "0B0"], ["1F0", "1B0"], ["0EVICT0", "0LOAD0"]])
    schedule = Schedule(program=program, start=np.array([0, 9, 2, 6, 2, 5]))
    actions = {str(a): a for a in program.actions}
    moment = {
        actions["0F0"]: (0, 1),
        actions["0B0"]: (10, 0),
        actions["1F0"]: (2, 1),
        actions["1B0"]: (9, 0),
    }
    lowered = Program.from_orders([["0F0", "0B0"], ["1F0", "1B0"]])
    ranks = {actions["0EVICT0"]: (0, 1), actions["0LOAD0"]: (0, 1)}
    merged = with_transfers(problem, schedule, lowered, moment, ranks)
    moves = ["0EVICT0", "0EVICT0", "0LOAD0", "0LOAD0"]
    assert [[str(a) for a in order] for order in merged.orders(2)] == [
        ["0F0", *moves, "0B0"],
        ["1F0", *moves, "1B0"],
    ]


def test_what_a_careless_problem_allows_is_refused() -> None:
    # a later slice sends its gradients to the keys and values of an earlier one, which must wait;
    # the problem forgot that, so the schedule keeps every rule of the problem; the pipeline has not
    # forgotten
    pipeline = Pipeline(num_ranks=1, num_microbatches=1, num_slices=2)
    careless = without_edge(pipeline.problem(), "0B0.1", "0B0")
    early = Program.from_orders([["0F0", "0F0.1", "0B0", "0B0.1"]])
    assert check(careless, left_shift(careless, early)).ok
    with pytest.raises(NotVerified, match=r"0B0\.0 starts at 2, but waits for 0B0\.1"):
        replay(pipeline, left_shift(careless, early), TINY)
    right = Program.from_orders([["0F0", "0F0.1", "0B0.1", "0B0"]])
    assert replay(pipeline, left_shift(careless, right), TINY).ok


def test_a_backward_before_its_load_is_refused() -> None:
    plain = Pipeline(num_ranks=4, num_microbatches=6)
    pipeline = BPipe().balanced(plain, transfer=50).with_changes(waits=())
    problem = pipeline.problem()
    careless = without_edge(problem, "0LOAD1", "0B1")
    with pytest.raises(NotVerified, match=r"0B1 starts at .*0LOAD1"):
        replay(pipeline, left_shift(careless, BPipe().program(pipeline)), TINY)
    assert replay(pipeline, left_shift(problem, BPipe().program(pipeline)), TINY).ok


def test_a_program_of_ones_own_keeps_its_order() -> None:
    case = family_case("bpipe", p=4, m=6)
    assert replay(case.pipeline, case.schedule, TINY, program=case.lowered).ok
