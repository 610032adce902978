"""What the computation of a pipeline requires, by name: the text of it stands in ``required``."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from math import ceil

from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify.required_table import RequiredTable, action_name


class StepRequirements:
    """Forwards, backwards and weight gradients, their messages and their memory, in ``found``."""

    def __init__(self, pipeline: Pipeline, microbatches: Iterable[int]) -> None:
        self.pipeline, self.ticks, self.per_stage = pipeline, pipeline.ticks, pipeline.per_stage
        self.found = RequiredTable()
        self.is_forward_only = len(pipeline.choices.frozen_stages) == pipeline.num_stages
        self._stores()
        for stage in range(pipeline.num_stages):
            for microbatch in microbatches:
                for part in range(pipeline.num_slices):
                    self._forward(stage, microbatch, part)
                    if not self.is_forward_only:
                        self._backward(stage, microbatch, part)

    def rank(self, stage: int, microbatch: int) -> int:
        """Who runs a stage for a microbatch: the placements by their definitions.

        Parameters
        ----------
        stage
            From 0 to p v - 1.
        microbatch
            From 0 to m - 1.
        """
        p, placement = self.pipeline.num_ranks, self.pipeline.placement
        if isinstance(placement, tuple):
            return placement[stage]
        back = p - 1 - stage % p
        if placement == "wave":
            return back if stage // p % 2 else stage % p
        upward = placement == "bidirectional" and 2 * microbatch >= self.pipeline.num_microbatches
        return back if upward else stage % p

    def capacity(self, rank: int) -> int | None:
        """The memory of a rank: one number (or None, no limit) is that of all, a row of each.

        Parameters
        ----------
        rank
            From 0 to p - 1.

        Returns
        -------
        int | None
            Units of memory; None for no limit.
        """
        given = self.pipeline.capacity
        return given[rank % len(given)] if isinstance(given, tuple) else given

    def memory(self, stage: int, microbatch: int) -> str:
        """The name of the store that a stage's activations of a microbatch lie in.

        Parameters
        ----------
        stage
            From 0 to p v - 1.
        microbatch
            From 0 to m - 1.
        """
        return f"memory of rank {self.rank(stage, microbatch)}"

    def home(self, stage: int, microbatch: int) -> str:
        """The name of the resource that runs a stage for a microbatch.

        Parameters
        ----------
        stage
            From 0 to p v - 1.
        microbatch
            From 0 to m - 1.
        """
        return f"rank {self.rank(stage, microbatch)}"

    def _pass_on(self, producer: str, consumer: str, sent: tuple[str, int, int, int]) -> None:
        """What one stage makes for another: ``sent`` is (message, sender, receiver, microbatch).

        On one rank there is nothing between the two. Between ranks the consumer comes ``latency``
        ticks after the message, which takes its size over the bandwidth on the link, rounded up.
        """
        message, stage, later, microbatch = sent
        source, target = self.rank(stage, microbatch), self.rank(later, microbatch)
        if source == target:
            self.found.wait(producer, consumer)
            return
        latency, bandwidth, duplex = self.link(source, target)
        size = self.pipeline.message
        units = size if isinstance(size, int) else size[min(stage, later)]
        ticks = 0 if bandwidth is None else ceil(Fraction(units) / bandwidth)
        self.found.wait(producer, consumer, ticks + latency)
        if ticks:
            self.found.task(message, ticks, self.link_name(source, target, duplex))
            self.found.wait(producer, message)
            self.found.wait(message, consumer, latency)

    def link(self, one: int, other: int) -> tuple[int, int | Fraction | None, str]:
        """Latency, bandwidth and duplex between two ranks.

        Parameters
        ----------
        one, other
            Two different ranks.

        Returns
        -------
        tuple[int, int | Fraction | None, str]
            Ticks, units of memory per tick (None: messages take no ticks), and ``half`` or
            ``full``.
        """
        pipeline = self.pipeline
        latency, bandwidth, duplex = pipeline.latency, pipeline.bandwidth, pipeline.duplex
        for link in pipeline.links:
            if set(link.ranks) == {one, other}:
                latency = link.latency
                bandwidth = pipeline.bandwidth if link.bandwidth is None else link.bandwidth
                duplex = pipeline.duplex if link.duplex is None else link.duplex
        return latency, bandwidth, duplex

    @staticmethod
    def link_name(source: int, target: int, duplex: str) -> str:
        """A link of half duplex is one resource, of full duplex one for each direction.

        Parameters
        ----------
        source, target
            Two different ranks.
        duplex
            ``half`` or ``full``.
        """
        if duplex == "full":
            return f"link {source}>{target}"
        return f"link {min(source, target)}-{max(source, target)}"

    def is_split(self, stage: int, microbatch: int) -> bool:
        """Whether a stage's backward of a microbatch is an I and a W.

        Parameters
        ----------
        stage
            From 0 to p v - 1.
        microbatch
            From 0 to m - 1.
        """
        flags = self.pipeline.split_backward
        if self.is_frozen(stage):
            return False
        return flags if isinstance(flags, bool) else flags[stage][microbatch]

    def back(self, stage: int, microbatch: int, part: int) -> str:
        """The B or I of a stage.

        Parameters
        ----------
        stage
            From 0 to p v - 1.
        microbatch
            From 0 to m - 1.
        part
            The slice, from 0 on.
        """
        return action_name(
            stage, "I" if self.is_split(stage, microbatch) else "B", microbatch, part
        )

    def is_frozen(self, stage: int) -> bool:
        """Whether a stage has a B of an I's ticks, which holds nothing for a W, and no W.

        Parameters
        ----------
        stage
            From 0 to p v - 1.
        """
        return stage in self.pipeline.choices.frozen_stages

    def activation(self, stage: int) -> int:
        """What a forward of a stage holds until its backward, in units of memory.

        Parameters
        ----------
        stage
            From 0 to p v - 1.
        """
        return int(self.per_stage.activation[stage])

    def workspace(self, stage: int) -> tuple[int, ...]:
        """What each part of the stage's W holds while it runs; (0,) where that is nothing.

        Parameters
        ----------
        stage
            From 0 to p v - 1.

        Returns
        -------
        tuple[int, ...]
            Units of memory.
        """
        rows = self.pipeline.workspace
        return rows[stage] if rows else (0,)

    def _hold(self, name: str, store: str, units: int) -> None:
        """A task holds memory for as long as it runs."""
        self.found.change(name, "start", store, units)
        self.found.change(name, "end", store, -units)

    def _stores(self) -> None:
        pipeline = self.pipeline
        base = dict.fromkeys(range(pipeline.num_ranks), 0)
        for stage in range(pipeline.num_stages):
            for home in {self.rank(stage, j) for j in (0, pipeline.num_microbatches)}:
                base[home] += int(self.per_stage.static[stage])
        for rank, load in base.items():
            self.found.stores[f"memory of rank {rank}"] = load, self.capacity(rank)

    def _forward(self, stage: int, microbatch: int, part: int) -> None:
        name = action_name(stage, "F", microbatch, part)
        ticks = int(self.ticks.forward[stage, part])
        self.found.task(name, ticks, self.home(stage, microbatch))
        if stage:
            before, message = (action_name(stage - 1, k, microbatch, part) for k in ("F", "SEND_F"))
            self._pass_on(before, name, (message, stage - 1, stage, microbatch))
        if part:
            self.found.wait(action_name(stage, "F", microbatch, part - 1), name)
        self.found.change(name, "start", self.memory(stage, microbatch), self.activation(stage))
        if self.is_forward_only:
            self.found.change(name, "end", self.memory(stage, microbatch), -self.activation(stage))

    def _backward(self, stage: int, microbatch: int, part: int) -> None:
        pipeline, name = self.pipeline, self.back(stage, microbatch, part)
        split, store = self.is_split(stage, microbatch), self.memory(stage, microbatch)
        is_frozen = self.is_frozen(stage)
        ticks = self.ticks.input_backward if split or is_frozen else self.ticks.backward
        self.found.task(name, int(ticks[stage, part]), self.home(stage, microbatch))
        self.found.wait(action_name(stage, "F", microbatch, part), name)
        if stage + 1 < pipeline.num_stages:
            before = self.back(stage + 1, microbatch, part)
            message = action_name(stage + 1, "SEND_B", microbatch, part)
            self._pass_on(before, name, (message, stage + 1, stage, microbatch))
        if part + 1 < pipeline.num_slices:
            self.found.wait(self.back(stage, microbatch, part + 1), name)
        if not split:
            self.found.change(name, "end", store, -self.activation(stage))
            self._hold(name, store, 0 if is_frozen else max(self.workspace(stage)))
            return
        released = int(self.per_stage.released[stage])
        self.found.change(name, "end" if released > 0 else "start", store, -released)
        last = self._weights(stage, microbatch, part)
        self.found.change(last, "end", store, released - self.activation(stage))

    def _weights(self, stage: int, microbatch: int, part: int) -> str:
        """The W of a stage, or its GEMMs in a row; the last of them."""
        rows, whole = self.pipeline.part_ticks, action_name(stage, "W", microbatch, part)
        home = self.home(stage, microbatch)
        if not rows or not rows[stage]:
            self.found.task(whole, int(self.ticks.weight_backward[stage, part]), home)
            self.found.wait(self.back(stage, microbatch, part), whole)
            self._hold(whole, self.memory(stage, microbatch), self.workspace(stage)[0])
            return whole
        before = self.back(stage, microbatch, part)
        for gemm, ticks in enumerate(rows[stage]):
            self.found.task(f"{whole}#{gemm}", ticks, home)
            self.found.wait(before, f"{whole}#{gemm}")
            units = self.workspace(stage)[gemm % len(self.workspace(stage))]
            self._hold(f"{whole}#{gemm}", self.memory(stage, microbatch), units)
            before = f"{whole}#{gemm}"
        return before
