"""The mark of an option that names what its command writes, beside its ``Option``."""

from __future__ import annotations

from enum import Enum
from typing import get_args


class Target(Enum):
    """What is written there."""

    FILE = "file"
    FOLDER = "folder"


def target_of(hint: object) -> Target | None:
    """The mark of an annotated option, if it has one."""
    return next((each for each in get_args(hint) if isinstance(each, Target)), None)
