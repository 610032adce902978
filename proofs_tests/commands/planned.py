"""What ``plan`` answers and writes for a problem, made once for all tests of a module."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Plans = Callable[[str], "Planned"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """The JSON that was answered; copies of the folder and of the proofs, for one test alone."""

    found: dict[str, Any]
    folder: Path
    proofs: Path
