"""Certificates by windows in JSON; the file is one of ``formats.certificate_json``.

``kind`` is ``windows``. ``first`` and ``store`` name a lifecycle, and of each of the ``windows``
``count``, ``ranks`` (names of resources), ``times`` and ``proof`` are as in
``verify.certificates.microbatch_windows``. A proof is a certificate of another kind, as a file of
its own holds it; tasks go by their names in the problem, the clock by ``clock``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from bubbleproof.formats.certificates.certificate_layouts import WindowLayout, WindowsLayout
from bubbleproof.formats.errors import UnusableInput, inside
from bubbleproof.formats.validation import Names
from bubbleproof.theory.model.problem import Problem
from bubbleproof.verify.certificates.certificate_rule import DirectCertificate, without_deadlines
from bubbleproof.verify.certificates.microbatch_windows import (
    Excerpts,
    MicrobatchWindow,
    MicrobatchWindows,
)

ReadProof = Callable[[Mapping[str, object], Problem], DirectCertificate]
WriteProof = Callable[[Problem, DirectCertificate], dict[str, object]]


def windows_of(
    body: WindowsLayout, problem: Problem, names: tuple[Names, Names, Names], read: ReadProof
) -> tuple[int, int, tuple[MicrobatchWindow, ...]]:
    """First task, store and windows; ``names`` are those of starts, resources and stores.

    Raises ``UnusableInput`` with the place in the file, also for what is no excerpt.
    """
    starts, resources, stores = names
    first, store = starts.number(body.first, "first"), stores.number(body.store, "store")
    excerpts, found = Excerpts(without_deadlines(problem), first, store), []
    for number, each in enumerate(body.windows):
        ranks = tuple(resources.number(name, "windows", number, "ranks") for name in each.ranks)
        if isinstance(short := excerpts.of(each.count, ranks), str):
            raise UnusableInput(f"windows[{number}]", "an excerpt of the problem", short)
        with inside(f"windows[{number}].proof"):
            proof = read(each.proof, short)
        found.append(MicrobatchWindow(count=each.count, ranks=ranks, proof=proof, times=each.times))
    return first, store, tuple(found)


def window_layouts(
    problem: Problem, certificate: MicrobatchWindows, write: WriteProof
) -> list[WindowLayout]:
    """What a file says of each window; ``write`` says what it holds of a proof.

    Raises ``UnusableInput`` where one is of no excerpt of the problem.
    """
    excerpts = Excerpts(without_deadlines(problem), certificate.first, certificate.store)
    rows = []
    for number, each in enumerate(certificate.windows):
        if isinstance(short := excerpts.of(each.count, each.ranks), str):
            raise UnusableInput(f"windows[{number}]", "an excerpt of the problem", short)
        ranks = [problem.resources[rank].name for rank in each.ranks]
        proof = write(short, each.proof)
        rows.append(WindowLayout(count=each.count, ranks=ranks, times=each.times, proof=proof))
    return rows
