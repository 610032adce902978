"""Random small problems of every class that the engines take, each with the Python that builds it.

Pipelines: unsplit, split and mixed per microbatch; chunks in a loop or a wave; slices; uneven
durations; memory released in parts; latencies, also of one link alone. Transfers as tasks: each
message occupies a link (full or half duplex), or activations are evicted to another rank. Tight
capacities make some of them infeasible.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from hypothesis import strategies as st

from bubbleproof.testing.strategies import per_stage
from bubbleproof.theory.model.problem import Problem, Resource, Store
from bubbleproof.theory.pipelines.links import Link
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.transfers import Eviction
from proofs_tests.solvers.small import Task, by_hand, tiny_pipelines

# (ranks, microbatches, chunks, slices, split): at most 24 tasks.
WIDER = (
    (2, 4, 1, 1, False), (3, 3, 1, 1, False), (3, 4, 1, 1, False), (2, 3, 1, 1, True),
    (2, 4, 1, 1, True), (2, 2, 2, 1, False), (2, 3, 2, 1, False), (2, 2, 1, 2, False),
)  # fmt: skip


class Source(Protocol):
    """Something that states a problem and whose ``repr`` is the Python that builds it."""

    def problem(self) -> Problem: ...


@dataclass(frozen=True, kw_only=True)
class Linked:
    """An unsplit pipeline whose messages are tasks: F_j of stage g, SEND_F, F_j of stage g + 1.

    Messages of neighbours occupy one link in both directions, or with ``is_duplex`` one each way,
    for ``message`` ticks; B likewise. A rank has room for ``capacity`` activations, each held from
    the start of F (and no RECV is modelled) to the end of B.
    """

    num_ranks: int
    num_microbatches: int
    forward: int
    backward: int
    message: int
    is_duplex: bool
    capacity: int

    def problem(self) -> Problem:
        p, ranks = self.num_ranks, range(self.num_ranks)
        tasks: list[Task] = []
        edges: list[tuple[str, str, int]] = []
        for j in range(self.num_microbatches):
            tasks += [(f"{g}F{j}", self.forward, (g,)) for g in ranks]
            tasks += [(f"{g}B{j}", self.backward, (g,)) for g in ranks]
            edges.append((f"{p - 1}F{j}", f"{p - 1}B{j}", 0))
            for g in range(p - 1):
                there, back = f"{g}SEND_F{j}", f"{g + 1}SEND_B{j}"
                link = p + (2 * g if self.is_duplex else g)
                tasks.append((there, self.message, (link,)))
                tasks.append((back, self.message, (link + self.is_duplex,)))
                edges += [(f"{g}F{j}", there, 0), (there, f"{g + 1}F{j}", 0)]
                edges += [(f"{g + 1}B{j}", back, 0), (back, f"{g}B{j}", 0)]
        links = range((p - 1) * (2 if self.is_duplex else 1))
        return by_hand(
            tasks,
            edges,
            resources=[Resource(name=f"rank {g}", rank=g) for g in ranks]
            + [Resource(name=f"link {number}") for number in links],
            stores=[Store(name=f"memory {g}", capacity=self.capacity) for g in ranks],
            events=[
                (f"{g}{kind}{j}", kind == "B", g, -1 if kind == "B" else 1)
                for g in ranks
                for j in range(self.num_microbatches)
                for kind in "FB"
            ],
        )


linked = st.builds(
    Linked,
    num_ranks=st.integers(2, 3),
    num_microbatches=st.integers(1, 2),
    forward=st.integers(0, 2),
    backward=st.integers(0, 3),
    message=st.integers(0, 2),
    is_duplex=st.booleans(),
    capacity=st.integers(0, 2),
)


@st.composite
def mixed(draw: st.DrawFn) -> Pipeline:
    """Microbatches that differ: each decides by itself whether its backward is split."""
    p, m = draw(st.sampled_from(((1, 3), (2, 2), (2, 3))))
    flags = st.tuples(*[st.booleans()] * m)
    return Pipeline(
        num_ranks=p,
        num_microbatches=m,
        split_backward=draw(st.tuples(*[flags] * p)),
        forward=draw(per_stage(p, 0, 2)),
        weight_backward=draw(per_stage(p, 0, 2)),
        activation=2,
        released_at_input=draw(per_stage(p, -1, 2)),
        capacity=draw(st.one_of(st.none(), st.integers(2, 6))),
    )


@st.composite
def wider(draw: st.DrawFn) -> Pipeline:
    """Pipelines of up to 24 tasks, beyond brute force: more microbatches, a slow link."""
    p, m, v, s, split = draw(st.sampled_from(WIDER))
    return Pipeline(
        num_ranks=p,
        num_microbatches=m,
        num_chunks=v,
        num_slices=s,
        placement=draw(st.sampled_from(("loop", "wave"))),
        split_backward=split,
        forward=draw(per_stage(p * v, 0, 3)),
        backward=draw(per_stage(p * v, 0, 4)),
        links=(Link(ranks=(0, p - 1), latency=draw(st.integers(0, 2))),),
        activation=draw(st.sampled_from((2, 2, 2, 0))),
        capacity=draw(st.integers(1, 10)),
    )


@st.composite
def evicting(draw: st.DrawFn) -> Pipeline:
    """Some activations of stage 0 are evicted to the last rank; all ranks have room for 1 to 3."""
    p, m = draw(st.sampled_from(((2, 2), (2, 3), (3, 2))))
    chosen = draw(st.lists(st.integers(0, m - 1), unique=True, min_size=1, max_size=2))
    ticks = draw(st.integers(0, 2))
    return Pipeline(
        num_ranks=p,
        num_microbatches=m,
        forward=draw(st.sampled_from((1, 1, 0))),
        backward=draw(st.sampled_from((2, 2, 0))),
        capacity=draw(st.integers(1, 3)),
        evictions=tuple(
            Eviction(stage=0, microbatch=j, source=0, target=p - 1, duration=ticks)
            for j in sorted(chosen)
        ),
    )


def sources() -> st.SearchStrategy[Source]:
    """Any of them, the tiny pipelines most often."""
    return st.one_of(tiny_pipelines(), mixed(), linked, evicting(), wider())
