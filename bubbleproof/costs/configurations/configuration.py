"""The keys of a configuration, each checked where it is read, and what was read of them.

A key may have several names (``n_embd`` for ``hidden_size``); the first that the file has is read.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bubbleproof.theory.near_names import did_you_mean

LARGEST = 1 << 40
_NONE: Any = object()
KEYS = tomllib.loads(Path(__file__).with_name("keys.toml").read_text(encoding="utf-8"))
OTHER_NAMES: Mapping[str, Sequence[str]] = KEYS["other_names"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """The values of a file (or of a table in it, ``within``), and what they were taken for.

    Raises ``ValueError`` with the file, the key and what is expected, where a value is none.
    """

    path: str
    values: Mapping[str, Any]
    within: str = ""
    used: dict[str, object] = field(default_factory=dict)

    def has(self, name: str) -> bool:
        """Whether the key is there and is not null.

        Parameters
        ----------
        name
            The key.
        """
        return self._find(name)[1] not in (_NONE, None)

    def size(self, name: str, default: int | None = None) -> int:
        """A whole number, 1 or more.

        Parameters
        ----------
        name
            The key.
        default
            What it is where the key is not there; None: it must be there.
        """
        return self._whole(name, default, least=1)

    def number(self, name: str, default: int | None = 0) -> int:
        """A whole number, 0 or more; null is the default.

        Parameters
        ----------
        name
            The key.
        default
            What it is where the key is not there; None: it must be there.
        """
        return self._whole(name, default, least=0)

    def flag(self, name: str, default: bool = False) -> bool:
        """true or false.

        Parameters
        ----------
        name
            The key.
        default
            What it is where the key is not there.
        """
        return bool(self._checked(name, default, "true or false", bool))

    def word(self, name: str, default: str = "") -> str:
        """A text.

        Parameters
        ----------
        name
            The key.
        default
            What it is where the key is not there.
        """
        return str(self._checked(name, default, "a text", str))

    def words(self, name: str, count: int) -> tuple[str, ...]:
        """A text for each of so many layers; none where the key is not there.

        Parameters
        ----------
        name
            The key.
        count
            Layers.
        """
        found = self.each(name, count, str, "texts")
        return tuple(map(str, found))

    def each(self, name: str, count: int, kind: type, kinds: str) -> tuple[Any, ...]:
        """A value for each of so many layers; none where the key is not there.

        Parameters
        ----------
        name
            The key.
        count
            Layers.
        kinds
            What the values are, in a refusal.
        """
        found = self._checked(name, None, f"a list of {kinds}", Sequence, of=kind)
        if found is not None and len(found) != count:
            raise self.wrong(name, f"one entry for each of {count} layers", len(found))
        return tuple(found or ())

    def numbers(self, name: str) -> tuple[int, ...]:
        """A list of whole numbers; none where the key is not there.

        Parameters
        ----------
        name
            The key.
        """
        return tuple(self._checked(name, (), "a list of whole numbers", Sequence, of=int))

    def skip(self, *names: str) -> None:
        """These keys are known and, as the others are, decide nothing."""
        self.used.update((name, self.values[name]) for name in names if name in self.values)

    def is_auto(self, name: str) -> bool:
        """Whether a size is left to the reader: "auto", null or not there.

        Parameters
        ----------
        name
            The key.
        """
        value = self.used[name] = self.values.get(name, "auto")
        return value in ("auto", None)

    def table(self, name: str) -> Configuration | None:
        """A configuration within this one.

        Parameters
        ----------
        name
            The key.
        """
        if (found := self._checked(name, None, "a table", Mapping)) is None:
            return None
        key, _ = self._find(name)
        self.used[key] = "a table"
        return Configuration(path=self.path, values=found, within=f"{self.within}{key}.")

    def wrong(self, key: str, expected: str, value: object) -> ValueError:
        """What refuses a value.

        Parameters
        ----------
        key
            The key, within this configuration.
        expected
            What the value must be.
        """
        shown = repr(value) if isinstance(value, str | int | float | bool) else str(value)
        repair = ""
        if (
            isinstance(value, str)
            and value.isascii()
            and value.isdecimal()
            and "number" in expected
        ):
            repair = f"; write {value} without quotation marks"
        shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
        return ValueError(
            f"{self.path}: {self.within}{key}: expected {expected}, got {shown}{repair}"
        )

    def _find(self, name: str) -> tuple[str, Any]:
        names = (name, *OTHER_NAMES.get(name, ()))
        there = [each for each in names if each in self.values]
        found = next(
            (each for each in there if self.values[each] is not None), (there or [name])[0]
        )
        self.used.update((each, None) for each in there if self.values[each] is None)
        return found, self.values.get(found, _NONE)

    def _checked(
        self, name: str, default: Any, expected: str, kind: type, of: type | None = None
    ) -> Any:
        """The value, of the kind, with all in it ``of`` a type; the default where there is none."""
        key, value = self._find(name)
        if value in (_NONE, None):
            return default
        is_of_kind = isinstance(value, kind)
        if not is_of_kind or not (of is None or all(type(one) is of for one in value)):
            raise self.wrong(key, expected, value)
        self.used[key] = value
        return value

    def _whole(self, name: str, default: int | None, least: int) -> int:
        key, value = self._find(name)
        if value in (_NONE, None):
            if default is None:
                raise self._missing(name)
            return default
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if type(value) is not int or not least <= value <= LARGEST:
            raise self.wrong(key, f"a whole number from {least}", value)
        self.used[key] = value
        return value

    def _missing(self, name: str) -> ValueError:
        names = " or ".join((name, *OTHER_NAMES.get(name, ())[:2]))
        near = did_you_mean(name, [key for key in self.values if key not in self.used])
        return ValueError(
            f"{self.path}: {self.within}{name}: this key is missing{near or f'; write {names}'}"
        )
