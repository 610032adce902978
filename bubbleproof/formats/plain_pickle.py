"""Pickles of plain values alone: containers, numbers, text, bytes, None. Nothing is ever called.

A pickle is a program, and some of its instructions import and call what they name. Only those that
build plain values are let through, before anything is run; the first other one refuses the file by
what it names. A pickle may also ask for a table of any length by the number of an entry; one beyond
the number of instructions is refused.
"""

from __future__ import annotations

import io
import pickle
import pickletools
import re

from bubbleproof.formats.errors import UnusableInput, one_line, quoted

_PLAIN = re.compile(
    "PROTO|FRAME|STOP|MARK|POP|POP_MARK|DUP|NONE|NEWTRUE|NEWFALSE"
    "|INT|BININT[12]?|LONG[14]?|FLOAT|BINFLOAT"
    "|STRING|BINSTRING|SHORT_BINSTRING|UNICODE|BINUNICODE8?|SHORT_BINUNICODE"
    "|BINBYTES8?|SHORT_BINBYTES|LIST|EMPTY_LIST|APPENDS?|TUPLE[123]?|EMPTY_TUPLE"
    "|DICT|EMPTY_DICT|SETITEMS?|(LONG_)?(BIN)?(GET|PUT)|MEMOIZE"
)
_NUMBERED = ("PUT", "BINPUT", "LONG_BINPUT")


class _PlainUnpickler(pickle.Unpickler):
    """Imports nothing, whatever the instructions say."""

    def find_class(self, module_name: str, global_name: str, /) -> object:
        raise UnusableInput(
            "", "plain values", f"a call of {quoted(f'{module_name}.{global_name}')}"
        )


def parse_pickle(content: bytes) -> object:
    """The value of a pickle. Raises ``UnusableInput`` for what is not plain, or no whole pickle."""
    try:
        _require_plain(content)
        value: object = _PlainUnpickler(io.BytesIO(content)).load()
    except UnusableInput:
        raise
    except Exception as error:  # damaged, a pickle raises anything
        raise UnusableInput("", "a whole pickle", _reason(error)) from None
    return value


def _require_plain(content: bytes) -> None:
    text: list[object] = []  # the last two, which STACK_GLOBAL names
    for number, (code, argument, _) in enumerate(pickletools.genops(content)):
        if _PLAIN.fullmatch(code.name) is None:
            named = argument if isinstance(argument, str) else ".".join(map(str, text))
            found = f"the instruction {code.name} ({one_line(named, 60)})"
            raise UnusableInput("", "plain values, which call nothing", found)
        if code.name in _NUMBERED and isinstance(argument, int) and argument > number:
            raise UnusableInput("", "entries numbered in order", f"number {argument}")
        if isinstance(argument, str):
            text = [*text[-1:], argument]


def _reason(error: Exception) -> str:
    said = one_line(str(error), 80)
    return f"one that ends early or is damaged ({said})" if said else "one that ends early"
