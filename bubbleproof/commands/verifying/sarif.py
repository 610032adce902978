"""Verdicts as SARIF 2.1.0 (OASIS), which code hosts show beside the line.

Each violation is a result; its location is the file, and of a table the row (``startLine``) and the
characters of the cell in it. The message names the column of the table. A rule that could not be
decided is a ``warning``, everything else an ``error``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import PurePath
from urllib.parse import quote

from bubbleproof.commands.verifying.judged_file import UNREADABLE, JudgedFile, Trouble
from bubbleproof.formats.printable import harmless
from bubbleproof.verify.finding import Rule

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
RULES = {rule.name.lower(): rule.value for rule in Rule} | {
    UNREADABLE: "the file is a schedule that can be read"
}


def sarif(judged: Sequence[JudgedFile], version: str) -> str:
    """The text of the file, by this version of the program."""
    driver = {
        "name": "bubbleproof",
        "version": version,
        "rules": [{"id": name, "shortDescription": {"text": text}} for name, text in RULES.items()],
    }
    results = [_result(each, trouble) for each in judged for trouble in each.troubles]
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _result(of: JudgedFile, trouble: Trouble) -> dict[str, object]:
    place, rule = trouble.place, trouble.rule.partition(" ")[0]
    region = {"startLine": place.row if place else 1}
    if place is not None:
        region |= {"startColumn": place.first, "endColumn": max(place.last, place.first + 1)}
    text = trouble.message if place is None else f"{place}: {trouble.message}"
    if trouble.rule != rule:
        text = f"{trouble.rule.partition(' ')[2]} {text}"
    return {
        "ruleId": rule,
        "ruleIndex": list(RULES).index(rule),
        "level": "error" if trouble.is_decided else "warning",
        "message": {"text": harmless(text)},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": _uri(of.path)},
                    "region": region,
                }
            }
        ],
    }


def _uri(path: str) -> str:
    return quote(PurePath(path).as_posix())
