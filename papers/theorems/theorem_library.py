"""Every theorem by its id, of all papers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache

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
    zb_h1_theorem,
    zb_h2,
    zb_v_theorem,
)
from bubbleproof.papers.mepipe import svpp_frontier, svpp_theorem
from bubbleproof.papers.pipemesh import pipemesh_starts, pipemesh_theorem
from bubbleproof.papers.theorems import parametric_bounds
from bubbleproof.papers.theorems.theorem import Theorem
from bubbleproof.papers.tpipe import tpipe_theorem, trecomp_theorem


class _Library(Mapping[str, Theorem]):
    """Theorems by id, each made when it is first asked for."""

    def __init__(self, makers: Mapping[str, Callable[[], Theorem]]) -> None:
        self._makers = {name: cache(maker) for name, maker in makers.items()}

    def __getitem__(self, name: str) -> Theorem:
        made = self._makers[name]()
        if made.id != name:
            raise ValueError(f"theorem {name!r} calls itself {made.id!r}")
        return made

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)

    def __contains__(self, name: object) -> bool:
        return name in self._makers  # without making it


@cache
def theorems() -> Mapping[str, Theorem]:
    """Every theorem by its id, bounds first, since others refer to them."""
    return _Library(_MAKERS)


_MAKERS: dict[str, Callable[[], Theorem]] = {
    "makespan-bound": parametric_bounds.makespan_theorem,
    "stages-bound": parametric_bounds.stages_theorem,
    "gpipe": gpipe_theorem.theorem,
    "terapipe": gpipe_theorem.terapipe,
    "bfs": gpipe_theorem.breadth_first,
    "1f1b": one_f_one_b_theorem.theorem,
    "frontier": frontier.theorem,
    "interleaved": interleaved_theorem.theorem,
    "interleaved-starts": interleaved_starts.theorem,
    "pipemesh": pipemesh_theorem.theorem,
    "pipemesh-starts": pipemesh_starts.theorem,
    "zb-h1": zb_h1_theorem.theorem,
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
