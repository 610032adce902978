"""What ``verify`` says of PyTorch's tables, counted per schedule and per placement of the RECVs.

A table is first judged as a compute order (rules 1 to 5). Where that is complete, PyTorch's own
lowering gives it SENDs and RECVs, and rule 6 is decided for each placement of the RECVs under each
communication semantics. A program whose messages do not pair up in order (*crossed*) is wrong under
every semantics; it is counted there and not again as a deadlock.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator

import torch.distributed.pipelining.schedules as torch_schedules

from benchmarks.findings import ScheduleSurvey, Tally
from benchmarks.torch_tables import (
    OUR_1F1B,
    Orders,
    Refused,
    Size,
    Table,
    our_1f1b_table,
    parts,
    placements,
    schedule_classes,
    sender_placed,
    to_program,
    torch_table,
    validator_accepts,
)
from bubbleproof.formats import infer_pipeline
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify import USUAL, Rule, check_communication, check_program

COMPUTE_RULES = (
    Rule.COMPLETE,
    Rule.PLACED,
    Rule.DEPENDENCIES,
    Rule.EXCLUSIVE,
    Rule.MEMORY,
)
CROSSED = "crossed"
SEMANTICS = tuple(semantics.value for semantics in USUAL)
MAX_CHUNKS = 4


def microbatch_counts(ranks: int) -> list[int]:
    """Fewer microbatches than ranks, as many, multiples, and numbers not divided by the ranks."""
    p = ranks
    wanted = {1, 2, 3, p - 1, p, p + 1, p + 2, 2 * p, 2 * p + 1, 3 * p, 4 * p}
    return sorted(m for m in wanted if m > 0)


def sizes(max_ranks: int, max_chunks: int) -> Iterator[Size]:
    """All sizes of the survey, by ranks, then microbatches, then chunks."""
    for p in range(1, max_ranks + 1):
        for m in microbatch_counts(p):
            for v in range(1, max_chunks + 1):
                yield Size(ranks=p, microbatches=m, chunks=v)


def survey_all(max_ranks: int, begun: Callable[[str], None]) -> list[ScheduleSurvey]:
    """The surveys of every schedule class of PyTorch and of our 1F1B order; ``begun`` hears each.

    A class for one stage per rank is surveyed with one chunk alone.
    """
    found = []
    for name, schedule in schedule_classes().items():
        begun(name)
        is_single = issubclass(schedule, torch_schedules.PipelineScheduleSingle)
        survey = ScheduleSurvey(schedule=name)
        for size in sizes(max_ranks, 1 if is_single else MAX_CHUNKS):
            try:
                table = torch_table(schedule, size)
            except Refused as refusal:
                _note_refusal(survey, size, str(refusal))
                continue
            if table is None:
                survey.has_table = False
                break
            judge(survey, table)
        found.append(survey)
    begun(OUR_1F1B)
    ours = ScheduleSurvey(schedule=OUR_1F1B)
    for size in sizes(max_ranks, 1):
        judge(ours, our_1f1b_table(size))
    return [*found, ours]


def _note_refusal(survey: ScheduleSurvey, size: Size, message: str) -> None:
    """Group refusals by their text up to the first number, as messages name the size."""
    start = message.split("(")[0][:40]
    for known, (smallest, count) in survey.refused.items():
        if known.startswith(start):
            survey.refused[known] = (smallest, count + 1)
            return
    survey.refused[message] = (size, 1)


def judge(survey: ScheduleSurvey, table: Table) -> None:
    """Judge one table without and with communication and add what was found to the survey."""
    program = to_program(table.compute)
    problem = expected_pipeline(program, table.size).problem()
    survey.validator_accepts += validator_accepts(table)
    survey.actions += len(program)
    survey.overlaps += int((program.actions.partner_stage >= 0).sum())
    tally = survey.compute
    tally.judged += 1
    verdict, _ = check_program(problem, program)
    for decision in verdict.decisions:
        if not decision.ok:
            tally.note(decision.rule.name, table.size, decision.violations[0])
    tally.undecided.update(rule.name for rule, _ in verdict.undecided)
    if not verdict.ok:
        return
    try:
        lowered = sender_placed(table)
    except Refused:
        survey.not_lowered += 1
        return
    for name, place in placements().items():
        orders = place(table, lowered)
        communication = survey.communication.setdefault(name, Tally())
        crossed = judge_communication(communication, table.size, problem, to_program(orders))
        if simulator_accepts(orders, table):
            survey.simulator_accepts[name] += 1
            survey.accepted_crossed[name] += crossed


def expected_pipeline(program: Program, size: Size) -> Pipeline:
    """The pipeline the table's actions tell of, with the size's microbatches instead of theirs."""
    pipeline = infer_pipeline(program)
    m, split = size.microbatches, pipeline.split_backward
    if isinstance(split, tuple):
        split = tuple((row + (False,) * m)[:m] for row in split)
    return pipeline.with_changes(num_microbatches=m, split_backward=split)


def judge_communication(tally: Tally, size: Size, problem: Problem, program: Program) -> bool:
    """Add rule 6 under each semantics to the tally; True where the messages are crossed."""
    tally.judged += 1
    verdict = check_communication(problem, program)
    first = verdict.decisions[0].violations
    if first and not first[0].message.startswith("deadlock"):
        tally.note(CROSSED, size, first[0])
        return True
    for decision in verdict.decisions:
        if not decision.ok:
            tally.note(decision.detail, size, decision.violations[0])
    return False


def simulator_accepts(orders: Orders, table: Table) -> bool:
    """Whether PyTorch's ``_simulate_comms_compute`` lets the orders pass.

    It knows no OVERLAP_F_B, so overlapped pairs are given as their parts; it prints when it fails.
    """
    flat = {
        rank: [part for action in actions for part in parts(action)]
        for rank, actions in orders.items()
    }
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            torch_schedules._simulate_comms_compute(
                flat, table.stage_rank.__getitem__, len(table.stage_rank)
            )
        except ValueError:
            return False
    return True
