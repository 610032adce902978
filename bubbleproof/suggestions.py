"""What was probably meant: the known word nearest to one that is not known."""

from __future__ import annotations

import re

from bubbleproof.theory.near_names import did_you_mean as did_you_mean

_ONE_OF = re.compile(r"must be one of (?P<known>[^;]+), got '(?P<word>[^']+)'$")
_NO_SUCH = re.compile(r"no [^';]*'(?P<word>[^']+)'; the (?!nearest)\w+ are (?P<known>[^;]+)$")


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
