"""Hardware in TOML: a card with the constants of the model of times, as ``calibrate`` writes it.

::

    card = "a100-80gb"           # one of costs/cards
    rows = 532                   # measured iterations that the constants were fitted to
    scope_one_node = "none"      # what rows of one node and of many recompute, where they do not
    scope_many_nodes = "full"    # tell it
    software = ["megatron-2021"] # what ran; other software keeps the constants that it starts with

    [constants]
    matmul = { value = 257.1, unit = "TFLOP/s", fitted = true, meaning = "rate of ..." }

Constants that are younger than the file, or older than this version, are passed over. Where a file
is taken, the name of a card serves too: its constants are those that come with the
package, or its data sheet's alone.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from bubbleproof.costs.times.calibration import Calibration, uncalibrated
from bubbleproof.costs.times.card_files import FOLDER, card, nearest_cards
from bubbleproof.costs.times.cards import Card
from bubbleproof.costs.times.constants import CONSTANTS, require_constants, starts
from bubbleproof.costs.times.job_rows import JobRow, rows_of
from bubbleproof.costs.times.profiles import software
from bubbleproof.formats.errors import UnusableInput, about, quoted, values_at
from bubbleproof.formats.files import MEBIBYTE, FilePath, read_text
from bubbleproof.formats.printable import on_one_line
from bubbleproof.formats.toml_text import parse_toml
from bubbleproof.formats.validation import Layout, Natural, validate

CALIBRATED = FOLDER.parent / "calibrated"
Scope = Literal["none", "attention", "full"]
# Constants of earlier versions, of which there are none in this one.
FORMER = ("half_side",)


class ConstantLayout(Layout):
    """One constant."""

    value: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    unit: str = ""
    meaning: str = ""
    fitted: bool = False
    """Whether rows told it; else it is where fits start, from the card's data sheet."""


class HardwareLayout(Layout):
    """A card and its constants."""

    card: str
    """A card's name."""
    rows: Natural = 0
    """Measured iterations that the constants were fitted to."""
    scope_one_node: Scope = "none"
    scope_many_nodes: Scope = "none"
    software: list[str] = Field(default_factory=list)
    """What ran; none: any."""
    constants: dict[str, ConstantLayout]


def read_hardware(path: FilePath, key: str = "hardware") -> Calibration:
    """The hardware of a file, or of a card's name. Raises ``UnusableInput`` with one line.

    ``key`` is the key or option that gives the path.
    """
    name = str(path)
    if not name.endswith(".toml"):
        return known_hardware(name, key)
    with about(path):
        content = parse_toml(read_text(path, limit=MEBIBYTE))
        layout = validate(HardwareLayout, content)
        found = known_card(layout.card, "card")
        with values_at("software"):
            names = tuple(software(name).name for name in layout.software)
        begun = starts(found, software(names[0]) if names else None)
        own = {name: constant.value for name, constant in layout.constants.items()}
        values = begun | {name: value for name, value in own.items() if name not in FORMER}
        with values_at("constants"):
            require_constants(values)
    return Calibration(
        card=found,
        constants=values,
        fitted=tuple(name for name, constant in layout.constants.items() if constant.fitted),
        rows=layout.rows,
        scope_one_node=layout.scope_one_node,
        scope_many_nodes=layout.scope_many_nodes,
        software=names,
    )


def known_hardware(name: str, key: str) -> Calibration:
    """A known card with the constants that come with it, or its data sheet's alone.

    Raises ``UnusableInput`` at ``key`` for another name, with the nearest.
    """
    found = known_card(name, key)
    shipped = CALIBRATED / f"{found.name}.toml"
    return read_hardware(shipped) if shipped.is_file() else uncalibrated(found)


def known_card(name: str, key: str) -> Card:
    """The card of a name. Raises ``UnusableInput`` at ``key`` for another, with the nearest."""
    try:
        return card(name)
    except ValueError:
        found = f"{quoted(name)}; the nearest are {', '.join(nearest_cards(name))}"
        raise UnusableInput(key, "a known card", found) from None


def hardware_text(found: Calibration, note: str) -> str:
    """The file of a calibration; ``note`` stands at its head as a comment."""
    lines = [f"# {line}" for line in note.splitlines()]
    lines += [
        f'card = "{found.card.name}"',
        f"rows = {found.rows}",
        f'scope_one_node = "{found.scope_one_node}"',
        f'scope_many_nodes = "{found.scope_many_nodes}"',
        f"software = {json.dumps(found.software)}",
        "",
        "[constants]",
    ]
    for each in CONSTANTS:
        fitted = str(each.name in found.fitted).lower()
        lines.append(
            f"{each.name} = {{ value = {found.constants[each.name]:.6g}, "
            f'unit = "{each.unit}", fitted = {fitted}, meaning = "{each.meaning}" }}'
        )
    return "\n".join(lines) + "\n"


def hardware_path(path: str) -> Path:
    """Where hardware is written. Raises ``UnusableInput`` for a name that is no TOML file's."""
    if not path.endswith(".toml"):
        raise UnusableInput("output", "a file ending in .toml", repr(path))
    return Path(path)


def read_rows(
    path: FilePath, *, measured: bool, on: str = "", refused: list[str] | None = None
) -> list[JobRow]:
    """The rows of a file; their measured column is looked at only where that is asked for.

    ``on`` and ``refused`` as in ``rows_of``. Raises ``ValueError`` with one line that
    names the file and the row.
    """
    text = read_text(path, limit=16 * MEBIBYTE)
    try:
        return rows_of(text, measured=measured, on=on, refused=refused)
    except ValueError as error:
        raise ValueError(f"{path}: {on_one_line(str(error))}") from None  # a cell may have lines
