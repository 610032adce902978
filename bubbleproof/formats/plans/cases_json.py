"""Proofs over choices in JSON: a certificate of the relaxation, or one for each case.

In the file of a schedule whose problem left choices open, ``kind`` is that of a certificate of its
relaxation (``formats.certificate_json``), or ``cases``::

    {
      "format": "bubbleproof/certificate",
      "version": 1,
      "kind": "cases",
      "objective": "makespan",
      "bound": 78,
      "cases": [null, {"kind": "one-machine", ...}, {"kind": "drup", ...}]
    }

The list has a certificate of each case, null where those after it stand for the case
(``verify.candidates.cases``). The cases are not in the file: a reader derives them from the
pipeline without choices and what was allowed. In the proofs of a plan
(``formats.plans.bundle_json``) the same list stands beside each candidate.
"""

from __future__ import annotations

from collections.abc import Sequence

from bubbleproof.formats.certificate_json import (
    SIZE_LIMIT,
    certificate_content,
    certificate_of,
    write_content,
)
from bubbleproof.formats.certificate_layouts import (
    FORMAT,
    CasesLayout,
    head_content,
)
from bubbleproof.formats.errors import UnusableInput, about, inside
from bubbleproof.formats.files import FilePath
from bubbleproof.formats.json_text import read_json
from bubbleproof.formats.validation import validate
from bubbleproof.theory.pipelines.allowed import AllowedChoices
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify.candidates.cases import Cases, problems_of
from bubbleproof.verify.candidates.relaxation import relaxation
from bubbleproof.verify.certificates.certificate_rule import Certificate

Content = Sequence[dict[str, object] | None]


def write_proof(
    path: FilePath,
    pipeline: Pipeline,
    allowed: AllowedChoices | None,
    proof: Certificate | Cases,
    *,
    name: str = "",
) -> None:
    """Write a proof over choices; an existing file is replaced whole or not at all."""
    with about(path):
        if isinstance(proof, Cases):
            head = head_content("cases", proof.objective, proof.bound, name)
            content = {**head, "cases": cases_content(pipeline, allowed, proof)}
        else:
            content = certificate_content(relaxation(pipeline, allowed), proof, name=name)
    write_content(path, content)


def read_proof(
    path: FilePath, pipeline: Pipeline, allowed: AllowedChoices | None
) -> Certificate | Cases:
    """Read a proof over the choices that are ``allowed`` to the pipeline.

    Raises ``UnusableInput`` as ``read_certificate``, and where the cases are not those of the
    choices. Precondition: the pipeline has none of these choices made.
    """
    with about(path):
        data = read_json(path, FORMAT, limit=SIZE_LIMIT)
        if data.get("kind") != "cases":
            return certificate_of(data, relaxation(pipeline, allowed))
        layout = validate(CasesLayout, data)
        found = cases_of(pipeline, allowed, layout.cases, layout.bound, "cases")
        return Cases(bound=found.bound, proofs=found.proofs, objective=layout.objective)


def cases_content(
    pipeline: Pipeline, allowed: AllowedChoices | None, proof: Cases
) -> list[dict[str, object] | None]:
    """The list of a proof's cases."""
    problems = problems_of(pipeline, allowed, [one is None for one in proof.proofs])
    pairs = zip(problems, proof.proofs, strict=True)
    return [None if one is None else certificate_content(of, one) for of, one in pairs]


def cases_of(
    pipeline: Pipeline, allowed: AllowedChoices | None, content: Content, bound: int, where: str
) -> Cases:
    """The proof that such a list holds. Raises ``UnusableInput`` with the place in the file."""
    problems = problems_of(pipeline, allowed, [case is None for case in content])
    proofs: list[Certificate | None] = []
    try:
        for number, problem in enumerate(problems):
            with inside(f"{where}[{number}]"):
                case = content[number]
                proofs.append(None if case is None else certificate_of(case, problem))
    except UnusableInput:
        raise
    except ValueError as why:
        raise UnusableInput(where, "every case of the choices", str(why)) from None
    return Cases(bound=bound, proofs=tuple(proofs))
