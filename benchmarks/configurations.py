"""The package's configurations as a table: what each costs, its plan, and its replays.

``python -m benchmarks.configurations [PAGE.md] [--only a,b] [--seconds 720]``: costs are of a
microbatch of 4,096 tokens, or the longest, on one device, attention fused; the total that
transformers builds on the meta device stands beside ours. A plan is of ``CARDS`` H100, a replay of
four layers, made ``SCALE`` times narrower. ``COLUMNS`` are the table's columns, each computed from
a model and its costs; ``MEASURED`` those that are run, in a process for each model that is stopped
after ``MOST`` seconds. After ``--seconds`` no more are begun; ``--only`` runs these alone, and the
page says of which nothing was run.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks.child_process import answers
from benchmarks.kept_by_torch import told
from benchmarks.markdown import CLOCK, cell, markdown_table, put_out
from bubbleproof.costs import Deployment, KnownModel, ModelCosts, known_models, model_costs
from bubbleproof.costs.known_models import CONFIGURATIONS
from bubbleproof.reference_exec.evidence.machine_versions import this_machine

CARDS, SAMPLES, SCALE, LAYERS, PLANNED, MOST = 64, 256, 16, 4, 10.0, 240.0
AT = Deployment(sequence=4096, accounting="fused")
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
    if not hasattr(made, "winner"):
        return str(made.statement)
    return f"{made.value / 1e6:.2f} s, {100 * (1 - made.lower_bound / made.value):.1f} %"


def replayed(family: str, path: str) -> str:
    """Whether a replay has the gradients, losses and bytes that it should."""
    import bubbleproof as bp

    chunks = {"v": 2} if family == "interleaved" else {}
    cut = f"hf:{path},scale={SCALE},num_hidden_layers={LAYERS}"
    report: Any = bp.replay(bp.family(family)(p=2, m=2, **chunks), model=cut)
    return "equal" if report.ok else f"DIFFERS: {report.failures}"


MEASURED: dict[str, Callable[[str, int], str]] = {
    f"plan on {CARDS} H100": planned,
    "replay 1F1B": lambda path, _: replayed("1f1b", path),
    "replay interleaved": lambda path, _: replayed("interleaved", path),
}


def run_each(tell: Callable[[str], None], path: str, sequence: int) -> None:
    """Tell what each measured column says; a refusal is what it says."""
    for run in MEASURED.values():
        try:
            tell(run(path, sequence))
        except ValueError as error:
            tell(f"refused: {error}")


def measured(name: str, sequence: int) -> list[str]:
    """The measured cells of a model, with what stopped them."""
    found: list[str] = []
    try:
        for each in answers(MOST, run_each, str(CONFIGURATIONS / f"{name}.json"), sequence):
            found.append(cell(each))
    except (TimeoutError, ChildProcessError) as stopped:
        found.append(cell(str(stopped)))
    return found + [""] * (len(MEASURED) - len(found))


def page(only: Sequence[str], seconds: float, target: str = "PAGE") -> str:
    """The page in Markdown, for the file ``target``."""
    known = [one for one in known_models().values() if is_configured(one.name)]
    asked = sorted((one for one in known if one.name in only or not only), key=_size)
    until = time.monotonic() + seconds

    def run(one: KnownModel) -> list[str]:
        return measured(one.name, one.sequence) if time.monotonic() < until else []

    with ThreadPoolExecutor(2) as pool:
        ran = dict(zip((one.name for one in asked), pool.map(run, asked), strict=True))
    rows = [_costed(one) + (ran.get(one.name) or [""] * len(MEASURED)) for one in known]
    done = sum(all(each) and bool(each) and "stopped" not in each[-1] for each in ran.values())
    stopped = sum(any("stopped" in told for told in each) for each in ran.values())
    refused = sum(any("refused" in told for told in each) for each in ran.values())
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
        "loss beside those of the uncut model, bytes beside those predicted.\n\n"
        f"{done} of {len(known)} were planned and replayed, {stopped} more were stopped after "
        f"{MOST:g} s; {refused} of these have a refusal. Of the others nothing was run, and their "
        f"cells are empty. {CLOCK}\n\n"
        f"{markdown_table([*COLUMNS, *MEASURED], rows)}"
    )


def is_configured(name: str) -> bool:
    """Whether the package has a configuration of the name."""
    return (CONFIGURATIONS / f"{name}.json").exists()


def _costed(known: KnownModel) -> list[str]:
    at = AT.with_changes(sequence=min(AT.sequence, known.sequence))
    costs = model_costs(known.model, at)
    return [column(known, costs) for column in COLUMNS.values()]


def _size(known: KnownModel) -> int:
    """By which the quick ones come first."""
    return known.model.layers * known.model.hidden


def main(
    write: Annotated[Path | None, typer.Argument(help="The page; without, it is printed.")] = None,
    only: Annotated[str, typer.Option(help="Plan and replay these, by commas.")] = "",
    seconds: Annotated[float, typer.Option(help="After which no more are begun.")] = 86_400,
) -> None:
    """Make the table; see the module's text."""
    named = [each for each in only.split(",") if each]
    for name in named:
        if not is_configured(name):
            raise typer.BadParameter(f"no configuration {name!r}")
    put_out(page(named, seconds, str(write or "PAGE")), write)


if __name__ == "__main__":
    typer.run(main)
