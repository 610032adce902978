"""PyTorch's side of ``verify_speed``: the same table given to its validator and its simulator.

Each figure is told as soon as it is measured, so that a run cut short by the time limit still
tells what it reached: first the validator, the lowering and our rule 6 (which decides of the
lowered program what the simulator decides), then the simulator at sizes growing up to the full one.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch.distributed.pipelining.schedules as torch_schedules

from benchmarks.speed_ours import interleaved, timed
from benchmarks.torch_tables import (
    Orders,
    Size,
    Table,
    add_send_recv,
    to_program,
    validator_accepts,
)
from bubbleproof.theory.model.problem import Problem
from bubbleproof.verify import Semantics, check_communication


def measure_torch(
    tell: Callable[[dict[str, float]], None],
    ranks: int,
    microbatches: int,
    chunks: int,
    repeats: int,
) -> None:
    """Tell the seconds of PyTorch's functions, and of our rule 6."""
    size = Size(ranks=ranks, microbatches=microbatches, chunks=chunks)
    problem, table = interleaved_table(size)
    tell({"validate_s": validate_seconds(table, repeats)})
    lowering, lowered = timed(lambda: add_send_recv(table.compute, table.stage_rank), 1)
    tell({"lower_s": lowering})
    tell({"rule6_s": rule6_seconds(problem, lowered)})
    for count in growing(ranks, microbatches):
        smaller = Size(ranks=ranks, microbatches=count, chunks=chunks)
        part = table if smaller == size else interleaved_table(smaller)[1]
        given_lowered = lowered if part is table else add_send_recv(part.compute, part.stage_rank)
        seconds = simulate_seconds(part, given_lowered)
        tasks = sum(map(len, part.compute.values()))
        tell({"simulate_s": seconds, "microbatches": count, "tasks": tasks})


def growing(ranks: int, microbatches: int) -> list[int]:
    """Microbatch counts up to the full one, each four times the last."""
    counts = [microbatches]
    while counts[-1] // 4 >= ranks:
        counts.append(counts[-1] // 4)
    return counts[::-1]


def interleaved_table(size: Size) -> tuple[Problem, Table]:
    """Our interleaved order as PyTorch's actions, with its problem."""
    found = interleaved(size.ranks, size.microbatches, size.chunks)
    return found.problem, Table.of(found.schedule.program, size, found.pipeline.stage_ranks)


def validate_seconds(table: Table, repeats: int) -> float:
    """The least seconds of ``_validate_schedule`` on the compute table."""
    seconds, accepts = timed(lambda: validator_accepts(table), repeats)
    assert accepts
    return seconds


def simulate_seconds(table: Table, lowered: Orders) -> float:
    """The seconds of ``_simulate_comms_compute`` on the lowered table, once."""
    begin = time.perf_counter()
    torch_schedules._simulate_comms_compute(
        lowered, table.stage_rank.__getitem__, len(table.stage_rank)
    )
    return time.perf_counter() - begin


def rule6_seconds(problem: Problem, lowered: Orders) -> float:
    """The seconds of our rule 6 under ``buffered``, what the simulator models, once."""
    program = to_program(lowered)
    seconds, verdict = timed(
        lambda: check_communication(problem, program, (Semantics.BUFFERED,)), 1
    )
    assert verdict.ok, str(verdict)
    return seconds
