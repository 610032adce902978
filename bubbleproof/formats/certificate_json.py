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
- ``prices``: see ``verify.certificates.tick_prices``; ``resources`` and ``stores`` are rows of a
  name (``of``) and ``steps``, pairs of a tick and the price from there on.
- ``drup``: ``lemmas`` are texts, the literals parted by blanks, see
  ``verify.certificates.certificate``: ``0F3>=12`` (0F3 starts at 12 or later), ``0F3<=12``,
  ``0B1<0F3`` (0B1 ends by the start of 0F3), with ``rank1`` for the first start of a computation on
  rank 1 (``rank0`` of all ranks, for makespan); then ``+0F3 +0F4`` for a crowd, and last ``@0F3``
  where a store is full at the start of 0F3. ``suppose 0B1<0F3`` opens a supposition, ``absurd``
  ends it. ``rank`` anchors span_idle. A text of more than 64 KiB is ``packed`` instead: its lines,
  compressed by zlib, in base64.
- ``windows``: see ``formats.certificates.window_json``.
- ``cases``: see ``formats.plans.cases_json``.

Whether the proof holds is not asked here: ``verify.certificates.certificate_rule`` decides that.
"""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated

from pydantic import Field, TypeAdapter

from bubbleproof.formats.action_text import action_texts
from bubbleproof.formats.certificates.certificate_layouts import (
    DIRECT,
    FORMAT,
    LAYOUTS,
    VERSION,
    CasesLayout,
    CertificateHead,
    CertificateLayout,
    DirectLayout,
    DrupLayout,
    OneMachineLayout,
    OneStoreLayout,
    PricesLayout,
    TariffLayout,
    VolumeLayout,
    WindowsLayout,
    objective_name,
)
from bubbleproof.formats.certificates.window_json import window_layouts, windows_of
from bubbleproof.formats.errors import UnusableInput, about, quoted
from bubbleproof.formats.files import MEBIBYTE, FilePath, write_text
from bubbleproof.formats.json_text import read_json, render_json
from bubbleproof.formats.sizes import LARGEST
from bubbleproof.formats.validation import Names, validate, where
from bubbleproof.theory.model.problem import Problem
from bubbleproof.verify.certificates.certificate import Drup, Lemma
from bubbleproof.verify.certificates.certificate_rule import Certificate, DirectCertificate
from bubbleproof.verify.certificates.microbatch_windows import MicrobatchWindows
from bubbleproof.verify.certificates.one_machine import OneMachine
from bubbleproof.verify.certificates.one_store import OneStore
from bubbleproof.verify.certificates.tick_prices import Tariff, TickPrices
from bubbleproof.verify.certificates.volume import Volume

SIZE_LIMIT = 64 * MEBIBYTE
UNPACKED_LIMIT = 256 * MEBIBYTE
LONGEST_PLAIN = 1 << 16
PLAIN, SCOPES = "lemma", ("suppose", "absurd")
LITERAL = "a literal such as 0F3>=12, 0F3<=12 or 0B1<0F3"
_LITERAL = re.compile(r"([^<>]+)(>=|<=|<)([^<>=]+)", re.ASCII)
_TICKS = re.compile(r"-?[0-9]{1,19}", re.ASCII)


def certificate_schema() -> dict[str, object]:
    """The JSON schema of a certificate file."""
    either = Annotated[
        DirectLayout | WindowsLayout | CasesLayout,
        Field(discriminator="kind"),
    ]
    adapter: TypeAdapter[object] = TypeAdapter(either)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **adapter.json_schema(),
    }


def read_certificate(path: FilePath, problem: Problem) -> Certificate:
    """Read a certificate about a problem.

    Raises ``UnusableInput`` naming the key, what was expected and what was found; also for a task
    or a resource that the problem does not have.
    """
    with about(path):
        return certificate_of(read_json(path, FORMAT, limit=SIZE_LIMIT), problem)


def certificate_of(data: Mapping[str, object], problem: Problem) -> Certificate:
    """The certificate that a file of this content holds. Raises as ``read_certificate``."""
    if data.get("kind") != "windows":
        return _direct_certificate_of(data, problem, LAYOUTS)
    layout, names = validate(WindowsLayout, data), _Names(problem)
    first, store, windows = windows_of(
        layout, problem, (names.starts, names.resources, names.stores), _proof_of
    )
    return MicrobatchWindows(
        first=first, store=store, windows=windows, bound=layout.bound, objective=layout.objective
    )


def _proof_of(data: Mapping[str, object], problem: Problem) -> DirectCertificate:
    return _direct_certificate_of(data, problem, DIRECT)


def _direct_certificate_of(
    data: Mapping[str, object], problem: Problem, kinds: Iterable[str]
) -> DirectCertificate:
    """The same; ``kinds`` are those that are expected here."""
    kind = data.get("kind")
    if not isinstance(kind, str) or kind not in DIRECT:
        raise UnusableInput("kind", f"one of {', '.join(kinds)}", quoted(kind))
    layout, names = validate(DIRECT[kind], data), _Names(problem)
    if isinstance(layout, OneMachineLayout):
        return names.one_machine(layout)
    if isinstance(layout, OneStoreLayout):
        return names.one_store(layout)
    if isinstance(layout, VolumeLayout):
        return names.volume(layout)
    if isinstance(layout, PricesLayout):
        return names.prices(layout)
    return names.drup(layout, _lemma_lines(layout))


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
    if abs(certificate.bound) > LARGEST:
        raise UnusableInput("bound", f"at most {LARGEST}", str(certificate.bound))
    return _layout_of(problem, certificate, name).content()


def _layout_of(problem: Problem, certificate: Certificate, name: str) -> CertificateLayout:
    texts = _texts(problem)
    head = CertificateHead(
        format=FORMAT,
        version=VERSION,
        name=name,
        objective=objective_name(certificate.objective),
        bound=certificate.bound,
    )
    match certificate:
        case OneMachine():
            return OneMachineLayout(
                **head,
                kind="one-machine",
                resource=problem.resources[certificate.resource].name,
                tasks=[texts[task] for task in certificate.tasks],
            )
        case OneStore():
            return OneStoreLayout(
                **head,
                kind="one-store",
                resource=problem.resources[certificate.resource].name,
                store=problem.stores[certificate.store].name,
                begin=certificate.begin,
                end=certificate.end,
            )
        case Volume():
            store = problem.stores[certificate.store].name
            return VolumeLayout(**head, kind="volume", store=store)
        case TickPrices():
            resources = [
                _tariff(problem.resources[row.of].name, row) for row in certificate.resources
            ]
            stores = [_tariff(problem.stores[row.of].name, row) for row in certificate.stores]
            return PricesLayout(**head, kind="prices", resources=resources, stores=stores)
        case MicrobatchWindows():
            return WindowsLayout(
                **head,
                kind="windows",
                first=texts[certificate.first],
                store=problem.stores[certificate.store].name,
                windows=window_layouts(problem, certificate, certificate_content),
            )
        case Drup():
            text = "\n".join(lines := [_lemma_text(lemma, texts) for lemma in certificate.lemmas])
            if len(text) <= LONGEST_PLAIN or not text.isascii():
                return DrupLayout(**head, kind="drup", rank=certificate.rank, lemmas=lines)
            return DrupLayout(**head, kind="drup", rank=certificate.rank, packed=_packed(text))


def _tariff(name: str, tariff: Tariff) -> TariffLayout:
    return TariffLayout(of=name, steps=list(tariff.steps))


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


def _packed(text: str) -> str:
    return base64.b64encode(zlib.compress(text.encode("ascii"), 9)).decode("ascii")


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
        resources = [resource.name for resource in problem.resources]
        self.resources = Names(resources, f"a resource such as {', '.join(resources[:8])}")
        stores = [store.name for store in problem.stores]
        self.stores = Names(stores, f"a store such as {', '.join(stores[:8])}")
        self.starts = Names(_texts(problem), "a task of the schedule's problem")

    def one_machine(self, layout: OneMachineLayout) -> OneMachine:
        tasks = enumerate(layout.tasks)
        return OneMachine(
            resource=self.resources.number(layout.resource, "resource"),
            tasks=tuple(self.starts.number(text, "tasks", row) for row, text in tasks),
            bound=layout.bound,
            objective=layout.objective,
        )

    def one_store(self, layout: OneStoreLayout) -> OneStore:
        return OneStore(
            resource=self.resources.number(layout.resource, "resource"),
            store=self.stores.number(layout.store, "store"),
            begin=layout.begin,
            end=layout.end,
            bound=layout.bound,
            objective=layout.objective,
        )

    def volume(self, layout: VolumeLayout) -> Volume:
        store = self.stores.number(layout.store, "store")
        return Volume(store=store, bound=layout.bound, objective=layout.objective)

    def prices(self, layout: PricesLayout) -> TickPrices:
        rows = (
            ("resources", layout.resources, self.resources),
            ("stores", layout.stores, self.stores),
        )
        resources, stores = (
            tuple(
                Tariff(of=names.number(row.of, key, number), steps=tuple(row.steps))
                for number, row in enumerate(given)
            )
            for key, given, names in rows
        )
        return TickPrices(
            resources=resources, stores=stores, bound=layout.bound, objective=layout.objective
        )

    def drup(self, layout: DrupLayout, lines: list[str]) -> Drup:
        lemmas = tuple(self._lemma(line, row) for row, line in enumerate(lines))
        return Drup(bound=layout.bound, lemmas=lemmas, objective=layout.objective, rank=layout.rank)

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
