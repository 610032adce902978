"""Certificates of optimality in JSON, for ``bubbleproof verify SCHEDULE --certificate FILE``.

The file is one object, its layout fixed by ``docs/schemas/certificate-1.json``::

    {
      "format": "bubbleproof/certificate",
      "version": 1,
      "kind": "one-machine",
      "objective": "makespan",
      "bound": 9,
      "resource": "rank 1",
      "tasks": ["1F0", "1F1", "1B0", "1B1"]
    }

It claims that no schedule of a problem has an objective below ``bound`` (ticks). The problem is not
in the file: it is that of the schedule beside it. Tasks and resources go by their names there.

- ``one-machine``: see ``verify.certificates.certificate``.
- ``drup``: ``lemmas`` are texts, the literals parted by blanks, see
  ``verify.certificates.certificate``: ``0F3>=12`` (0F3 starts at 12 or later), ``0F3<=12``,
  ``0B1<0F3`` (0B1 ends by the start of 0F3), with ``rank1`` for the first start of a computation on
  rank 1 (``rank0`` of all ranks, for makespan); then ``+0F3 +0F4`` for a crowd, and last ``@0F3``
  where a store is full at the start of 0F3. ``suppose 0B1<0F3`` opens a supposition, ``absurd``
  ends it. ``rank`` anchors span_idle. A text of more than 64 KiB is ``packed`` instead: its lines,
  compressed by zlib, in base64.

Whether the proof holds is not asked here: ``verify.certificates.certificate`` decides that.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
import zlib
from collections.abc import Sequence

from bubbleproof.formats.action_text import action_texts
from bubbleproof.formats.certificate_layout import LAYOUTS, DrupLayout, OneMachineLayout
from bubbleproof.formats.errors import UnusableInput, about, quoted
from bubbleproof.formats.files import MEBIBYTE, FilePath, write_text
from bubbleproof.formats.json_text import read_json, render_json
from bubbleproof.formats.validation import LARGEST, validate, where
from bubbleproof.theory.model.problem import Problem
from bubbleproof.verify.certificates.certificate import Certificate, Drup, Lemma, OneMachine

FORMAT = "bubbleproof/certificate"
VERSION = 1
SIZE_LIMIT = 64 * MEBIBYTE
UNPACKED_LIMIT = 256 * MEBIBYTE
LONGEST_PLAIN = 1 << 16
PLAIN, SCOPES = "lemma", ("suppose", "absurd")
LITERAL = "a literal such as 0F3>=12, 0F3<=12 or 0B1<0F3"
_LITERAL = re.compile(r"([^<>]+)(>=|<=|<)([^<>=]+)", re.ASCII)
_TICKS = re.compile(r"-?[0-9]{1,19}", re.ASCII)


def read_certificate(path: FilePath, problem: Problem) -> Certificate:
    """Read a certificate about a problem.

    Raises ``UnusableInput`` naming the key, what was expected and what was found; also for a task
    or a resource that the problem does not have.
    """
    with about(path):
        data = read_json(path, FORMAT, limit=SIZE_LIMIT)
        kind = data.get("kind")
        if not isinstance(kind, str) or kind not in LAYOUTS:
            raise UnusableInput("kind", f"one of {', '.join(LAYOUTS)}", quoted(kind))
        layout = validate(LAYOUTS[kind], data)
        names = _Names(problem)
        if isinstance(layout, OneMachineLayout):
            return names.one_machine(layout)
        return names.drup(layout, _lemma_lines(layout))


def write_certificate(
    path: FilePath, problem: Problem, certificate: Certificate, *, name: str = ""
) -> None:
    """Write a certificate about a problem; an existing file is replaced whole or not at all.

    Raises ``UnusableInput`` for a bound of more than 16 digits.
    """
    if abs(certificate.bound) > LARGEST:
        found = str(certificate.bound)
        raise UnusableInput("bound", f"at most {LARGEST}", found, os.fspath(path))
    texts = _texts(problem)
    head = {"format": FORMAT, "version": VERSION, "name": name}
    claim = {"objective": certificate.objective, "bound": certificate.bound}
    match certificate:
        case OneMachine():
            body: dict[str, object] = {
                "kind": "one-machine", **claim,
                "resource": problem.resources[certificate.resource].name,
                "tasks": [texts[task] for task in certificate.tasks],
            }  # fmt: skip
        case Drup():
            lines = [_lemma_text(lemma, texts) for lemma in certificate.lemmas]
            body = {"kind": "drup", **claim, "rank": certificate.rank, **_lines_to_json(lines)}
    write_text(path, render_json({**head, **body}, table_keys=frozenset({"lemmas"})))


def _texts(problem: Problem) -> list[str]:
    """The names of all starts: tasks, then the spans of the ranks."""
    return action_texts(problem.actions) + [f"rank{rank}" for rank in range(problem.num_ranks)]


def _lemma_text(lemma: Lemma, texts: Sequence[str]) -> str:
    words = [] if lemma.rule == PLAIN else [lemma.rule]
    words += [
        f"{texts[first]}{relation}{texts[second] if relation == '<' else second}"
        for relation, first, second in lemma.literals
    ]
    words += [f"+{texts[task]}" for task in lemma.crowd]
    return " ".join(words + ([] if lemma.full is None else [f"@{texts[lemma.full]}"]))


def _lines_to_json(lines: list[str]) -> dict[str, object]:
    text = "\n".join(lines)
    if len(text) <= LONGEST_PLAIN or not text.isascii():
        return {"lemmas": lines}
    return {"packed": base64.b64encode(zlib.compress(text.encode("ascii"), 9)).decode("ascii")}


def _lemma_lines(layout: DrupLayout) -> list[str]:
    if (layout.lemmas is None) == (layout.packed is None):
        found = "both" if layout.packed is not None else "neither"
        raise UnusableInput("", "either the key lemmas or the key packed", found)
    if layout.packed is None:
        return layout.lemmas or []
    unpacker = zlib.decompressobj()
    try:
        raw = base64.b64decode(layout.packed, validate=True)
        content = unpacker.decompress(raw, UNPACKED_LIMIT + 1)
        text = content.decode("ascii")
    except (binascii.Error, zlib.error, UnicodeDecodeError, ValueError):
        raise UnusableInput("packed", "ASCII text, zlib in base64", "another text") from None
    if len(content) > UNPACKED_LIMIT:
        most = f"at most {UNPACKED_LIMIT // MEBIBYTE} MiB once unpacked"
        raise UnusableInput("packed", most, "more")
    if not unpacker.eof:
        raise UnusableInput("packed", "a whole compressed text", "one cut short")
    return text.split("\n") if text else []


class _Names:
    """A problem's names, refused with their place where there is no such thing."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.starts = {text: number for number, text in enumerate(_texts(problem))}

    def one_machine(self, layout: OneMachineLayout) -> OneMachine:
        names = [resource.name for resource in self.problem.resources]
        if layout.resource not in names:
            known = f"a resource such as {', '.join(names[:8])}"
            raise UnusableInput("resource", known, quoted(layout.resource))
        return OneMachine(
            resource=names.index(layout.resource),
            tasks=self._tasks(layout.tasks, "tasks"),
            bound=layout.bound,
            objective=layout.objective,
        )

    def drup(self, layout: DrupLayout, lines: list[str]) -> Drup:
        lemmas = tuple(self._lemma(line, row) for row, line in enumerate(lines))
        return Drup(bound=layout.bound, lemmas=lemmas, objective=layout.objective, rank=layout.rank)

    def _lemma(self, line: str, row: int) -> Lemma:
        words, full, crowd = line.split(), None, list[int]()
        rule = words.pop(0) if words and words[0] in SCOPES else PLAIN
        if words and words[-1].startswith("@"):
            full = self._start(words.pop()[1:], "lemmas", row)
        while words and words[-1].startswith("+"):
            crowd.append(self._start(words.pop()[1:], "lemmas", row))
        literals = tuple(self._literal(word, row) for word in words)
        return Lemma(literals=literals, full=full, crowd=tuple(reversed(crowd)), rule=rule)

    def _literal(self, word: str, row: int) -> tuple[str, int, int]:
        match = _LITERAL.fullmatch(word)
        if match is None or (match[2] != "<" and not _TICKS.fullmatch(match[3])):
            raise UnusableInput(where(["lemmas", row]), LITERAL, quoted(word))
        first = self._start(match[1], "lemmas", row)
        if match[2] == "<":
            return "<", first, self._start(match[3], "lemmas", row)
        return match[2], first, int(match[3])

    def _tasks(self, texts: Sequence[str], *place: str | int) -> tuple[int, ...]:
        return tuple(self._start(text, *place, row) for row, text in enumerate(texts))

    def _start(self, text: str, *place: str | int) -> int:
        if text not in self.starts:
            expected = "a task of the schedule's problem"
            raise UnusableInput(where(place), expected, quoted(text))
        return self.starts[text]
