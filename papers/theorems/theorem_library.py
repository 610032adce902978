"""Every theorem by its id, of all papers: ``theorems`` lists them, ``prove_all`` proves them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial

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
    """Theorems by id, each made when it is first asked for."""

    def __init__(self, makers: Mapping[str, Callable[[], Theorem]]) -> None:
        self._makers = dict(makers)
        self._made: dict[str, Theorem] = {}

    def __getitem__(self, name: str) -> Theorem:
        if name not in self._made:
            made = self._makers[name]()
            if made.id != name:
                raise ValueError(f"theorem {name!r} calls itself {made.id!r}")
            self._made[name] = made
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)

    def __contains__(self, name: object) -> bool:
        return name in self._makers  # without making it


@cache
def theorems() -> Mapping[str, Theorem]:
    """Every theorem by its id, bounds first, since others refer to them."""
    several = (*parametric_bounds.theorems(), *gpipe_theorem.theorems())
    known = {one.id: partial(_known, one) for one in several}
    repeating = {about.id: about.theorem for about in periodic_list.listed()}
    return _Library({**known, **_FOR_ALL_SHAPES, **repeating})


def _known(theorem: Theorem) -> Theorem:
    return theorem


_FOR_ALL_SHAPES: dict[str, Callable[[], Theorem]] = {
    "1f1b": one_f_one_b_theorem.theorem,
    "frontier": frontier.theorem,
    "interleaved": interleaved_theorem.theorem,
    "interleaved-starts": interleaved_starts.theorem,
    "pipemesh": pipemesh_theorem.theorem,
    "pipemesh-starts": pipemesh_starts.theorem,
    "zb-h1": zb_h1.theorem,
    "zb-h1-durations": zb_h1_durations.theorem,
    "zb-h1-starts": zb_h1_durations.starts_theorem,
    "zb-h2": zb_h2.theorem,
    "zb-v": zb_v_theorem.theorem,
    "v-half-block": v_blocks_theorem.half,
    "v-min-block": v_blocks_theorem.least,
    "hanayo-equal": hanayo_theorem.theorem,
    "chimera-equal": chimera_theorem.theorem,
    "svpp-largest": svpp_theorem.theorem,
    "svpp-few-slices": svpp_theorem.few_slices,
    "svpp-frontier": svpp_frontier.theorem,
    "tpipe": tpipe_theorem.theorem,
    "toffload": tpipe_theorem.offload,
    "trecomp-rounds": trecomp_theorem.theorem,
    "dualpipe": eight_steps_theorem.theorem,
    "dualpipev": eight_steps_theorem.v_theorem,
    "bpipe": bpipe_theorem.theorem,
    "bpipe-printed": bpipe_pairs.theorem,
}


def prove_all(
    progress: Callable[[TheoremProof], None] | None = None, timeout_ms: int = TIMEOUT_MS
) -> list[TheoremProof]:
    """Prove every theorem, in order; ``progress`` is called with each proof as it is done.

    ``timeout_ms`` limits each Z3 query; what is not decided in time is UNKNOWN. An obligation that
    theorems share is asked once.
    """
    from bubbleproof.papers.theorems.prover import prove  # loads Z3

    proofs, known = [], dict[Obligation, ObligationProof]()
    for theorem in theorems().values():
        proofs.append(prove(theorem, timeout_ms, known))
        if progress is not None:
            progress(proofs[-1])
    return proofs
