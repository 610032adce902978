"""Iterations of many rows under many sets of constants at once, for a fit.

An iteration is counts of a longest path (``critical_paths``) times durations (``kernels``,
``replicas``), plus the step at its end: what ``iteration`` finds from the schedule, in the order of
a millisecond for all rows. Each kind of layer of a row is a column; constants are those where each
row's fit starts, times a factor for each set, of shape (sets, 1).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import accumulate
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from bubbleproof.costs.saved_bytes import message_bytes
from bubbleproof.costs.times.cards import Card
from bubbleproof.costs.times.constants import NAMES, starts
from bubbleproof.costs.times.critical_paths import Path, graph, longest_path
from bubbleproof.costs.times.job_rows import JobRow
from bubbleproof.costs.times.kernels import Constants, kernel_times, message
from bubbleproof.costs.times.replicas import PassColumns, Replicas, passes, replicas
from bubbleproof.costs.times.software import Software
from bubbleproof.costs.times.work import Floats, MicrobatchWork, is_scattered, work
from bubbleproof.costs.weights import embedding_weights, head_weights, layer_weights

Start = Callable[[Card, Software], Mapping[str, float]]
Columns = TypeVar("Columns", MicrobatchWork, Replicas)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JobColumns:
    """Rows as columns: of each kind of layer of each row its work, what its replicas exchange, and
    where fits of the row start; the same of the rows' ends. ``layers`` [stage, kind] by row."""

    rows: tuple[JobRow, ...]
    row_of: NDArray[np.int64]
    last_of: NDArray[np.int64]
    work: MicrobatchWork
    shared: Replicas
    embedding: Replicas
    head: Replicas
    sent: Floats
    overlaps: Floats
    layers: tuple[Floats, ...]
    base: Mapping[str, Floats]


def prepared(rows: Sequence[JobRow], card: Card, begin: Start = starts) -> JobColumns:
    """What is the same under all factors.

    Parameters
    ----------
    card
        Of rows that tell none.
    begin
        Where the constants of a row start.
    """
    works, shared, first, last, row_of, last_of, layers, sent, base = ([] for _ in range(9))
    for number, row in enumerate(rows):
        kind_of = row.card or card
        node, at = kind_of.cards_per_node, row.at
        kinds = [kind for kind, _ in row.model.layer_runs]
        for kind in dict.fromkeys(kinds):
            works.append(work(kind, at.of_microbatch, row.runs, node))
            shared.append(replicas(layer_weights(kind, at), at, row.runs, node))
            row_of.append(number)
        kinds = list(dict.fromkeys(kinds))
        last_of.append(len(works) - len(kinds) + kinds.index(row.model.layer_runs[-1][0]))
        ends = (
            embedding_weights(row.model, at),
            head_weights(row.model, at, is_copied=at.pipeline > 1),
        )
        first.append(replicas(ends[0], at, row.runs, node))
        last.append(replicas(ends[1], at, row.runs, node))
        scattered = is_scattered(at, row.runs, node)
        sent.append(float(message_bytes(row.model, at, is_scattered=scattered)))
        before = [0, *accumulate(row.cut)]
        table = np.zeros((len(row.cut), len(kinds)))
        for stage, own in enumerate(row.cut):
            for kind, count in row.model.between(before[stage], own):
                table[stage, kinds.index(kind)] += count
        layers.append(table)
        base.append(begin(kind_of, row.runs))
    return JobColumns(
        rows=tuple(rows),
        row_of=np.array(row_of),
        last_of=np.array(last_of),
        work=_stacked(works),
        shared=_stacked(shared),
        embedding=_stacked(first),
        head=_stacked(last),
        sent=np.array(sent),
        overlaps=np.array([float(row.runs.overlaps) for row in rows]),
        layers=tuple(layers),
        base={name: np.array([each[name] for each in base]) for name in NAMES},
    )


def _stacked(parts: Sequence[Columns]) -> Columns:
    kind = type(parts[0])
    return kind(
        **{
            field.name: np.array([getattr(part, field.name) for part in parts], dtype=np.float64)
            for field in fields(kind)
        }
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Times:
    """Passes of kinds and of ends, what a stage waits for a message, and the fixed time."""

    layer: PassColumns
    embedding: PassColumns
    head: PassColumns
    message: Floats
    fixed: Floats


def _times(of: JobColumns, factors: Constants) -> _Times:
    row = {name: of.base[name] * factors[name] for name in NAMES}
    kind = {name: value[..., of.row_of] for name, value in row.items()}
    times = kernel_times(of.work, kind)
    embedding, head = (
        each[..., of.last_of] for each in (times.embedding_each_way, times.head_each_pass)
    )
    return _Times(
        layer=passes(times.forward, times.backward, times.weight_backward, of.shared, kind),
        embedding=passes(embedding, embedding, embedding, of.embedding, row),
        head=passes(head, 2 * head, head, of.head, row),
        message=row["factor"] * message(of.sent, of.overlaps, row),
        fixed=row["iteration"],
    )


def paths(of: JobColumns, factors: Mapping[str, Floats]) -> list[Path]:
    """The longest path of each row.

    Parameters
    ----------
    factors
        On where the fit of each row starts, for each constant.
    """
    times = _times(of, factors)
    return [_path(of, number, times) for number in range(len(of.rows))]


def _path(of: JobColumns, number: int, times: _Times) -> Path:
    row = of.rows[number]
    ranks, count = row.at.pipeline, row.microbatches
    if ranks == 1:
        once = np.array([float(count)])
        return Path(forwards=once, backwards=once, messages=0, ends_at=0)
    own = of.row_of == number
    forward, backward, steps = (
        _stages(of, number, times, own, name) for name in ("forward", "backward", "step")
    )
    by_rank = [float(sum(steps[rank::ranks])) for rank in range(ranks)]
    return longest_path(
        graph(ranks, count, row.chunks),
        forward.tolist(),
        backward.tolist(),
        float(times.message[number]),
        by_rank,
    )[1]


def _stages(of: JobColumns, number: int, times: _Times, own: Floats, name: str) -> Floats:
    found = of.layers[number] @ getattr(times.layer, name)[own]
    found[0] += getattr(times.embedding, name)[number]
    found[-1] += getattr(times.head, name)[number]
    return np.asarray(found)


def predicted(of: JobColumns, along: Sequence[Path], factors: Mapping[str, Floats]) -> Floats:
    """Milliseconds of each row along its path, [set, row]; at most the makespan's.

    Parameters
    ----------
    factors
        As in ``paths``; for each constant its values, a row for each set of them.
    """
    times = _times(of, factors)
    counts = [
        (path.forwards, path.backwards, np.arange(len(table)) % row.at.pipeline == path.ends_at)
        for path, table, row in zip(along, of.layers, of.rows, strict=True)
    ]
    total = times.fixed + times.message * np.array([path.messages for path in along])
    for place, name in enumerate(("forward", "backward", "step")):
        own = [each[place] for each in counts]
        number = np.concatenate([n @ table for n, table in zip(own, of.layers, strict=True)])
        layer = (getattr(times.layer, name) * number).T
        summed = np.zeros((len(of.rows), *layer.shape[1:]))
        np.add.at(summed, of.row_of, layer)
        first, last = (np.array([float(each[end]) for each in own]) for end in (0, -1))
        total = total + summed.T + first * getattr(times.embedding, name)
        total = total + last * getattr(times.head, name)
    return np.asarray(total)
