"""ZeRO levels: which of a stage's parameters are sharded how far (PipeMesh section III-C).

1   only the update is sharded: the stage's first UNSHARD brings the parameter, its last
    REDUCE_GRAD sums the gradient, which is whole until then;
2   every REDUCE_GRAD sums the gradient, which is whole from its visit's first B to its end only;
3   also every UNSHARD brings the parameter and every RESHARD frees it.

Levels are mixed by parameter name, in the text form ``3,norm=1,bias=2``: a default, then what the
parameters with a part of that name have instead. Parts are joined by dots and underscores, and a
number at the end of one does not count (``norm`` fits ``norm1``). Of two exceptions that fit the
later one counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

LEVELS = (1, 2, 3)


@dataclass(frozen=True, slots=True, kw_only=True)
class ZeroLevels:
    """The level of each parameter by its name.

    >>> levels = ZeroLevels.parse("3,norm=1")
    >>> levels.of("layers.0.up.weight"), levels.of("layers.0.norm.bias")
    (3, 1)

    Raises ``ValueError`` for a level that is not 1, 2 or 3.
    """

    default: int
    exceptions: tuple[tuple[str, int], ...] = ()

    def __post_init__(self) -> None:
        for level in (self.default, *(level for _, level in self.exceptions)):
            if level not in LEVELS:
                raise ValueError(f"a ZeRO level must be 1, 2 or 3, got {level}")

    @classmethod
    def parse(cls, text: str) -> ZeroLevels:
        """Read the text form. Raises ``ValueError`` saying what was expected."""
        if re.fullmatch(r"[0-9](,[A-Za-z]+=[0-9])*", text) is None:
            raise ValueError(
                "ZeRO levels must be a level, perhaps with other levels of names (3,norm=1), "
                f"got {text[:40]!r}"
            )
        default, *named = text.split(",")
        pairs = [word.split("=") for word in named]
        return cls(default=int(default), exceptions=tuple((part, int(n)) for part, n in pairs))

    @property
    def highest(self) -> int:
        """The highest level that a parameter may have."""
        return max(self.default, *(level for _, level in self.exceptions), 1)

    def __str__(self) -> str:
        return ",".join([str(self.default), *(f"{part}={n}" for part, n in self.exceptions)])

    def of(self, name: str) -> int:
        """The level of the parameter with this dotted name."""
        fits = [level for part, level in self.exceptions if part in _parts(name)]
        return fits[-1] if fits else self.default

    def require_names(self, names: Iterable[str]) -> None:
        """Raise ``ValueError`` for an exception that fits no parameter."""
        parts = {part for name in names for part in _parts(name)}
        for part, level in self.exceptions:
            if part not in parts:
                known = ", ".join(sorted(parts))
                raise ValueError(
                    f"ZeRO level {level} is for parameters named {part!r}, and there are none; "
                    f"their names have the parts {known}"
                )


def _parts(name: str) -> set[str]:
    """The parts of a dotted name, without numbers."""
    return {part.rstrip("0123456789") for part in re.split(r"[._]", name)} - {""}
