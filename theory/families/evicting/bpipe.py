"""BPipe: 1F1B whose early ranks park activations on late ones, at most ceil((p+2)/2) on any rank.

Rank s < (p-1)/2 evicts to rank p-1-s and loads back in time. The pair holds p+1 activations of 1F1B
at most and one more, which lies on both ranks while it moves: mu_opt = ceil((p+2)/2) each. The
order of computations is 1F1B's; so is the makespan where two transfers fit the time of a forward
and a backward, 2t <= tF + tB (``claims.bpipe`` measures it). A transfer takes t = tF ticks unless
``balanced`` is told otherwise.

The acceptor needs no waits: by its own order it holds at most s+1 of its own, and by the order of
the link never more than (p-s) - mu_opt + 1 of its evictor's, p + 2 - mu_opt in all.

Source: Kim et al., "BPipe" (ICML 2023) sections 3.2 to 3.4. Legal range: any p, m. Peak on rank r:
at most mu_opt, transfers in flight counted on both ends; min(p-r, m) where the pair moves nothing.

On interleaved 1F1B: v chunks per rank, at most pv+1 activations on any rank.

Interleaved 1F1B holds mu(s) = p(v-1) + 2(p-s-1) + 1 activations on rank s; rank s and rank p-1-s
hold 2p(v-1) + 2p together, and one more while it moves: mu_opt = pv + 1.

Source: Appendix A, on the schedule of Narayanan et al., which takes multiples of p alone. With a
remainder the first groups would be larger than p, and what is balanced above what the order of
``interleaved`` holds unbalanced. Legal range: any p, v, and m a multiple of p. Peak on rank r: at
most mu_opt activations of a chunk.

Rank s < (p-1)/2 is an evictor and rank p-1-s its acceptor (section 3.2). A balanced family orders
computations as its base family does and adds the transfers of ``bpipe_plan``, with its waits for
room; these are choices of the pipeline, so the family asks for one that carries them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from functools import lru_cache
from typing import ClassVar

from bubbleproof.theory.families.base import Family
from bubbleproof.theory.families.evicting.bpipe_plan import (
    PlannedTransfer,
    computation_slots,
    plan_transfers,
    room_waits,
)
from bubbleproof.theory.families.interleaved import DepthFirst
from bubbleproof.theory.families.one_f_one_b import OneForwardOneBackward
from bubbleproof.theory.families.parameters import FamilyParameters
from bubbleproof.theory.model.actions import Kind
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.transfers import ActionPair, Eviction


class BalancedFamily(Family):
    """A base family with activation balancing towards ``objective`` activations per rank.

    A transfer takes the ticks of one forward of its stage unless ``balanced`` is told otherwise:
    the longest that BPipe allows (section 3.5, Appendix B).
    """

    base: ClassVar[Family]
    adds = frozenset({"evictions"})

    def size_refusal(self, p: int, m: int) -> str | None:
        """Why so many microbatches are not balanced, or None where they are.

        Parameters
        ----------
        p, m
            Ranks and microbatches.
        """
        del p, m
        return None

    def shape_refusal(self, pipeline: Pipeline) -> str | None:
        """Why a pipeline without transfers is not balanced, or None where it is."""
        size = self.size_refusal(pipeline.num_ranks, pipeline.num_microbatches)
        return size or self.base.refusal(pipeline)

    @abstractmethod
    def objective(self, p: int, m: int, v: int = 1) -> int:
        """mu_opt: the activations that no rank of a transferring pair exceeds.

        Parameters
        ----------
        p, m, v
            Ranks, microbatches, and chunks of a rank.

        Returns
        -------
        int
            Activations.
        """

    def pipeline(self, params: FamilyParameters) -> Pipeline:
        return self.balanced(super().pipeline(params))

    def fitted(self, pipeline: Pipeline) -> Pipeline:
        plain = super().fitted(pipeline)
        return plain if self.shape_refusal(plain) is not None else self.balanced(plain)

    def balanced(self, pipeline: Pipeline, *, transfer: int | None = None) -> Pipeline:
        """The pipeline with this family's evictions; each takes ``transfer`` ticks each way.

        Parameters
        ----------
        transfer
            Ticks of an EVICT and of a LOAD; those of a forward where None is given.

        Raises
        ------
        ValueError
            Where the shape is refused.
        """
        if (why := self.shape_refusal(pipeline)) is not None:
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

    def transfers(self, p: int, m: int, v: int = 1) -> dict[int, tuple[PlannedTransfer, ...]]:
        """The transfers of each evictor that has any, in slot order, by its rank.

        Parameters
        ----------
        p, m, v
            Ranks, microbatches, and chunks of a rank.
        """
        return dict(_plan(self, p, m, v))

    def _plan(self, pipeline: Pipeline) -> dict[int, tuple[PlannedTransfer, ...]]:
        return self.transfers(pipeline.num_ranks, pipeline.num_microbatches, pipeline.num_chunks)

    def _waits(
        self, pipeline: Pipeline, plan: dict[int, tuple[PlannedTransfer, ...]]
    ) -> Iterator[ActionPair]:
        p, m, v = pipeline.num_ranks, pipeline.num_microbatches, pipeline.num_chunks
        slots = computation_slots(self.base, p, m, v)
        for rank, transfers in plan.items():
            yield from room_waits(slots[rank], transfers, self.objective(p, m, v))

    def refusal(self, pipeline: Pipeline) -> str | None:
        size = self.size_refusal(pipeline.num_ranks, pipeline.num_microbatches)
        if (why := size or super().refusal(pipeline)) is not None:
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


@lru_cache(maxsize=256)  # as of the slots
def _plan(
    family: BalancedFamily, p: int, m: int, v: int
) -> tuple[tuple[int, tuple[PlannedTransfer, ...]], ...]:
    slots = computation_slots(family.base, p, m, v)
    capacity = family.objective(p, m, v)
    found = ((rank, plan_transfers(slots[rank], capacity)) for rank in range(p // 2))
    return tuple((rank, transfers) for rank, transfers in found if transfers)


class BPipe(BalancedFamily):
    """1F1B with activation balancing between rank s and rank p-1-s."""

    name = "bpipe"
    title = "BPipe"
    source = "BPipe (ICML 2023) sections 3.2 to 3.4"
    base = OneForwardOneBackward()

    def objective(self, p: int, m: int, v: int = 1) -> int:
        """mu_opt = ceil((p+2)/2) (section 3.3); one chunk per rank."""
        del m, v
        return -(-(p + 2) // 2)


class BPipeInterleaved(BalancedFamily):
    """Interleaved 1F1B with activation balancing between rank s and rank p-1-s."""

    name = "bpipe-interleaved"
    title = "BPipe on interleaved 1F1B"
    source = "BPipe (ICML 2023) Appendix A"
    options = frozenset({"v"})
    default_chunks = 2
    base = DepthFirst()

    def size_refusal(self, p: int, m: int) -> str | None:
        if m % p == 0:
            return None
        return (
            f"{self.name} needs m to be a multiple of p={p} (BPipe Appendix A), got m={m}; "
            f"use m={m + p - m % p}"
        )

    def objective(self, p: int, m: int, v: int = 1) -> int:
        """mu_opt = pv + 1 (Appendix A)."""
        del m
        return p * v + 1
