"""Every theorem by its id, of all papers: ``theorems`` lists them, ``prove_all`` proves them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib.util import find_spec

from bubbleproof.papers.bpipe import bpipe_pairs, bpipe_theorem
from bubbleproof.papers.field import (
    chimera_theorem,
    eight_steps_theorem,
    frontier,
    gpipe_theorem,
    hanayo_theorem,
    interleaved_starts,
    interleaved_theorem,
    one_f_one_b_theorem,
    v_blocks_theorem,
    zb_h1,
    zb_h1_durations,
    zb_h1_starts,
    zb_h2,
    zb_v_theorem,
)
from bubbleproof.papers.mepipe import svpp_frontier, svpp_theorem
from bubbleproof.papers.pipemesh import pipemesh_starts, pipemesh_theorem
from bubbleproof.papers.theorems import parametric_bounds, periodic_list
from bubbleproof.papers.theorems.theorem import (
    Obligation,
    ObligationProof,
    Theorem,
    TheoremProof,
)
from bubbleproof.papers.tpipe import tpipe_theorem, trecomp_theorem

TIMEOUT_MS = 10_000


class _Library(Mapping[str, Theorem]):
    """Theorems by id; those that are not made yet are made when they are first asked for."""

    def __init__(
        self, made: Mapping[str, Theorem], makers: Mapping[str, Callable[[], Theorem]]
    ) -> None:
        self._made, self._makers = dict(made), dict(makers)
        self._names = (*made, *makers)

    def __getitem__(self, name: str) -> Theorem:
        if name not in self._made:
            self._made[name] = self._makers[name]()
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._names  # without making it


@cache
def theorems() -> Mapping[str, Theorem]:
    """Every theorem by its id, bounds first, since others refer to them."""
    for_all_shapes = (
        *parametric_bounds.theorems(),
        *gpipe_theorem.theorems(),
        one_f_one_b_theorem.theorem(),
        frontier.theorem(),
        interleaved_theorem.theorem(),
        interleaved_starts.theorem(),
        pipemesh_theorem.theorem(),
        pipemesh_starts.theorem(),
        zb_h1.theorem(),
        zb_h1_durations.theorem(),
        zb_h1_starts.theorem(),
        zb_h2.theorem(),
        zb_v_theorem.theorem(),
        v_blocks_theorem.half(),
        v_blocks_theorem.least(),
        hanayo_theorem.theorem(),
        chimera_theorem.theorem(),
        svpp_theorem.theorem(),
        svpp_theorem.few_slices(),
        svpp_frontier.theorem(),
        tpipe_theorem.theorem(),
        tpipe_theorem.offload(),
        trecomp_theorem.theorem(),
        eight_steps_theorem.theorem(),
        eight_steps_theorem.v_theorem(),
        bpipe_theorem.theorem(),
        bpipe_pairs.theorem(),
    )
    made = {theorem.id: theorem for theorem in for_all_shapes}
    return _Library(made, {about.id: about.theorem for about in periodic_list.listed()})


def require_z3() -> None:
    """Raise ``ValueError`` where Z3, an extra, is not installed: theorems are proved by it."""
    if find_spec("z3") is None:
        install = 'pip install "bubbleproof[z3]"'
        raise ValueError(f"theorems need z3-solver, which is not installed; run: {install}")


def prove_all(
    progress: Callable[[TheoremProof], None] | None = None, timeout_ms: int = TIMEOUT_MS
) -> list[TheoremProof]:
    """Prove every theorem, in order; ``progress`` is called with each proof as it is done.

    ``timeout_ms`` limits each Z3 query; what is not decided in time is UNKNOWN. An obligation that
    theorems share is asked once.
    """
    require_z3()
    from bubbleproof.papers.theorems.prover import prove  # the only way to Z3

    proofs, known = [], dict[Obligation, ObligationProof]()
    for theorem in theorems().values():
        proofs.append(prove(theorem, timeout_ms, known))
        if progress is not None:
            progress(proofs[-1])
    return proofs
