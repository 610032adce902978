"""The package's configurations as a table: what each costs, its plan, and its replays.

``python -m benchmarks.configurations [PAGE.md] [--only a,b] [--columns plan] [--again]``: costs are
of a microbatch of 4,096 tokens, or the longest, on one device, attention fused; the total that
transformers builds on the meta device stands beside ours. A plan is of ``CARDS`` H100, a replay of
four layers, made ``SCALE`` times narrower. ``COLUMNS`` are the table's columns, each computed from
a model and its costs; ``MEASURED`` those that are run, each cell in a process of its own that is
stopped after ``--limit`` seconds.

A cell that was run is a row of ``CELLS`` at once, and is run again only if it was stopped or with
``--again``: a table that was interrupted goes on where it was. ``--only`` and ``--columns`` say
which cells, ``--none`` that the page is made of those that are there.
"""

from __future__ import annotations

import csv
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks.child_process import answers
from benchmarks.kept_by_torch import told
from benchmarks.markdown import CLOCK, cell, markdown_table, put_out
from bubbleproof.costs import Deployment, KnownModel, ModelCosts, known_models, model_costs
from bubbleproof.costs.known_models import CONFIGURATIONS
from bubbleproof.reference_exec.evidence.machine_versions import this_machine

CELLS = Path(__file__).with_suffix(".csv")
CARDS, SAMPLES, SCALE, LAYERS, PLANNED, MOST = 64, 256, 16, 4, 10.0, 600.0
AT = Deployment(sequence=4096, accounting="fused")
REFUSED, STOPPED = "refused: ", "stopped: "
Column = Callable[[KnownModel, ModelCosts], str]


def built(known: KnownModel, _: ModelCosts) -> str:
    """The parameters of what transformers builds."""
    import torch
    import transformers

    content = json.loads((CONFIGURATIONS / f"{known.name}.json").read_text("utf-8"))
    config = transformers.CONFIG_MAPPING[content.pop("model_type")](**content)
    with torch.device("meta"):
        model = getattr(transformers, content["architectures"][0])(config)
    return f"{sum(each.numel() for each in model.parameters()):,}"


def kinds(known: KnownModel, _: ModelCosts) -> str:
    """How many layers there are of each kind."""
    if dense := known.model.dense_layers:
        return f"{dense} x block, {known.model.layers - dense} x {known.model.experts} experts"
    counts: dict[str, int] = {}
    for run in known.model.runs:
        counts[run.kind] = counts.get(run.kind, 0) + run.count
    told = ", ".join(f"{count} x {kind}" for kind, count in counts.items())
    return told or f"{known.model.layers} alike"


def beside_torch(known: KnownModel, _: ModelCosts) -> str:
    """By how much torch keeps more of a layer than is counted, where kernels are fused."""
    try:
        return told(known.name)
    except (KeyError, ValueError, AttributeError) as error:  # transformers has it not so
        return f"not measured: {error}"


COLUMNS: dict[str, Column] = {
    "model": lambda known, _: known.name,
    "layers": kinds,
    "parameters": lambda _, costs: f"{int(costs.parameters.total):,}",
    "transformers builds": built,
    "active": lambda _, costs: f"{int(costs.parameters.active):,}",
    "forward, TFLOP": lambda _, costs: f"{float(costs.flops.forward) / 1e12:,.2f}",
    "kept, beside torch's": beside_torch,
    "kept, GiB": lambda _, costs: f"{float(costs.saved_bytes['none']) / 2**30:,.2f}",
}


def planned(path: str, sequence: int) -> str:
    """The time of a step on the cards, and how much below it is not ruled out."""
    import bubbleproof as bp

    made: Any = bp.plan(
        model=f"hf:{path}",
        card="h100",
        cards=CARDS,
        samples=SAMPLES,
        sequence=min(AT.sequence, sequence),
        time_limit=PLANNED,
    )
    if hasattr(made, "winner"):
        return f"{made.value / 1e6:.2f} s, {100 * (1 - made.lower_bound / made.value):.1f} %"
    needed = (
        f", the nearest needs {made.nearest[0].memory / 2**30:,.0f} GiB" if made.nearest else ""
    )
    return f"{made.statement}{needed}"


def replayed(family: str, path: str) -> str:
    """Whether a replay has the gradients, losses and bytes that it should."""
    import bubbleproof as bp

    chunks = {"v": 2} if family == "interleaved" else {}
    cut = f"hf:{path},scale={SCALE},num_hidden_layers={LAYERS}"
    report: Any = bp.replay(bp.family(family)(p=2, m=2, **chunks), model=cut)
    return "equal" if report.ok else f"DIFFERS: {report.failures}"


MEASURED: dict[str, Callable[[str, int], str]] = {
    "plan": planned,
    "1f1b": lambda path, _: replayed("1f1b", path),
    "interleaved": lambda path, _: replayed("interleaved", path),
}
TITLES = {
    "plan": f"plan on {CARDS} H100",
    "1f1b": "replay 1F1B",
    "interleaved": "replay interleaved",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """What a measured column says of a model, after so many ``seconds``."""

    model: str
    column: str
    seconds: str
    told: str

    @property
    def is_stopped(self) -> bool:
        return self.told.startswith(STOPPED)


def run_cell(tell: Callable[[str], None], column: str, path: str, sequence: int) -> None:
    """Tell what the column says of a configuration; a refusal is what it says."""
    try:
        tell(MEASURED[column](path, sequence))
    except ValueError as error:
        tell(f"{REFUSED}{error}".replace(f"{CONFIGURATIONS}/", ""))


def measured(asked: tuple[KnownModel, str], limit: float) -> Cell:
    """A cell, with what stopped it."""
    known, column = asked
    began, path = time.monotonic(), str(CONFIGURATIONS / f"{known.name}.json")
    try:
        told = next(answers(limit, run_cell, column, path, known.sequence))
    except (TimeoutError, ChildProcessError) as why:
        told = f"{STOPPED}{why}"
    seconds = f"{time.monotonic() - began:.0f}"
    return Cell(model=known.name, column=column, seconds=seconds, told=cell(told))


def cells() -> dict[tuple[str, str], Cell]:
    """Those that were run, the last of each."""
    if not CELLS.exists():
        return {}
    with CELLS.open(encoding="utf-8", newline="") as file:
        every = [Cell(**row) for row in csv.DictReader(file)]
    return {(each.model, each.column): each for each in every}


def keep(found: dict[tuple[str, str], Cell]) -> None:
    """Write all cells, by model and column."""
    with CELLS.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(Cell.__slots__)
        for _, each in sorted(found.items()):
            writer.writerow(getattr(each, name) for name in Cell.__slots__)


def run(waiting: Sequence[tuple[KnownModel, str]], limit: float, workers: int) -> None:
    """Run these cells, each kept as soon as it is there."""
    found = cells()
    with ThreadPoolExecutor(workers) as pool:
        for number, each in enumerate(pool.map(partial(measured, limit=limit), waiting), 1):
            found[each.model, each.column] = each
            keep(found)
            line = f"{number} of {len(waiting)}  {each.model} {each.column}: {each.told}"
            sys.stderr.write(f"{line} ({each.seconds} s)\n")


def waiting(
    names: Sequence[str], columns: Sequence[str], *, again: bool
) -> Iterator[tuple[KnownModel, str]]:
    """Which cells there are to run, the quick ones first: those not there, or stopped."""
    found = cells()
    for column in columns:
        for one in sorted(configured(), key=lambda one: one.model.layers * one.model.hidden):
            ran = found.get((one.name, column))
            if one.name in (names or [one.name]) and (again or ran is None or ran.is_stopped):
                yield one, column


def configured() -> list[KnownModel]:
    """The models of which the package has a configuration."""
    return [one for one in known_models().values() if is_configured(one.name)]


def page(target: str = "PAGE") -> str:
    """The page in Markdown, for the file ``target``."""
    known, found = configured(), cells()
    ran = {one.name: [found.get((one.name, column)) for column in MEASURED] for one in known}
    rows = [[*_costed(one), *(_shown(each) for each in ran[one.name])] for one in known]
    whole = sum(all(each is not None for each in of) for of in ran.values())
    told = [each for of in ran.values() for each in of if each is not None]
    refused = sum(each.told.startswith(REFUSED) for each in told)
    stopped = sum(each.is_stopped for each in told)
    versions = ", ".join(f"{name} {number}" for name, number in this_machine().versions.items())
    return (
        "# Configurations\n\n"
        f"Generated by `python -m benchmarks.configurations {target}`\nwith {versions}.\n\n"
        f"{len(known)} published configurations, as the package has them. Parameters, FLOPs and "
        f"kept bytes are of a microbatch of one sample of {AT.sequence} tokens, or of the longest, "
        "on one device. A plan is for a step of "
        f"{SAMPLES} samples, searched for {PLANNED:g} s: its time, and by how much it may be "
        f"above the best. A replay is of two ranks and two microbatches, of {LAYERS} layers made "
        f"{SCALE} times narrower, or of as many as its kinds of layers need: every gradient and "
        "loss beside those of the uncut model, bytes beside those predicted. In brackets the "
        "seconds of the whole cell, a process of its own.\n\n"
        f"{whole} of {len(known)} were planned and replayed: {len(told)} cells, of which "
        f"{refused} are refusals and {stopped} were stopped. An empty cell was not run. {CLOCK}\n\n"
        f"{markdown_table([*COLUMNS, *TITLES.values()], rows)}"
    )


def _shown(one: Cell | None) -> str:
    return "" if one is None else f"{one.told} ({one.seconds} s)"


def is_configured(name: str) -> bool:
    """Whether the package has a configuration of the name."""
    return (CONFIGURATIONS / f"{name}.json").exists()


def _costed(known: KnownModel) -> list[str]:
    at = AT.with_changes(sequence=min(AT.sequence, known.sequence))
    costs = model_costs(known.model, at)
    return [column(known, costs) for column in COLUMNS.values()]


def _listed(told: str, known: Sequence[str], what: str) -> list[str]:
    named = [each for each in told.split(",") if each]
    for name in named:
        if name not in known:
            raise typer.BadParameter(f"no {what} {name!r}")
    return named


def main(
    write: Annotated[Path | None, typer.Argument(help="The page; without, it is printed.")] = None,
    none: Annotated[bool, typer.Option(help="Run nothing, make the page.")] = False,
    only: Annotated[str, typer.Option(help="Run cells of these models, by commas.")] = "",
    columns: Annotated[str, typer.Option(help="Run these columns, by commas.")] = "",
    again: Annotated[bool, typer.Option(help="Run cells that are there too.")] = False,
    limit: Annotated[float, typer.Option(help="Seconds of a cell.")] = MOST,
    workers: Annotated[int, typer.Option(help="Cells at once.")] = 2,
) -> None:
    """Make the table; see the module's text."""
    models = _listed(only, [one.name for one in configured()], "configuration")
    named = _listed(columns, list(MEASURED), "column") or list(MEASURED)
    if not none:
        run(list(waiting(models, named, again=again)), limit, workers)
    put_out(page(str(write or "PAGE")), write)


if __name__ == "__main__":
    typer.run(main)
