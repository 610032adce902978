"""What an answer about a plan's shapes covers, in words: what was open, and what was fixed before.

"Optimal over these choices" is a sentence about the lists of a space and about nothing else: a
value that no list has, or another cut of the layers, may be better. ``scope_of`` has a line for
each field of a space; ``with_cuts`` is the clause that names how layers were cut.

>>> from bubbleproof.theory.pipelines.shapes.layer_cuts import LayerPart
>>> rule = NamedCuts(kinds=(EVEN, BALANCED))
>>> cut_words(Layers(runs=((LayerPart(forward=1), 5),), rule=rule))
'cut even or balanced'
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

from bubbleproof.theory.pipelines.allowed import AllowedChoices
from bubbleproof.theory.pipelines.shapes.cut_lists import BALANCED, EVEN, NamedCuts, even_cut
from bubbleproof.theory.pipelines.shapes.layer_cuts import Cut, Layers
from bubbleproof.theory.pipelines.shapes.plan_space import PlanSpace, cut_text

NO_LAYERS = "stages as the problem has them"


def scope_of(space: PlanSpace) -> Mapping[str, str]:
    """What each field of the space leaves open, or fixes."""
    lists = {
        name: ", ".join(_text(value) for value in getattr(space, name))
        for name in ("chunks", "placements", "backward", "slices")
    }
    return {
        "pipeline": f"{space.pipeline.num_ranks} ranks, {space.pipeline.num_microbatches} "
        "microbatches and their costs as given",
        "allowed": _allowed(space.allowed),
        **lists,
        "layers": _layers(space),
        "others": ", ".join(name for name, _ in space.others) or "none",
    }


def scope_text(space: PlanSpace) -> str:
    """The same in a line, without what is given."""
    found = scope_of(space)
    words = [f"chunks {found['chunks']}", f"placement {found['placements']}"]
    words += [f"backward {found['backward']}", f"slices {found['slices']}"]
    words += [f"layers {found['layers']}"] if space.layers is not None else []
    words += [found["allowed"]] if space.allowed is not None else []
    words += [f"beside them {found['others']}"] if space.others else []
    return "; ".join(words)


def with_cuts(space: PlanSpace) -> str:
    """The clause after a claim: how layers were cut before the search; empty without layers."""
    if space.layers is None or space.pipeline.num_ranks * max(space.chunks) == 1:
        return ""
    return f", with layers {_layers(space)}"


def cut_words(layers: Layers) -> str:
    """Which cuts there are, of any number of stages."""
    rule = layers.rule
    if isinstance(rule, NamedCuts) and rule.spread is not None:
        return f"cut in every way within {rule.spread} of the even share"
    return "cut in any way" if rule.is_any else f"cut {' or '.join(rule.kinds)}"


def _layers(space: PlanSpace) -> str:
    """The one cut by its numbers; of several, how they are made."""
    layers = space.layers
    if layers is None:
        return NO_LAYERS
    if not (isinstance(layers.rule, NamedCuts) and layers.rule.spread is not None):
        shapes = ((chunks, place) for chunks in space.chunks for place in space.placements)
        cuts = dict.fromkeys(cut for shape in shapes for cut in space.cuts_of(*shape) if cut)
        if len(cuts) == 1:
            return _one_cut(layers, *cuts)
    return cut_words(layers)


def _one_cut(layers: Layers, cut: Cut) -> str:
    even = even_cut(layers=layers.number, stages=len(cut))
    return f"cut {cut_text(cut)} ({EVEN if cut == even else BALANCED})"


def _allowed(allowed: AllowedChoices | None) -> str:
    """Which choices a schedule may make."""
    if allowed is None:
        return "nothing else to choose"
    names = [field.name for field in fields(allowed) if getattr(allowed, field.name)]
    return f"{' and '.join(names) or 'nothing else'} to choose"


def _text(value: object) -> str:
    return "+".join(map(str, value)) if isinstance(value, tuple) else str(value)
