"""Balanced families: a schedule of full backwards whose ranks evict to their pair.

Rank s < (p-1)/2 is an evictor and rank p-1-s its acceptor (BPipe section 3.2). A balanced family
orders computations as its base family does and adds the transfers of ``bpipe_plan``, with the waits
of ``bpipe_room``; these are choices of the pipeline, so the family asks for one that carries them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from functools import lru_cache
from typing import ClassVar

from bubbleproof.theory.families.base import Family
from bubbleproof.theory.families.bpipe_plan import Transfer, computation_slots, plan_transfers
from bubbleproof.theory.families.bpipe_room import room_waits
from bubbleproof.theory.families.parameters import Parameters
from bubbleproof.theory.model.actions import Kind
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.transfers import Eviction, Wait


class BalancedFamily(Family):
    """A base family with activation balancing towards ``objective`` activations per rank.

    A transfer takes the ticks of one forward of its stage unless ``balanced`` is told otherwise:
    the longest that BPipe allows (section 3.5, Appendix B).
    """

    base: ClassVar[Family]
    adds = frozenset({"evictions"})

    @abstractmethod
    def objective(self, p: int, m: int, v: int = 1) -> int:
        """mu_opt: the activations that no rank of a transferring pair exceeds."""

    def pipeline(self, params: Parameters) -> Pipeline:
        return self.balanced(super().pipeline(params))

    def fitted(self, pipeline: Pipeline) -> Pipeline:
        plain = super().fitted(pipeline)
        return plain if self.base.refusal(plain) is not None else self.balanced(plain)

    def balanced(self, pipeline: Pipeline, *, transfer: int | None = None) -> Pipeline:
        """The pipeline with this family's evictions; each takes ``transfer`` ticks each way.

        Raises ``ValueError`` where the base family refuses the pipeline.
        """
        if (why := self.base.refusal(pipeline)) is not None:
            raise ValueError(why)
        plan = self._plan(pipeline)
        p, ticks = pipeline.num_ranks, pipeline.ticks.forward[:, 0]
        evictions = tuple(
            Eviction(
                stage=moved.stage,
                microbatch=moved.microbatch,
                source=rank,
                target=p - 1 - rank,
                duration=int(ticks[moved.stage]) if transfer is None else transfer,
            )
            for rank, transfers in plan.items()
            for moved in transfers
            if moved.kind is Kind.EVICT
        )
        waits = tuple(self._waits(pipeline, plan))
        return pipeline.with_changes(evictions=evictions, waits=waits)

    def transfers(self, p: int, m: int, v: int = 1) -> dict[int, tuple[Transfer, ...]]:
        """The transfers of each evictor that has any, in slot order, by its rank."""
        return dict(_plan(self, p, m, v))

    def _plan(self, pipeline: Pipeline) -> dict[int, tuple[Transfer, ...]]:
        return self.transfers(pipeline.num_ranks, pipeline.num_microbatches, pipeline.num_chunks)

    def _waits(self, pipeline: Pipeline, plan: dict[int, tuple[Transfer, ...]]) -> Iterator[Wait]:
        p, m, v = pipeline.num_ranks, pipeline.num_microbatches, pipeline.num_chunks
        slots = computation_slots(self.base, p, m, v)
        for rank, transfers in plan.items():
            yield from room_waits(slots[rank], transfers, self.objective(p, m, v))

    def refusal(self, pipeline: Pipeline) -> str | None:
        if (why := super().refusal(pipeline)) is not None:
            return why
        planned = {m.saved for moves in self._plan(pipeline).values() for m in moves}
        given = pipeline.choices.evictions
        if {(eviction.stage, eviction.microbatch) for eviction in given} != planned:
            return (
                f"{self.name} needs its {len(planned)} evictions among the pipeline's choices, got "
                f"{len(given)}; make it with family({self.name!r}).balanced(pipeline)"
            )
        return None

    def program(self, pipeline: Pipeline) -> Program:
        if self._plan(pipeline) and not pipeline.choices.evictions:
            raise ValueError(self.refusal(pipeline))
        p = pipeline.num_ranks
        orders = self.base.program(pipeline).orders(p)
        links, names = pipeline.all_links, [r.name for r in pipeline.problem().resources]
        orders += [[] for _ in range(len(names) - p)]
        for rank, transfers in self._plan(pipeline).items():
            for transfer in transfers:
                ends = (rank, p - 1 - rank)
                way = ends if transfer.kind is Kind.EVICT else ends[::-1]
                orders[names.index(links.name(*way))].append(transfer.action)
        return Program.from_orders(orders)


@lru_cache(maxsize=64)
def _plan(
    family: BalancedFamily, p: int, m: int, v: int
) -> tuple[tuple[int, tuple[Transfer, ...]], ...]:
    slots = computation_slots(family.base, p, m, v)
    capacity = family.objective(p, m, v)
    found = ((rank, plan_transfers(slots[rank], capacity)) for rank in range(p // 2))
    return tuple((rank, transfers) for rank, transfers in found if transfers)
