"""Tables written by others, from a folder of PyTorch CSV files, judged like generated ones."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from benchmarks.survey import judge, judge_communication
from benchmarks.tally import ScheduleSurvey, Tally
from benchmarks.torch_tables import Size, Table, to_orders
from bubbleproof.formats import TableFile, UnusableInput, infer_pipeline, read_table
from bubbleproof.formats.pytorch_csv import Dialect

DIALECTS: tuple[Dialect, ...] = ("new", "old")


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseFile:
    """A file, how it was read (its dialect, or why not), and what was found."""

    name: str
    reading: str
    survey: ScheduleSurvey


def judge_folder(folder: Path) -> list[CaseFile]:
    """Every ``*.csv`` of the folder; one whose dialect is not shown is judged in both."""
    return [case for path in sorted(folder.glob("*.csv")) for case in judge_file(path)]


def judge_file(path: Path) -> list[CaseFile]:
    """The file in the dialect it shows, or in each dialect where it shows none."""
    try:
        file = read_table(path)
        return [_judged(path, file, f"{file.dialect} dialect, as the table shows")]
    except UnusableInput as error:
        why = str(error).removeprefix(f"{path}: ")
    cases = []
    for dialect in DIALECTS:
        try:
            file = read_table(path, dialect=dialect)
        except UnusableInput:
            continue
        cases.append(_judged(path, file, f"told that it is the {dialect} dialect"))
    return cases or [CaseFile(name=path.name, reading=why, survey=ScheduleSurvey(schedule=""))]


def _judged(path: Path, file: TableFile, reading: str) -> CaseFile:
    survey = ScheduleSurvey(schedule=path.name)
    pipeline = infer_pipeline(file.program, subject=path.name)
    size = Size(
        ranks=pipeline.num_ranks,
        microbatches=pipeline.num_microbatches,
        chunks=pipeline.num_chunks,
    )
    if file.has_communication:
        tally = survey.communication.setdefault("as written", Tally())
        judge_communication(tally, size, pipeline.problem(), file.program)
    else:
        orders = to_orders(file.program, pipeline.num_ranks)
        table = Table(
            schedule=path.name, size=size, compute=orders, stage_rank=pipeline.stage_ranks
        )
        judge(survey, table)
    return CaseFile(name=path.name, reading=reading, survey=survey)
