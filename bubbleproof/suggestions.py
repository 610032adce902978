"""What was probably meant: the known word nearest to one that is not known."""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Callable, Iterable
from functools import wraps
from typing import ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Returned = TypeVar("Returned")
LONGEST = 60  # of a word that is looked for
_ONE_OF = re.compile(r"must be one of (?P<known>[^;]+), got '(?P<word>[^']+)'$")
_NO_SUCH = re.compile(r"no [^';]*'(?P<word>[^']+)'; the (?!nearest)\w+ are (?P<known>[^;]+)$")


def nearest_word(word: str, known: Iterable[str]) -> str | None:
    """The known word most like this one, whatever its case; None when none is much like it.

    >>> nearest_word("1f1v", ["gpipe", "1f1b"]), nearest_word("x", ["gpipe"])
    ('1f1b', None)
    """
    names = {name.lower(): name for name in known}
    close = difflib.get_close_matches(word[:LONGEST].lower(), list(names), n=1, cutoff=0.5)
    return names[close[0]] if close else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A question that names the nearest word, with a blank before it; empty when there is none.

    >>> did_you_mean("bpip", ["bpipe", "tpipe"])
    " (did you mean 'bpipe'?)"
    """
    close = nearest_word(word, known)
    return f" (did you mean {close!r}?)" if close else ""


def with_suggestion(line: str) -> str:
    """A refusal with the nearest of the words that it lists, where it asks for one of them.

    Refusals of a choice have one of two forms in all rooms: ``... must be one of A, B, got 'X'``
    and ``no ... 'X'; the ... are A B``. Any other line is given back as it is.

    >>> with_suggestion("engine must be one of auto cpsat sat, got 'cpsta'")
    "engine must be one of auto cpsat sat, got 'cpsta' (did you mean 'cpsat'?)"
    """
    found = _ONE_OF.search(line) or _NO_SUCH.search(line)
    if found is None or "did you mean" in line:
        return line
    return line + did_you_mean(found["word"], re.split(r"[ ,]+", found["known"]))


def with_named_keywords(
    function: Callable[Parameters, Returned],
) -> Callable[Parameters, Returned]:
    """The function, whose ``TypeError`` for a keyword that it has not names the nearest it has."""
    names = tuple(inspect.signature(function).parameters)

    @wraps(function)
    def call(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Returned:
        for word in kwargs:
            if word not in names:
                asker = function.__name__
                listed = ", ".join(names)
                raise TypeError(
                    f"{asker}: no argument {word!r}{did_you_mean(word, names)}; it takes {listed}"
                )
        return function(*args, **kwargs)

    return call
