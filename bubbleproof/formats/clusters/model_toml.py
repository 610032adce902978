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

The keys are the fields of ``costs.transformer.Transformer``.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ConfigDict, create_model

from bubbleproof.costs import FAMILIES, Transformer, known_model, transformer
from bubbleproof.costs.configurations.config_file import ConfiguredModel, read_configuration
from bubbleproof.formats.errors import UnusableInput, about, values_at
from bubbleproof.formats.files import MEBIBYTE, FilePath, read_text
from bubbleproof.formats.layouts.derived_layout import form_of
from bubbleproof.formats.toml_text import parse_toml
from bubbleproof.formats.validation import Count, Layout, validate
from bubbleproof.theory.pipelines.value_types import declared

DEFAULT_SEQUENCE = 2048


class NamedModelLayout(Layout):
    """A published model, or a family, and how long its samples are."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    name: str | None = None
    """A published model, where no family is told."""
    config: str | None = None
    """A configuration of transformers, or its folder, in place of a name."""
    family: Literal["general", "gpt", "llama", "falcon", "mixture"] | None = None
    """What is not told is as in this family."""
    sequence: Count | None = None
    """Tokens of a sample."""


_OF_KINDS = ("name", "extras", "mixer", "runs", "tower")
_SHAPE: dict[str, Any] = {
    name: (form_of(hint) | None, None)
    for name, hint in declared(Transformer).items()
    if name not in _OF_KINDS
}


class ModelLayout(create_model("_Model", __base__=NamedModelLayout, **_SHAPE)):  # type: ignore[misc]  # made from Transformer's fields
    """The shape of a model; see ``costs.transformer``."""


def model_of(layout: ModelLayout) -> tuple[Transformer, int]:
    """The model of a table, and the tokens of a sample. Raises ``UnusableInput``."""
    told = layout.model_dump(exclude_none=True)
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
