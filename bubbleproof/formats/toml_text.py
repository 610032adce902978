"""TOML read so that no text stops the reader for long, its faults told in one line; and written."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from fractions import Fraction

from bubbleproof.formats.errors import UnusableInput, one_line, quoted

# Python's TOML parser takes quadratic time on a key of many dotted parts; ours have two.
_DEEP_KEY = re.compile(r"""(?:^[ \t\[]*|[{,][ \t]*)(?:[\w"'-]+[ \t]*\.[ \t]*){9}""", re.MULTILINE)


def _number(text: str) -> int | float:
    """A number with a point or an exponent: 1e3 is a whole number, 1000.0 is none."""
    value = float(text)
    is_whole = "." not in text and abs(value) < 1 << 53 and value.is_integer()
    return int(value) if is_whole else value


def parse_toml(text: str) -> dict[str, object]:
    """The content of a TOML text. Raises ``UnusableInput`` where it has none."""
    if deep := _DEEP_KEY.search(text):
        row = text.count("\n", 0, deep.start()) + 1
        raise UnusableInput(f"line {row}", "keys of one level", quoted(deep[0]))
    try:
        return tomllib.loads(text, parse_float=_number)
    except tomllib.TOMLDecodeError as error:
        fault = one_line(str(error), 120)
        raise UnusableInput.of_values("", f"not valid TOML: {fault}") from None
    except RecursionError:
        raise UnusableInput("", "a few levels of nesting", "many more") from None
    except ValueError:  # Python's limit on the digits of one number
        raise UnusableInput("", "numbers of at most 16 digits", "a longer one") from None


def toml_text(content: Mapping[str, object], remarks: Sequence[str] = ()) -> str:
    """The text of a content: its keys, then the tables in it; remarks as comments above."""
    lines = [f"# {line}" for remark in remarks for line in remark.splitlines()]
    return "\n".join([*lines, *_table_lines("", content)]).lstrip() + "\n"


def _table_lines(name: str, table: Mapping[str, object]) -> list[str]:
    """The keys of a table, then the tables in it."""
    plain = [f"{_key(k)} = {_told(v)}" for k, v in table.items() if not isinstance(v, Mapping)]
    lines = ["", f"[{name}]", *plain] if name and (plain or not table) else plain
    for key, value in table.items():
        if isinstance(value, Mapping):
            lines += _table_lines(".".join(filter(None, [name, _key(key)])), value)
    return lines


def _told(value: object) -> str:
    """A value in TOML."""
    if isinstance(value, Fraction):
        return str(value.numerator) if value.denominator == 1 else f'"{value}"'
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{_key(key)} = {_told(each)}' for key, each in value.items())} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_told, value))}]"
    return json.dumps(value, ensure_ascii=False)


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else json.dumps(key, ensure_ascii=False)
