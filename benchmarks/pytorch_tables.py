"""``verify`` over every table that PyTorch's pipelining schedules generate.

    python -m benchmarks.pytorch_tables [--max-ranks 8] [--json] [--no-run]
                                        [--write docs/measured/pytorch-tables.md]

Each schedule class of ``torch.distributed.pipelining`` lays out its table for p up to the limit,
for several m (fewer than p, p, not divided by p, multiples) and v = 1 to 4; sizes that PyTorch
refuses are listed with its words. What is judged, and how, is said in ``benchmarks.survey``. Where
a deferred RECV crosses messages, PyTorch's own runtime is run on gloo at the smallest such size.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from pydantic_core import to_json
from rich.console import Console

from benchmarks.findings import Findings, Run, ScheduleSurvey
from benchmarks.survey import CROSSED, survey_all
from benchmarks.tables_page import page
from benchmarks.torch_mutations import judge_mutations
from benchmarks.torch_tables import (
    Orders,
    Refused,
    Size,
    Table,
    deferred,
    schedule_classes,
    sender_placed,
    to_program,
    torch_table,
)
from bubbleproof.formats.files import write_text
from bubbleproof.reference_exec.evidence.compare import summed_replicas
from bubbleproof.reference_exec.evidence.machine_versions import this_machine
from bubbleproof.reference_exec.evidence.oracle import max_relative_error, ordinary
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.plans.replay_plan import ReplayPlan
from bubbleproof.reference_exec.pytorch.runtime import run_torch_runtime

LARGEST_RUN = 4  # ranks


LIMIT_S = 120.0


def main(
    max_ranks: int = 8,
    json: Annotated[bool, typer.Option("--json", help="One JSON object, no page.")] = False,
    write: Annotated[Path | None, typer.Option(help="Write the page to this file.")] = None,
    no_run: Annotated[bool, typer.Option("--no-run", help="Not on gloo.")] = False,
) -> None:
    """Survey, judge, and print or write; see the module's text."""
    console = Console(stderr=True)
    with console.status("") as status:
        surveys = survey_all(max_ranks, lambda name: status.update(f"{name}, p up to {max_ranks}"))
        status.update("mutations")
        found = Findings(
            max_ranks=max_ranks,
            versions=this_machine().versions,
            surveys=surveys,
            mutations=judge_mutations(),
            runs=[] if no_run else _runs(surveys, status.update),
        )
    if write is not None:
        before = write.read_text("utf-8") if write.exists() else ""
        write_text(write, page(found, before, str(write)))
        console.print(f"wrote {write}")
    if json:
        sys.stdout.write(to_json(found, indent=2).decode() + "\n")
    elif write is None:
        sys.stdout.write(page(found))


def _runs(surveys: list[ScheduleSurvey], say: Callable[[str], None]) -> list[Run]:
    """PyTorch's runtime at the smallest size where ``defer_pp_recv`` crosses messages."""
    found = []
    for survey in surveys:
        deferred = survey.communication.get("deferred")
        example = deferred.smallest.get(CROSSED) if deferred else None
        if example is not None and example.size.ranks <= LARGEST_RUN:
            say(f"{survey.schedule} {example.size} on gloo")
            found.append(run(survey.schedule, example.size))
    return found


def run(name: str, size: Size) -> Run:
    """Run a schedule of PyTorch's both ways. Raises ``Refused`` where it has none of this size."""
    table = torch_table(schedule_classes()[name], size)
    if table is None:
        raise Refused(f"{name} has no table")
    lowered = sender_placed(table)
    return Run(
        schedule=name,
        size=str(size),
        default_error=_error(table, lowered),
        deferred_error=_error(table, deferred(table, lowered)),
    )


def _error(table: Table, orders: Orders) -> float | None:
    """The largest relative error of a stage's gradients (max-norm); None where it had no end."""
    plan = ReplayPlan(
        spec=ModelSpec(),
        program=to_program(orders),
        stage_ranks=table.stage_rank,
        num_microbatches=table.size.microbatches,
    )
    try:
        results = run_torch_runtime(plan, timeout=LIMIT_S)
    except RuntimeError:  # a failed or stalled process
        return None
    return max_relative_error(summed_replicas(results), ordinary(plan)[0])


if __name__ == "__main__":
    typer.run(main)
