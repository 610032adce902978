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

A certificate is that of ``formats.certificate_json``, about the candidate's relaxation, or a claim
about one rank, ``{"kind": "rank-work", "rank": 0}``, ``rank-memory`` or ``no-room``
(``verify.candidates.rank_claims``). Instead, ``cases`` may list one for each case of its choices,
null where those after it stand for the case (``verify.candidates.cases``). ``word`` names the
engine that is believed where there is neither. The space of the plan, which a reader derives from
the problem file (and from the plan, where pipelines stand ``beside`` its shapes), tells which
candidates there have to be.

The bundle of a problem file that starts from a model and a cluster has, in place of ``candidates``,

      "numbers": "5f0c...",
      "deployments": [{"deployment": "t=1 d=32 p=2 b=1 zero=1 none", "candidates": [...]}, ...]

``numbers`` is the digest of all that a reader derives from the file (``deployed_content``): a
bundle of another model, cluster or batch is none of this file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Annotated, Literal

from bubbleproof.formats.certificate_json import (
    certificate_content,
    certificate_of,
    write_content,
)
from bubbleproof.formats.certificate_layouts import LAYOUTS
from bubbleproof.formats.clusters.deployed_content import Deployments
from bubbleproof.formats.errors import UnusableInput, about, inside, quoted
from bubbleproof.formats.files import MEBIBYTE, FilePath
from bubbleproof.formats.json_text import read_json
from bubbleproof.formats.layouts.derived_layout import layout_of
from bubbleproof.formats.plans.cases_json import cases_content, cases_of
from bubbleproof.formats.validation import AS_WHOLE, Layout, Natural, described, validate
from bubbleproof.theory.pipelines.shapes.plan_space import Candidate, PlanSpace
from bubbleproof.theory.pipelines.shapes.shaping import NotLegalError, ShapedPipeline, shaped
from bubbleproof.verify.candidates.bundle import CandidateBound
from bubbleproof.verify.candidates.cases import CandidateProof, Cases
from bubbleproof.verify.candidates.rank_claims import NoRoom, RankClaim, RankMemory, RankWork
from bubbleproof.verify.candidates.relaxation import relaxation

FORMAT = "bubbleproof/plan-certificate"
VERSION = 1
SIZE_LIMIT = 256 * MEBIBYTE
RANK_CLAIMS: dict[str, type[RankClaim]] = {
    "rank-work": RankWork,
    "rank-memory": RankMemory,
    "no-room": NoRoom,
}


class CandidateLayout(layout_of(Candidate)):  # type: ignore[misc]  # made from Candidate's fields
    """A candidate of a plan."""


class BoundedLayout(CandidateLayout):
    """A candidate, its bound, and a certificate, one by cases, or the solver that claims it."""

    bound: Natural
    certificate: dict[str, object] | None = None
    cases: list[dict[str, object] | None] | None = None
    word: str = ""


class RankClaimLayout(Layout):
    """A claim about one rank; its bound is the candidate's."""

    kind: Literal["rank-work", "rank-memory", "no-room"]
    rank: Natural


class DeployedLayout(Layout):
    """A deployment by its name, and the proofs of its candidates."""

    deployment: str
    candidates: list[BoundedLayout]


class BundleLayout(Layout):
    """A bundle file: of a plan's candidates, or of those of each deployment."""

    format: Literal["bubbleproof/plan-certificate"]
    version: Annotated[Literal[1], AS_WHOLE]
    name: str = ""
    candidates: list[BoundedLayout] | None = None
    numbers: str | None = None
    deployments: list[DeployedLayout] | None = None


def candidate_to_json(candidate: Candidate) -> dict[str, object]:
    """The candidate's keys."""
    listed = {
        name: list(value) if isinstance(value, tuple) else value
        for name in ("placement", "backward", "layers")
        for value in [getattr(candidate, name)]
    }
    beside = {"beside": candidate.beside} if candidate.beside else {}
    return {"chunks": candidate.chunks, **listed, "slices": candidate.slices, **beside}


def candidate_of(layout: CandidateLayout) -> Candidate:
    """The candidate described."""
    values = {each.name: described(getattr(layout, each.name), "") for each in fields(Candidate)}
    return Candidate(**values)


def write_bundle(
    path: FilePath, space: PlanSpace, bundle: Sequence[CandidateBound], *, name: str = ""
) -> None:
    """Write the proofs of a plan; an existing file is replaced whole or not at all.

    Raises ``UnusableInput`` for a bound of more than 16 digits.
    """
    with about(path):
        _write(path, name, {"candidates": [_row(space, entry) for entry in bundle]})


def write_deployment_bundles(
    path: FilePath,
    deployments: Deployments,
    bundles: Mapping[str, Sequence[CandidateBound]],
    *,
    name: str = "",
) -> None:
    """Write the proofs of every deployment, by name, as ``write_bundle`` does those of one."""
    spaces = {one.name: one.space for one in deployments.deployed}
    with about(path):
        rows = [
            {"deployment": one, "candidates": [_row(spaces[one], entry) for entry in bundle]}
            for one, bundle in bundles.items()
        ]
        _write(path, name, {"numbers": deployments.digest, "deployments": rows})


def _write(path: FilePath, name: str, proofs: dict[str, object]) -> None:
    content = {"format": FORMAT, "version": VERSION, "name": name, **proofs}
    write_content(path, content)


def _row(space: PlanSpace, entry: CandidateBound) -> dict[str, object]:
    row = {**candidate_to_json(entry.candidate), "bound": entry.bound}
    if entry.certificate is None:
        return {**row, "word": entry.word}
    proof = entry.certificate
    if isinstance(proof, RankClaim):
        kind = next(name for name, claim in RANK_CLAIMS.items() if isinstance(proof, claim))
        return {**row, "certificate": {"kind": kind, "rank": proof.rank}}
    found = shaped(space, entry.candidate)
    if not isinstance(proof, Cases):
        relaxed = relaxation(found.pipeline, found.allowed)
        return {**row, "certificate": certificate_content(relaxed, proof)}
    return {**row, "cases": cases_content(found.pipeline, found.allowed, proof)}


def read_bundle(path: FilePath, space: PlanSpace) -> tuple[CandidateBound, ...]:
    """Read the proofs of a plan of this space.

    Raises ``UnusableInput`` naming the key, what was expected and what was found; also for a
    certificate of a candidate that the space does not have.
    """
    with about(path):
        layout = validate(BundleLayout, read_json(path, FORMAT, limit=SIZE_LIMIT))
        if layout.candidates is None or layout.deployments is not None:
            raise UnusableInput("candidates", "the proofs of one pipeline's plan", "none")
        return _bundle(space, layout.candidates, "candidates")


def read_deployment_bundles(
    path: FilePath, deployments: Deployments
) -> tuple[tuple[str, tuple[CandidateBound, ...]], ...]:
    """Read the proofs of every deployment of a file that starts from a model, by name.

    Raises ``UnusableInput`` as ``read_bundle`` does, also where another file was planned.
    """
    spaces = {one.name: one.space for one in deployments.deployed}
    with about(path):
        layout = validate(BundleLayout, read_json(path, FORMAT, limit=SIZE_LIMIT))
        if layout.deployments is None or layout.candidates is not None:
            raise UnusableInput("deployments", "the proofs of every deployment", "none")
        if layout.numbers != deployments.digest:
            expected = "those of this model, cluster and batch; plan the file again"
            raise UnusableInput("numbers", expected, "those of others, or of a plan with --yours")
        return tuple(
            (row.deployment, _bundle(spaces[row.deployment], row.candidates, where))
            if row.deployment in spaces
            else (row.deployment, ())
            for index, row in enumerate(layout.deployments)
            for where in [f"deployments[{index}].candidates"]
        )


def _bundle(
    space: PlanSpace, rows: Sequence[BoundedLayout], where: str
) -> tuple[CandidateBound, ...]:
    known = frozenset(space.candidates())
    return tuple(_bounded(space, known, row, f"{where}[{index}]") for index, row in enumerate(rows))


def _bounded(
    space: PlanSpace, known: frozenset[Candidate], row: BoundedLayout, where: str
) -> CandidateBound:
    candidate = candidate_of(row)
    if candidate not in known:
        raise UnusableInput(where, "a candidate of the problem", str(candidate))
    if row.certificate is None and row.cases is None:
        return CandidateBound(candidate=candidate, bound=row.bound, word=row.word)
    try:
        found = shaped(space, candidate)
    except NotLegalError as why:
        raise UnusableInput(where, "a legal candidate", str(why)) from None
    proof: CandidateProof
    if row.cases is not None:
        given = found.pipeline, found.allowed, row.cases
        proof = cases_of(*given, row.bound, f"{where}.cases")
    else:
        with inside(f"{where}.certificate"):
            proof = _proof(found, row.certificate or {}, row.bound)
    return CandidateBound(candidate=candidate, bound=row.bound, certificate=proof)


def _proof(found: ShapedPipeline, content: dict[str, object], bound: int) -> CandidateProof:
    """The certificate or the claim about a rank that stands at a candidate."""
    kind = content.get("kind")
    if not isinstance(kind, str) or kind not in {**RANK_CLAIMS, **LAYOUTS}:
        known = ", ".join([*LAYOUTS, *RANK_CLAIMS])
        raise UnusableInput("kind", f"one of {known}", quoted(kind))
    if kind in RANK_CLAIMS:
        claim = validate(RankClaimLayout, content)
        return RANK_CLAIMS[claim.kind](rank=claim.rank, bound=bound)
    return certificate_of(content, relaxation(found.pipeline, found.allowed))
