"""Configurations and amounts as engineers write them, for what a plan prints.

>>> from bubbleproof.costs.combinations import Combination
>>> at = Combination(tensor=4, data=2, pipeline=8, micro_batch=1, zero=1, scope="none")
>>> shape = Candidate(chunks=4, placement="loop", backward="whole", slices=1)
>>> in_words(deployment_parts(at, shape))
'TP4 PP8 DP2 · micro-batch 1 · ZeRO-1 · no recompute · VPP 4'
>>> shape_text(shape)
'VPP 4, full backward'
>>> shape_text(Candidate(chunks=2, placement=(0, 1, 1, 0), backward="whole", slices=1))
'VPP 2, full backward, V-shaped placement'
>>> more(103, 100), more(100, 100), more(250, 100)
('+3.0 %', 'as long', '+150 %')
>>> amount_of(79, 80, "activation"), amount_of(85 << 30, 85899345920, "bytes")
('79 of 80 activations', '85 of 80 GiB')
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bubbleproof.costs.combinations import Combination
from bubbleproof.planners.outcome import Outcome
from bubbleproof.report.amounts import Scale
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.pipelines.placement import stage_ranks
from bubbleproof.theory.pipelines.shapes.plan_space import SPLIT, WHOLE, Candidate, cut_text

SIZES = {"tensor": "TP", "pipeline": "PP", "data": "DP", "context": "CP", "expert": "EP"}
SCOPES = {"none": "no recompute", "attention": "attention recompute", "full": "full recompute"}
GRADIENTS = {"bf16": "32-bit gradients", "bf16-gradients": "16-bit gradients"}
OUTCOMES = {
    Outcome.OPTIMAL: "optimal",
    Outcome.FEASIBLE: "feasible",
    Outcome.INFEASIBLE: "does not fit",
    Outcome.UNKNOWN: "no solution in the time",
    Outcome.BOUNDED: "pruned by its bound",
    Outcome.NOT_LEGAL: "invalid",
    Outcome.TOO_LARGE: "too large to plan",
}
Parts = Mapping[str, str]


def deployment_parts(at: Combination, shape: Candidate | None = None) -> Parts:
    """Its sizes and choices, each in a word; of one replica group none. And those of its shape."""
    sizes = {name: f"{letters}{getattr(at, name)}" for name, letters in SIZES.items()}
    for name in ("context", "expert"):
        if getattr(at, name) == 1:
            del sizes[name]
    others = {"micro_batch": f"micro-batch {at.micro_batch}", "zero": f"ZeRO-{at.zero}"}
    others["scope"] = SCOPES.get(at.scope, f"{at.scope} recompute")
    precision = GRADIENTS.get(at.precision, at.precision)
    others |= {"precision": precision} if precision else {}
    return {**sizes, **others, **({} if shape is None else shape_parts(shape))}


def shape_parts(shape: Candidate) -> Parts:
    """What of it is not as in 1F1B of even stages."""
    found = {"beside": f"pipeline of {shape.beside}"} if shape.beside else {}
    found |= {"chunks": f"VPP {shape.chunks}"} if shape.chunks > 1 else {}
    found |= {"backward": _backward(shape)} if shape.backward != WHOLE else {}
    if shape.placement != "loop":
        name = "V-shaped" if _is_wave(shape) else shape.placement
        found["placement"] = f"{name} placement"
    found |= {"slices": f"{shape.slices} slices"} if shape.slices > 1 else {}
    cut = shape.layers or ()
    return found | ({"layers": f"layers {cut_text(cut)}"} if len(set(cut)) > 1 else {})


def _is_wave(shape: Candidate) -> bool:
    """Whether chunks go down the ranks and up again, be it by that name or rank by rank."""
    if isinstance(shape.placement, str):
        return shape.placement == "wave"
    ranks = len(shape.placement) // shape.chunks
    return shape.placement == stage_ranks("wave", num_ranks=ranks, num_chunks=shape.chunks)


def _backward(shape: Candidate) -> str:
    if isinstance(shape.backward, str):
        return f"{shape.backward.replace(WHOLE, 'full')} backward"
    ranks = [str(rank) for rank, is_split in enumerate(shape.backward) if is_split]
    return f"backward {SPLIT} on ranks {','.join(ranks)}"


def in_words(parts: Parts) -> str:
    """Sizes side by side, then each choice."""
    sizes = " ".join(text for name, text in parts.items() if name in SIZES)
    others = [text for name, text in parts.items() if name not in SIZES]
    return " · ".join([sizes, *others] if sizes else others)


def shape_text(shape: Candidate) -> str:
    """A configuration of a pipeline in full."""
    always = {"chunks": f"VPP {shape.chunks}", "backward": _backward(shape)}
    return ", ".join((always | {**shape_parts(shape)}).values())


def difference(one: Parts, best: Parts) -> str:
    """What it has otherwise than the best; the cut of the layers where that is all."""
    usual = {"chunks": "VPP 1", "backward": "full backward", "placement": "looped placement"}
    found = {name: text for name, text in one.items() if best.get(name) != text}
    found |= {name: text for name, text in usual.items() if name in best and name not in one}
    if len(found) > 1:
        found.pop("layers", None)
    return in_words(found).replace(" · ", ", ") or in_words(one)


def more(value: int, best: int) -> str:
    """How much longer than the best, in per cent.

    Parameters
    ----------
    value, best
        Durations in one unit, above 0.
    """
    if value == best:
        return "as long"
    percent = 100 * (value - best) / best
    return f"{percent:+.0f} %" if abs(percent) >= 100 else f"{percent:+.1f} %"


def digits(number: float) -> str:
    """Three digits, or a whole number.

    Parameters
    ----------
    number
        0 or more.
    """
    return f"{number:,.0f}" if number >= 1000 else f"{number:.3g}"


def amount_of(load: int, capacity: int | None, unit: str) -> str:
    """A load, and of what, in one unit.

    Parameters
    ----------
    load, capacity
        In ``unit``; None: without limit.
    unit
        The problem's memory unit.
    """
    scale = Scale.of(unit, load if capacity is None else capacity)
    numbers = [digits(each / scale.divisor) for each in (load, capacity) if each is not None]
    return f"{' of '.join(numbers)} {scale.name}"


def fullest(peaks: Sequence[int], problem: Problem) -> str:
    """The load of the rank that comes nearest to its capacity, or holds the most.

    Parameters
    ----------
    peaks
        The greatest load of each rank, in the problem's memory unit.
    """
    stores = problem.stores[: len(peaks)]

    def share(rank: int) -> float:
        return peaks[rank] / (stores[rank].capacity or 1)

    rank = max(range(len(peaks)), key=share)
    return f"{amount_of(peaks[rank], stores[rank].capacity, problem.memory_unit)} on rank {rank}"
