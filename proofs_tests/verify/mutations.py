"""Mutation operators on (problem, schedule): each makes one named mistake, or a harmless change.

An ``Operator`` states the rules that may name its mistake (``rules``; a mistake breaks at least one
of them, whatever else it drags along) and its ``nature``: ``wrong`` mutants always break a rule,
``harmless`` ones never, and ``either`` leaves it to the plain checker. An operator returns None
where it does not apply (no split backward, no lag, one resource).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from random import Random
from typing import Literal

import numpy as np

from bubbleproof.theory.actions import NONE, Action, Kind
from bubbleproof.theory.problem import Edges
from proofs_tests.verify.plain_checker import plain_measures
from proofs_tests.verify.tables import Specimen

Nature = Literal["wrong", "either", "harmless"]
Mutation = Callable[[Random, Specimen], Specimen | None]
Need = Callable[[Specimen], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """A named mutation, the rules that may name its mistake, and whether it must be one."""

    name: str
    rules: frozenset[str]
    nature: Nature
    apply: Mutation
    needs: Need


def anything(specimen: Specimen) -> bool:
    return len(specimen.problem.resources) > 1


def has_lags(specimen: Specimen) -> bool:
    return bool((specimen.problem.edges.lag > 0).any())


def has_splits(specimen: Specimen) -> bool:
    return bool(specimen.problem.actions.is_kind(Kind.W).any())


def has_full_backwards(specimen: Specimen) -> bool:
    return bool(specimen.problem.actions.is_kind(Kind.B).any())


def has_overlaps(specimen: Specimen) -> bool:
    return bool((specimen.problem.actions.partner_stage != NONE).any())


def has_shared_tasks(specimen: Specimen) -> bool:
    return len(specimen.problem.occupancy.task) > specimen.problem.num_tasks


def has_forwards_after_backwards(specimen: Specimen) -> bool:
    return bool(_backward_forward_places(specimen))


def only_compute(specimen: Specimen) -> bool:
    return len(specimen.problem.resources) == specimen.problem.num_ranks > 1


OPERATORS: list[Operator] = []


def operator(
    *rules: str, nature: Nature = "wrong", needs: Need = anything
) -> Callable[[Mutation], Mutation]:
    """Register a mutation under the name of its function."""

    def register(apply: Mutation) -> Mutation:
        OPERATORS.append(
            Operator(
                name=apply.__name__,
                rules=frozenset(rules),
                nature=nature,
                apply=apply,
                needs=needs,
            )
        )
        return apply

    return register


@operator("COMPLETE")
def duplicate_later(random: Random, specimen: Specimen) -> Specimen | None:
    rows = specimen.copied()
    r, i = random.choice(specimen.places())
    action = rows[r][i][0]
    last, start = rows[r][-1]
    rows[r].append((action, start + specimen.ticks(last)))
    return specimen.with_rows(rows)


@operator("COMPLETE")
def duplicate_in_place(random: Random, specimen: Specimen) -> Specimen | None:
    rows = specimen.copied()
    r, i = random.choice(specimen.places())
    rows[r].insert(i, rows[r][i])
    return specimen.with_rows(rows)


@operator("COMPLETE", needs=has_splits)
def double_weight_gradient(random: Random, specimen: Specimen) -> Specimen | None:
    rows = specimen.copied()
    places = [(r, i) for r, i in specimen.places() if rows[r][i][0].kind is Kind.W]
    if not places:
        return None
    r, i = random.choice(places)
    last, start = rows[r][-1]
    rows[r].append((rows[r][i][0], start + specimen.ticks(last) + 1))
    return specimen.with_rows(rows)


@operator("COMPLETE")
def drop(random: Random, specimen: Specimen) -> Specimen | None:
    rows = specimen.copied()
    r, i = random.choice(specimen.places())
    del rows[r][i]
    return specimen.with_rows(rows)


@operator("COMPLETE")
def drop_a_microbatch(random: Random, specimen: Specimen) -> Specimen | None:
    microbatch = random.choice(list(specimen.starts())).microbatch
    kept = [[(a, s) for a, s in row if a.microbatch != microbatch] for row in specimen.rows]
    return specimen.with_rows(kept)


@operator("COMPLETE")
def drop_a_resource(random: Random, specimen: Specimen) -> Specimen | None:
    rows = specimen.copied()
    rows[random.choice([r for r, row in enumerate(rows) if row])] = []
    return specimen.with_rows(rows)


def _renamed(random: Random, specimen: Specimen, **changes: int) -> Specimen:
    rows = specimen.copied()
    r, i = random.choice(specimen.places())
    action, start = rows[r][i]
    rows[r][i] = (replace(action, **changes), start)  # type: ignore[arg-type]  # ints by name
    return specimen.with_rows(rows)


@operator("COMPLETE")
def foreign_microbatch(random: Random, specimen: Specimen) -> Specimen | None:
    above = int(specimen.problem.actions.microbatch.max()) + 1
    return _renamed(random, specimen, microbatch=above + random.randrange(3))


@operator("COMPLETE")
def foreign_stage(random: Random, specimen: Specimen) -> Specimen | None:
    above = int(specimen.problem.actions.stage.max()) + 1
    return _renamed(random, specimen, stage=above + random.randrange(3))


@operator("COMPLETE")
def foreign_slice(random: Random, specimen: Specimen) -> Specimen | None:
    above = int(specimen.problem.actions.slice.max()) + 1
    return _renamed(random, specimen, slice=above + random.randrange(3))


@operator("COMPLETE")
def extra_foreign_row(random: Random, specimen: Specimen) -> Specimen | None:
    rows = specimen.copied()
    r, i = random.choice(specimen.places())
    stage = int(specimen.problem.actions.stage.max()) + 1
    rows[r].insert(i, (Action(stage=stage, kind=Kind.STEP), rows[r][i][1]))
    return specimen.with_rows(rows)


@operator("PLACED")
def wrong_resource(random: Random, specimen: Specimen) -> Specimen | None:
    rows = specimen.copied()
    r, i = random.choice(specimen.places())
    action, _ = rows[r].pop(i)
    homes = [k for k, row in enumerate(specimen.rows) if any(a == action for a, _ in row)]
    others = [k for k in range(len(rows)) if k not in homes]
    if not others:
        return None
    target = random.choice(others)
    end = max((s + specimen.ticks(a) for a, s in rows[target]), default=0)
    rows[target].append((action, end))
    return specimen.with_rows(rows)


@operator("PLACED")
def no_such_resource(random: Random, specimen: Specimen) -> Specimen | None:
    """A row stands on a resource that the problem does not have."""
    rows = specimen.copied()
    r, i = random.choice(specimen.places())
    row = rows[r].pop(i)
    rows += [[] for _ in range(random.randint(0, 2))]
    return specimen.with_rows([*rows, [row]])


@operator("PLACED", needs=only_compute)
def exchanged_ranks(random: Random, specimen: Specimen) -> Specimen | None:
    rows = specimen.copied()
    if not only_compute(specimen):
        return None
    r, q = random.sample(range(specimen.problem.num_ranks), 2)
    rows[r], rows[q] = rows[q], rows[r]
    return specimen.with_rows(rows)


@operator("PLACED", needs=has_shared_tasks)
def two_starts(random: Random, specimen: Specimen) -> Specimen | None:
    """A task of two resources starts later on one of them."""
    rows = specimen.copied()
    counts = [a for row in rows for a, _ in row]
    places = [(r, i) for r, i in specimen.places() if counts.count(rows[r][i][0]) > 1]
    if not places:
        return None
    r, i = random.choice(places)
    rows[r][i] = (rows[r][i][0], rows[r][i][1] + random.randint(1, 3))
    return specimen.with_rows(rows)


@operator("EXCLUSIVE")
def swap_neighbours(random: Random, specimen: Specimen) -> Specimen | None:
    """Two neighbours change places in the order and keep their starts."""
    rows = specimen.copied()
    r, i = random.choice(_neighbours_in_time(specimen))
    rows[r][i], rows[r][i + 1] = rows[r][i + 1], rows[r][i]
    return specimen.with_rows(rows)


@operator("EXCLUSIVE")
def swap_starts(random: Random, specimen: Specimen) -> Specimen | None:
    """Two neighbours keep their places in the order and exchange their starts."""
    rows = specimen.copied()
    r, i = random.choice(_neighbours_in_time(specimen))
    (first, early), (second, late) = rows[r][i : i + 2]
    rows[r][i : i + 2] = [(first, late), (second, early)]
    return specimen.with_rows(rows)


@operator("EXCLUSIVE")
def rotate_order(random: Random, specimen: Specimen) -> Specimen | None:
    rows = specimen.copied()
    r, i = random.choice(_neighbours_in_time(specimen))
    rows[r] = rows[r][i + 1 :] + rows[r][: i + 1]
    return specimen.with_rows(rows)


def _neighbours_in_time(specimen: Specimen) -> list[tuple[int, int]]:
    """Neighbours of which the second starts later and takes time."""
    return [
        (r, i)
        for r, i in specimen.neighbours()
        if specimen.rows[r][i][1] < specimen.rows[r][i + 1][1]
        and specimen.ticks(specimen.rows[r][i + 1][0]) > 0
    ]


@operator("EXCLUSIVE")
def overlap_by_one(random: Random, specimen: Specimen) -> Specimen | None:
    """A row starts one tick before the one ahead of it ends."""
    places = [(r, i) for r, i in specimen.neighbours() if specimen.ticks(specimen.rows[r][i][0])]
    r, i = random.choice(places)
    ahead, start = specimen.rows[r][i]
    moved = {specimen.rows[r][i + 1][0]: start + specimen.ticks(ahead) - 1}
    return specimen.with_rows(specimen.retimed(moved))


@operator("DEPENDENCIES", "MEMORY", nature="either")
def exchange_turns(random: Random, specimen: Specimen) -> Specimen | None:
    """Two neighbours of a rank run in the other order, within the same span of time."""
    rows = specimen.copied()
    places = [(r, i) for r, i in specimen.neighbours() if r < specimen.problem.num_ranks]
    r, i = random.choice(places)
    (first, early), (second, late) = rows[r][i : i + 2]
    end = late + specimen.ticks(second)
    moved = {second: early, first: end - specimen.ticks(first)}
    if _is_shared(specimen, first) or _is_shared(specimen, second):
        return None
    rows[r][i : i + 2] = [(second, moved[second]), (first, moved[first])]
    return specimen.with_rows(rows)


def _is_shared(specimen: Specimen, action: Action) -> bool:
    return sum(a == action for row in specimen.rows for a, _ in row) > 1


@operator("DEPENDENCIES", "MEMORY", nature="either", needs=has_forwards_after_backwards)
def forward_ahead_of_backward(random: Random, specimen: Specimen) -> Specimen | None:
    """A rank takes its next forward before the backward ahead of it: one more activation."""
    places = _backward_forward_places(specimen)
    if not places:
        return None
    rows = specimen.copied()
    r, i = random.choice(places)
    (backward, _), (forward, late) = rows[r][i : i + 2]
    start = late + specimen.ticks(forward) - specimen.ticks(backward)
    early = start - specimen.ticks(forward)
    rows[r][i : i + 2] = [(forward, early), (backward, start)]
    return specimen.with_rows(rows)


def _backward_forward_places(specimen: Specimen) -> list[tuple[int, int]]:
    return [
        (r, i)
        for r, i in specimen.neighbours()
        if specimen.rows[r][i][0].kind in (Kind.B, Kind.I, Kind.W)
        and specimen.rows[r][i + 1][0].kind is Kind.F
        and r < specimen.problem.num_ranks
    ]


@operator("DEPENDENCIES", "EXCLUSIVE")
def start_one_earlier(random: Random, specimen: Specimen) -> Specimen | None:
    """Always wrong, because every case is left-shifted."""
    action, start = random.choice(list(specimen.starts().items()))
    return specimen.with_rows(specimen.retimed({action: start - 1}))


@operator("DEPENDENCIES", "EXCLUSIVE", "MEMORY", nature="either")
def start_one_later(random: Random, specimen: Specimen) -> Specimen | None:
    action, start = random.choice(list(specimen.starts().items()))
    return specimen.with_rows(specimen.retimed({action: start + 1}))


@operator("DEPENDENCIES", "EXCLUSIVE")
def start_at_zero(random: Random, specimen: Specimen) -> Specimen | None:
    late = [a for a, start in specimen.starts().items() if start > 0]
    return specimen.with_rows(specimen.retimed({random.choice(late): 0}))


@operator("DEPENDENCIES")
def start_before_zero(random: Random, specimen: Specimen) -> Specimen | None:
    action = random.choice(list(specimen.starts()))
    return specimen.with_rows(specimen.retimed({action: -random.randint(1, 5)}))


@operator("DEPENDENCIES")
def all_before_zero(random: Random, specimen: Specimen) -> Specimen | None:
    shift = min(specimen.starts().values()) + random.randint(1, 4)
    earlier = {action: start - shift for action, start in specimen.starts().items()}
    return specimen.with_rows(specimen.retimed(earlier))


@operator("DEPENDENCIES", needs=has_lags)
def lag_ignored(random: Random, specimen: Specimen) -> Specimen | None:
    """A consumer starts when its input is made, and not when it has arrived."""
    edges = specimen.problem.edges
    lagging = [i for i in range(len(edges)) if edges.lag[i] > 0]
    if not lagging:
        return None
    i = random.choice(lagging)
    before, after = (
        specimen.problem.actions[int(column[i])] for column in (edges.before, edges.after)
    )
    arrived = specimen.starts()[before] + specimen.ticks(before) + int(edges.lag[i])
    return specimen.with_rows(
        specimen.retimed({after: arrived - random.randint(1, int(edges.lag[i]))})
    )


@operator("DEPENDENCIES")
def backward_before_forward(random: Random, specimen: Specimen) -> Specimen | None:
    return _exchanged(random, specimen, (Kind.B, Kind.I), Kind.F)


@operator("DEPENDENCIES", needs=has_splits)
def weight_before_input(random: Random, specimen: Specimen) -> Specimen | None:
    return _exchanged(random, specimen, (Kind.W,), Kind.I)


def _exchanged(
    random: Random, specimen: Specimen, late: tuple[Kind, ...], early: Kind
) -> Specimen | None:
    """Two actions of one stage and microbatch stand in each other's places; None if timeless."""
    starts = specimen.starts()
    pairs = [
        (a, replace(a, kind=early))
        for a in starts
        if a.kind in late and replace(a, kind=early) in starts
    ]
    pairs = [(a, b) for a, b in pairs if specimen.ticks(b) > 0 or starts[a] > starts[b]]
    if not pairs:
        return None
    a, b = random.choice(pairs)
    other = {a: b, b: a}
    swapped = [
        [(other.get(action, action), start) for action, start in row] for row in specimen.rows
    ]
    return specimen.with_rows(swapped)


@operator("DEPENDENCIES", "MEMORY", "EXCLUSIVE", nature="either")
def extra_dependency(random: Random, specimen: Specimen) -> Specimen | None:
    """The problem gains one precedence between two of its tasks."""
    before, after = random.sample(range(specimen.problem.num_tasks), 2)
    return _with_edge(specimen, before, after, 0)


@operator("DEPENDENCIES", nature="either")
def slower_message(random: Random, specimen: Specimen) -> Specimen | None:
    """One precedence of the problem lags by a tick more."""
    edges = specimen.problem.edges
    i = random.randrange(len(edges))
    return _with_edge(specimen, int(edges.before[i]), int(edges.after[i]), int(edges.lag[i]) + 1)


def _with_edge(specimen: Specimen, before: int, after: int, lag: int) -> Specimen:
    edges = specimen.problem.edges
    more = Edges(
        before=np.append(edges.before, before),
        after=np.append(edges.after, after),
        lag=np.append(edges.lag, lag),
    )
    return replace(specimen, problem=replace(specimen.problem, edges=more))


@operator("DEPENDENCIES", "EXCLUSIVE", "MEMORY", nature="either")
def slower_task(random: Random, specimen: Specimen) -> Specimen | None:
    """One task of the problem takes a tick longer than the schedule thinks."""
    duration = specimen.problem.duration.copy()
    duration[random.randrange(len(duration))] += 1
    return replace(specimen, problem=replace(specimen.problem, duration=duration))


def _peak(specimen: Specimen, store: int) -> int:
    """The measured peak of a rank's store."""
    peaks = plain_measures(specimen.problem, specimen.schedule())["peak_memory"]
    assert isinstance(peaks, tuple)
    return peaks[store]


@operator("MEMORY")
def cap_minus_one(random: Random, specimen: Specimen) -> Specimen | None:
    at = random.randrange(specimen.problem.num_ranks)
    store = replace(specimen.problem.stores[at], capacity=_peak(specimen, at) - 1)
    return specimen.with_store(at, store)


@operator(nature="harmless")
def cap_at_the_peak(random: Random, specimen: Specimen) -> Specimen | None:
    at = random.randrange(specimen.problem.num_ranks)
    store = replace(specimen.problem.stores[at], capacity=_peak(specimen, at))
    return specimen.with_store(at, store)


@operator("MEMORY")
def base_above_cap(random: Random, specimen: Specimen) -> Specimen | None:
    at = random.randrange(len(specimen.problem.stores))
    capacity = random.randint(1, 5)
    store = replace(specimen.problem.stores[at], capacity=capacity, base=capacity + 1)
    return specimen.with_store(at, store)


@operator("MEMORY", nature="either")
def heavier_base(random: Random, specimen: Specimen) -> Specimen | None:
    at = random.randrange(len(specimen.problem.stores))
    store = specimen.problem.stores[at]
    return specimen.with_store(at, replace(store, base=store.base + 1))


@operator("MEMORY")
def released_twice(random: Random, specimen: Specimen) -> Specimen | None:
    """One task's release is larger by more than the store can hold."""
    events = specimen.problem.events
    releases = [i for i in range(len(events)) if events.delta[i] < 0]
    delta = events.delta.copy()
    delta[random.choice(releases)] -= 1000
    changed = replace(specimen.problem, events=replace(events, delta=delta))
    return replace(specimen, problem=changed)


@operator(nature="harmless")
def shift_all_later(random: Random, specimen: Specimen) -> Specimen | None:
    shift = random.randint(1, 9)
    later = {action: start + shift for action, start in specimen.starts().items()}
    return specimen.with_rows(specimen.retimed(later))


@operator(nature="harmless")
def insert_idle(random: Random, specimen: Specimen) -> Specimen | None:
    """Everything that starts at some moment or later waits a while."""
    starts = specimen.starts()
    moment, wait = random.choice(list(starts.values())), random.randint(1, 4)
    later = {action: start + wait * (start >= moment) for action, start in starts.items()}
    return specimen.with_rows(specimen.retimed(later))


@operator(nature="harmless")
def rows_listed_last_first(random: Random, specimen: Specimen) -> Specimen | None:
    """The problem lists its precedences and memory events in another order."""
    edges, events = specimen.problem.edges, specimen.problem.events
    mixed = random.sample(range(len(edges)), len(edges))
    turned = np.arange(len(events))[::-1]
    problem = replace(
        specimen.problem,
        edges=Edges(before=edges.before[mixed], after=edges.after[mixed], lag=edges.lag[mixed]),
        events=replace(
            events,
            task=events.task[turned],
            at_end=events.at_end[turned],
            store=events.store[turned],
            delta=events.delta[turned],
        ),
    )
    return replace(specimen, problem=problem)


@operator("COMPLETE", "DEPENDENCIES", "EXCLUSIVE", "MEMORY", nature="either")
def renumber_microbatches(random: Random, specimen: Specimen) -> Specimen | None:
    """All microbatches change numbers; harmless where they are alike."""
    numbers = sorted({action.microbatch for action in specimen.starts()})
    other = dict(zip(numbers, random.sample(numbers, len(numbers)), strict=True))
    renamed = [[(_renumbered(a, other), s) for a, s in row] for row in specimen.rows]
    return specimen.with_rows(renamed)


@operator("COMPLETE", "DEPENDENCIES")
def renumber_on_one_stage(random: Random, specimen: Specimen) -> Specimen | None:
    stage = random.choice(list(specimen.starts())).stage
    numbers = sorted({action.microbatch for action in specimen.starts()})
    other = dict(zip(numbers, numbers[1:] + numbers[:1], strict=True))
    renamed = [
        [(_renumbered(a, other) if a.stage == stage else a, s) for a, s in row]
        for row in specimen.rows
    ]
    return specimen.with_rows(renamed)


def _renumbered(action: Action, other: dict[int, int]) -> Action:
    partner = action.partner and _renumbered(action.partner, other)
    return replace(action, microbatch=other[action.microbatch], partner=partner)


@operator("COMPLETE", needs=has_splits)
def full_where_split(random: Random, specimen: Specimen) -> Specimen | None:
    """A B stands where the problem wants an I and a W."""
    rows = specimen.copied()
    places = [(r, i) for r, i in specimen.places() if rows[r][i][0].kind is Kind.I]
    if not places:
        return None
    r, i = random.choice(places)
    action, start = rows[r][i]
    weight = replace(action, kind=Kind.W)
    rows[r][i] = (replace(action, kind=Kind.B), start)
    rows[r] = [(a, s) for a, s in rows[r] if a != weight]
    return specimen.with_rows(rows)


@operator("COMPLETE", needs=has_full_backwards)
def split_where_full(random: Random, specimen: Specimen) -> Specimen | None:
    """An I and a W stand where the problem wants a B."""
    rows = specimen.copied()
    places = [(r, i) for r, i in specimen.places() if rows[r][i][0].kind is Kind.B]
    if not places:
        return None
    r, i = random.choice(places)
    action, start = rows[r][i]
    middle = start + specimen.ticks(action) // 2
    rows[r][i : i + 1] = [
        (replace(action, kind=Kind.I), start),
        (replace(action, kind=Kind.W), middle),
    ]
    return specimen.with_rows(rows)


def _overlaps(specimen: Specimen) -> list[tuple[int, int]]:
    return [(r, i) for r, i in specimen.places() if specimen.rows[r][i][0].partner is not None]


@operator("COMPLETE", needs=has_overlaps)
def other_partner(random: Random, specimen: Specimen) -> Specimen | None:
    """An overlap names another backward than the problem's."""
    if not _overlaps(specimen):
        return None
    rows = specimen.copied()
    r, i = random.choice(_overlaps(specimen))
    action, start = rows[r][i]
    assert action.partner is not None
    partner = replace(action.partner, microbatch=action.partner.microbatch + 1)
    rows[r][i] = (replace(action, partner=partner), start)
    return specimen.with_rows(rows)


@operator("COMPLETE", needs=has_overlaps)
def torn_overlap(random: Random, specimen: Specimen) -> Specimen | None:
    """An overlap's two halves stand one after the other."""
    if not _overlaps(specimen):
        return None
    rows = specimen.copied()
    r, i = random.choice(_overlaps(specimen))
    action, start = rows[r][i]
    assert action.partner is not None
    forward = replace(action, kind=Kind.F, partner=None)
    rows[r][i : i + 1] = [(forward, start), (action.partner, start + 1)]
    return specimen.with_rows(rows)


@operator(nature="harmless")
def true_claims(random: Random, specimen: Specimen) -> Specimen | None:
    measured = plain_measures(specimen.problem, specimen.schedule())
    names = random.sample(sorted(measured), random.randint(1, len(measured)))
    return specimen.with_claims(
        {n: str(measured[n]) if n.startswith("idle_") and n != "idle_ticks" else measured[n]
         for n in names}
    )  # fmt: skip


@operator("CLAIMS")
def number_off_by_one(random: Random, specimen: Specimen) -> Specimen | None:
    measured = plain_measures(specimen.problem, specimen.schedule())
    name = random.choice(("makespan", "work", "span_idle", "idle_ratio", "idle_over_work"))
    value = measured[name]
    assert not isinstance(value, tuple)
    return specimen.with_claims({name: value + random.choice((-1, 1))})


@operator("CLAIMS")
def list_off_by_one(random: Random, specimen: Specimen) -> Specimen | None:
    measured = plain_measures(specimen.problem, specimen.schedule())
    name = random.choice(("idle_ticks", "rank_spans", "peak_memory", "peak_activations"))
    value = measured[name]
    assert isinstance(value, tuple)
    at = random.randrange(len(value))
    return specimen.with_claims({name: (*value[:at], value[at] + 1, *value[at + 1 :])})


@operator("CLAIMS")
def unknown_claim(random: Random, specimen: Specimen) -> Specimen | None:
    return specimen.with_claims({random.choice(("bubble", "Makespan", "")): 0})


@operator("CLAIMS")
def unreadable_claim(random: Random, specimen: Specimen) -> Specimen | None:
    return specimen.with_claims({"idle_ratio": random.choice(("half", "1/0", ""))})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Mutant:
    """What an operator made of a case."""

    operator: Operator
    specimen: Specimen


def mutants(specimen: Specimen, seed: str, each: int) -> Iterator[Mutant]:
    """``each`` mutants by every operator that applies."""
    for chosen, number in product(OPERATORS, range(each)):
        mutated = chosen.apply(Random(f"{seed} {chosen.name} {number}"), specimen)
        if mutated is not None:
            yield Mutant(operator=chosen, specimen=mutated)
