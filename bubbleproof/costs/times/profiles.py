"""The training software that is known, by name: what ``costs/software.toml`` tells of each.

What a plan rests on asks for no name: whoever reads one looks here.
"""

from __future__ import annotations

import tomllib
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from bubbleproof.costs.times.software import Software

PROFILES = Path(__file__).parent.parent / "software.toml"


def _frozen(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple(value.items())
    return tuple(value) if isinstance(value, list) else value


def _profiles() -> dict[str, Software]:
    """The software of the file, by name; one that is ``like`` another has what that has."""
    found: dict[str, Software] = {}
    for name, row in tomllib.loads(PROFILES.read_text(encoding="utf-8")).items():
        own: dict[str, Any] = {"constants": (), **{k: _frozen(v) for k, v in row.items()}}
        own |= {"causal": Fraction(own["causal"])} if "causal" in own else {}
        like = found.get(own.get("like", ""))
        found[name] = replace(like, name=name, **own) if like else Software(name=name, **own)
    return found


SOFTWARE = _profiles()
ALSO = {
    "megatron-2025": "megatron-core-overlapped",
    "fsdp": "torch",
    "deepspeed": "megatron-deepspeed",
}


# That on whose rows a card was fitted.
USUAL = dict.fromkeys(("h100", "h200", "h800", "h20", "gb200", "gb300"), "megatron-core-overlapped")


def usual(card: str, is_named: bool) -> str:
    """The name of the software of a row that tells none.

    Parameters
    ----------
    card
        The name of the card; none: nobody tells it.
    is_named
        Whether its model is a published one.
    """
    return USUAL.get(card, "megatron-core") if is_named else "megatron-2021"


def software(name: str) -> Software:
    """The software of a name.

    Parameters
    ----------
    name
        A key of ``SOFTWARE``, or of ``ALSO``.

    Raises
    ------
    ValueError
        With those that there are.
    """
    found = SOFTWARE.get(ALSO.get(name, name))
    if found is None:
        raise ValueError(f"software must be one of {', '.join(SOFTWARE)}, got {name[:40]!r}")
    return found
