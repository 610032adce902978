"""Which tasks may be put in index order without losing a schedule of any variant.

Lemma 1. If the microbatches of the whole problem are identical and every option is for all of them,
each concrete problem has identical microbatches, so ``verify.certificates.index_order`` holds for
each: every class may be in index order, tasks of options included (``ALL``).

Lemma 2. If microbatches are identical and options come in families of one option per microbatch,
alike in all they add, then renaming microbatches, in every class and every choice at once, makes
schedules of the variants from schedules of the variants. So one class may be in index order, the
one that is sorted; more than one may not, since options of different microbatches cannot be swapped
one by one (``ONE``). Example with two microbatches: only microbatch 0 is evicted, and its backward
runs last; with backwards in index order too, the eviction would span another forward.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from enum import Enum

import numpy as np

from bubbleproof.solvers.choices.variants import Variants
from bubbleproof.solvers.identical import IdenticalClasses, identical
from bubbleproof.theory.model.actions import NONE, Ints, Kind
from bubbleproof.theory.model.problem import Edges
from bubbleproof.verify.certificates.index_order import index_order


class Symmetry(Enum):
    """How much may be put in index order."""

    ALL = "every class"
    ONE = "one class"
    NONE = "nothing"


def symmetry(variants: Variants) -> Symmetry:
    """What the lemmas allow."""
    alike = identical(index_order(variants.whole))
    if alike is None or not _is_alike(variants, alike):
        return Symmetry.NONE
    per_stage = all(option.microbatch == NONE for option in variants.options)
    return Symmetry.ALL if per_stage else Symmetry.ONE


def can_be_anonymous(variants: Variants) -> bool:
    """Whether options are per microbatch, all alike, and add events to their own tasks only."""
    if symmetry(variants) is not Symmetry.ONE:
        return False
    if any(option.microbatch == NONE for option in variants.options):
        return False
    whole = variants.whole
    owner_of_event = variants.task_option[whole.events.task]
    edges = whole.edges
    owners = np.maximum(variants.task_option[edges.before], variants.task_option[edges.after])
    return bool(
        (owner_of_event == variants.event_option).all() and (owners == variants.edge_option).all()
    )


def class_of_task(alike: IdenticalClasses) -> Ints:
    """The class of each task."""
    found = np.empty(alike.members.size, dtype=np.int64)
    found[alike.members] = np.arange(len(alike.members))[:, None]
    return found


def _is_alike(variants: Variants, alike: IdenticalClasses) -> bool:
    """Whether each row that belongs to an option has its like in every other microbatch."""
    whole, classes = variants.whole, class_of_task(alike)
    microbatch, edges, events = whole.actions.microbatch, whole.edges, whole.events
    tables = (
        (variants.task_option, microbatch, (classes,)),
        (
            variants.edge_option,
            microbatch[edges.before],
            (classes[edges.before], classes[edges.after], edges.lag),
        ),
        (
            variants.event_option,
            microbatch[events.task],
            (classes[events.task], events.at_end, events.store, events.delta),
        ),
    )
    rows = []
    for number, (option, sample, columns) in enumerate(tables):
        if any(
            variants.options[o].microbatch not in (NONE, j)
            for o, j in zip(option.tolist(), sample.tolist(), strict=True)
            if o != NONE
        ):
            return False
        names = zip(
            map(variants.family_of, option.tolist()),
            *(column.tolist() for column in columns),
            strict=True,
        )
        rows += [(j, (number, *name)) for j, name in zip(sample.tolist(), names, strict=True)]
    for clash in variants.clashes:
        samples = {variants.options[option].microbatch for option in clash} - {NONE}
        if len(samples) > 1:
            return False
        kinds = tuple(sorted(map(str, map(variants.family_of, clash))))
        if samples:
            rows.append((samples.pop(), ("clash", *kinds)))
    return _m_of_each(rows, alike.num_microbatches)


def _m_of_each(rows: Iterable[tuple[int, Hashable]], m: int) -> bool:
    counts = Counter(rows)
    return all(counts[j, name] == count for (_, name), count in counts.items() for j in range(m))


def order_edges(variants: Variants, what: Symmetry) -> Edges:
    """The order edges, between tasks of the whole problem, that ``what`` stands for."""
    order = index_order(variants.whole)
    if what is Symmetry.NONE:
        return Edges()
    if what is Symmetry.ALL:
        return order.order_edges
    actions, first = variants.whole.actions, order.groups[0][:, 0]
    forwards = [row for row, task in enumerate(first.tolist()) if actions.kind[task] == Kind.F]
    rows = forwards or np.flatnonzero(variants.task_option[first] == NONE).tolist()
    if not rows:
        return Edges()
    chosen = order.groups[0][min(rows, key=lambda row: int(actions.stage[first[row]]))]
    return Edges(before=chosen[:-1], after=chosen[1:], lag=np.zeros_like(chosen[1:]))
