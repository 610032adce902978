"""What every function of the door does beside its work: name what was meant, and pass Ctrl-C on.

A search that Ctrl-C ends gives what it has found, which the command prints. In Python a loop over
searches would go on with the next one; so a function of the door raises ``Interrupted``, a
``KeyboardInterrupt`` that holds what was found.
"""

from __future__ import annotations

import inspect
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from types import FrameType
from typing import ParamSpec, TypeVar

from bubbleproof.suggestions import did_you_mean, with_suggestion

Parameters = ParamSpec("Parameters")
Returned = TypeVar("Returned")


def door_function(function: Callable[Parameters, Returned]) -> Callable[Parameters, Returned]:
    """The function, whose refusals name what was probably meant, and which Ctrl-C ends.

    Its ``TypeError`` for a keyword that it has not names the nearest that it has, and a
    ``ValueError`` that lists the words for a value the nearest of these. Raises
    ``KeyboardInterrupt`` with ``result`` where Ctrl-C came, also if the work gave a result.
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
            return _uninterrupted(lambda: function(*args, **kwargs))
        except ValueError as error:
            if type(error) is ValueError and len(error.args) == 1:
                error.args = (with_suggestion(str(error)),)
            raise

    return call


def _uninterrupted(work: Callable[[], Returned]) -> Returned:
    """What the work gives. Raises ``KeyboardInterrupt`` where Ctrl-C came meanwhile."""
    with _noted() as came:
        try:
            result = work()
        except KeyboardInterrupt as error:
            error.result = None  # type: ignore[attr-defined]  # for who catches it
            raise
        except Exception as error:  # compiled code lets a Ctrl-C out as an error of its own
            if came:
                raise _interruption(None) from error
            raise
        if came:
            raise _interruption(result)
        return result


def _interruption(result: object) -> KeyboardInterrupt:
    """What a call raises that Ctrl-C ended; a traceback tells what was found."""
    error = KeyboardInterrupt()
    error.result = result  # type: ignore[attr-defined]  # for who catches it
    if result is not None:
        error.add_note(f"found by then, as the exception's result: {result!r}")
    return error


@contextmanager
def _noted() -> Iterator[list[int]]:
    """The Ctrl-C that raised ``KeyboardInterrupt`` within the block, whoever caught it.

    Only the main thread hears of one, and only there may a handler be set; one of the user's own
    stays in charge.
    """
    came: list[int] = []
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield came
        return

    def note(number: int, frame: FrameType | None) -> None:
        try:
            before(number, frame)
        except KeyboardInterrupt:
            came.append(number)
            raise

    signal.signal(signal.SIGINT, note)
    try:
        yield came
    finally:
        if signal.getsignal(signal.SIGINT) is note:  # the work may have set another
            signal.signal(signal.SIGINT, before)
