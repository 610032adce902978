"""Whole sums: gradients of whole stages summed over replicas (plain data parallelism).

    REDUCE_GRAD   begins: each member sends all others its gradient
                  ends:   the gradient is (g_0 + g_1) + g_2 + ... of the members, in their order

Nothing is sharded: every member has the same sum and steps with it, on its rank or its host. What
else a stage has, and where, is as in one replica; the copies on their way are not counted.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import nn

from bubbleproof.reference_exec.broken import BrokenProgram


class WholeSums:
    """The gradients of one process's stages, and which have been summed in this pass."""

    def __init__(self, stages: Mapping[int, nn.Module]) -> None:
        self._stages = stages
        self._summed: set[int] = set()

    def begin_pass(self) -> None:
        """Begin a run of the program."""
        self._summed.clear()

    def gathered(self, stage: int) -> torch.Tensor:
        """The gradient of a stage, all its parameters in a row. Raises ``BrokenProgram``."""
        rows = []
        for name, parameter in self._stages[stage].named_parameters():
            if parameter.grad is None:
                raise BrokenProgram(f"stage {stage} {name} has no gradient to be summed")
            rows.append(parameter.grad.reshape(-1))
        return torch.cat(rows)

    def put(self, stage: int, total: torch.Tensor) -> None:
        """The sum over all members takes the place of the gradient."""
        begin = 0
        for parameter in self._stages[stage].parameters():
            assert parameter.grad is not None
            end = begin + parameter.numel()
            parameter.grad.copy_(total[begin:end].view_as(parameter.grad))
            begin = end
        self._summed.add(stage)

    def left_over(self) -> list[str]:
        """Gradients that were not summed, one phrase each."""
        return [
            f"the gradient of stage {stage} never reduced"
            for stage in self._stages
            if stage not in self._summed
        ]
