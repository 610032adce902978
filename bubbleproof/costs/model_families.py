"""Families of models: what their members share, and a member made of the numbers that differ."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from bubbleproof.costs.transformer import Transformer

# What members of a family share; the rest is told of each.
FAMILIES: dict[str, dict[str, Any]] = {
    "general": {},
    "gpt": {"attention_biases": "all", "feed_forward_bias": True, "tied": True, "dropout": True},
    "llama": {"gated": True, "norm": "rms"},
    "falcon": {"parallel": True, "tied": True},
    "mixture": {"gated": True, "norm": "rms"},
}
FIELDS = tuple(field.name for field in fields(Transformer))


def transformer(family: str = "general", **numbers: Any) -> Transformer:
    """A member of a family; ``feed_forward`` defaults to four times ``hidden`` where not gated.

    Parameters
    ----------
    family
        A key of ``FAMILIES``.
    **numbers
        Fields of ``Transformer`` by name.

    Raises
    ------
    ValueError
        For an unknown family or field, and for one that is missing.

    Examples
    --------
    >>> transformer("gpt", layers=12, hidden=768, heads=12, vocabulary=50257).feed_forward
    3072
    """
    if family not in FAMILIES:
        raise ValueError(f"model family must be one of {', '.join(FAMILIES)}, got {family!r}")
    given = {**FAMILIES[family], **numbers}
    for name in given:
        if name not in FIELDS:
            raise ValueError(f"a model has no {name!r}; it has {', '.join(FIELDS)}")
    if "feed_forward" not in given and not given.get("gated") and "hidden" in given:
        given["feed_forward"] = 4 * given["hidden"]
    for name in ("layers", "hidden", "heads", "feed_forward", "vocabulary"):
        if name not in given:
            raise ValueError(f"model {name} is missing; a {family} model needs it")
    return Transformer(**given)
