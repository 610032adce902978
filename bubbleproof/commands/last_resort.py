"""The end of every command: its exit status, whatever happens in it.

What cannot be used is one line and status 2, and so is an engine at fault (``FaultError``). Ctrl-C
is status 130, also where a command went on and printed what it had found. Anything else that is
raised is a fault of ours: one line that says so and status ``FAULT``, which no verdict has;
``--traceback`` or ``BUBBLEPROOF_TRACEBACK=1`` shows where.
"""

from __future__ import annotations

import os
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from typing import TextIO

import typer

from bubbleproof.commands.interrupts import interruptions
from bubbleproof.commands.options.shared_options import EXAMPLES
from bubbleproof.commands.output import BROKEN, HOLDS, INTERRUPTED, refuse, say
from bubbleproof.faults import FaultError
from bubbleproof.former_names import FormerNameWarning
from bubbleproof.suggestions import with_suggestion
from bubbleproof.theory.families.parameters import NAMES

FAULT = 70  # EX_SOFTWARE of sysexits.h: an internal error was found
FLAG, VARIABLE = "--traceback", "BUBBLEPROOF_TRACEBACK"


def status_of_call(call: Callable[[], object]) -> int:
    """The exit status of a command line, after a line on standard error for what it raises."""
    _spell_what_is_not_encoded()
    with interruptions() as noted, _former_names_said():
        status = _guarded(call, noted)
    if not noted and status != INTERRUPTED:
        return status
    refuse("interrupted")
    return INTERRUPTED


@contextmanager
def _former_names_said() -> Iterator[None]:
    """A name that has another one now is a line on standard error."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", FormerNameWarning)
        others = warnings.showwarning

        def show(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            if issubclass(category, FormerNameWarning):
                say(str(message))
            else:
                others(message, category, filename, lineno, file, line)

        warnings.showwarning = show
        yield


def _spell_what_is_not_encoded() -> None:
    """Have characters that the output's encoding lacks spelled out, as in ``harmless``.

    A Windows console has cp1252, and a pipe under the locale C perhaps ASCII.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _guarded(call: Callable[[], object], noted: list[int]) -> int:
    try:
        status = call()
        sys.stdout.flush()
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output went away; nobody is left to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN
    except typer.TyperException as error:
        return refuse(usage_line(error.format_message(), _command(error)))
    except (ValueError, OSError, FaultError) as error:
        _trace()
        said = file_line(error) if isinstance(error, OSError) else str(error)
        return refuse(with_suggestion(said))
    except OverflowError as error:
        _trace()
        return refuse(f"a number is too large to count with: {error}")
    except MemoryError as error:
        _trace()
        return refuse(f"more than the memory here: {error or 'no room is left'}")
    except Exception as error:
        _trace()
        if noted:  # a Ctrl-C in the middle of an import comes out as an ImportError
            return INTERRUPTED
        refuse(_fault(error))
        return FAULT
    return status if isinstance(status, int) else HOLDS


def _trace() -> None:
    if FLAG in sys.argv or os.environ.get(VARIABLE, "") not in ("", "0"):
        traceback.print_exc()


def _fault(error: Exception) -> str:
    words = [word for word in sys.argv[1:] if not word.startswith("-")]
    said = "; ".join([str(error).partition("\n")[0], *getattr(error, "__notes__", ())])
    return (
        f"{' '.join(words[:1])}: {type(error).__name__}: {said or 'no more is known'}. "
        f"This is a fault of bubbleproof; {VARIABLE}=1, or {FLAG} before the command, shows where"
    )


_NUMBER = re.compile(r"Input should be a valid (number|integer)(, unable to .*)?$")
_OPTION = re.compile(r"^No such option: --?(?P<name>\w+)")


_LACKS = re.compile(r"Missing (?:argument|option|parameter) '(?P<name>[^']+)'")
_EXTRA = re.compile(r"Got unexpected extra arguments? ?\(?s?\)? ?\((?P<words>.*)\)$")


def _command(error: typer.TyperException) -> str:
    """The command that an error is about."""
    ctx = getattr(error, "ctx", None)
    return getattr(ctx, "info_name", None) or ""


def usage_line(told: str, command: str = "") -> str:
    """The refusal of an argument or an option, with what was probably meant.

    >>> usage_line("Missing option '--hardware'.", "estimate")
    'estimate needs --hardware, as in: bubbleproof estimate rows.csv --hardware h100'
    >>> usage_line("No such option: --p (Possible options: --help)")
    'No such option: --p; parameters are written without dashes, as p=4'
    >>> usage_line("Invalid value for '--width': Input should be a valid number, unable to parse")
    "Invalid value for '--width': expected a number"
    """
    if (option := _OPTION.match(told)) and option["name"] in NAMES:
        words = f"parameters are written without dashes, as {option['name']}=4"
        return f"{told.partition(' (')[0]}; {words}"
    told = told.replace("extra argument(s)", "extra arguments")
    like = f", as in: {EXAMPLES[command][0]}" if command in EXAMPLES else ""
    if like and (lacking := _LACKS.match(told)):
        return f"{command} needs {lacking['name']}{like}"
    if like and "=" not in told and (extra := _EXTRA.match(told)):
        return f"{command} has no use for {extra['words']} there{like}"
    if told.startswith("Got unexpected extra argument") and "=" in told:
        return f"{told}; the words of one schedule go in quotes, as '1f1b p=4 m=8'"
    return _NUMBER.sub(_expected, told)


def _expected(found: re.Match[str]) -> str:
    return "expected a whole number" if found[1] == "integer" else "expected a number"


def file_line(error: OSError) -> str:
    """What the system says of a file, the file first."""
    if error.filename is None or not error.strerror:
        return str(error)
    return f"{error.filename}: {error.strerror[:1].lower()}{error.strerror[1:]}"
