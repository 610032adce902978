"""Which changes of what one runs save most: one thing at a time, towards the plan.

Each change is estimated alone, all else as it runs. Of a parallel size the replicas are what the
cards leave; a change that a number forbids is none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from math import inf

from bubbleproof.costs.combinations import Combination
from bubbleproof.formats.clusters.cluster_toml import ClusterFile
from bubbleproof.formats.clusters.own_configuration import OwnConfiguration
from bubbleproof.planners.own_run import NotLegalRun, OwnRun, Saving, own_run
from bubbleproof.planners.search_budget import timely
from bubbleproof.theory.pipelines.shapes.plan_space import Candidate

MOST = 3  # changes that are told
SIZES = ("tensor", "pipeline", "context", "expert", "micro_batch", "zero", "scope")
SWITCHES = {
    "exposed_tensor": "--tp-comm-overlap",
    "exposed_gradient": "--overlap-grad-reduce --overlap-param-gather",
}
Change = tuple[str, OwnConfiguration]


def savings(
    file: ClusterFile,
    own: OwnRun,
    combination: Combination,
    candidate: Candidate,
    seconds: float = inf,
) -> tuple[Saving, ...]:
    """The changes that save most.

    Parameters
    ----------
    combination, candidate
        The plan's.
    seconds
        For which is looked at most.
    """
    found = []
    changes = (_sizes(own, combination), _shapes(own.own, candidate), _switches(own.own))
    for change, other in timely(chain.from_iterable(changes), seconds):
        try:
            run = own_run(file, other)
        except NotLegalRun:
            continue
        fits = run.fits or not own.fits
        found.append(Saving(change=change, saves=own.iteration - run.iteration, fits=fits))
    found = [each for each in found if each.saves > 0]
    return tuple(sorted(found, key=lambda each: -each.saves)[:MOST])


def _sizes(run: OwnRun, plan: Combination) -> Iterator[Change]:
    """A size, level or scope of the plan's."""
    here = run.combination
    cards = here.tensor * here.pipeline * here.context * here.data
    for name in SIZES:
        old, new = getattr(here, name), getattr(plan, name)
        at = replace(here, **{name: new})
        each = at.tensor * at.pipeline * at.context
        if old == new or cards % each:
            continue
        other = replace(run.own, combination=replace(at, data=cards // each))
        if name == "pipeline":  # as many stages have no such cut
            other = replace(other, layers=None, group=0)
        yield f"{name} {old} -> {new}", other


def _shapes(own: OwnConfiguration, plan: Candidate) -> Iterator[Change]:
    """Chunks, cut and order."""
    if own.chunks != plan.chunks:
        other = replace(own, chunks=plan.chunks, layers=None, group=0, order="")
        yield f"chunks {own.chunks} -> {plan.chunks}", other
    if own.layers is not None and own.layers != plan.layers:
        is_alike = len(own.layers) == len(plan.layers or ())
        cut = plan.layers if is_alike else None
        yield (
            "the layers cut as in the plan" if cut else "the layers cut to balance",
            replace(own, layers=cut),
        )
    if own.order or own.group:
        name = "the best groups of microbatches" if own.group else "the plan's order"
        yield name, replace(own, order="", group=0)


def _switches(own: OwnConfiguration) -> Iterator[Change]:
    """Overlaps that are off, and other numbers than the file's."""
    for name in own.waits:
        left = tuple(each for each in own.waits if each != name)
        yield SWITCHES[name], replace(own, waits=left)
    if own.products:
        yield "the file's products", replace(own, products="")
