"""Dumps as PyTorch's Flight Recorder writes them, of programs that stand still.

The form is that of version 2.10 (``torch/csrc/distributed/c10d/FlightRecorder.hpp`` and
``FlightRecorderDetail.hpp``): what ``ProcessGroupNCCL`` records of sends and receives that are not
batched and of collectives, as pickle (protocol 2) or JSON.
"""

from __future__ import annotations

import json
import pickle
from collections import defaultdict
from pathlib import Path
from random import Random

from proofs_tests.verify.standing_runs import ProgramRow, StandingRun

START_NS = 1_760_000_000_000_000_000
GROUPS = {"0": "default_pg", "1": "pipeline"}


def entries_of(run: StandingRun, rank: int, *, timing: bool) -> list[dict[str, object]]:
    """What the recorder of a rank holds; with ``timing`` it tells started from scheduled."""
    found: list[dict[str, object]] = []
    count: dict[tuple[str, bool], int] = defaultdict(int)
    for number, row in enumerate(run.issued[rank]):
        count[row.group, row.peer is not None] += 1
        created = START_NS + 1000 * number
        state = "completed" if row.is_ended else "started" if row.is_started else "scheduled"
        is_known = row.is_started and (timing or row.is_ended)
        found.append(
            {
                "frames": [{"name": "step", "filename": "train.py", "line": number}],
                "record_id": number,
                "pg_id": int(row.group),
                "process_group": (row.group, GROUPS[row.group]),
                "thread_name": "python",
                "thread_id": "139",
                "collective_seq_id": count[row.group, False],
                "p2p_seq_id": count[row.group, True],
                "op_id": number + 1,
                "profiling_name": f"nccl:{_name(row)}",
                "time_created_ns": created,
                "input_sizes": [list(row.size)],
                "input_dtypes": [row.dtype],
                "output_sizes": [list(row.size)],
                "output_dtypes": [row.dtype],
                "state": state if timing or row.is_ended else "scheduled",
                "time_discovered_started_ns": created + 10 if is_known else None,
                "time_discovered_completed_ns": created + 20 if row.is_ended else None,
                "retired": row.is_ended,
                "timeout_ms": 600_000,
                "is_p2p": row.peer is not None,
            }
        )
    return found


def _name(row: ProgramRow) -> str:
    if row.peer is None:
        return row.operation
    arrow = "->" if row.operation == "send" else "<-"
    return f"{row.operation} {row.rank}{arrow}{row.peer}"


def dump_of(entries: list[dict[str, object]], num_ranks: int) -> dict[str, object]:
    ranks = str(list(range(num_ranks)))
    return {
        "version": "2.10",
        "comm_lib_version": "2.27.5",
        "pg_config": {
            name: {"name": name, "desc": desc, "ranks": ranks} for name, desc in GROUPS.items()
        },
        "pg_status": {"0": {"last_enqueued_collective": 0, "last_completed_collective": 0}},
        "nccl_comm_state": {},
        "entries": entries,
    }


def write_dumps(
    run: StandingRun,
    folder: Path,
    random: Random,
    *,
    without: frozenset[int] = frozenset(),
    last: int | None = None,
) -> list[Path]:
    """One dump for each rank but some; of no more than the ``last`` calls where that is given."""
    timing, as_json = random.random() < 0.5, random.random() < 0.5
    paths = []
    for rank in range(len(run.rows)):
        if rank in without:
            continue
        entries = entries_of(run, rank, timing=timing)
        dump = dump_of(entries if last is None else entries[-last:], len(run.rows))
        path = folder / (f"dump_rank_{rank}.json" if as_json else f"nccl_trace_rank_{rank}")
        content = json.dumps(dump).encode() if as_json else pickle.dumps(dump, protocol=2)
        path.write_bytes(content)
        paths.append(path)
    return paths
