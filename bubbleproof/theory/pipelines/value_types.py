"""What a pipeline's values may be: numpy's numbers and lists are ours, other types are refused.

Whether a number fits is for others to say; here a wrong type is told by the field's name, what was
expected and what was found, before anything is computed with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from bubbleproof.theory.model.actions import Action
from bubbleproof.theory.pipelines.activation_offload import ActivationOffload
from bubbleproof.theory.pipelines.choices import Choices
from bubbleproof.theory.pipelines.links import Link
from bubbleproof.theory.pipelines.recompute import Recompute
from bubbleproof.theory.pipelines.sharding import Sharding
from bubbleproof.theory.pipelines.state_offload import StateOffload
from bubbleproof.theory.pipelines.transfers import Eviction

Test = Callable[[object], bool]


def settled(value: object) -> object:
    """Numpy's whole numbers as ours, and lists and arrays as tuples, at any depth."""
    if isinstance(value, np.integer | np.bool_ | np.ndarray):
        value = value.tolist()
    return tuple(map(settled, value)) if isinstance(value, list | tuple) else value


def require_types(values: Mapping[str, object], expected: Mapping[str, tuple[Test, str]]) -> None:
    """Raise ``TypeError`` naming the first field whose value is of another type."""
    for name, (is_one, what) in expected.items():
        if not is_one(values[name]):
            value = values[name]
            raise TypeError(f"{name} must be {what}, got {type(value).__name__} {value!r:.60}")


def _one_of(*kinds: type) -> Test:
    return lambda value: isinstance(value, kinds)


def _all_of(*kinds: type) -> Test:
    return lambda value: isinstance(value, tuple) and all(isinstance(v, kinds) for v in value)


def _optional(kind: type) -> Test:
    return lambda value: value is None or isinstance(value, kind)


def _is_pairs(*kinds: type) -> Test:
    def test(value: object) -> bool:
        return isinstance(value, tuple) and all(
            isinstance(pair, tuple) and len(pair) == 2 and all(isinstance(v, kinds) for v in pair)
            for pair in value
        )

    return test


_NUMBERS = (_one_of(int, tuple), "a whole number, one per stage, or rows of them")
OF_PIPELINE: dict[str, tuple[Test, str]] = {
    **dict.fromkeys(
        (
            "forward",
            "backward",
            "input_backward",
            "weight_backward",
            "activation",
            "released_at_input",
            "weight_workspace",
            "static",
            "message",
        ),
        _NUMBERS,
    ),
    "links": (_all_of(Link), "a tuple of Link"),
    "choices": (_one_of(Choices), "Choices"),
    "unit": (_one_of(str), "a name"),
    "memory_unit": (_one_of(str), "a name"),
}
OF_CHOICES: dict[str, tuple[Test, str]] = {
    "placement": (_one_of(str, tuple), "loop, wave, bidirectional or a rank per stage"),
    "split_backward": (
        lambda value: isinstance(value, bool) or _all_of(tuple)(value),
        "a flag, or rows (stages) of flags (microbatches)",
    ),
    "weight_parts": (_one_of(tuple), "a row of ticks, or a row per stage"),
    "overlaps": (_is_pairs(tuple), "a tuple of ((stage, microbatch), (stage, microbatch))"),
    "recompute": (_optional(Recompute), "a Recompute or None"),
    "evictions": (_all_of(Eviction), "a tuple of Eviction"),
    "waits": (_is_pairs(Action), "a tuple of (Action, Action)"),
    "offloads": (_all_of(ActivationOffload), "a tuple of ActivationOffload"),
    "host_capacity": (_optional(int), "a whole number or None"),
    "state_offload": (_optional(StateOffload), "a StateOffload or None"),
    "sharding": (_optional(Sharding), "a Sharding or None"),
}
