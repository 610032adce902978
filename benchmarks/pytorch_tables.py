"""``verify`` over every table that PyTorch's pipelining schedules generate.

    python -m benchmarks.pytorch_tables [--max-ranks 8] [--json] [--write docs/pytorch-tables.md]
                                        [--cases DIR] [--no-run]

Each schedule class of ``torch.distributed.pipelining`` lays out its table for p up to the limit,
for several m (fewer than p, p, not divided by p, multiples) and v = 1 to 4; sizes that PyTorch
refuses are listed with its words. What is judged, and how, is said in ``benchmarks.survey``. Tables
written by others are read from ``--cases``. Where a deferred RECV crosses messages, PyTorch's own
runtime is run on gloo at the smallest such size (``benchmarks.deferred_run``).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from benchmarks.case_files import judge_folder
from benchmarks.findings import Findings, Run
from benchmarks.machine import this_machine
from benchmarks.survey import CROSSED, survey_all
from benchmarks.tables_page import page
from benchmarks.tally import ScheduleSurvey
from benchmarks.torch_mutations import judge_mutations
from bubbleproof.formats.files import write_text

ROOT = Path(__file__).parents[1]
CASES = ROOT.parent / "shared" / "cases"
LARGEST_RUN = 4
RUN_LIMIT_S = 300


def main(arguments: list[str] | None = None) -> None:
    """Survey, judge, and print or write; see the module's text."""
    options = _parser().parse_args(arguments)
    console = Console(stderr=True)
    with console.status("") as status:
        surveys = survey_all(
            options.max_ranks, lambda name: status.update(f"{name}, p up to {options.max_ranks}")
        )
        status.update("mutations and case files")
        found = Findings(
            max_ranks=options.max_ranks,
            versions=this_machine().versions,
            surveys=surveys,
            mutations=judge_mutations(),
            cases=judge_folder(options.cases) if options.cases.is_dir() else None,
            runs=[] if options.no_run else _runs(surveys, status.update),
        )
    if options.write is not None:
        write_text(options.write, page(found))
        console.print(f"wrote {options.write}")
    if options.json:
        sys.stdout.write(json.dumps(found.to_json(), indent=2) + "\n")
    elif options.write is None:
        sys.stdout.write(page(found))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="benchmarks.pytorch_tables")
    parser.add_argument("--max-ranks", type=int, default=8)
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.add_argument("--write", type=Path, help="write the page to this file")
    parser.add_argument("--cases", type=Path, default=CASES, help="a folder of PyTorch CSV tables")
    parser.add_argument("--no-run", action="store_true", help="do not run PyTorch on gloo")
    return parser


def _runs(surveys: list[ScheduleSurvey], say: Callable[[str], None]) -> list[Run]:
    """PyTorch's runtime at the smallest size where ``defer_pp_recv`` crosses messages."""
    found = []
    for survey in surveys:
        deferred = survey.communication.get("deferred")
        example = deferred.smallest.get(CROSSED) if deferred else None
        if example is None or example.size.ranks > LARGEST_RUN:
            continue
        size = example.size
        say(f"{survey.schedule} {size} on gloo")
        numbers = [str(n) for n in (size.ranks, size.microbatches, size.chunks)]
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.deferred_run", survey.schedule, *numbers],
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            timeout=RUN_LIMIT_S,
            check=True,
        )
        result = json.loads(done.stdout)
        found.append(
            Run(
                schedule=survey.schedule,
                size=str(size),
                default_error=result["default"].get("largest"),
                deferred_error=result["deferred"].get("largest"),
            )
        )
    return found


if __name__ == "__main__":
    main()
