"""A model in TOML: the table ``[model]`` of a file, a known model by name or a shape of one's own.

::

    [model]
    name = "llama-2-13b"         # a published one; what else stands here takes its numbers' place
    layers = 38

    [model]
    config = "config.json"       # of transformers; what else stands here takes its numbers' place

    [model]
    family = "llama"             # gpt, llama, falcon, mixture or general: what is not told below
    layers = 16
    hidden = 2048
    heads = 16
    kv_heads = 4
    feed_forward = 5632
    vocabulary = 32000
    sequence = 4096              # tokens of a sample

    [model]                      # layers that differ: all of the above, and
    pattern = ["dense*3", "(window*5 full)*8"]
    kinds.window = { window = 1024 }
    kinds.dense = { experts = 0, experts_per_token = 0, shared_feed_forward = 0 }
    kinds.full = { qk_norm = "head" }
    kinds.scan = { mixer = "mamba-2", state = { inner = 8192, state = 128, kernel = 4,
        heads = 128, groups = 8 } }

    [model]
    config = "config.json"
    mtp = 1                      # modules for further tokens, trained with the model
    frozen = "tower"             # or so many first layers: what is not trained
    tower_tokens = 4096          # of a sample in its tower

The keys are the fields of ``costs.transformer.Transformer`` and the features of
``costs.layer_extras``; what is not told of a kind is as in the model. ``state`` has the sizes of
the mixer (``costs.state_space``). A kind of ``tokens`` of its own is of a tower in front.
``extras``, and ``mixer`` in another form, are operations as ``costs.layer_operation`` has them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Annotated, Any, Literal

from pydantic import Field, create_model

from bubbleproof.costs import Transformer, known_model, transformer
from bubbleproof.costs.configurations.config_file import ConfiguredModel, read_configuration
from bubbleproof.costs.further_layers import with_frozen, with_modules, with_patches
from bubbleproof.costs.known_models import FAMILIES
from bubbleproof.costs.layer_extras import QueryNorm, layer_extras
from bubbleproof.costs.layer_operation import LayerOperation
from bubbleproof.costs.operations import norm_statistics
from bubbleproof.costs.state_space import delta_net, mamba, mamba_2
from bubbleproof.costs.transformer import LayerRun
from bubbleproof.formats.errors import UnusableInput, about, values_at
from bubbleproof.formats.files import MEBIBYTE, FilePath, read_text
from bubbleproof.formats.layouts.derived_layout import form_of, layout_of
from bubbleproof.formats.plans.layer_pattern import repeated
from bubbleproof.formats.toml_text import parse_toml
from bubbleproof.formats.validation import Count, Layout, validate
from bubbleproof.theory.pipelines.value_types import declared

DEFAULT_SEQUENCE = 2048


class NamedModelLayout(Layout):
    """A published model, or a family, and how long its samples are."""

    name: str | None = None
    """A published model, where no family is told."""
    config: str | None = None
    """A configuration of transformers, or its folder, in place of a name."""
    family: Literal["general", "gpt", "llama", "falcon", "mixture"] | None = None
    """What is not told is as in this family."""
    sequence: Count | None = None
    """Tokens of a sample."""


_OF_KINDS = ("name", "extras", "mixer", "runs")
_SHAPE: dict[str, Any] = {
    name: (form_of(hint) | None, None)
    for name, hint in declared(Transformer).items()
    if name not in _OF_KINDS
}


class FeaturesLayout(Layout):
    """What the layers of a model, or those of a kind, have more; see ``costs.layer_extras``."""

    qk_norm: QueryNorm | None = None
    sinks: bool | None = None
    output_gate: bool | None = None
    shared_gate: bool | None = None
    router_bias: bool | None = None
    extras: list[layout_of(LayerOperation)] | None = None  # type: ignore[valid-type]  # made here
    """Operations that the layers have more, in place of the features above."""
    mixer: (
        Literal["mamba", "mamba-2", "delta-net", "none", "attention"]
        | list[layout_of(LayerOperation)]  # type: ignore[valid-type]  # made here
        | None
    ) = None
    """What takes the attention's place, by name or as operations; "attention": nothing does."""
    state: dict[str, Count | bool] | None = None
    """Its sizes."""


class KindLayout(create_model("_Kind", __base__=FeaturesLayout, **_SHAPE)):  # type: ignore[misc]  # made from Transformer's fields
    """What the layers of a kind have other than the model."""


_MODEL = create_model("_Model", __base__=(NamedModelLayout, FeaturesLayout), **_SHAPE)


class ModelLayout(_MODEL):  # type: ignore[misc, valid-type]  # made from Transformer's fields
    """The shape of a model; see ``costs.transformer``."""

    pattern: Annotated[list[str], Field(min_length=1)] | None = None
    """Its layers, of kinds."""
    kinds: dict[str, KindLayout] | None = None
    """What the layers of each kind have other than the model."""
    mtp: Count | None = None
    """Modules for further tokens behind the last layer; without, none are trained."""
    frozen: Count | Literal["tower", "all"] | None = None
    """What is not trained: a tower in front, so many first layers and the embedding, or all but the
    head."""
    tower_tokens: Count | None = None
    """Tokens of a sample in its tower."""


def model_of(layout: ModelLayout) -> tuple[Transformer, int]:
    """The model of a table, and the tokens of a sample. Raises ``UnusableInput``."""
    told = layout.model_dump(exclude_none=True)
    pattern, kinds = told.pop("pattern", None), told.pop("kinds", {})
    features = {key: told.pop(key) for key in FeaturesLayout.model_fields if key in told}
    more = {key: told.pop(key) for key in FURTHER if told.get(key, "all") != "all"}
    model, sequence = _plain(told)
    with values_at("model"):
        model = _with_features(model, features, "")
        if pattern is None and kinds:
            raise ValueError("kinds need pattern, which tells how many there are of each")
        if pattern is not None:
            model = model.with_changes(runs=tuple(_runs(model, pattern, kinds, features)))
        for key, value in more.items():
            model = FURTHER[key](model, value)
    return model, sequence


FURTHER: dict[str, Any] = {"tower_tokens": with_patches, "mtp": with_modules, "frozen": with_frozen}


def _plain(told: dict[str, Any]) -> tuple[Transformer, int]:
    """The model without features and kinds, and the tokens of a sample."""
    family, name = told.pop("family", None), told.pop("name", None)
    sequence, config = told.pop("sequence", None), told.pop("config", None)
    if family is None and name is None and config is None:
        expected = f"a name, a config, or a family of {', '.join(FAMILIES)}"
        raise UnusableInput("model", expected, "none of them")
    with values_at("model"):
        if config is not None:
            found = configured(config, name, family)
            return found.model.with_changes(**told), sequence or found.sequence
        if family is not None:
            return transformer(family, name=name or "", **told), sequence or DEFAULT_SEQUENCE
        known = known_model(name or "")
        return known.model.with_changes(**told), sequence or known.sequence


MIXERS = {"mamba": mamba, "mamba-2": mamba_2, "delta-net": delta_net, "none": None}


def _with_features(model: Transformer, features: dict[str, Any], where: str) -> Transformer:
    """The model with what is told of its layers."""
    told = dict(features)
    name, sizes = told.pop("mixer", None), told.pop("state", {})
    extras = told.pop("extras", None)
    if extras is not None and told:
        raise ValueError(f"{where}extras stand in place of {', '.join(told)}; tell one of them")
    if sizes and not (isinstance(name, str) and MIXERS.get(name)):
        raise ValueError(f"{where}state is of a mixer; tell mixer = one of {', '.join(MIXERS)}")
    changes: dict[str, Any] = {}
    if isinstance(name, list):
        changes["mixer"] = tuple(LayerOperation(**each) for each in name)
    elif name == "attention":
        changes["mixer"] = None
    elif name is not None:
        make = MIXERS[name]
        try:
            changes["mixer"] = make(model.hidden, **sizes) if make else ()
        except TypeError as error:  # a size that it has not, or that is missing
            why = str(error).partition("() ")[2]
            raise ValueError(f"{where}state of {name}: {why}") from None
    if extras is not None:
        changes["extras"] = tuple(LayerOperation(**each) for each in extras)
    elif told:
        shape = {"hidden": model.hidden, "heads": model.heads, "kv_heads": model.kv_heads}
        shape |= {"width": model.head_width + model.rope_width, "experts": model.experts}
        shape["statistics"] = norm_statistics(model)
        changes["extras"] = layer_extras(shape, **told)
    return model.with_changes(**changes) if changes else model


def _runs(
    model: Transformer, pattern: list[str], kinds: dict[str, Any], features: dict[str, Any]
) -> Iterator[LayerRun]:
    """The layers of a pattern. Raises ``ValueError`` for a kind that is not told."""
    made: dict[str, tuple[tuple[str, Any], ...]] = {}
    for name, given in kinds.items():
        told = dict(given)
        own = {key: told.pop(key) for key in FeaturesLayout.model_fields if key in told}
        kind = model.with_changes(**told)
        kind = _with_features(kind, {**features, **own}, f"kinds.{name}.") if own else kind
        differing = (each.name for each in fields(model))
        made[name] = tuple(
            (each, getattr(kind, each))
            for each in differing
            if getattr(kind, each) != getattr(model, each)
        )
    for index, text in enumerate(pattern):
        for name, count in repeated(text, f"pattern[{index}]"):
            if name not in made:
                raise ValueError(f"pattern[{index}]: {name!r} is none of kinds {', '.join(made)}")
            yield LayerRun(count=count, kind=name, changes=made[name])


def configured(config: str, name: str | None, family: str | None) -> ConfiguredModel:
    """The model of a configuration. Raises ``ValueError`` where a family or a name is told too."""
    if family is not None or name is not None:
        raise ValueError("config stands in place of name and family; tell one of them")
    return read_configuration(config)


def read_model(path: FilePath) -> tuple[Transformer, int]:
    """The table ``[model]`` of a file. Raises ``UnusableInput`` with one line."""
    with about(path):
        content = parse_toml(read_text(path, limit=MEBIBYTE))
        if not isinstance(table := content.get("model"), dict):
            raise UnusableInput("model", "this table", "nothing")
        return model_of(validate(ModelLayout, table))
