"""The package's configurations as a table: kinds of layers, parameters, FLOPs and kept bytes.

``python -m benchmarks.configurations [PAGE.md]``: of a microbatch of 4,096 tokens, or the longest,
on one device, attention fused. ``COLUMNS`` are the table's columns, each computed from a model and
its costs; the total that transformers builds on the meta device stands beside ours.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.markdown import put_out
from bubbleproof.costs import Deployment, KnownModel, ModelCosts, known_models, model_costs
from bubbleproof.costs.known_models import CONFIGURATIONS

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
    counts: dict[str, int] = {}
    for run in known.model.runs:
        counts[run.kind] = counts.get(run.kind, 0) + run.count
    told = ", ".join(f"{count} x {kind}" for kind, count in counts.items())
    return told or f"{known.model.layers} alike"


COLUMNS: dict[str, Column] = {
    "model": lambda known, _: known.name,
    "layers": kinds,
    "parameters": lambda _, costs: f"{int(costs.parameters.total):,}",
    "transformers builds": built,
    "active": lambda _, costs: f"{int(costs.parameters.active):,}",
    "forward, TFLOP": lambda _, costs: f"{float(costs.flops.forward) / 1e12:,.2f}",
    "kept, GiB": lambda _, costs: f"{float(costs.saved_bytes['none']) / 2**30:,.2f}",
}


def page() -> str:
    """The table in Markdown."""
    names = sorted(path.stem for path in CONFIGURATIONS.glob("*.json"))
    rows = [list(COLUMNS), ["---"] * len(COLUMNS)]
    for known in (known_models()[name] for name in names if name in known_models()):
        at = AT.with_changes(sequence=min(AT.sequence, known.sequence))
        costs = model_costs(known.model, at)
        rows.append([column(known, costs) for column in COLUMNS.values()])
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join(["# Configurations", "", *lines, ""])


if __name__ == "__main__":
    put_out(page(), Path(sys.argv[1]) if len(sys.argv) > 1 else None)
