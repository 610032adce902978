"""Text as it may be shown: what a terminal or a drawing would obey, or hide, is spelled out."""

from __future__ import annotations


def harmless(text: str) -> str:
    """The text with control characters (ANSI, OSC) and invisible ones spelled out.

    Names, paths and messages come from files, so every text goes through here where it is printed
    or drawn; lines stay lines.

    >>> harmless("rank" + chr(27) + "]0;owned" + chr(7))
    'rank\\\\x1b]0;owned\\\\x07'
    """
    return "".join(c if c.isprintable() or c == "\n" else _spelled(c) for c in text)


def spelled_out(text: str) -> str:
    """The same on one line: an end of line is spelled out as well.

    >>> spelled_out("a" + chr(10) + "b")
    'a\\\\nb'
    """
    return "".join(c if c.isprintable() else _spelled(c) for c in text)


def on_one_line(text: str) -> str:
    """The same, with a space where a line ends: a name in a drawing."""
    return harmless(text).replace("\n", " ")


def _spelled(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
