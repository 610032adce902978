"""Files in and out: schedules, problems, PyTorch tables and traces.

Every reader raises ``UnusableInput`` and nothing else for content it cannot take; every writer
replaces a file whole or not at all.
"""

from bubbleproof.formats.certificate_json import (
    certificate_schema,
    read_certificate,
    write_certificate,
)
from bubbleproof.formats.comparison import ComparedFamily, comparison_pipeline
from bubbleproof.formats.errors import UnusableInput
from bubbleproof.formats.inference import infer_pipeline
from bubbleproof.formats.layouts.problem_file_layout import problem_schema
from bubbleproof.formats.layouts.replay_layout import replay_schema
from bubbleproof.formats.perfetto import trace, write_trace
from bubbleproof.formats.problem_toml import ProblemFile, read_problem
from bubbleproof.formats.pytorch_csv import (
    CollectiveCell,
    TableFile,
    read_table,
    refuse_cut_off,
)
from bubbleproof.formats.pytorch_writer import write_table
from bubbleproof.formats.schedule_file import ScheduleFile
from bubbleproof.formats.schedule_json import read_schedule, schedule_schema, write_schedule

__all__ = [
    "CollectiveCell",
    "ComparedFamily",
    "ProblemFile",
    "ScheduleFile",
    "TableFile",
    "UnusableInput",
    "certificate_schema",
    "comparison_pipeline",
    "infer_pipeline",
    "problem_schema",
    "read_certificate",
    "read_problem",
    "read_schedule",
    "read_table",
    "refuse_cut_off",
    "replay_schema",
    "schedule_schema",
    "trace",
    "write_certificate",
    "write_schedule",
    "write_table",
    "write_trace",
]
