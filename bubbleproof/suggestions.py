"""What was probably meant: the known word nearest to one that is not known."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from bubbleproof.theory.near_names import did_you_mean as did_you_mean

Parameters = ParamSpec("Parameters")
Returned = TypeVar("Returned")
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


def with_suggestions(
    function: Callable[Parameters, Returned],
) -> Callable[Parameters, Returned]:
    """The function, whose refusals name what was probably meant.

    Its ``TypeError`` for a keyword that it has not names the nearest that it has, and a
    ``ValueError`` that lists the words for a value the nearest of these.
    """
    names = tuple(inspect.signature(function).parameters)
    takes_others = inspect.getfullargspec(function).varkw is not None

    @wraps(function)
    def call(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Returned:
        for word in () if takes_others else kwargs:
            if word not in names:
                asker = function.__name__
                listed = ", ".join(names)
                raise TypeError(
                    f"{asker}: no argument {word!r}{did_you_mean(word, names)}; it takes {listed}"
                )
        try:
            return function(*args, **kwargs)
        except ValueError as error:
            if type(error) is ValueError and len(error.args) == 1:
                error.args = (with_suggestion(str(error)),)
            raise

    return call
