"""Certificates of optimality in JSON, for ``bubbleproof verify SCHEDULE --certificate FILE``.

The file is one object, its layout fixed by ``docs/reference/schemas/certificate-1.json``::

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

- ``one-machine``: see ``verify.certificates.one_machine``.
- ``one-store``: see ``verify.certificates.one_store``; ``resource`` and ``store`` by their names,
  ``begin`` and ``end`` in ticks.
- ``volume``: see ``verify.certificates.volume``; ``store`` by its name.
- ``crossings``: see ``verify.certificates.crossings``; ``store`` by its name.
- ``prices``: see ``verify.certificates.tick_prices``; ``resources`` and ``stores`` are rows of a
  name (``of``) and ``steps``, pairs of a tick and the price from there on.
- ``drup``: ``lemmas`` are texts, the literals parted by blanks, see
  ``verify.certificates.certificate``: ``0F3>=12`` (0F3 starts at 12 or later), ``0F3<=12``,
  ``0B1<0F3`` (0B1 ends by the start of 0F3), with ``rank1`` for the first start of a computation on
  rank 1 (``rank0`` of all ranks, for makespan); then ``+0F3 +0F4`` for a crowd, and last ``@0F3``
  where a store is full at the start of 0F3. ``suppose 0B1<0F3`` opens a supposition, ``absurd``
  ends it. ``rank`` anchors span_idle. A text of more than 64 KiB is ``packed`` instead: its lines,
  compressed by zlib, in base64.
- ``windows``: ``first`` and ``store`` name a lifecycle, and of each of the ``windows`` ``count``,
  ``ranks`` (names of resources), ``times`` and ``proof`` are as in
  ``verify.certificates.microbatch_windows``. A proof is a certificate of another kind, as a file of
  its own holds it; tasks go by their names in the excerpt, the clock by ``clock``.
- ``cases``: see ``formats.plans.cases_json``.

Whether the proof holds is not asked here: ``verify.certificates.certificate_rule`` decides that.
"""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields
from typing import Any, cast

from bubbleproof.formats.action_text import action_texts
from bubbleproof.formats.certificate_layouts import (
    FORMAT,
    LAYOUTS,
    DrupLayout,
    TariffLayout,
    WindowsLayout,
    head_content,
)
from bubbleproof.formats.errors import UnusableInput, about, inside, quoted
from bubbleproof.formats.files import MEBIBYTE, FilePath, write_text
from bubbleproof.formats.json_text import read_json, render_json
from bubbleproof.formats.validation import Names, validate, where
from bubbleproof.theory.model.problem import Problem
from bubbleproof.verify.certificates.certificate import Drup, Lemma
from bubbleproof.verify.certificates.certificate_rule import (
    Certificate,
    DirectCertificate,
    without_deadlines,
)
from bubbleproof.verify.certificates.crossings import Crossings
from bubbleproof.verify.certificates.microbatch_windows import (
    Excerpts,
    MicrobatchWindow,
    MicrobatchWindows,
)
from bubbleproof.verify.certificates.one_machine import OneMachine
from bubbleproof.verify.certificates.one_store import OneStore
from bubbleproof.verify.certificates.tick_prices import Tariff, TickPrices
from bubbleproof.verify.certificates.volume import Volume

# What a layout of each kind is read as: the same fields, with numbers for names.
KINDS: dict[str, type[Certificate]] = {
    "one-machine": OneMachine,
    "one-store": OneStore,
    "volume": Volume,
    "crossings": Crossings,
    "prices": TickPrices,
    "drup": Drup,
    "windows": MicrobatchWindows,
}
DIRECT = [kind for kind in KINDS if kind != "windows"]  # what a window may be proved by
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
        return certificate_of(read_json(path, FORMAT, limit=SIZE_LIMIT), problem)


def certificate_of(
    data: Mapping[str, object], problem: Problem, kinds: Collection[str] = tuple(KINDS)
) -> Certificate:
    """The certificate that a file of this content holds; ``kinds`` are those expected here.

    Raises as ``read_certificate``.
    """
    kind = data.get("kind")
    if not isinstance(kind, str) or kind not in kinds:
        raise UnusableInput("kind", f"one of {', '.join(kinds)}", quoted(kind))
    layout, names = validate(LAYOUTS[kind], data), _Names(problem)
    values: dict[str, Any] = {
        each.name: names.read(each.name, layout) for each in fields(KINDS[kind])
    }
    return KINDS[kind](**values)


def write_certificate(
    path: FilePath, problem: Problem, certificate: Certificate, *, name: str = ""
) -> None:
    """Write a certificate about a problem; an existing file is replaced whole or not at all.

    Raises ``UnusableInput`` for a bound of more than 16 digits.
    """
    with about(path):
        content = certificate_content(problem, certificate, name=name)
    write_content(path, content)


def write_content(path: FilePath, content: Mapping[str, object]) -> None:
    """Write what holds certificates, a lemma a line."""
    write_text(path, render_json(content, table_keys=frozenset({"lemmas"})))


def certificate_content(
    problem: Problem, certificate: Certificate, *, name: str = ""
) -> dict[str, object]:
    """What a certificate's file holds. Raises ``UnusableInput`` likewise."""
    kind = next(kind for kind, made in KINDS.items() if isinstance(certificate, made))
    content = head_content(kind, certificate.objective, certificate.bound, name)
    names = _Names(problem)
    for key in LAYOUTS[kind].model_fields:
        if key not in content and hasattr(certificate, key):
            content |= names.written(key, certificate)
    return content


def _lines(layout: DrupLayout) -> list[str]:
    """The text of each lemma."""
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
    """A problem's names, and the keys of certificates that hold them.

    Names that the problem does not have are refused with their place.
    """

    def __init__(self, problem: Problem) -> None:
        resources = [resource.name for resource in problem.resources]
        stores = [store.name for store in problem.stores]
        # The names of all starts: tasks, then the spans of the ranks.
        starts = action_texts(problem.actions)
        starts += [f"rank{rank}" for rank in range(problem.num_ranks)]
        of_resources = Names(resources, f"a resource such as {', '.join(resources[:8])}")
        of_stores = Names(stores, f"a store such as {', '.join(stores[:8])}")
        self.problem = problem
        self.starts, self.texts = Names(starts, "a task of the schedule's problem"), starts
        self.named: dict[str, tuple[Names, list[str]]] = {
            **dict.fromkeys(("resource", "resources", "ranks"), (of_resources, resources)),
            **dict.fromkeys(("store", "stores"), (of_stores, stores)),
            **dict.fromkeys(("first", "tasks"), (self.starts, starts)),
        }

    def read(self, key: str, layout: Any) -> Any:
        """What a certificate has for a key of its layout."""
        if isinstance(layout, DrupLayout) and key == "lemmas":
            return tuple(self._lemma(line, row) for row, line in enumerate(_lines(layout)))
        if isinstance(layout, WindowsLayout) and key == "windows":
            return self._windows(layout)
        value = getattr(layout, key)
        return self._numbers(key, value) if key in self.named else value

    def _numbers(self, key: str, value: str | Sequence[str | TariffLayout], *place: Any) -> Any:
        names, _ = self.named[key]
        place = place or (key,)
        if isinstance(value, str):
            return names.number(value, *place)
        return tuple(
            Tariff(of=names.number(item.of, *place, row), steps=tuple(item.steps))
            if isinstance(item, TariffLayout)
            else names.number(item, *place, row)
            for row, item in enumerate(value)
        )

    def written(self, key: str, certificate: Any) -> dict[str, object]:
        """What a file holds of a certificate under a key, which may go by another name."""
        value = getattr(certificate, key)
        if isinstance(certificate, Drup) and key == "lemmas":
            text = "\n".join(lines := [self._lemma_text(lemma) for lemma in value])
            if len(text) <= LONGEST_PLAIN or not text.isascii():
                return {key: lines}
            packed = base64.b64encode(zlib.compress(text.encode("ascii"), 9))
            return {"packed": packed.decode("ascii")}
        if isinstance(certificate, MicrobatchWindows) and key == "windows":
            return {key: self._window_rows(certificate)}
        return {key: self._texts(key, value) if key in self.named else value}

    def _texts(self, key: str, value: int | Sequence[int | Tariff]) -> object:
        _, texts = self.named[key]
        if isinstance(value, int):
            return texts[value]
        return [
            {"of": texts[item.of], "steps": list(item.steps)}
            if isinstance(item, Tariff)
            else texts[item]
            for item in value
        ]

    def _windows(self, layout: WindowsLayout) -> tuple[MicrobatchWindow, ...]:
        first, store = self.read("first", layout), self.read("store", layout)
        excerpt, found = self._excerpts(first, store), []
        for row, each in enumerate(layout.windows):
            ranks = self._numbers("ranks", each.ranks, "windows", row, "ranks")
            short = excerpt(row, each.count, ranks)
            with inside(f"windows[{row}].proof"):
                proof = cast(DirectCertificate, certificate_of(each.proof, short, DIRECT))
            one = MicrobatchWindow(count=each.count, ranks=ranks, proof=proof, times=each.times)
            found.append(one)
        return tuple(found)

    def _window_rows(self, certificate: MicrobatchWindows) -> list[dict[str, object]]:
        excerpt = self._excerpts(certificate.first, certificate.store)
        return [
            {
                "count": each.count,
                "ranks": self._texts("ranks", each.ranks),
                "times": each.times,
                "proof": certificate_content(excerpt(row, each.count, each.ranks), each.proof),
            }
            for row, each in enumerate(certificate.windows)
        ]

    def _excerpts(self, first: int, store: int) -> Callable[[int, int, tuple[int, ...]], Problem]:
        """The problem of a window, by its place; ``UnusableInput`` where it is no excerpt."""
        excerpts = Excerpts(without_deadlines(self.problem), first, store)

        def excerpt(row: int, count: int, ranks: tuple[int, ...]) -> Problem:
            if isinstance(short := excerpts.of(count, ranks), str):
                raise UnusableInput(f"windows[{row}]", "an excerpt of the problem", short)
            return short

        return excerpt

    def _lemma_text(self, lemma: Lemma) -> str:
        texts = self.texts
        words = [] if lemma.rule == PLAIN else [lemma.rule]
        words += [
            f"{texts[first]}{relation}{texts[second] if relation == '<' else second}"
            for relation, first, second in lemma.literals
        ]
        words += [f"+{texts[task]}" for task in lemma.crowd]
        return " ".join(words + ([] if lemma.full is None else [f"@{texts[lemma.full]}"]))

    def _lemma(self, line: str, row: int) -> Lemma:
        words, full, crowd = line.split(), None, list[int]()
        rule = words.pop(0) if words and words[0] in SCOPES else PLAIN
        if words and words[-1].startswith("@"):
            full = self.starts.number(words.pop()[1:], "lemmas", row)
        while words and words[-1].startswith("+"):
            crowd.append(self.starts.number(words.pop()[1:], "lemmas", row))
        literals = tuple(self._literal(word, row) for word in words)
        return Lemma(literals=literals, full=full, crowd=tuple(reversed(crowd)), rule=rule)

    def _literal(self, word: str, row: int) -> tuple[str, int, int]:
        match = _LITERAL.fullmatch(word)
        if match is None or (match[2] != "<" and not _TICKS.fullmatch(match[3])):
            raise UnusableInput(where(["lemmas", row]), LITERAL, quoted(word))
        first = self.starts.number(match[1], "lemmas", row)
        if match[2] == "<":
            return "<", first, self.starts.number(match[3], "lemmas", row)
        return match[2], first, int(match[3])
