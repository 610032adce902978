"""What a pipeline requires, stated a second time: every task, dependency and memory event, by name.

``theory`` turns a Pipeline into a Problem in columns. A dependency or a memory event forgotten
there would pass every rule, since rules judge schedules of the Problem as it is. So this module
says what each action of a training step needs and does once more, from the definitions
(docs/design.md §2), action by action and by the actions' text, and ``differences`` compares the
two. It calls nothing of what it judges.

With a(g) the activation of stage g, in memory units, on the rank that runs it:

F      waits for the F of the stage before and of the slice before; holds a(g) from its start.
B      waits for its F, and for the B or I of the stage behind and of the slice behind; gives a(g)
       back at its end.
I, W   I waits as B does; it gives back ``released_at_input`` at its end (where that is negative it
       acquires the difference at its start), and W, which waits for I, the rest at its end. The
       parts of a W run one after the other; the last gives the rest back. Each part holds its
       ``weight_workspace`` while it runs; a B, which runs the same GEMMs, the largest of them.
R      (recompute) waits for its F, which gives all but ``kept`` back at its end; R acquires the
       same at its start; the backward waits for R.
EVICT, LOAD; OFFLOAD, RELOAD of an activation
       after its F, one after the other, before its backward. What F leaves behind is acquired where
       it goes when the transfer starts, and given back where it was when that ends.
RELOAD, OFFLOAD, STEP of a stage's model state: ``_state``. UNSHARD, RESHARD, REDUCE_GRAD of the
visits of a rank: ``required_visits``.

SEND_F and SEND_B
       of what crosses a boundary between ranks, where its size over the link's bandwidth is not
       nothing: after the producer, on the link; the consumer comes ``latency`` ticks later.

A link says its latency, bandwidth and duplex, or those of the pipeline hold; a rank is no distance
from itself. A pair that overlaps is one task with the needs and the memory of both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from math import ceil
from typing import TypeVar

from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.recompute import Recompute
from bubbleproof.theory.pipelines.state_offload import StateOffload
from bubbleproof.theory.pipelines.transfers import Eviction
from bubbleproof.verify.finding import Rule
from bubbleproof.verify.required_table import Required, action_name, stated
from bubbleproof.verify.required_visits import require_collectives
from bubbleproof.verify.verdict import Decision

Key = TypeVar("Key")


def required(pipeline: Pipeline) -> Required:
    """What the pipeline requires, by its definition."""
    return _Requirements(pipeline).found


def check_required(pipeline: Pipeline, problem: Problem) -> Decision:
    """Whether the problem is what the pipeline requires, as the decision of a rule of its own."""
    return Decision.of_sentences(Rule.REQUIRED, differences(pipeline, problem))


def differences(pipeline: Pipeline, problem: Problem) -> list[str]:
    """In what the problem is not what the pipeline requires, a sentence each."""
    asked, said = required(pipeline), stated(problem)
    return [
        *_unlike("task", asked.tasks, said.tasks),
        *_unlike("wait", asked.waits, said.waits),
        *_unlike("memory event", asked.changes, said.changes),
        *_unlike("store", asked.stores, said.stores),
    ]


def _unlike(what: str, asked: Mapping[Key, object], said: Mapping[Key, object]) -> Iterator[str]:
    for key in dict.fromkeys((*asked, *said)):
        one, other = asked.get(key), said.get(key)
        if one != other and (one or other):  # a change of 0 is none
            name = " ".join(str(word) for word in (key if isinstance(key, tuple) else (key,)))
            told = ["nothing" if value is None else str(value) for value in (one, other)]
            yield f"{what} {name}: the pipeline requires {told[0]}, the problem has {told[1]}"


class _Requirements:
    """The requirements of one pipeline as they are found, kind by kind."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline, self.ticks, self.per_stage = pipeline, pipeline.ticks, pipeline.per_stage
        self.found = Required()
        self._stores()
        for stage in range(pipeline.num_stages):
            for microbatch in range(pipeline.num_microbatches):
                for part in range(pipeline.num_slices):
                    self._forward(stage, microbatch, part)
                    self._backward(stage, microbatch, part)
        self._choices()
        for (stage, microbatch), (other, later) in pipeline.overlaps:
            self._overlap(f"{stage}F{microbatch}", f"{other}B{later}")

    def rank(self, stage: int, microbatch: int) -> int:
        """Who runs a stage for a microbatch: the placements by their definitions."""
        p, placement = self.pipeline.num_ranks, self.pipeline.placement
        if isinstance(placement, tuple):
            return placement[stage]
        back = p - 1 - stage % p
        if placement == "wave":
            return back if stage // p % 2 else stage % p
        upward = placement == "bidirectional" and 2 * microbatch >= self.pipeline.num_microbatches
        return back if upward else stage % p

    def memory(self, stage: int, microbatch: int) -> str:
        return f"memory of rank {self.rank(stage, microbatch)}"

    def home(self, stage: int, microbatch: int) -> str:
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
        """Latency, bandwidth and duplex between two ranks."""
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
        """A link of half duplex is one resource, of full duplex one for each direction."""
        if duplex == "full":
            return f"link {source}>{target}"
        return f"link {min(source, target)}-{max(source, target)}"

    def is_split(self, stage: int, microbatch: int) -> bool:
        flags = self.pipeline.split_backward
        return flags if isinstance(flags, bool) else flags[stage][microbatch]

    def back(self, stage: int, microbatch: int, part: int) -> str:
        """The B or I of a stage."""
        return action_name(
            stage, "I" if self.is_split(stage, microbatch) else "B", microbatch, part
        )

    def activation(self, stage: int) -> int:
        return int(self.per_stage.activation[stage])

    def workspace(self, stage: int) -> tuple[int, ...]:
        """What each part of the stage's W holds while it runs; (0,) where that is nothing."""
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
            cap = pipeline.capacity
            one = cap[rank if len(cap) > 1 else 0] if isinstance(cap, tuple) else cap
            self.found.stores[f"memory of rank {rank}"] = load, one

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

    def _backward(self, stage: int, microbatch: int, part: int) -> None:
        pipeline, name = self.pipeline, self.back(stage, microbatch, part)
        split, store = self.is_split(stage, microbatch), self.memory(stage, microbatch)
        ticks = self.ticks.input_backward if split else self.ticks.backward
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
            self._hold(name, store, max(self.workspace(stage)))
            return
        released = int(self.per_stage.released[stage])
        self.found.change(name, "end" if released > 0 else "start", store, -released)
        last = self._weights(stage, microbatch, part)
        self.found.change(last, "end", store, released - self.activation(stage))

    def _weights(self, stage: int, microbatch: int, part: int) -> str:
        """The W of a stage, or its GEMMs in a row; the last of them."""
        rows, whole = self.pipeline.weight_parts, action_name(stage, "W", microbatch, part)
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

    def _choices(self) -> None:
        """What is chosen beyond the computation: of each kind what there is."""
        choices = self.pipeline.choices
        for eviction in choices.evictions:
            self._evict(eviction)
        for chosen in choices.offloads:
            home = self.rank(chosen.stage, chosen.microbatch)
            self.found.stores[f"host memory of rank {home}"] = 0, choices.host_capacity
            self._away(
                (chosen.stage, chosen.microbatch, chosen.slice),
                ("OFFLOAD", chosen.offload, f"download engine of rank {home}"),
                ("RELOAD", chosen.reload, f"upload engine of rank {home}"),
                f"host memory of rank {home}",
            )
        if choices.recompute is not None:
            self._recompute(choices.recompute)
        if choices.state_offload is not None:
            self._state(choices.state_offload)
        if choices.sharding is not None:
            ranks = [self.rank(stage, 0) for stage in range(self.pipeline.num_stages)]
            require_collectives(self.found, self.pipeline, choices.sharding, ranks)
        for before, after in choices.waits:
            self.found.wait(str(before), str(after))

    def _evict(self, eviction: Eviction) -> None:
        ends = eviction.source, eviction.target
        duplex = self.link(*ends)[2]
        self._away(
            (eviction.stage, eviction.microbatch, eviction.slice),
            ("EVICT", eviction.duration, self.link_name(*ends, duplex)),
            ("LOAD", eviction.duration, self.link_name(*ends[::-1], duplex)),
            f"memory of rank {eviction.target}",
        )

    def _away(
        self,
        sample: tuple[int, int, int],
        there: tuple[str, int, str],
        back: tuple[str, int, str],
        store: str,
    ) -> None:
        """An activation that goes to another store and comes back: (kind, ticks, resource)."""
        stage, microbatch, part = sample
        forward, own = action_name(stage, "F", microbatch, part), self.memory(stage, microbatch)
        units = sum(self.found.changes[forward, moment, own] for moment in ("start", "end"))
        out, home = (action_name(stage, way[0], microbatch, part) for way in (there, back))
        for name, way in ((out, there), (home, back)):
            self.found.task(name, way[1], way[2])
        self.found.wait(forward, out)
        self.found.wait(out, home)
        self.found.wait(home, self.back(stage, microbatch, part))
        for name, target, source in ((out, store, own), (home, own, store)):
            self.found.change(name, "start", target, units)
            self.found.change(name, "end", source, -units)

    def _recompute(self, choice: Recompute) -> None:
        for stage in range(self.pipeline.num_stages):
            for microbatch in range(self.pipeline.num_microbatches):
                if stage in choice.stages or (stage, microbatch) in choice.samples:
                    for part in range(self.pipeline.num_slices):
                        self._recompute_one(choice, stage, microbatch, part)

    def _recompute_one(self, choice: Recompute, stage: int, microbatch: int, part: int) -> None:
        forward, again = (action_name(stage, kind, microbatch, part) for kind in "FR")
        store, ticks = self.memory(stage, microbatch), self.found.tasks[forward][0]
        self.found.task(
            again,
            ticks if choice.duration is None else choice.duration,
            self.home(stage, microbatch),
        )
        self.found.wait(forward, again)
        self.found.wait(again, self.back(stage, microbatch, part))
        dropped = self.activation(stage) - choice.kept
        self.found.change(forward, "end", store, -dropped)
        self.found.change(again, "start", store, dropped)

    def _state(self, choice: StateOffload) -> None:
        """Weights come up before a stage's forwards; its gradient goes down, and the host steps.

        RELOAD acquires weights and gradient on the rank at its start, and gives the uploaded copy
        back on the host at its end. OFFLOAD gives the weights back at its start and the gradient at
        its end, which lies on the host from the start of OFFLOAD to the end of STEP. STEP acquires
        the next copy of the weights on the host.
        """
        if not choice.stages:
            return
        last = self.pipeline.num_microbatches - 1
        hosts = dict.fromkeys(range(self.pipeline.num_ranks), 0)
        for stage in choice.stages:
            rank = self.rank(stage, 0)
            own, host = f"memory of rank {rank}", f"host memory of rank {rank}"
            hosts[rank] += choice.state + choice.weight
            up, down, step = f"{stage}RELOAD0", f"{stage}OFFLOAD{last}", f"{stage}STEP"
            self.found.task(up, choice.reload, f"upload engine of rank {rank}")
            self.found.task(down, choice.offload, f"download engine of rank {rank}")
            self.found.task(step, choice.step, f"host of rank {rank}")
            self.found.wait(down, step)
            for name in [name for name in self.found.tasks if _is_of(name, stage, "F")]:
                self.found.wait(up, name)
            for name in [name for name in self.found.tasks if _is_of(name, stage, "BIW")]:
                self.found.wait(name, down)
            self.found.change(up, "start", own, choice.weight + choice.gradient)
            self.found.change(up, "end", host, -choice.weight)
            self.found.change(down, "start", own, -choice.weight)
            self.found.change(down, "end", own, -choice.gradient)
            self.found.change(down, "start", host, choice.gradient)
            self.found.change(step, "end", host, -choice.gradient)
            self.found.change(step, "start", host, choice.weight)
        for rank, load in hosts.items():
            host = f"host memory of rank {rank}"
            _, cap = self.found.stores.get(host, (0, None))
            self.found.stores[host] = load, cap

    def _overlap(self, forward: str, backward: str) -> None:
        """Join two tasks to one of their summed ticks, with the needs and the memory of both."""
        joint = f"({forward};{backward})OVERLAP_F_B"
        found, new = self.found, {forward: joint, backward: joint}
        first, second = found.tasks.pop(forward), found.tasks.pop(backward)
        found.tasks[joint] = first[0] + second[0], first[1] | second[1]
        waits, changes = found.waits.copy(), found.changes.copy()
        found.waits.clear()
        found.changes.clear()
        for (before, after, lag), count in waits.items():
            found.waits[new.get(before, before), new.get(after, after), lag] += count
        for (task, moment, store), delta in changes.items():
            found.changes[new.get(task, task), moment, store] += delta


def _is_of(name: str, stage: int, kinds: str) -> bool:
    """Whether an action's text is one of the stage's of one of these one-letter kinds."""
    return any(
        name.startswith(f"{stage}{kind}") and name[len(f"{stage}{kind}")].isdecimal()
        for kind in kinds
    )
