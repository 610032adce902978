"""Verdicts as JUnit's XML: a suite for each schedule, a case for each rule.

A violated rule is a ``failure``, an undecided one ``skipped``, a file that cannot be read an
``error``. ``file`` and ``line`` of a case are where its first trouble stands. What control
characters a message has are spelled out, as XML has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from bubbleproof.commands.verifying.judged_file import UNREADABLE, JudgedFile, Trouble
from bubbleproof.formats.printable import harmless


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
