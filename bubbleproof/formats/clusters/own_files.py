"""What one runs today, from what a framework is started with.

Megatron's arguments (a script that calls it, or a file of them) or its layout string; torchtitan's
command line, or a job configuration of its 0.2 (TOML); an Automodel YAML. What is read of each is
what a plan may choose, and the model and batch, which have to be the file's. Data, checkpoints and
the rest are passed over.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace

from bubbleproof.costs.combinations import TrainingJob
from bubbleproof.formats.clusters.own_configuration import (
    OwnConfiguration,
    own_configuration,
    sized_configuration,
)
from bubbleproof.formats.clusters.own_megatron import megatron_told
from bubbleproof.formats.clusters.own_told import OwnTold
from bubbleproof.formats.clusters.own_torch import automodel_told, torchtitan_told
from bubbleproof.formats.errors import UnusableInput, about, values_at
from bubbleproof.formats.files import read_text
from bubbleproof.formats.layout_string import layers_of

LAYOUT = re.compile(r"E[EtmL|*()0-9,\s]*L\s*")
LIMIT = 1 << 17  # bytes of a file
EXPECTED = (
    "Megatron's arguments or layout, a torchtitan command line or job config, or an Automodel YAML"
)


def own_of(text: str, job: TrainingJob) -> OwnConfiguration:
    """What the words or the file of this name say. Raises ``ValueError`` in one line."""
    if os.path.isfile(text) or ("=" not in text and re.search(r"\w[./]\w", text)):
        with about(text):
            return _configured(_told(read_text(text, limit=LIMIT), job), job)
    words = text.split()
    layouts = [word.removeprefix("layout=") for word in words if word.startswith("layout=")]
    others = [word for word in words if not word.startswith("layout=")]
    own = own_configuration(" ".join(others), job.cluster.cards)
    return _cut_by(own, layouts[-1], job) if layouts else own


def _cut_by(own: OwnConfiguration, layout: str, job: TrainingJob) -> OwnConfiguration:
    """With the layers of a layout, told or in a file of this name, and as many chunks."""
    with about(f"layout={layout}"), values_at(""):
        text = read_text(layout, limit=LIMIT) if os.path.isfile(layout) else layout
        told, ranks = _of_layout(text), own.combination.pipeline
        stages = told.sizes["pipeline"]
        if stages % ranks:
            raise UnusableInput("", f"stages that divide by pipeline {ranks}", f"{stages}")
        _require_same(told, job)
    return replace(own, layers=told.layers, chunks=stages // ranks)


def _told(text: str, job: TrainingJob) -> OwnTold:
    """What a file says. Raises ``UnusableInput`` for one of another kind."""
    if LAYOUT.fullmatch(text):
        return _of_layout(text)
    if re.search(r"--(tensor|pipeline)-model-parallel|--num-layers\b|pretrain_\w+\.py", text):
        return megatron_told(text, job.model.layers)
    if re.search(r"--parallelism\.|torchtitan\.train|^\[parallelism\]", text, re.MULTILINE):
        return torchtitan_told(text, job.model.layers)
    if re.search(r"^distributed:", text, re.MULTILINE):
        return automodel_told(text)
    found = "none of them"
    if "zero_optimization" in text or "train_micro_batch_size_per_gpu" in text:
        found = "a DeepSpeed configuration, which tells no pipeline"
    raise UnusableInput("", EXPECTED, found)


def _of_layout(text: str) -> OwnTold:
    with values_at(""):
        stages = layers_of(re.sub(r"\s", "", text))
    layers = tuple(stage.count("t") for stage in stages)
    return OwnTold(
        sizes={"pipeline": len(stages)},
        layers=layers,
        model={"layers": ("the layout", sum(layers))},
        remarks=('the layout tells no sizes, as "tensor=4 pipeline=4 layout=FILE" would',),
    )


def _require_same(told: OwnTold, job: TrainingJob) -> None:
    """Raise ``UnusableInput`` where the model or batch is not the job's."""
    at = {
        "layers": job.model.layers,
        "hidden": job.model.hidden,
        "heads": job.model.heads,
        "sequence": job.deployment.sequence,
        "samples": job.samples,
    }
    for name, (key, value) in told.model.items():
        if value != at[name]:
            raise UnusableInput(
                key, f"{name} {at[name]}, as in the file that is planned", f"{value}"
            )


def _configured(told: OwnTold, job: TrainingJob) -> OwnConfiguration:
    """As a configuration of the job. Raises ``UnusableInput`` where it is of another job."""
    _require_same(told, job)
    with values_at(""):
        own = sized_configuration(told.sizes, job.cluster.cards, scope=told.scope)
    combination = own.combination
    if (each := combination.data * combination.micro_batch) and job.samples % each:
        raise UnusableInput(
            "", f"samples {job.samples} that divide by data x micro-batch", f"{each}"
        )
    return replace(
        own,
        order=told.order,
        group=told.group,
        layers=told.layers,
        waits=tuple(name for name in told.waits if _counts(name, own, job)),
        products=told.products,
        remarks=told.remarks,
    )


def _counts(name: str, own: OwnConfiguration, job: TrainingJob) -> bool:
    """Whether the file's times count on what this one waits for."""
    if name == "exposed_tensor":
        return job.cluster.runs.overlaps and own.combination.tensor > 1
    return job.cluster.hides > 0 and own.combination.data * own.combination.context > 1
