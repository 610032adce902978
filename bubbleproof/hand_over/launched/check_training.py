"""Train as train.py does, and hold every step against the same model without a pipeline:

torchrun --nproc-per-node RANKS check_training.py STEPS

Each rank runs the whole model, microbatch by microbatch, adds each weight's gradients in the order
in which the table's backwards do, and asks for the same bits; of losses on the last stage's rank
likewise. It does so with gradients divided by the number of microbatches, as the runtime's default
is, and without. The first difference ends it with status 1 and a line that says what differs.
"""

import csv
import sys

import torch
import torch.distributed as dist
from torch import nn

from bubbleproof.hand_over.launched.train import (
    HERE,
    RATE,
    batch_of,
    loss_of,
    part_of,
    parts_of,
    runtime_of,
    stepped,
    told,
)


def adding_orders() -> list[list[int]]:
    """Of each stage, the microbatches in the order in which weights get their gradients."""
    orders: list[list[int]] = [[] for _ in told()["modules"]]
    with (HERE / "schedule.csv").open() as table:
        for cell in (cell for row in csv.reader(table) for cell in row):
            stage, _, microbatch = cell.partition("B" if "B" in cell else "W")
            if microbatch.isdigit() and stage.isdigit():
                orders[int(stage)].append(int(microbatch))
    return orders


def without_pipeline(parts: list[nn.Module], step: int, *, scale: bool) -> list[float]:
    """The losses of a step; leaves each weight its gradient."""
    count, words = told()["microbatches"], batch_of(step)
    weights = [list(part.parameters()) for part in parts]
    losses, found = [], []
    for x, target in zip(words[0].chunk(count), words[1].chunk(count), strict=True):
        for part in parts:
            x = part(x)
        losses.append(loss_of(x, target))
        found.append(iter(torch.autograd.grad(losses[-1], [w for own in weights for w in own])))
    for own, order in zip(weights, adding_orders(), strict=True):
        for weight in own:
            each = [next(gradients) for gradients in found]
            total = each[order[0]].clone()
            for microbatch in order[1:]:
                total += each[microbatch]
            weight.grad = total / count if scale else total
    return [float(loss.detach()) for loss in losses]


def difference(step: int, parts: dict[int, nn.Module], whole: list[nn.Module]) -> str:
    """What differs between this rank's gradients and those without a pipeline; "" if nothing."""
    for stage, part in parts.items():
        pairs = zip(part.named_parameters(), whole[stage].parameters(), strict=True)
        for (name, weight), other in pairs:
            if weight.grad is None or other.grad is None or (weight.grad != other.grad).any():
                return f"step {step}: the gradient of {name} of stage {stage} differs"
    return ""


def differs(steps: int, *, scale: bool) -> str:
    """What differs first in so many steps, "" if nothing."""
    parts = parts_of(dist.get_rank())
    whole = [part_of(stage) for stage in range(len(told()["modules"]))]
    runtime, optimizers = runtime_of(parts, scale=scale), []
    for own in (parts.values(), whole):
        optimizers.append(torch.optim.AdamW([w for p in own for w in p.parameters()], lr=RATE))
    for step in range(steps):
        losses = stepped(runtime, parts, step)
        wanted = without_pipeline(whole, step, scale=scale)
        if said := difference(step, parts, whole):
            return said
        if losses and losses != wanted:
            return f"step {step}: the losses differ"
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
    return ""


def main() -> None:
    """Both ways; status 1 and a line where something differs."""
    dist.init_process_group("gloo")
    for scale in (True, False):
        if said := differs(int(sys.argv[1]), scale=scale):
            sys.exit(f"check: scale_grads={scale}: {said}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
