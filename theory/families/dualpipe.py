"""DualPipe: two pipelines in opposite directions; in the steady state each F overlaps a B.

Every stage is on two ranks (``bidirectional`` placement); the first m/2 microbatches run downward,
the others upward, and m counts both. On rank r, direction 0 is the one that starts at the nearer
end (downward where r < p/2) and direction 1 the other. With d = min(r, p-1-r) + 1 ranks to that end
and q = p/2 - d to the middle, a rank runs (B is a full backward; I and W are its parts; W the
oldest part that waits; X&Y one task ``OVERLAP_F_B``):

    1  F0                2q times
    2  F0 F1             d times
    3  I1 W F1           q times
    4  F0&B1 F1&B0       m/2 - p + d times; the two middle ranks run the first pair as F0, then B1
    5  B1 F1&B0          q times
    6  B1 B0             d times; the first d of these 2d backwards whole, the others as I
    7  W I0              q times
    8  W                 until none waits

Source: DeepSeek-V3 technical report section 3.2.1 and the step list of its published schedule.
There the bubble is (p/2-1)(F&B + B - 3W) and the peak p + 1 activations. Here F&B takes tF + tB
(durations add up), so the published bubble reads h(tF + 2tI - tW), h = p/2-1. That is what this
order idles on each rank where tF = tI >= tW. In general, for tW <= tI, it idles
h(tF + 2tI - tW) - min(tF, h(tI - tF)): less where I is slower than F and more where it is faster.
Legal range: even p, even m >= 2p. Which backwards are split and which overlap is part of the
``Pipeline`` (``split_backward``, ``overlaps``), and the family takes no other choice.

DualPipeV: DualPipe cut in half, so that every stage is on one rank.

Half of DualPipe's ranks hold all stages, folded to a V: rank r of p holds stages r and 2p-1-r
(``wave`` placement, two chunks). Its direction 0 is chunk 0, its direction 1 chunk 1, on the same
microbatches; it runs DualPipe's eight steps (above) with q = p-1-r ranks to the
fold, d = r+1 and m - 2p + d pairs in step 4. The last rank, at the fold, runs the first pair apart.

Source: the step list of DeepSeek's published DualPipeV schedule, from the "cut-in-half" of Sea AI
Lab. Published: bubble (PP/2-1)(F&B + B - 3W) and peak PP + 1 activations where PP counts stages,
2p here: (p-1)(F&B + B - 3W) and 2p + 1 chunk activations, F, B and W of one chunk. What it idles is
DualPipe's with h = p-1, and so is the condition on the ticks.
Legal range: any p, any m >= 2p.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import cache

import numpy as np

from bubbleproof.theory.families.base import Family
from bubbleproof.theory.families.parameters import FamilyParameters
from bubbleproof.theory.model.actions import NONE, Action, ActionTable, Kind
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.overlaps import Overlap
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.placement import BIDIRECTIONAL

SplitsAndOverlaps = tuple[tuple[tuple[bool, ...], ...], tuple[Overlap, ...]]


class EightSteps(Family):
    """The eight steps, on ranks whose two directions are given by the subclass."""

    is_split = True
    least = frozenset({"bubble", "memory"})

    @abstractmethod
    def size_refusal(self, p: int, m: int) -> str | None:
        """Why there is no schedule for p ranks and m microbatches, or None.

        Parameters
        ----------
        p, m
            Ranks and microbatches.
        """

    @abstractmethod
    def orders(self, p: int, m: int) -> list[list[Action]]:
        """The actions of each rank in order.

        Parameters
        ----------
        p, m
            Ranks and microbatches.
        """

    def refusal(self, pipeline: Pipeline) -> str | None:
        p, m = pipeline.num_ranks, pipeline.num_microbatches
        plain = pipeline.with_changes(split_backward=True, overlaps=())
        if why := super().refusal(plain) or self.size_refusal(p, m):
            return why
        if (pipeline.split_backward, pipeline.overlaps) != self.choices(p, m):
            return (
                f"{self.name} fixes which backwards are split and which overlap a forward; "
                f"take split_backward and overlaps from {self.name} p={p} m={m}"
            )
        return None

    def fitted(self, pipeline: Pipeline) -> Pipeline:
        p, m = pipeline.num_ranks, pipeline.num_microbatches
        plain = super().fitted(pipeline)
        has_shape = (plain.num_chunks, plain.num_slices) == (self.default_chunks, 1)
        if not has_shape or self.size_refusal(p, m):
            return plain
        split, overlaps = self.choices(p, m)
        return plain.with_changes(split_backward=split, overlaps=overlaps)

    def pipeline(self, params: FamilyParameters) -> Pipeline:
        if why := self.size_refusal(params.p, params.m):
            raise ValueError(why)
        return self.fitted(super().pipeline(params))

    def program(self, pipeline: Pipeline) -> Program:
        return Program.from_orders(self.orders(pipeline.num_ranks, pipeline.num_microbatches))

    @cache  # noqa: B019 - families are few and live as long as the process
    def choices(self, p: int, m: int) -> SplitsAndOverlaps:
        """(split_backward, overlaps) of the pipeline: what the orders split and overlap.

        Parameters
        ----------
        p, m
            Ranks and microbatches.
        """
        table = ActionTable.from_actions(a for order in self.orders(p, m) for a in order)
        split = np.zeros((p * self.default_chunks, m), dtype=bool)
        inputs = table.is_kind(Kind.I)
        split[table.stage[inputs], table.microbatch[inputs]] = True
        joint = table.take(table.partner_stage != NONE)
        forwards = zip(joint.stage.tolist(), joint.microbatch.tolist(), strict=True)
        backwards = zip(
            joint.partner_stage.tolist(), joint.partner_microbatch.tolist(), strict=True
        )
        return tuple(map(tuple, split.tolist())), tuple(zip(forwards, backwards, strict=True))


class DualPipe(EightSteps):
    """Two directions from either end that meet in the middle."""

    name = "dualpipe"
    title = "DualPipe"
    source = "DeepSeek-V3 technical report section 3.2.1"
    placement = BIDIRECTIONAL

    def size_refusal(self, p: int, m: int) -> str | None:
        if p % 2:
            return f"{self.name} needs an even number of ranks, got p={p}"
        if m % 2 or m < 2 * p:
            return f"{self.name} needs an even m of 2p = {2 * p} or more, got m={m}"
        return None

    def orders(self, p: int, m: int) -> list[list[Action]]:
        found = []
        for rank in range(p):
            depth = min(rank, p - 1 - rank) + 1
            directions = [(rank, 0), (p - 1 - rank, m // 2)]
            if rank >= p // 2:
                directions.reverse()
            steps = eight_steps(p // 2 - depth, depth, m // 2 - p + depth)
            found.append(numbered_actions(steps, directions))
        return found


class DualPipeV(EightSteps):
    """DualPipe's eight steps on the two chunks of a V."""

    name = "dualpipev"
    title = "DualPipeV"
    source = "DeepSeek's DualPipe, the V form; DeepSeek-V3 technical report section 3.2.1"
    options = frozenset({"v"})
    default_chunks = 2
    has_two_chunks = True
    placement = "wave"

    def size_refusal(self, p: int, m: int) -> str | None:
        if m < 2 * p:
            return f"{self.name} needs m of 2p = {2 * p} or more, got m={m}"
        return None

    def orders(self, p: int, m: int) -> list[list[Action]]:
        return [
            numbered_actions(
                eight_steps(p - 1 - rank, rank + 1, m - 2 * p + rank + 1),
                [(rank, 0), (2 * p - 1 - rank, 0)],
            )
            for rank in range(p)
        ]


def eight_steps(to_middle: int, depth: int, pairs: int) -> list[str]:
    """The steps of a rank, such as ``F0``, ``I1``, ``F0&B1`` or ``W``; the module explains them.

    Parameters
    ----------
    to_middle
        How many ranks lie between this one and the middle.
    depth
        How many ranks lie between this one and its end of the pipeline, itself included.
    pairs
        How often the main step is repeated.
    """
    main = ["F0&B1", "F1&B0"] * pairs
    if to_middle == 0:
        main[:1] = ["F0", "B1"]
    drain = [f"{'B' if turn < depth else 'I'}{1 - turn % 2}" for turn in range(2 * depth)]
    steps = [
        *["F0"] * (2 * to_middle),
        *["F0", "F1"] * depth,
        *["I1", "W", "F1"] * to_middle,
        *main,
        *["B1", "F1&B0"] * to_middle,
        *drain,
        *["W", "I0"] * to_middle,
    ]
    waiting = sum(step[0] == "I" for step in steps) - steps.count("W")
    return steps + ["W"] * waiting


def numbered_actions(steps: list[str], directions: list[tuple[int, int]]) -> list[Action]:
    """The actions of a rank; direction d runs on stage and from microbatch ``directions[d]`` on.

    Forwards and backwards of a direction are numbered as they come; W takes the oldest I.

    Parameters
    ----------
    steps
        As ``eight_steps`` gives them.
    directions
        For each direction the stage on this rank, and the first microbatch.
    """
    count = {(kind, d): 0 for kind in "FB" for d in (0, 1)}
    inputs: list[Action] = []
    actions: list[Action] = []

    def numbered(kind: Kind, text: str, partner: Action | None = None) -> Action:
        direction = int(text[1])
        stage, first = directions[direction]
        key = ("F" if text[0] == "F" else "B", direction)
        count[key] += 1
        return Action(stage=stage, kind=kind, microbatch=first + count[key] - 1, partner=partner)

    for step in steps:
        forward, _, backward = step.partition("&")
        if backward:
            partner = numbered(Kind.B, backward)
            actions.append(numbered(Kind.OVERLAP_F_B, forward, partner))
        elif step == "W":
            oldest = inputs.pop(0)
            actions.append(Action(stage=oldest.stage, kind=Kind.W, microbatch=oldest.microbatch))
        else:
            actions.append(numbered(Kind[step[0]], step))
            if step[0] == "I":
                inputs.append(actions[-1])
    return actions
