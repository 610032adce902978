"""The proofs of a plan in one file: a bound of each candidate and what shows it.

::

    {
      "format": "bubbleproof/plan-certificate",
      "version": 1,
      "name": "GPT-3 13B",
      "candidates": [
        {"chunks": 1, "placement": "loop", "backward": "whole", "slices": 1, "layers": null,
         "bound": 4307160, "certificate": {"kind": "one-machine", ...}},
        {"chunks": 5, ..., "bound": 3584928, "word": "cpsat"}
      ]
    }

A certificate is that of ``formats.certificate_json``, about the candidate's relaxation. Instead,
``cases`` may list one for each case of its choices, null where those after it stand for the case
(``verify.candidates.cases``). ``word`` names the engine that is believed where there is neither.
The space of the plan, which a reader derives from the problem file, tells which candidates there
have to be.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeVar

from bubbleproof.formats.certificate_json import certificate_content, certificate_of
from bubbleproof.formats.errors import UnusableInput, about
from bubbleproof.formats.files import MEBIBYTE, FilePath, write_text
from bubbleproof.formats.json_text import read_json, render_json
from bubbleproof.formats.validation import Layout, Natural, validate
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.pipelines.plan_space import Candidate, PlanSpace
from bubbleproof.theory.pipelines.shaping import NotLegalError, Shaped, shaped
from bubbleproof.verify.candidates.bundle import Bounded
from bubbleproof.verify.candidates.cases import Cases, problems_of
from bubbleproof.verify.candidates.relaxation import relaxation
from bubbleproof.verify.certificates.rule import Certificate

FORMAT = "bubbleproof/plan-certificate"
VERSION = 1
Item = TypeVar("Item")
SIZE_LIMIT = 256 * MEBIBYTE


class CandidateLayout(Layout):
    """A candidate of a plan."""

    chunks: Natural
    placement: str | list[Natural]
    backward: str | list[bool]
    slices: Natural
    layers: list[Natural] | None = None


class BoundedLayout(CandidateLayout):
    """A candidate, its bound, and a certificate, one by cases, or an engine's word."""

    bound: Natural
    certificate: dict[str, object] | None = None
    cases: list[dict[str, object] | None] | None = None
    word: str = ""


class BundleLayout(Layout):
    """A bundle file."""

    format: Literal["bubbleproof/plan-certificate"]
    version: Literal[1]
    name: str = ""
    candidates: list[BoundedLayout]


def candidate_to_json(candidate: Candidate) -> dict[str, object]:
    """The candidate's keys."""
    listed = {
        name: list(value) if isinstance(value, tuple) else value
        for name in ("placement", "backward", "layers")
        for value in [getattr(candidate, name)]
    }
    return {"chunks": candidate.chunks, **listed, "slices": candidate.slices}


def candidate_of(layout: CandidateLayout) -> Candidate:
    """The candidate described."""
    return Candidate(
        chunks=layout.chunks,
        placement=_listed(layout.placement),
        backward=_listed(layout.backward),
        slices=layout.slices,
        layers=None if layout.layers is None else tuple(layout.layers),
    )


def _listed(value: str | list[Item]) -> str | tuple[Item, ...]:
    return value if isinstance(value, str) else tuple(value)


def write_bundle(
    path: FilePath, space: PlanSpace, bundle: Sequence[Bounded], *, name: str = ""
) -> None:
    """Write the proofs of a plan; an existing file is replaced whole or not at all.

    Raises ``UnusableInput`` for a bound of more than 16 digits.
    """
    with about(path):
        rows = [_row(space, entry) for entry in bundle]
        content = {"format": FORMAT, "version": VERSION, "name": name, "candidates": rows}
        write_text(path, render_json(content, table_keys=frozenset({"lemmas"})))


def _row(space: PlanSpace, entry: Bounded) -> dict[str, object]:
    row = {**candidate_to_json(entry.candidate), "bound": entry.bound}
    if entry.certificate is None:
        return {**row, "word": entry.word}
    found, proof = shaped(space, entry.candidate), entry.certificate
    if not isinstance(proof, Cases):
        relaxed = relaxation(found.pipeline, found.allowed)
        return {**row, "certificate": certificate_content(relaxed, proof)}
    problems = problems_of(found.pipeline, found.allowed, [one is None for one in proof.proofs])
    pairs = zip(problems, proof.proofs, strict=True)
    return {**row, "cases": [one and certificate_content(of, one) for of, one in pairs]}


def read_bundle(path: FilePath, space: PlanSpace) -> tuple[Bounded, ...]:
    """Read the proofs of a plan of this space.

    Raises ``UnusableInput`` naming the key, what was expected and what was found; also for a
    certificate of a candidate that the space does not have.
    """
    with about(path):
        layout = validate(BundleLayout, read_json(path, FORMAT, limit=SIZE_LIMIT))
        known = frozenset(space.candidates())
        return tuple(
            _bounded(space, known, row, f"candidates[{index}]")
            for index, row in enumerate(layout.candidates)
        )


def _bounded(
    space: PlanSpace, known: frozenset[Candidate], row: BoundedLayout, where: str
) -> Bounded:
    candidate = candidate_of(row)
    if candidate not in known:
        raise UnusableInput(where, "a candidate of the problem", str(candidate))
    if row.certificate is None and row.cases is None:
        return Bounded(candidate=candidate, bound=row.bound, word=row.word)
    try:
        found = shaped(space, candidate)
    except NotLegalError as why:
        raise UnusableInput(where, "a legal candidate", str(why)) from None
    if row.cases is not None:
        proof: Certificate | Cases = _cases(found, row, row.cases, where)
    else:
        relaxed = relaxation(found.pipeline, found.allowed)
        proof = _certificate(row.certificate or {}, relaxed, f"{where}.certificate")
    return Bounded(candidate=candidate, bound=row.bound, certificate=proof)


def _cases(
    found: Shaped, row: BoundedLayout, cases: list[dict[str, object] | None], where: str
) -> Cases:
    problems = problems_of(found.pipeline, found.allowed, [case is None for case in cases])
    proofs: list[Certificate | None] = []
    try:
        for number, problem in enumerate(problems):
            case, place = cases[number], f"{where}.cases[{number}]"
            proofs.append(None if case is None else _certificate(case, problem, place))
    except UnusableInput:
        raise
    except ValueError as why:
        raise UnusableInput(f"{where}.cases", "every case of the candidate", str(why)) from None
    return Cases(bound=row.bound, proofs=tuple(proofs))


def _certificate(content: dict[str, object], problem: Problem, where: str) -> Certificate:
    try:
        return certificate_of(content, problem)
    except UnusableInput as error:
        place = f"{where}.{error.where}".rstrip(".")
        raise UnusableInput(place, error.expected, error.found) from None
