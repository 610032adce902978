"""The tables ``[plan]`` and ``[layers]`` as values: the space of a plan, and a model's layers."""

from __future__ import annotations

import re
from itertools import groupby

from bubbleproof.formats.errors import UnusableInput, quoted, values_at
from bubbleproof.formats.layouts.plan_layout import MOST_LAYERS, LayersLayout, PartLayout
from bubbleproof.formats.layouts.problem_file_layout import ProblemFileLayout
from bubbleproof.formats.plans.listed_shapes import listed, listed_space
from bubbleproof.formats.validation import described
from bubbleproof.theory.pipelines.allowed import AllowedChoices
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.shapes.cut_lists import EVEN, NamedCuts
from bubbleproof.theory.pipelines.shapes.layer_cuts import LayerPart, Layers, Runs
from bubbleproof.theory.pipelines.shapes.plan_space import (
    SPLIT,
    WHOLE,
    Backward,
    PlanSpace,
    require_listed,
)


def layers_of(layout: ProblemFileLayout) -> Layers | None:
    """The layers of the model, None where the file tells of stages.

    Raises ``UnusableInput`` where it tells of both, or of less layers than stages.
    """
    given = layout.layers
    if given is None:
        return None
    if layout.durations is not None:
        raise UnusableInput("durations", "nothing beside [layers]", "a table")
    for name in ("activation", "released_at_input", "static"):
        if name in layout.memory.model_fields_set:
            raise UnusableInput(f"memory.{name}", "nothing beside [layers]", "a value")
    found = Layers(
        runs=_runs(given),
        embedding=_part("layers.embedding", given.embedding, has_ticks=False),
        head=_part("layers.head", given.head, has_ticks=False),
        rule=NamedCuts(kinds=_kinds(given), spread=given.spread),
    )
    stages, key = layout.ranks * layout.chunks, "number" if given.pattern is None else "pattern"
    if found.number < (few := sum(found.least(stages))):
        expected = f"one per stage ({few}) or more"
        raise UnusableInput(f"layers.{key}", expected, str(found.number))
    return found


def _runs(given: LayersLayout) -> Runs:
    """Layers alike, or those of a pattern. Raises ``UnusableInput`` where it tells of both."""
    if given.pattern is None:
        if given.number is None:
            raise UnusableInput("layers.number", "this key, or pattern", "nothing")
        return ((_part("layers", given, has_ticks=True), given.number),)
    for key in (*PartLayout.model_fields, "number"):
        if key in given.model_fields_set:
            raise UnusableInput(f"layers.{key}", "nothing beside layers.pattern", "a value")
    kinds = {
        name: _part(f"layers.kinds.{name}", part, has_ticks=True)
        for name, part in given.kinds.items()
    }
    found: list[tuple[LayerPart, int]] = []
    for index, text in enumerate(given.pattern):
        where = f"layers.pattern[{index}]"
        for name, number in _repeated(text, where):
            if name not in kinds:
                raise UnusableInput(where, f"kinds of {', '.join(kinds) or 'none'}", quoted(name))
            found.append((kinds[name], number))
    total = sum(number for _, number in found)
    if not 0 < total <= MOST_LAYERS:
        raise UnusableInput("layers.pattern", f"1 to {MOST_LAYERS} layers", str(total))
    return tuple((part, sum(n for _, n in run)) for part, run in groupby(found, lambda one: one[0]))


_ITEM = re.compile(r"(?:\(([^()]*)\)|([\w.-]+))(?:\*(\d{1,4}))?(?:\s+|$)")


def _repeated(text: str, where: str) -> list[tuple[str, int]]:
    """The kinds of "dense*3 (window*5 full)*8", each with how many; no group is in a group."""
    found, rest = list[tuple[str, int]](), text.strip()
    while rest:
        item = _ITEM.match(rest)
        if item is None:
            expected = 'kinds with how many, such as "dense*3" or "(window*5 full)*8"'
            raise UnusableInput(where, expected, quoted(text))
        group, name, number = item[1], item[2], int(item[3] or 1)
        inner = [(name, number)] if group is None else _repeated(group, where)
        times = 1 if group is None else number
        if len(found) + len(inner) * times > MOST_LAYERS:
            raise UnusableInput(where, f"at most {MOST_LAYERS} layers", quoted(text))
        found += inner * times
        rest = rest[item.end() :]
    return found


def _kinds(given: LayersLayout) -> tuple[str, ...]:
    """The cuts to try. Raises ``UnusableInput`` for a list beside ``spread``."""
    if given.cuts is None:
        return (EVEN,)
    if given.spread is not None:
        raise UnusableInput("layers.cuts", "nothing beside layers.spread", quoted(given.cuts))
    with values_at("layers"):
        require_listed("cuts", given.cuts)
    return tuple(given.cuts)


def _part(where: str, given: PartLayout, *, has_ticks: bool) -> LayerPart:
    halves = given.input, given.weight
    if (given.input is None) != (given.weight is None):
        missing = "weight" if given.weight is None else "input"
        raise UnusableInput(f"{where}.{missing}", "both input and weight", "nothing")
    whole = None if given.input is None else sum(ticks or 0 for ticks in halves)
    if whole is not None and given.backward not in (None, whole):
        expected = f"input + weight = {whole}"
        raise UnusableInput(f"{where}.backward", expected, str(given.backward))
    if has_ticks and given.backward is None and whole is None:
        raise UnusableInput(f"{where}.backward", "this key", "nothing")
    return LayerPart(
        forward=given.forward,
        backward=(given.backward or 0) if whole is None else whole,
        input_backward=given.input or 0,
        weight_backward=given.weight or 0,
        activation=described(given.activation, where),
        released=described(given.released_at_input, where),
        static=described(given.static, where),
    )


def has_split_ticks(layout: ProblemFileLayout) -> bool:
    """Whether the file tells the ticks of I and W."""
    given: LayersLayout | object = layout.layers or layout.durations
    if layout.layers is not None and layout.layers.kinds:
        return all(kind.input is not None for kind in layout.layers.kinds.values())
    return getattr(given, "input", None) is not None


def plan_space(
    layout: ProblemFileLayout,
    pipeline: Pipeline,
    allowed: AllowedChoices | None,
    layers: Layers | None,
) -> PlanSpace | None:
    """The space of the plan; None where the file has no such table.

    Raises ``UnusableInput`` for lists that are empty or too long, and for a shape of the file's own
    that has more than one chunk or slice.
    """
    given = layout.plan
    if given is None:
        return None
    own: list[Backward] = [SPLIT if layout.split_backward else WHOLE]
    backward = own if given.backward is None else [listed(value) for value in given.backward]
    if any(flags != WHOLE for flags in backward) and not has_split_ticks(layout):
        table = "durations" if layout.layers is None else "layers"
        expected = f"{table}.input and {table}.weight, which a split backward needs"
        raise UnusableInput("plan.backward", expected, "neither")
    if (given.chunks, given.slices) != ([1], [1]):
        for name in sorted(pipeline.choices.added):
            expected = "nothing beside [plan] with other chunks or slices, whose stages differ"
            raise UnusableInput(f"choices.{name}", expected, "a choice that is fixed")
    plain = pipeline.with_changes(split_backward=False)
    return listed_space(given, plain, own, allowed, layers)
