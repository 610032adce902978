"""The model that a plan was made for, made small: what ``replay`` of a plan's folder trains.

    kind      llama where the model is gated, else transformer; of experts, one block stands for all
    heads     two of keys and values at most, and as many queries to each as planned
    hidden    four numbers a head
    layers    each stage's, divided by what leaves two to the largest, rounded up: an uneven cut
              stays uneven where that is more than rounding
    words     64 at most; tied where the model is

Samples of a microbatch, their length, the type and the seed are those of the command.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bubbleproof.commands.output import say
from bubbleproof.commands.replaying.replay_options import ModelOptions, ReplayRequest
from bubbleproof.formats.inputs import read_plan_input
from bubbleproof.hand_over.handed import PlannedModel, planned_of

MOST_LAYERS, MOST_KV_HEADS, HEAD_WIDTH, MOST_WORDS = 2, 2, 4, 64
_SIZES = ("model", "hidden", "layers", "heads", "kv_heads", "vocabulary", "tied")


def with_planned_model(request: ReplayRequest) -> ReplayRequest:
    """The request with the plan's model, where it names a plan of one and asks for no other."""
    plan = read_plan_input(request.schedule)
    usual = ModelOptions()
    if plan is None or any(getattr(request.model, n) != getattr(usual, n) for n in _SIZES):
        return request
    planned = planned_of(plan)
    if planned is None:
        return request
    small = scaled(planned, request.model)
    name = planned.model.name or "the planned model"
    say(
        f"{name} is replayed small: {small.model}, layers {small.layers}, hidden {small.hidden}, "
        f"heads {small.heads}, vocabulary {small.vocabulary} (--model says another)"
    )
    return replace(request, model=small)


def scaled(planned: PlannedModel, given: ModelOptions) -> ModelOptions:
    """The small model, see above; what it does not say is as ``given``."""
    model = planned.model
    kv = model.kv_heads or model.heads
    kv_heads = min(kv, MOST_KV_HEADS)
    heads = kv_heads * max(model.heads // kv, 1)
    return replace(
        given,
        model="llama" if model.gated else "transformer",
        hidden=HEAD_WIDTH * heads,
        layers=",".join(map(str, small_cut(planned.layers))),
        heads=heads,
        kv_heads=kv_heads,
        vocabulary=min(model.vocabulary, MOST_WORDS),
        tied=model.tied and len(planned.layers) > 1,
    )


def small_cut(layers: Sequence[int]) -> tuple[int, ...]:
    """The layers of each stage, the largest with two at most.

    >>> small_cut((20, 20)), small_cut((5, 10, 10, 4)), small_cut((1, 1))
    ((2, 2), (1, 2, 2, 1), (1, 1))
    """
    divisor = max(-(-max(layers) // MOST_LAYERS), 1)
    return tuple(max(-(-count // divisor), 1) for count in layers)
