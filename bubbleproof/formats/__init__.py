"""Files in and out: schedules, problems, PyTorch tables and traces.

Every reader raises ``UnusableInput`` and nothing else for content it cannot take; every writer
replaces a file whole or not at all. A name is loaded when it is first asked for: a command pays for
the formats that it reads.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bubbleproof.formats.certificate_json import read_certificate as read_certificate
    from bubbleproof.formats.certificate_json import write_certificate as write_certificate
    from bubbleproof.formats.comparison import ComparedFamily as ComparedFamily
    from bubbleproof.formats.comparison import comparison_pipeline as comparison_pipeline
    from bubbleproof.formats.errors import UnusableInput as UnusableInput
    from bubbleproof.formats.inference import infer_pipeline as infer_pipeline
    from bubbleproof.formats.perfetto import trace as trace
    from bubbleproof.formats.perfetto import write_trace as write_trace
    from bubbleproof.formats.problem_toml import ProblemFile as ProblemFile
    from bubbleproof.formats.problem_toml import read_problem as read_problem
    from bubbleproof.formats.pytorch_csv import CollectiveCell as CollectiveCell
    from bubbleproof.formats.pytorch_csv import TableFile as TableFile
    from bubbleproof.formats.pytorch_csv import read_table as read_table
    from bubbleproof.formats.pytorch_csv import refuse_cut_off as refuse_cut_off
    from bubbleproof.formats.pytorch_writer import write_table as write_table
    from bubbleproof.formats.schedule_file import ScheduleFile as ScheduleFile
    from bubbleproof.formats.schedule_json import read_schedule as read_schedule
    from bubbleproof.formats.schedule_json import write_schedule as write_schedule

_NAMES = {
    "certificate_json": "read_certificate write_certificate",
    "comparison": "ComparedFamily comparison_pipeline",
    "errors": "UnusableInput",
    "inference": "infer_pipeline",
    "perfetto": "trace write_trace",
    "problem_toml": "ProblemFile read_problem",
    "pytorch_csv": "CollectiveCell TableFile read_table refuse_cut_off",
    "pytorch_writer": "write_table",
    "schedule_file": "ScheduleFile",
    "schedule_json": "read_schedule write_schedule",
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}
__all__ = [*_HOMES]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"bubbleproof.formats has no {name!r}")
    found: object = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found
