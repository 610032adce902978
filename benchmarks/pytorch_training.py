"""Exported tables trained by PyTorch's own runtime on gloo, with and without ``scale_grads``.

    python -m benchmarks.pytorch_training [-p 4] [-m 8] [--only zb-v,bfs]
                                          [--write docs/measured/pytorch-training.md]

Each schedule is written as ``bubbleproof convert`` writes it, of computations alone and with
messages for the torch that is installed, loaded by ``_PipelineScheduleRuntime._load_csv`` and run
for one step in p processes. *equal* says that every gradient is, bit for bit, that of each
microbatch alone, summed in PyTorch's order (``reference_exec.pytorch.table``), and with
``scale_grads`` divided by m. The last line takes REDUCE_GRAD and waits away. It ends with status 1
where anything differs.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import torch
import typer
from rich.console import Console

from benchmarks.markdown import markdown_table, put_out, released
from bubbleproof.formats import write_table
from bubbleproof.reference_exec.bits import are_equal
from bubbleproof.reference_exec.drivers.gloo import GlooPool, RankFailed, Worker
from bubbleproof.reference_exec.evidence.compare import summed_replicas
from bubbleproof.reference_exec.evidence.machine_versions import this_machine
from bubbleproof.reference_exec.evidence.oracle import order_matched, single_threaded
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.plans.prepared import replay_plan
from bubbleproof.reference_exec.plans.replay_plan import ReplayPlan
from bubbleproof.reference_exec.plans.replicated import replicated
from bubbleproof.reference_exec.pytorch import worker
from bubbleproof.reference_exec.pytorch.table import as_pytorch_adds, table_text, this_version
from bubbleproof.reference_exec.runtime.compute import Gradients
from bubbleproof.theory.families import families, make_parameters
from bubbleproof.theory.pipelines.programs.lowering import lower
from bubbleproof.theory.pipelines.programs.pytorch_runtime import REDUCES_SINCE
from bubbleproof.verify.communication.matching import compute_part

FAMILIES = (
    "1f1b",
    "gpipe",
    "interleaved",
    "bfs",
    "zb-h1",
    "zb-h2",
    "zb-v",
    "v-half",
    "v-min",
    "hanayo",
    "dualpipev",
)
CHUNKED = ("interleaved", "bfs")
FORMS = ("compute_only", "compute_comms")
SPEC = ModelSpec(kind="llama", hidden=16, layers=1, heads=2, kv_heads=1, sequence=8)
TIMEOUT = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """One training step of a table; ``factor`` is how much too large gradients that differ are."""

    name: str
    form: str
    is_scaled: bool
    is_equal: bool
    factor: float = 1.0
    why: str = ""

    @property
    def told(self) -> str:
        return self.why or ("equal" if self.is_equal else f"{self.factor:.3g} times")


def plan_of(name: str, p: int, m: int, form: str, spec: ModelSpec = SPEC) -> ReplayPlan:
    """What a family's table of one form has PyTorch's runtime do.

    Raises ``ValueError`` unless the table that is written is the one that is run.
    """
    options = {"v": 2} if name in CHUNKED else {}
    made = families()[name].member(make_parameters({"p": p, "m": m, **options}))
    lowered = lower(made.problem, made.schedule)
    has_messages = form == "compute_comms"
    whole = replay_plan(replicated(made.pipeline, made.schedule, spec), lowered)
    plan = whole if has_messages else replace(whole, program=compute_part(lowered))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        write_table(
            path,
            plan.program,
            problem=made.problem,
            torch=this_version(),
            communication=has_messages,
        )
        if path.read_text() != table_text(plan):
            raise ValueError(f"{name}: the table that is written is not the one that is run")
    return plan


def trained(pool: GlooPool, plan: ReplayPlan, name: str, form: str, *, is_scaled: bool) -> Trained:
    """Run the plan's table for a step, and compare its gradients."""
    with single_threaded():
        expected, _ = order_matched(as_pytorch_adds(plan))
    if is_scaled:
        expected = {key: value / plan.num_microbatches for key, value in expected.items()}
    row = Trained(name=name, form=form, is_scaled=is_scaled, is_equal=True)
    try:
        found = summed_replicas(pool.run(plan, timeout=TIMEOUT))
    except RankFailed as error:
        return replace(row, is_equal=False, why=str(error))
    if are_equal(found, expected):
        return row
    return replace(row, is_equal=False, factor=_factor(found, expected))


def _factor(found: Gradients, expected: Gradients) -> float:
    """The largest gradient found over the largest expected."""
    largest = [max(float(g.abs().max()) for g in each.values()) for each in (found, expected)]
    return largest[0] / largest[1]


def train_all(
    names: Sequence[str], p: int, m: int, status: Console | None = None, spec: ModelSpec = SPEC
) -> list[Trained]:
    """Every table of every family, unscaled and scaled; and one as it was, scaled, last."""
    rows = []
    with ExitStack() as stack:
        plain, scaled, bare = (stack.enter_context(GlooPool(p, worker=each)) for each in _workers())
        for name in names:
            for form in FORMS:
                plan = plan_of(name, p, m, form, spec)
                for is_scaled in (False, True):
                    pool = scaled if is_scaled else plain
                    rows.append(trained(pool, plan, name, form, is_scaled=is_scaled))
                    if status is not None:
                        status.print(f"{name} {form} scale_grads={is_scaled}: {rows[-1].told}")
        plan = plan_of(names[0], p, m, FORMS[1], spec)
        rows.append(trained(bare, plan, names[0], "without REDUCE_GRAD", is_scaled=True))
    return rows


def _workers() -> tuple[Worker, Worker, Worker]:
    return worker.work, worker.work_scaled, worker.work_scaled_as_it_stands


def page(rows: Sequence[Trained], p: int, m: int, target: str = "PAGE") -> str:
    """The page as Markdown, for the file ``target``."""
    known = this_machine().versions
    versions = ", ".join(f"{name} {number}" for name, number in known.items())
    *judged, bare = rows
    names = dict.fromkeys(row.name for row in judged)
    table = [
        (
            f"`{name}`",
            *(row.told for form in FORMS for row in judged if (row.name, row.form) == (name, form)),
        )
        for name in names
    ]
    header = ["schedule", *(f"`{form}`, {how}" for form in FORMS for how in ("summed", "scaled"))]
    equal = sum(row.is_equal for row in judged)
    return (
        f"# Exported tables in the runtime of {released('torch', known)}\n\n"
        f"Generated by `python -m benchmarks.pytorch_training -p {p} -m {m} --write {target}`\n"
        f"with {versions}.\n\n"
        f"{len(names)} schedules at p={p} m={m}, one step of a {SPEC.kind} in {SPEC.dtype}, a gloo "
        "process per rank. Tables are those of `bubbleproof\nconvert`, of computations alone and "
        "with `--communication`; *summed* is `scale_grads=False`, *scaled* the default `True`.\n"
        "*equal*: every gradient is that of each microbatch alone, summed in PyTorch's order (and "
        f"divided by m), bit for bit:\n{equal} of {len(judged)}.\n\n"
        f"{markdown_table(header, table)}\n"
        f"{_told_without(bare)}\n"
    )


def _told_without(bare: Trained) -> str:
    """What becomes of the table without REDUCE_GRAD and waits."""
    head = f"The table with messages of `{bare.name}` without REDUCE_GRAD, `scale_grads=True`: "
    if bare.why:
        return f"{head}refused by PyTorch\n({bare.why[:120]} ...)."
    return f"{head}gradients come out {bare.told} as\nlarge, and no error is raised."


def main(
    p: Annotated[int, typer.Option("-p", help="Ranks.")] = 4,
    m: Annotated[int, typer.Option("-m", help="Microbatches.")] = 8,
    only: Annotated[str, typer.Option(help="These families, by commas.")] = "",
    write: Annotated[Path | None, typer.Option(help="Write the page to this file.")] = None,
) -> None:
    """Train, compare, and print or write; see the module's text."""
    if this_version() < REDUCES_SINCE:
        raise typer.BadParameter(f"torch {torch.__version__} has no REDUCE_GRAD to be tried")
    console = Console(stderr=True)
    rows = train_all(only.split(",") if only else FAMILIES, p, m, console)
    text = page(rows, p, m, str(write or "PAGE"))
    put_out(text, write)
    raise typer.Exit(0 if all(row.is_equal for row in rows[:-1]) else 1)


if __name__ == "__main__":
    typer.run(main)
