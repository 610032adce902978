"""Files in and out: schedules, problems, PyTorch tables and traces.

Every reader raises ``UnusableInput`` and nothing else for content it cannot take; every writer
replaces a file whole or not at all. A name is loaded when it is first asked for: a command pays for
the formats that it reads.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bubbleproof.formats.certificate_json import (
        certificate_schema,
        read_certificate,
        write_certificate,
    )
    from bubbleproof.formats.comparison import (
        ComparedFamily,
        comparison_pipeline,
    )
    from bubbleproof.formats.errors import (
        UnusableInput,
    )
    from bubbleproof.formats.inference import (
        infer_pipeline,
    )
    from bubbleproof.formats.layouts.problem_file_layout import (
        problem_schema,
    )
    from bubbleproof.formats.layouts.replay_layout import (
        replay_schema,
    )
    from bubbleproof.formats.perfetto import (
        trace,
        write_trace,
    )
    from bubbleproof.formats.problem_toml import (
        ProblemFile,
        read_problem,
    )
    from bubbleproof.formats.pytorch_csv import (
        CollectiveCell,
        TableFile,
        read_table,
        refuse_cut_off,
    )
    from bubbleproof.formats.pytorch_writer import (
        write_table,
    )
    from bubbleproof.formats.schedule_file import (
        ScheduleFile,
    )
    from bubbleproof.formats.schedule_json import (
        read_schedule,
        schedule_schema,
        write_schedule,
    )

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

_HOMES = {
    "CollectiveCell": "pytorch_csv",
    "ComparedFamily": "comparison",
    "ProblemFile": "problem_toml",
    "ScheduleFile": "schedule_file",
    "TableFile": "pytorch_csv",
    "UnusableInput": "errors",
    "certificate_schema": "certificate_json",
    "comparison_pipeline": "comparison",
    "infer_pipeline": "inference",
    "problem_schema": "layouts.problem_file_layout",
    "read_certificate": "certificate_json",
    "read_problem": "problem_toml",
    "read_schedule": "schedule_json",
    "read_table": "pytorch_csv",
    "refuse_cut_off": "pytorch_csv",
    "replay_schema": "layouts.replay_layout",
    "schedule_schema": "schedule_json",
    "trace": "perfetto",
    "write_certificate": "certificate_json",
    "write_schedule": "schedule_json",
    "write_table": "pytorch_writer",
    "write_trace": "perfetto",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"bubbleproof.formats has no {name!r}")
    found: object = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found
