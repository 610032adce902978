"""``bubbleproof costs MODEL [tensor=8 pipeline=4 ...]``: what a model costs, as exact numbers.

MODEL is a published one (``costs/models.toml``), a configuration of transformers
(``hf:config.json``, or its folder), or a file with a table ``[model]``. ``--json`` has

- ``parameters {layer, embedding, head, total, active}``: numbers of weights of the whole model,
  however it is cut; the largest layer, what comes before all layers, what comes after, all, and
  those that one token goes through;
- ``flops {F, I, W}``: of one microbatch on one device of the stage that computes most, forward,
  backward for the input and for the weights, without what ``scope`` recomputes, which is ``R``;
- ``saved_bytes {none, attention, full}``: what one microbatch leaves in the layers of a stage on
  one device, by recompute scope; ``embedding_saved_bytes`` and ``head_saved_bytes`` come on top on
  the first and the last stage;
- ``state_bytes``: weights, gradients and optimizer state on one device of the fullest stage;
- beside them ``layer_flops`` and ``head_flops`` (one layer, the head, on one device),
  ``message_bytes`` (to the next stage, one microbatch), ``stages``, the ``deployment``, and with
  ``-o`` the ``reason`` why it cannot run, else empty.

With ``-o`` MODEL is a file with ``[model] [cluster] [batch]``, and what is written is the problem
file of this deployment, of the kind that ``profile`` writes of a measured one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from bubbleproof.commands.first_lines import deployed, print_answer, print_rows
from bubbleproof.commands.options.shared_options import Detail
from bubbleproof.commands.output import BROKEN, HOLDS, print_json, print_table, say
from bubbleproof.costs import Deployment, ModelCosts, Transformer, model_costs
from bubbleproof.costs.combinations import Combination, CombinationCosts, counted
from bubbleproof.costs.configurations.config_file import ConfiguredModel, is_configuration
from bubbleproof.costs.deployment import COUNTS
from bubbleproof.facts import rows
from bubbleproof.formats.all_or_nothing import written_together
from bubbleproof.formats.clusters.cluster_toml import (
    SIZES,
    configuration_of,
    named_model,
    read_cluster_file,
)
from bubbleproof.formats.clusters.deployed_content import deployed_text
from bubbleproof.formats.errors import about, one_line, quoted
from bubbleproof.formats.files import write_text
from bubbleproof.formats.format_table import format_of
from bubbleproof.formats.inputs import other_thing
from bubbleproof.formats.problem_toml import problem_file_of_text
from bubbleproof.report.amounts import memory, short
from bubbleproof.theory.near_names import nearest_name

WORDS = ("scope", "accounting", "precision")
NAMES = (*COUNTS, "zero", "sequence_parallel", *WORDS)
SHORT = {"tp": "tensor", "pp": "pipeline", "dp": "data", "cp": "context", "ep": "expert"}
SHORT |= {"mbs": "micro_batch", "seq": "sequence"}
FLAGS = {"true": True, "false": False}
WEIGHTS = 5  # rows of facts that are numbers of weights


def run_costs(
    model: str, detail: Detail, parameters: Sequence[str] | None, output: str | None, json: bool
) -> int:
    """Print what a model costs; write its problem file where one is asked for."""
    is_file = not model.endswith(".toml") and not is_configuration(model)
    if is_file and (file := format_of(model)) is not None:
        raise other_thing(model, file)
    shape, base = named_model(model)
    at = base.with_changes(**parsed(parameters or ()))
    found = model_costs(shape, at)
    reason = "" if output is None else _write(model, output, at)
    if json:
        print_json({**found.to_dict(), "reason": reason})
    elif not reason:
        read = configuration_of(model)
        notes = [] if read is None else [f"note     {each}" for each in read.notes]
        if print_answer([*_lines(found), *notes], detail):
            _print(found)
            _print_read(read, detail)
    if reason:
        say(f"{model}: {reason}")
    return BROKEN if reason else HOLDS


def _write(model: str, output: str, at: Deployment) -> str:
    """Write the problem file of a deployment, or say why it cannot run.

    Raises ``ValueError`` for another kind of file, and for sizes that do not divide.
    """
    for name in (model, output):
        if not name.endswith(".toml"):
            raise ValueError(
                f"costs -o takes a model's file and a problem file (.toml), got {name!r}"
            )
    file = read_cluster_file(model)
    fixed = Combination(**{name: getattr(at, name) for name in SIZES})
    training = replace(file.training, deployment=at)
    one = counted(training, fixed)
    if not isinstance(one, CombinationCosts):
        raise ValueError(f"{model}: {one.reason}")
    if not one.reason:
        text = deployed_text(replace(file, training=training), one)
        with about(model):
            problem_file_of_text(text, name=file.name)  # numbers that a problem can tell
        with written_together(None, output) as (_, target):
            write_text(target, text)
    return one.reason


def parsed(words: Iterable[str]) -> dict[str, Any]:
    """``key=value`` words as fields of a ``Deployment``.

    >>> parsed(["tensor=8", "scope=full"])
    {'tensor': 8, 'scope': 'full'}

    Raises ``ValueError`` for an unknown or repeated key, and a value of another kind.
    """
    given: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or key not in NAMES:
            near = SHORT.get(key) or (nearest_name(key, NAMES) if equals else None)
            hint = f"; write {near}={one_line(value, 20)}" if near else ""
            known = " ".join(NAMES)
            raise ValueError(f"no parameter {quoted(word)}{hint}; the parameters are {known}")
        if key in given:
            raise ValueError(f"parameter {key} is given twice")
        given[key] = _value(key, value)
    return given


def _value(key: str, text: str) -> object:
    if key in WORDS and text:
        return text
    if key in WORDS:
        raise ValueError(f"{key} must be a name, got nothing; leave {key}= out")
    if key == "sequence_parallel":
        if text not in FLAGS:
            raise ValueError(f"sequence_parallel must be true or false, got {text[:40]!r}")
        return FLAGS[text]
    if not re.fullmatch(r"-?[0-9]{1,15}", text):
        raise ValueError(f"{key} must be a whole number, got {text[:40]!r}")
    return int(text)


def _lines(found: ModelCosts) -> list[str]:
    """The size of the model, and what one microbatch and the state take on the fullest device."""
    weights, at, flops = found.parameters, found.deployment, found.flops
    active = f" ({_count(weights.active)} active)" if weights.active != weights.total else ""
    kinds, up_to = _kinds(found.model), "up to " if found.model.runs else ""
    again = f", {_tflop(flops.again)} again" if flops.again else ""
    saved = [
        f"{memory(int(b))} with {'no' if s == 'none' else s} recompute"
        for s, b in found.saved_bytes.items()
    ]
    return [
        f"{found.model.name or 'the model'} has {_count(weights.total)} parameters{active} and "
        f"keeps {memory(int(found.state_bytes))} of state per device",
        f"model    {found.model.layers} layers of {up_to}{_count(weights.layer)}, embedding "
        f"{_count(weights.embedding)}, head {_count(weights.head)}",
        *kinds,
        f"device   {deployed(at)} · sequence {at.sequence:,}, the fullest stage",
        f"compute  forward {_tflop(flops.forward)}, backward "
        f"{_tflop(flops.input_backward + flops.weight_backward)}{again} per micro-batch",
        f"saved    {' | '.join(saved)} per micro-batch",
        f"state    weights, gradients and optimizer {memory(int(found.state_bytes))}",
        f"message  {memory(int(found.message_bytes))} to the next stage",
    ]


def _kinds(model: Transformer) -> list[str]:
    """How many layers there are of each kind, where they differ."""
    counts: dict[str, int] = {}
    for run in model.runs:
        counts[run.kind] = counts.get(run.kind, 0) + run.count
    told = " | ".join(f"{count} x {kind}" for kind, count in counts.items())
    return [f"kinds    {told}"] if told else []


def _count(number: int | Fraction) -> str:
    """A number of parameters: ``13 B``, ``317 M``."""
    size, name = next(
        each for each in ((10**9, "B"), (10**6, "M"), (1, "")) if number >= each[0] or each[0] == 1
    )
    return f"{short(float(number) / size)} {name}".rstrip()


def _tflop(value: int | Fraction) -> str:
    return f"{short(float(value) / 1e12)} TFLOP"


def _print_read(read: ConfiguredModel | None, detail: Detail) -> None:
    """What was understood of a configuration, key by key, and what decides nothing."""
    if read is None:
        return
    keys = [*read.understood, *((key, "decides no size") for key in read.ignored)]
    print_rows(f"read by {read.reader}", ("key", "value"), keys, detail)


def _print(found: ModelCosts) -> None:
    at, name = found.deployment, found.model.name or "model"
    told = [(label, value) for label, _, value, _ in rows(found.facts())]
    print_table(f"{name}: parameters", ("of", "number"), told[:WEIGHTS])
    where = (
        f"tensor {at.tensor}, pipeline {at.pipeline}, data {at.data}, micro-batch {at.micro_batch} "
        f"of {at.sequence} tokens, ZeRO {at.zero}, recompute scope {at.scope}, {at.accounting}"
    )
    title = f"one microbatch on one device ({where})"
    print_table(title, ("quantity", "value"), told[WEIGHTS:])
