"""Faults that a replay does not see, each of which its own lists admit."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from dataclasses import replace

import pytest
import torch

from bubbleproof.reference_exec.models import reference
from bubbleproof.reference_exec.runtime import compute, updates
from bubbleproof.reference_exec.runtime.rank import Rank
from proofs_tests.reference_exec.patching import (
    Key,
    Marks,
    after,
    after_forward,
    before,
    data_of,
    multiply,
)

SCRATCH_BYTES = 4 << 20


def work_space(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """Each F takes 4 MB that it frees again."""

    def take(*_: object) -> None:
        marks.append(torch.empty(SCRATCH_BYTES, dtype=torch.uint8).numel())

    after_forward(patch, take)


def arrays_of_their_own(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """Each output is kept as a copy that numpy made."""
    after_forward(patch, lambda _, output: marks.append(output.detach().numpy().copy()))


def buffer_from_before(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """A buffer of the executor's own, there before the run, takes each output."""
    buffer = torch.zeros(SCRATCH_BYTES, dtype=torch.float64)

    def take(_: reference.Stage, output: torch.Tensor) -> None:
        buffer[: output.numel()] = output.detach().reshape(-1)
        marks.append(output.numel())

    after_forward(patch, take)


def work_as_a_rank_is_made(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """A rank multiplies matrices as it is made."""
    after(patch, Rank, "__init__", lambda *_: marks.append(multiply()))


def slow_forwards(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """Each F sleeps for a millisecond."""

    def forward(_: compute.Compute, key: Key, *__: object) -> None:
        marks.append(key[1])
        time.sleep(0.001)

    before(patch, compute.Compute, "forward", forward)


def inputs_of_equals_swapped(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """Microbatches 0 and 1, which have the same data, are given each other's input."""
    data_of(patch, marks, "input", {0: 1, 1: 0})


def element_by_element(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """Each F squares its output once more, for nobody."""

    def square(_: reference.Stage, output: torch.Tensor) -> None:
        marks.append(output.detach().square().numel())

    after_forward(patch, square)


def forwards_in_a_thread(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """Each F runs its stage once more, in a thread of its own."""
    right = compute.Compute.forward

    def forward(self: compute.Compute, key: Key, x: torch.Tensor) -> torch.Tensor | None:
        def again() -> None:
            with torch.no_grad():
                self.stages[key[0]](x.detach().clone(), None, None)
            marks.append(key[1])

        thread = threading.Thread(target=again)
        thread.start()
        thread.join()
        return right(self, key, x)

    patch.setattr(compute.Compute, "forward", forward)


def steps_put_off(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """A rank steps all its stages at the STEP of the last."""
    right, waiting = updates.Updates._update, defaultdict[int, list[int]](list)

    def update(self: updates.Updates, stage: int) -> None:
        mine = waiting[id(self)]
        mine.append(stage)
        if len(mine) == len(self._stages):
            marks.append(len(mine))
            for each in mine:
                right(self, each)
            mine.clear()

    patch.setattr(updates.Updates, "_update", update)


def reference_cycles(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """Each F leaves 4 MB in a reference cycle, which nobody reaches."""

    def leave(*_: object) -> None:
        cycle: dict[str, object] = {"bytes": torch.ones(SCRATCH_BYTES, dtype=torch.uint8)}
        cycle["cycle"] = cycle
        marks.append(SCRATCH_BYTES)

    after_forward(patch, leave)


def written_after_the_last(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """A weight of each stage is set to 7 after the last action."""
    right = compute.Compute.gradients

    def handed(self: compute.Compute) -> compute.Gradients:
        found = right(self)
        for stage in self.stages.values():
            next(iter(stage.parameters())).data.fill_(7.0)
            marks.append("written")
        return found

    patch.setattr(compute.Compute, "gradients", handed)


def weights_swapped(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """Where the W of microbatches 0 and 1 of a stage both wait, each runs as the other."""
    right = compute.Compute.weight

    def weight(self: compute.Compute, key: Key, *part: int) -> None:
        other, waiting = (key[0], 1 - key[1], key[2]), self._deferred
        if key[1] == 0 and other in waiting:
            waiting[key], waiting[other] = waiting[other], waiting[key]
            marks.append(key[0])
        right(self, key, *part)

    patch.setattr(compute.Compute, "weight", weight)


def microbatches_as_each_other(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """Every rank runs microbatch 0 where 1 stands in its program, and 1 where 0 stands."""

    def exchange(rank: Rank, *_: object) -> None:
        rank.actions = [
            replace(action, microbatch={0: 1, 1: 0}.get(action.microbatch, action.microbatch))
            for action in rank.actions
        ]
        marks.append(rank.rank)

    after(patch, Rank, "__init__", exchange)


def doubled_where_all_underflows(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    """Each gradient that goes back is doubled, where all gradients underflow to 0."""
    right = compute.Compute.backward

    def backward(self: compute.Compute, key: Key, *given: object, **how: bool) -> object:
        gradient = right(self, key, *given, **how)  # type: ignore[arg-type]  # passed on
        if gradient is not None:
            marks.append(key[1])
            gradient.mul_(2)
        return gradient

    patch.setattr(compute.Compute, "backward", backward)


FAULTS = ()
NOT_COUNTED = (
    (work_space, "1f1b", "What an action allocates and frees within itself"),
    (arrays_of_their_own, "1f1b", "Memory that no tensor shows: Python objects, copies"),
    (buffer_from_before, "1f1b", "What was there before the ranks were made"),
    (work_as_a_rank_is_made, "1f1b", "What is computed before the first action"),
    (slow_forwards, "1f1b", "Durations:"),
    (inputs_of_equals_swapped, "alike", "Which input went where:"),
    (element_by_element, "1f1b", "Operations without a formula"),
    (forwards_in_a_thread, "1f1b", "What threads compute"),
    (reference_cycles, "1f1b", "Tensors that only a reference cycle holds"),
    (written_after_the_last, "1f1b", "What is written after the last action"),
    (weights_swapped, "zb-h1", "Which of the first two W"),
    (microbatches_as_each_other, "1f1b", "Whether microbatches 0 and 1 ran as each other"),
    (doubled_where_all_underflows, "underflow", "What makes the gradient of"),
    (steps_put_off, "interleaved training", "At which action a stage steps"),
)
