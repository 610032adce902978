"""A job that is told in a program, as the problem file that says the same: a model on a cluster."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from fractions import Fraction
from pathlib import Path

from bubbleproof.costs import Transformer
from bubbleproof.costs.configurations.config_file import is_configuration
from bubbleproof.formats.layouts.cluster_layout import ClusterLayout


def job_text(
    model: Transformer | str, cluster: ClusterLayout, samples: int, sequence: int | None
) -> str:
    """The text of the file, with all deployments open that the framework runs.

    Parameters
    ----------
    model
        A published one by its name, a configuration (``hf:config.json``), or a shape.
    samples, sequence
        Of one training step, and the tokens of each; None: the model's longest.
    """
    named = model if isinstance(model, str) else model.name or "model"
    named = named if not is_configuration(named) else Path(named).stem
    batch = {"samples": samples} | ({} if sequence is None else {"sequence": sequence})
    tables: dict[str, Mapping[str, object]] = {
        "model": _named(model) if isinstance(model, str) else _shape(model),
        "cluster": cluster.model_dump(exclude_unset=True, exclude_none=True),
        "batch": batch,
    }
    name = f"{named}-{cluster.cards}x{cluster.card or 'cards'}"
    lines = [f"name = {json.dumps(name)}"]
    for table, content in tables.items():
        lines += ["", f"[{table}]", *(f"{key} = {_told(value)}" for key, value in content.items())]
    return "\n".join(lines) + "\n"


def _named(model: str) -> dict[str, object]:
    return {"config" if is_configuration(model) else "name": model}


def _shape(model: Transformer) -> dict[str, object]:
    """The fields that are not as a model has them anyway."""
    told = {each.name: getattr(model, each.name) for each in fields(model)}
    return {
        "family": "general",
        **{f.name: told[f.name] for f in fields(model) if told[f.name] != f.default},
    }


def _told(value: object) -> str:
    """A value in TOML."""
    if isinstance(value, Fraction):
        return str(value.numerator) if value.denominator == 1 else f'"{value}"'
    return json.dumps(value)
