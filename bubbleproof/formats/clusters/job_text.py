"""A job given to a function of Python, as the problem file of it: a model on a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from bubbleproof.costs import Transformer
from bubbleproof.costs.configurations.config_file import is_configuration
from bubbleproof.costs.layer_operation import LayerOperation
from bubbleproof.formats.layouts.cluster_layout import ClusterLayout
from bubbleproof.formats.toml_text import toml_text


def job_text(
    model: Transformer | str,
    cluster: ClusterLayout,
    samples: int,
    sequence: int | None,
    framework: str | None = None,
) -> str:
    """The text of the file, with all deployments open that the framework runs.

    Parameters
    ----------
    model
        A published one by its name, a configuration (``hf:config.json``), or a shape.
    samples, sequence
        Of one training step, and the tokens of each; None: the model's longest.
    framework
        What trains it; None: the one that a file without a table ``[plan]`` is planned for.
    """
    named = model if isinstance(model, str) else model.name or "model"
    named = named if not is_configuration(named) else Path(named).stem
    batch = {"samples": samples} | ({} if sequence is None else {"sequence": sequence})
    tables: dict[str, Mapping[str, object]] = {
        "model": _named(model) if isinstance(model, str) else _shape(model),
        "cluster": cluster.model_dump(exclude_unset=True, exclude_none=True),
        "batch": batch,
        **({} if framework is None else {"plan": {"framework": framework}}),
    }
    return toml_text({"name": f"{named}-{cluster.cards}x{cluster.card or 'cards'}", **tables})


def _named(model: str) -> dict[str, object]:
    return {"config" if is_configuration(model) else "name": model}


def _shape(model: Transformer) -> dict[str, object]:
    """The fields that are not as a model has them anyway; its layers by pattern and kinds."""
    found = {"family": "general", **_written(_changed(model, ("runs",)))}
    kinds = dict.fromkeys(run.changes for run in model.runs)
    names = {changes: f"kind-{number}" for number, changes in enumerate(kinds)}
    if model.runs:
        found["pattern"] = [" ".join(f"{names[run.changes]}*{run.count}" for run in model.runs)]
        found["kinds"] = {name: _written(dict(changes)) for changes, name in names.items()}
    return found


def _changed(thing: Transformer | LayerOperation, but: tuple[str, ...]) -> dict[str, Any]:
    """The fields whose values are not those that they have where nothing is told."""
    told = {each.name: getattr(thing, each.name) for each in fields(thing) if each.name not in but}
    return {
        each.name: told[each.name]
        for each in fields(thing)
        if each.name in told and told[each.name] != each.default
    }


def _written(told: dict[str, Any]) -> dict[str, object]:
    """Fields of a shape as a file has them."""
    found: dict[str, object] = dict(told)
    if "extras" in told:
        found["extras"] = [_changed(each, ()) for each in told["extras"]]
    if "mixer" in told:
        mixer = told["mixer"]
        listed = [_changed(each, ()) for each in mixer or ()]
        found["mixer"] = "attention" if mixer is None else listed or "none"
    return found
