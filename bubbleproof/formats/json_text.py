"""JSON read strictly and written for people.

Read: duplicate keys are refused, and what is no JSON is told by line and column. Written: one key
to a line, one row of a table to a line, one order to a line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from bubbleproof.formats.errors import UnusableInput, quoted
from bubbleproof.formats.files import FilePath, read_text

_HALF = re.compile(r"\\u[dD][89a-fA-F]")  # one of two escapes that make a character


class _DuplicateKeyError(ValueError):
    """A key that stands twice in one object; its text is the message."""


def read_json(path: FilePath, format_name: str, *, limit: int) -> Mapping[str, object]:
    """The JSON object in a file of at most ``limit`` bytes, its key ``format`` as named."""
    data = parse_json(read_text(path, limit=limit))
    if not isinstance(data, Mapping) or data.get("format") != format_name:
        found = data.get("format") if isinstance(data, Mapping) else data
        raise UnusableInput("format", f'"{format_name}"', quoted(found))
    return data


def parse_json(text: str) -> object:
    """The value of a JSON text. Raises ``UnusableInput`` for anything else."""
    try:
        value: object = json.loads(text, object_pairs_hook=_unique)
        if _HALF.search(text):
            json.dumps(value, ensure_ascii=False).encode()
        return value
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise UnusableInput(place, "valid JSON", _found(error, text)) from None
    except UnicodeEncodeError:
        raise UnusableInput("", "whole characters", r"half of one (\ud800 alone)") from None
    except _DuplicateKeyError as error:
        raise UnusableInput("", "keys that differ", f"{quoted(str(error))} twice") from None
    except RecursionError:
        raise UnusableInput("", "a few levels of nesting", "many more") from None
    except ValueError:  # Python's limit on the digits of one number
        raise UnusableInput("", "numbers of at most 16 digits", "a longer one") from None


def render_json(value: object, *, table_keys: frozenset[str] = frozenset()) -> str:
    """JSON text with one key to a line; lists under ``table_keys`` have one entry to a line."""
    return _render(value, "", table_keys, is_table=False) + "\n"


def _render(value: object, indent: str, table_keys: frozenset[str], *, is_table: bool) -> str:
    inner = indent + "  "
    if isinstance(value, Mapping) and value:
        rows = [
            f"{inner}{json.dumps(key, ensure_ascii=False)}: "
            + _render(item, inner, table_keys, is_table=key in table_keys)
            for key, item in value.items()
        ]
        return "{\n" + ",\n".join(rows) + f"\n{indent}}}"
    if isinstance(value, list) and value and is_table:
        entries = [inner + json.dumps(item, ensure_ascii=False) for item in value]
        return "[\n" + ",\n".join(entries) + f"\n{indent}]"
    return json.dumps(value, ensure_ascii=False)


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result = dict(pairs)
    if len(result) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _DuplicateKeyError(key)
            seen.add(key)
    return result


def _found(error: json.JSONDecodeError, text: str) -> str:
    if "Unterminated" in error.msg:
        return "a string without end"
    rest = text[error.pos : error.pos + 20].strip()
    return quoted(rest) if rest else "the end of the file"
