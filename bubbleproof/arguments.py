"""Arguments at the door: each is what it should be, or one line says what was expected.

A wrong type is a ``TypeError`` that names the function, the argument, what was expected and what
was given. Whole numbers may be numpy's; a flag is none.

Every function there is a ``door_function``, which names what was probably meant and passes Ctrl-C
on. A search that Ctrl-C ends gives what it has found, which the command prints; in Python a loop
over searches would go on with the next one, so a ``KeyboardInterrupt`` is raised that holds what
was found.
"""

from __future__ import annotations

import inspect
import logging
import operator
import re
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from numbers import Real
from os import PathLike, fspath
from types import FrameType
from typing import Any, ParamSpec, TypeVar, cast, get_args

from bubbleproof.declared import declared
from bubbleproof.error_base import Error
from bubbleproof.faults import WrongType, WrongValue
from bubbleproof.former_names import warn_of
from bubbleproof.suggestions import did_you_mean, with_suggestion
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.theory.pipelines.pipeline import Pipeline

FilePath = str | PathLike[str]
Progress = Callable[[str], None]  # hears of long work, a line at a time
Parameters = ParamSpec("Parameters")
Returned = TypeVar("Returned")
_FORMER = re.compile(r"""\bFormer\(['"](\w+)['"]\)""")  # of an annotation, which is text
PlanItem = TypeVar("PlanItem")


def problem_of(given: object, *, asker: str) -> Problem:
    """The problem of a ``Pipeline`` or a ``Problem``."""
    if isinstance(given, Pipeline):
        return given.problem()
    if isinstance(given, Problem):
        return given
    inner = getattr(given, "pipeline", None)
    if isinstance(inner, Pipeline) and not hasattr(given, "schedule"):  # a problem file
        if getattr(given, "allowed", None) is not None:
            raise ValueError(f"{asker}: the file leaves choices open, which plan decides")
        return inner.problem()
    expected = "a Pipeline, a Problem or the path of a problem file (.toml)"
    raise WrongType(f"{asker}: expected {expected}, got {told(given)}")


def pair_of(
    given: object, schedule: object, *, asker: str
) -> tuple[Problem, Schedule, Pipeline | None]:
    """The problem and the schedule that were given, and the pipeline where there is one.

    Raises ``ValueError`` where a result or a file has no schedule.
    """
    if schedule is None:
        problem, schedule = getattr(given, "problem", None), getattr(given, "schedule", None)
        pipeline = getattr(given, "pipeline", None)
        if not isinstance(problem, Problem):
            raise WrongType(
                f"{asker}: expected a problem and a schedule, or a family's member or a schedule "
                f"file, which hold both, got {told(given)}"
            )
    else:
        pipeline = given if isinstance(given, Pipeline) else None
        problem = problem_of(given, asker=asker)
    if isinstance(schedule, Schedule):
        return problem, schedule, pipeline
    inner = getattr(schedule, "schedule", None)
    if isinstance(inner, Schedule):  # a Result
        return problem, inner, pipeline
    if schedule is None or hasattr(schedule, "schedule"):
        raise ValueError(f"{asker}: {told(schedule or given)} holds no schedule")
    raise WrongType(f"{asker}: expected a Schedule or a Result, got {told(schedule)}")


def whole(value: object, name: str, *, asker: str) -> int:
    """A whole number, numpy's included."""
    if not isinstance(value, bool):
        try:
            return operator.index(value)  # type: ignore[arg-type]  # what has none is refused below
        except TypeError:
            pass
    raise wrong(value, name, "a whole number", asker=asker)


def number(value: object, name: str, *, asker: str, unit: str = "seconds") -> float:
    """A number of ``unit``, numpy's included."""
    if isinstance(value, Real) and not isinstance(value, bool):
        return float(value)
    raise wrong(value, name, f"a number of {unit}", asker=asker)


def checked(
    options: object, given: Mapping[str, object], bytes_of: Callable[[str], int], *, asker: str
) -> dict[str, object]:
    """What is ``given`` of declared options by name, each of its type; ``bytes_of`` reads a text.

    One that a file may say, or that is none by default, may be None. Other names are left out.
    """
    found: dict[str, object] = {}
    for each in declared(options):
        name, value = each.name, given[each.name]
        kinds, unit = get_args(each.kind) or (each.kind,), each.said.unit
        if value is None and (each.default is None or each.said.is_in_file):
            found[name] = None
        elif isinstance(value, str) and unit == "bytes":
            found[name] = bytes_of(value)
        elif float in kinds:
            found[name] = number(value, name, asker=asker, unit=unit or "units")
        elif int in kinds:
            found[name] = whole(value, name, asker=asker)
        else:  # of a word its class says what it may be
            found[name] = yes(value, name, asker=asker) if bool in kinds else value
    return found


def yes(value: object, name: str, *, asker: str) -> bool:
    """A flag."""
    if isinstance(value, bool):
        return value
    raise wrong(value, name, "true or false", asker=asker)


def hears(progress: Progress | None, *, asker: str) -> Progress:
    """Who hears of long work: the logger ``bubbleproof`` (level INFO), and ``progress``."""
    if progress is not None and not callable(progress):
        raise wrong(progress, "progress", "a function of a line of text", asker=asker)
    log = logging.getLogger("bubbleproof")

    def hear(line: str) -> None:
        log.info("%s: %s", asker, line)
        if progress is not None:
            progress(line)

    return hear


def text(value: object, name: str, *, asker: str) -> str:
    """A text."""
    if isinstance(value, str):
        return value
    raise wrong(value, name, "text", asker=asker)


def path_text(value: object, *, asker: str) -> str:
    """A path as text."""
    if isinstance(value, str | PathLike) and isinstance(found := fspath(value), str):
        return found
    raise wrong(value, "path", "text or a pathlib.Path", asker=asker)


def window_of(value: object, *, asker: str) -> tuple[int, int] | None:
    """The first and the last tick of a picture, None for all of it."""
    if value is None:
        return None
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise wrong(value, "window", "two whole numbers (first, last) in ticks", asker=asker)
    first, last = (whole(tick, "each tick of window", asker=asker) for tick in value)
    if first >= last:
        raise ValueError(f"{asker}: a window must end after it starts, got {first} to {last}")
    return first, last


def listed(given: Sequence[PlanItem], name: str, *, asker: str) -> Sequence[PlanItem]:
    """A list of values."""
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise wrong(given, name, "a list of values", asker=asker)
    return given


def named_or_listed(
    given: Sequence[str | Sequence[PlanItem]], name: str, words: Sequence[str], *, asker: str
) -> tuple[str | tuple[PlanItem, ...], ...]:
    """Values that are one of these words, or a list with an item for each rank or stage."""
    values = listed(given, name, asker=asker)
    for value in values:
        if isinstance(value, str) and value not in words:
            raise ValueError(f"{asker}: {name} must be one of {', '.join(words)}, got {value!r}")
    return tuple(value if isinstance(value, str) else tuple(value) for value in values)


def wrong(value: object, name: str, expected: str, *, asker: str) -> WrongType:
    """The error for an argument of another type."""
    return WrongType(f"{asker}: {name} must be {expected}, got {told(value)}")


def told(value: object) -> str:
    """A value by its type, on one line of at most some 60 characters."""
    shown = " ".join(repr(value).split())
    return f"{type(value).__name__} {shown if len(shown) <= 60 else f'{shown[:57]}...'}"


def is_plan_like(value: object) -> bool:
    """Whether it is what ``plan`` gives, with a winner or without, or a plan's file."""
    return hasattr(value, "winner") or hasattr(value, "source")


def door_function(function: Callable[Parameters, Returned]) -> Callable[Parameters, Returned]:
    """The function, whose refusals name what was probably meant, and which Ctrl-C ends.

    Its ``TypeError`` for a keyword that it has not names the nearest that it has, and a
    ``ValueError`` that lists the words for a value the nearest of these. Raises
    ``KeyboardInterrupt`` with ``result`` where Ctrl-C came, also if the work gave a result.
    """
    signature = inspect.signature(function)
    parameters = signature.parameters
    names = tuple(parameters)
    told = (_FORMER.search(str(each.annotation)) for each in parameters.values())
    former = {found[1]: name for name, found in zip(names, told, strict=True) if found}
    takes_others = inspect.getfullargspec(function).varkw is not None

    @wraps(function)
    def call(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Returned:
        named = cast(dict[str, Any], kwargs)
        try:
            for word in [] if takes_others else [*named]:
                if word in former:
                    new = former[word]
                    warn_of(word, new, has_both=new in named)
                    named[new] = named.pop(word)
                elif word not in names:
                    asker, listed = function.__name__, ", ".join(names)
                    hint = did_you_mean(word, names)
                    raise WrongType(f"{asker}: no argument {word!r}{hint}; it takes {listed}")
            _require_call(function.__name__, signature, args, named)
            return _uninterrupted(lambda: function(*args, **kwargs))
        except Error:
            raise
        except ValueError as error:
            text = with_suggestion(str(error)) if type(error) is ValueError else str(error)
            raise WrongValue(text).with_traceback(error.__traceback__) from error.__cause__

    return call


def _require_call(
    asker: str, signature: inspect.Signature, args: Sequence[object], named: Mapping[str, object]
) -> None:
    """Raise ``WrongType`` where an argument is missing, or one more than it takes has no name."""
    try:
        signature.bind(*args, **named)
    except TypeError as error:
        every = signature.parameters.values()
        first = [each.name for each in every if each.kind is each.POSITIONAL_OR_KEYWORD]
        given = {*first[: len(args)], *named}
        lacking = [each.name for each in every if each.default is each.empty]
        lacking = [name for name in lacking if name not in given]
        others = [each.name for each in every if each.kind is each.KEYWORD_ONLY]
        if len(args) > len(first) and others:
            rest = ", ".join(f"{name}=..." for name in others[:3])
            like = f"{asker}({', '.join(first)}, {rest})"
            raise WrongType(f"{asker}: give options by name, as in {like}") from None
        if lacking:
            raise WrongType(f"{asker}: {' and '.join(lacking)} missing") from None
        raise WrongType(f"{asker}: {error}") from None


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
