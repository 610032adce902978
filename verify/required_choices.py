"""What the choices of a pipeline require beyond its computation: text in ``required``."""

from __future__ import annotations

from bubbleproof.theory.pipelines.recompute import Recompute
from bubbleproof.theory.pipelines.state_offload import StateOffload
from bubbleproof.theory.pipelines.transfers import Eviction
from bubbleproof.verify.required_step import StepRequirements
from bubbleproof.verify.required_table import action_name
from bubbleproof.verify.required_visits import require_collectives


class ChoiceRequirements:
    """Adds to what the computation requires, of each kind of choice what there is."""

    def __init__(self, step: StepRequirements) -> None:
        self.step, self.found = step, step.found
        choices = step.pipeline.choices
        for eviction in choices.evictions:
            self._evict(eviction)
        for chosen in choices.offloads:
            home = self.step.rank(chosen.stage, chosen.microbatch)
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
            ranks = [self.step.rank(stage, 0) for stage in range(self.step.pipeline.num_stages)]
            require_collectives(self.found, self.step.pipeline, choices.sharding, ranks)
        for before, after in choices.waits:
            self.found.wait(str(before), str(after))
        for (stage, microbatch), (other, later) in choices.overlaps:
            self._overlap(f"{stage}F{microbatch}", f"{other}B{later}")

    def _evict(self, eviction: Eviction) -> None:
        ends = eviction.source, eviction.target
        duplex = self.step.link(*ends)[2]
        self._away(
            (eviction.stage, eviction.microbatch, eviction.slice),
            ("EVICT", eviction.duration, self.step.link_name(*ends, duplex)),
            ("LOAD", eviction.duration, self.step.link_name(*ends[::-1], duplex)),
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
        forward, own = (
            action_name(stage, "F", microbatch, part),
            self.step.memory(stage, microbatch),
        )
        units = sum(self.found.changes[forward, moment, own] for moment in ("start", "end"))
        out, home = (action_name(stage, way[0], microbatch, part) for way in (there, back))
        for name, way in ((out, there), (home, back)):
            self.found.task(name, way[1], way[2])
        self.found.wait(forward, out)
        self.found.wait(out, home)
        self.found.wait(home, self.step.back(stage, microbatch, part))
        for name, target, source in ((out, store, own), (home, own, store)):
            self.found.change(name, "start", target, units)
            self.found.change(name, "end", source, -units)

    def _recompute(self, choice: Recompute) -> None:
        for stage in range(self.step.pipeline.num_stages):
            for microbatch in range(self.step.pipeline.num_microbatches):
                if stage in choice.stages or (stage, microbatch) in choice.samples:
                    for part in range(self.step.pipeline.num_slices):
                        self._recompute_one(choice, stage, microbatch, part)

    def _recompute_one(self, choice: Recompute, stage: int, microbatch: int, part: int) -> None:
        forward, again = (action_name(stage, kind, microbatch, part) for kind in "FR")
        store, ticks = self.step.memory(stage, microbatch), choice.duration
        ticks = self.found.tasks[forward][0] if ticks is None else ticks
        self.found.task(again, ticks, self.step.home(stage, microbatch))
        self.found.wait(forward, again)
        self.found.wait(again, self.step.back(stage, microbatch, part))
        dropped = self.step.activation(stage) - choice.kept
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
        last = self.step.pipeline.num_microbatches - 1
        hosts = dict.fromkeys(range(self.step.pipeline.num_ranks), 0)
        for stage in choice.stages:
            rank = self.step.rank(stage, 0)
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
