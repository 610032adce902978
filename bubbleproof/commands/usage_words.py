"""What the command line says of words that it cannot use, in the words of bubbleproof."""

from __future__ import annotations

import re

from bubbleproof.theory.families.parameters import NAMES

_NUMBER = re.compile(r"Input should be a valid (number|integer)(, unable to .*)?$")
_OPTION = re.compile(r"^No such option: --?(?P<name>\w+)")


def usage_line(told: str) -> str:
    """The refusal of an argument or an option, with what was probably meant.

    >>> usage_line("No such option: --p (Possible options: --help)")
    'No such option: --p; parameters are written without dashes, as p=4'
    >>> usage_line("Invalid value for '--width': Input should be a valid number, unable to parse")
    "Invalid value for '--width': expected a number"
    """
    if (option := _OPTION.match(told)) and option["name"] in NAMES:
        words = f"parameters are written without dashes, as {option['name']}=4"
        return f"{told.partition(' (')[0]}; {words}"
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
