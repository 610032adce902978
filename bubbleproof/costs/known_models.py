"""Families of models, and published models by name.

They stand in ``models.toml`` beside this file, with the source of each; those whose layers differ
as configurations in ``configurations/published``.

``published`` is the exact number of parameters where one was published: that of the weights' file,
which the tests hold against what the shape comes to. It is never used to compute anything.
"""

from __future__ import annotations

import difflib
import tomllib
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

from bubbleproof.costs.configurations.config_file import read_configuration
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


FILE = Path(__file__).with_name("models.toml")
CONFIGURATIONS = Path(__file__).with_name("configurations") / "published"


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownModel:
    """A model's shape, where it is published, and its longest sequence in tokens."""

    name: str
    model: Transformer
    sequence: int
    source: str
    published: int | None


@lru_cache(maxsize=1)
def known_models() -> dict[str, KnownModel]:
    """All models of the file, by name, in its order, and those of the configurations."""
    found = {name: _known(name, dict(row)) for name, row in _tables(FILE).items()}
    told = _tables(CONFIGURATIONS / "sources.toml")
    return found | {name: _configured(name, row) for name, row in told.items()}


def _tables(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        return tomllib.load(file)


def _configured(name: str, row: dict[str, Any]) -> KnownModel:
    text = f"hf:{CONFIGURATIONS / name}.json"
    read = read_configuration(text, with_library=False)
    return KnownModel(
        name=name,
        model=read.model,
        sequence=read.sequence,
        source=row["source"],
        published=row.get("published"),
    )


def known_model(name: str) -> KnownModel:
    """The model of a name, whatever its case and hyphens: ``llama3-70b`` is ``llama-3-70b``.

    Parameters
    ----------
    name
        Any spelling of a listed name.

    Raises
    ------
    ValueError
        With the nearest names.
    """
    found = known_models().get(name.lower()) or _by_letters().get(_letters(name))
    if found is None:
        near = difflib.get_close_matches(name.lower()[:60], known_models(), n=3, cutoff=0.4)
        near = near or list(known_models())[:3]
        shown = name if len(name) <= 60 else name[:60] + "..."
        raise ValueError(f"no model {shown!r}; the nearest are {', '.join(near)}")
    return found


@lru_cache(maxsize=1)
def _by_letters() -> dict[str, KnownModel]:
    """The models whose letters and digits are no other's."""
    found: dict[str, list[KnownModel]] = {}
    for name, known in known_models().items():
        found.setdefault(_letters(name), []).append(known)
    return {letters: same[0] for letters, same in found.items() if len(same) == 1}


def _letters(name: str) -> str:
    return "".join(each for each in name.lower() if each.isalnum())


def _known(name: str, row: dict[str, Any]) -> KnownModel:
    told = {key: row.pop(key) for key in ("sequence", "source")}
    published, family = row.pop("published", None), row.pop("family")
    if isinstance(width := row.get("feed_forward"), str):
        row["feed_forward"] = Fraction(width)
    model = transformer(family, name=name, **row)
    return KnownModel(name=name, model=model, published=published, **told)
