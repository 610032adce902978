"""A Chrome trace file, read event by event: memory for one event, whatever the file's size.

Kineto writes one JSON object a rank: some keys about the run, then ``traceEvents``, an array of
objects, then more keys. ``read_events`` gives the keys before the array first, then each event. A
file that ends before its array does gives what is whole, and says so (``is_truncated``); one that
is damaged before its end, and what is no such file, raises ``UnusableInput``. ``.gz`` files are
read as what they hold.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from bubbleproof.formats.errors import UnusableInput, quoted

_CHUNK = 1 << 18  # characters; 16 kB to 4 MB take equally long
_MOST = 1 << 26  # characters of one event or of the keys before the events
_BEGIN = re.compile(r'"traceEvents"\s*:\s*\[')
_BETWEEN = re.compile(r"[\s,]*")
_LONGEST_WORD = 16  # characters; a number or -Infinity that was cut is told where it begins


@dataclass(slots=True, kw_only=True)
class EventFile:
    """A file under way: ``about`` are the keys before its events, once the first was asked for."""

    path: str
    about: dict[str, Any] = field(default_factory=dict)  # JSON of any form
    is_truncated: bool = False
    num_events: int = 0


def read_events(file: EventFile) -> Iterator[dict[str, Any]]:
    """The events of ``file.path``, in its order. Raises ``UnusableInput`` and ``OSError``."""
    decoder, at = json.JSONDecoder(), 0
    with _opened(file.path) as stream:
        text = _header(file, stream)
        while True:
            at = _BETWEEN.match(text, at).end()  # type: ignore[union-attr]  # it matches nothing too
            if text.startswith("]", at):
                return
            try:
                event, at = decoder.raw_decode(text, at)
            except RecursionError:
                raise _damaged(file, "lists within lists without end") from None
            except json.JSONDecodeError as error:
                if not _is_cut(error, text):
                    raise _damaged(file, quoted(text[error.pos :][:40])) from None
                text, at = text[at:], 0
                if not (more := _more(file, stream, text)):
                    file.is_truncated = True
                    return
                text += more
                continue
            except ValueError:  # Python's limit on the digits of one number
                raise _damaged(file, "a number of more digits than it can have") from None
            if isinstance(event, dict):
                file.num_events += 1
                yield event


def _is_cut(error: json.JSONDecodeError, text: str) -> bool:
    """Whether more text may mend it: it fails at the text's end, or within an open string."""
    is_open = error.msg.startswith("Unterminated string")
    return is_open or error.pos + _LONGEST_WORD >= len(text.rstrip())


def _damaged(file: EventFile, found: str) -> UnusableInput:
    expected = "an event in JSON (the file is damaged there; write the trace again)"
    return UnusableInput(f"event {file.num_events}", expected, found)


def _header(file: EventFile, stream: IO[str]) -> str:
    """Read what stands before the events; returns what was read beyond."""
    text = ""
    while (match := _BEGIN.search(text)) is None:
        more = _more(file, stream, text)
        if not more:
            raise UnusableInput("", 'a trace with "traceEvents"', quoted(text[:40]))
        text += more
    before = text[: match.start()].rstrip().rstrip(",")
    try:
        about = json.loads(before + "}")
    except (ValueError, RecursionError):
        raise UnusableInput("", "a JSON object with traceEvents", quoted(text[:40])) from None
    file.about = about
    return text[match.end() :]


def _more(file: EventFile, stream: IO[str], text: str) -> str:
    if len(text) > _MOST:
        found = f"{len(text)} characters without the end of event {file.num_events}"
        raise UnusableInput("", "events of a trace", found)
    try:
        return stream.read(_CHUNK)
    except (EOFError, gzip.BadGzipFile, zlib.error, UnicodeDecodeError) as error:
        if isinstance(error, EOFError):
            return ""  # a compressed file that was cut off
        raise UnusableInput("", "a trace in UTF-8, or one compressed by gzip", str(error)) from None


@contextmanager
def _opened(path: str) -> Iterator[IO[str]]:
    with Path(path).open("rb") as raw:
        is_compressed = raw.read(2) == b"\x1f\x8b"
    if is_compressed:
        with gzip.open(path, "rt", encoding="utf-8") as stream:
            yield stream
    else:
        with Path(path).open(encoding="utf-8") as stream:
            yield stream
