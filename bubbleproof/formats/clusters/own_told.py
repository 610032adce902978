"""What a framework's own file tells of how a model is trained, in our words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bubbleproof.formats.errors import UnusableInput, quoted
from bubbleproof.theory.pipelines.shapes.layer_cuts import Cut


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnTold:
    """``sizes`` by our keys (``own_configuration``), the rest as there.

    ``model`` has what must be as in the file that is planned: the key that tells it, and its value.
    """

    sizes: Mapping[str, int]
    scope: str = "none"
    order: str = ""
    group: int = 0
    layers: Cut | None = None
    waits: tuple[str, ...] = ()
    products: str = ""
    model: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()


def counted_from(key: str, value: object, least: int = 1) -> int:
    """A whole number of a file. Raises ``UnusableInput``, at its key, for anything else."""
    text = str(value)
    if not (text.isascii() and text.isdecimal() and len(text) < 10 and int(text) >= least):
        raise UnusableInput(key, f"a whole number of {least} or more", quoted(text))
    return int(text)
