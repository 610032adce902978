"""What is chosen of a pipeline, in sentences and as values, by the words of each kind's module."""

from __future__ import annotations

from bubbleproof.theory.pipelines.choice_kind import ChoiceSetting
from bubbleproof.theory.pipelines.choices import KINDS, Choices


def read_aloud(choices: Choices, setting: ChoiceSetting) -> tuple[str, ...]:
    """What is chosen in sentences, one per stage and kind."""
    return tuple(
        line
        for name, kind in KINDS.items()
        if kind.lines is not None and (value := getattr(choices, name))
        for line in kind.lines(value, setting)
    )


def listed_choices(choices: Choices) -> dict[str, object]:
    """What is chosen, as values under the names that its kinds give them."""
    found: dict[str, object] = {}
    for name, kind in KINDS.items():
        value = getattr(choices, name)
        if kind.listed is not None and (value or kind.is_always_listed):
            found |= kind.listed(value)
    return found
