"""Verdicts as files for programs: SARIF 2.1.0 (OASIS), and JUnit's XML.

SARIF is what code hosts show beside the line. Each violation is a result; its location is the file,
and of a table the row (``startLine``) and the characters of the cell in it. The message names the
column of the table. A rule that could not be decided is a ``warning``, everything else an
``error``.

JUnit's XML has a suite for each schedule and a case for each rule: a violated rule is a
``failure``, an undecided one ``skipped``, a file that cannot be read an ``error``. ``file`` and
``line`` of a case are where its first trouble stands. What control characters a message has are
spelled out, as XML has none.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import PurePath
from urllib.parse import quote
from xml.etree.ElementTree import Element, SubElement, indent, tostring

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
                    "artifactLocation": {"uri": quote(PurePath(of.path).as_posix())},
                    "region": region,
                }
            }
        ],
    }


def junit(judged: Sequence[JudgedFile]) -> str:
    """The text of the file."""
    root = Element("testsuites", name="bubbleproof verify")
    totals = {"tests": 0, "failures": 0, "errors": 0, "skipped": 0}
    for each in judged:
        suite = SubElement(root, "testsuite", name=harmless(each.path))
        counts = dict.fromkeys(totals, 0)
        undecided = [t.rule for t in each.troubles if not t.is_decided]
        for rule in dict.fromkeys((*each.rules, *undecided)):
            found = [trouble for trouble in each.troubles if trouble.rule == rule]
            counts["tests"] += 1
            if kind := _add_case(suite, each, rule, found):
                counts[kind] += 1
        for name, count in counts.items():
            suite.set(name, str(count))
            totals[name] += count
    for name, count in totals.items():
        root.set(name, str(count))
    indent(root)
    return tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _add_case(suite: Element, of: JudgedFile, rule: str, found: Sequence[Trouble]) -> str:
    """Add the case of a rule; the count that it belongs to, empty where the rule holds."""
    case = SubElement(suite, "testcase", classname=harmless(of.path), name=rule)
    if not found:
        return ""
    first = found[0]
    case.set("file", harmless(of.path))
    case.set("line", str(first.place.row if first.place else 1))
    if not first.is_decided:
        SubElement(case, "skipped", message=harmless(first.message))
        return "skipped"
    tag, count = ("error", "errors") if rule == UNREADABLE else ("failure", "failures")
    place = f"{first.place}: " if first.place else ""
    told = SubElement(case, tag, message=harmless(place + first.message), type=rule)
    told.text = harmless("\n\n".join(f"{t.message}\n{t.picture}".rstrip() for t in found))
    return count
