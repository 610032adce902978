"""TOML read so that no text stops the reader for long, its faults told in one line."""

from __future__ import annotations

import re
import tomllib

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
