"""Rows of iterations, measured or to be estimated: a CSV file, one iteration a row.

Columns: ``gpus``, ``global_batch`` and ``micro_batch`` in samples; ``model``, the name of a
published one, or ``hidden`` and ``heads`` of a GPT; ``layers``; ``sequence`` in tokens; ``tensor``,
``data`` and ``pipeline``. May be there, in any row empty:

- ``vocabulary``, ``kv_heads`` and ``dense_layers``, where the model ran with others than are
  published (a GPT's vocabulary is 50257 where none is told; of fewer layers than are published
  the same part is dense, at least one);
- ``context`` and ``expert`` (1), ``chunks`` of layers on each rank (1; more are interleaved 1F1B),
  ``zero`` (0 or 1), ``sequence_parallel`` and ``scope``, where they are not the software's;
- ``products``: "bf16" (without), or "fp8": what a layer's linears are computed in;
- ``software``: without, a row of a named model ran on megatron-core, one of a GPT on
  megatron-deepspeed.

``iteration_ms`` is read where rows are to be fitted or judged, and nowhere else; any other column
is passed over.

The rows of one (gpus, global_batch, model, layers) are alternatives for the same *job*.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from bubbleproof.costs.configurations.config_file import is_configuration, read_configuration
from bubbleproof.costs.deployment import Deployment
from bubbleproof.costs.known_models import known_model, transformer
from bubbleproof.costs.times.software import Software, software
from bubbleproof.costs.transformer import Transformer

SIZES = ("tensor", "data", "pipeline")
MORE_SIZES = ("context", "expert")
SHAPES = ("vocabulary", "kv_heads", "dense_layers")
LEVELS = ("0", "1")  # those whose sharing comes at an iteration's end
FLAGS = {"true": True, "false": False}
COUNTS = ("gpus", "global_batch", "micro_batch", "layers", "sequence", *SIZES)
MEASURED = "iteration_ms"
OF_GPT, OF_NAMED = "megatron-deepspeed", "megatron-core"
GPT_VOCABULARY = 50257
DECIMAL = re.compile(r"[0-9]{1,20}(\.[0-9]{0,20})?([eE][+-]?[0-9]{1,2})?")
LONGEST = 24 * 3600 * 1000  # milliseconds of an iteration
Job = tuple[int, int, str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRow:
    """One iteration: a model cut over cards. ``at.scope`` is "none" where ``tells_scope`` is not.

    ``measured`` are milliseconds; None where nobody asked for them. ``chunks`` of layers are on
    each rank.
    """

    number: int
    gpus: int
    global_batch: int
    model: Transformer
    at: Deployment
    runs: Software
    tells_scope: bool
    measured: float | None
    chunks: int = 1

    @property
    def microbatches(self) -> int:
        """Of a replica, in an iteration."""
        return self.global_batch // (self.at.data * self.at.micro_batch)

    @property
    def measured_ms(self) -> float:
        """What was measured. Raises ``ValueError`` where nobody asked for it."""
        if self.measured is None:
            raise ValueError(f"row {self.number} was read without its measured time")
        return self.measured

    @property
    def job(self) -> Job:
        """What the row is an alternative for."""
        return self.gpus, self.global_batch, self.model.name, self.model.layers

    def recomputing(self, scope: str) -> JobRow:
        """The row under a recompute scope, unless it tells its own.

        Parameters
        ----------
        scope
            ``none``, ``attention`` or ``full``.
        """
        return self if self.tells_scope else replace(self, at=self.at.with_changes(scope=scope))


def rows_of(text: str, *, measured: bool) -> list[JobRow]:
    """The rows of a CSV text. Raises ``ValueError`` naming the row, or the column that is missing.

    Without ``measured`` no measured column is looked at.

    Parameters
    ----------
    text
        A CSV with the names of the columns in its first row.
    measured
        Whether columns of measured times are wanted and read.
    """
    columns, contents = _table(text)
    _require_columns(columns, measured=measured)
    rows = [
        _row(number, f"row {number}", _cells(number, columns, content), measured=measured)
        for number, content in enumerate(contents, start=1)
    ]
    if not rows:
        raise ValueError("no rows below the names of the columns")
    return rows


def _table(text: str) -> tuple[list[str], list[list[str]]]:
    """The names of the columns, and the rows below that are not empty."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        lines = [line for line in reader if line]
    except csv.Error as error:
        raise ValueError(f"line {reader.line_num} is no comma-separated values: {error}") from None
    return [name.strip() for name in next(iter(lines), ())], lines[1:]


def _cells(number: int, columns: Sequence[str], content: Sequence[str]) -> dict[str, str]:
    """The cells of a row by column. Raises ``ValueError`` for more or fewer than columns."""
    if len(content) != len(columns):
        raise ValueError(
            f"row {number}: a row has a cell for each of {len(columns)} columns, got {len(content)}"
        )
    return {name: cell.strip() for name, cell in zip(columns, content, strict=True) if name}


def _require_columns(columns: Sequence[str], *, measured: bool) -> None:
    if twice := sorted({name for name in columns if name and columns.count(name) > 1}):
        raise ValueError(f"each column must stand once, {', '.join(twice)} stands twice")
    needed = [*COUNTS, *([MEASURED] if measured else [])]
    needed += [] if "model" in columns else ["hidden", "heads"]
    missing = [name for name in needed if name not in columns]
    if missing:
        has = ", ".join(columns)[:120] or "none"
        one = "a column" if len(missing) == 1 else "columns"
        raise ValueError(f"{one} {', '.join(missing)} missing; there are {has}")


def _row(number: int, where: str, cells: Mapping[str, str], *, measured: bool) -> JobRow:
    counts = {name: _whole(where, name, cells[name]) for name in COUNTS}
    name = cells.get("model", "")
    scope = cells.get("scope", "")
    try:
        runs = software(cells.get("software") or (OF_NAMED if name else OF_GPT))
        runs = runs.computing_in(cells.get("products") or runs.products)
        at = Deployment(
            **{size: counts[size] for size in (*SIZES, "micro_batch", "sequence")},
            **_told(where, cells, MORE_SIZES),
            sequence_parallel=_flag(where, cells, runs.sequence_parallel),
            zero=_zero(where, cells, runs.zero),
            accounting=runs.accounting,
            precision=runs.precision,
            scope=scope or "none",
        )
        model = _named(where, name, cells, counts) if name else _gpt(where, cells, counts)
        at.require(model)
        chunks = _told(where, cells, ("chunks",)).get("chunks", 1)
        _require_chunks(where, model, at, chunks)
    except ValueError as error:
        text = str(error)
        raise ValueError(text if text.startswith(where) else f"{where}: {text}") from None
    row = JobRow(
        number=number,
        gpus=counts["gpus"],
        global_batch=counts["global_batch"],
        model=model,
        at=at,
        runs=runs,
        tells_scope=bool(scope),
        measured=_milliseconds(where, cells[MEASURED]) if measured else None,
        chunks=chunks,
    )
    _require_batch(where, row)
    return row


def _named(
    where: str, name: str, cells: Mapping[str, str], counts: Mapping[str, int]
) -> Transformer:
    shape = _told(where, cells, SHAPES)
    return _cut(name, layers=counts["layers"], **shape)


@lru_cache(maxsize=256)
def _cut(name: str, **changes: int) -> Transformer:
    is_file = is_configuration(name)
    model = read_configuration(name).model if is_file else known_model(name).model
    if model.dense_layers:
        dense = max(1, model.dense_layers * changes["layers"] // model.layers)
        changes = {"dense_layers": dense, **changes}
    return model.with_changes(**changes)


def _told(where: str, cells: Mapping[str, str], names: Sequence[str]) -> dict[str, int]:
    """The counts among these columns that a row tells."""
    return {name: _whole(where, name, cells[name]) for name in names if cells.get(name)}


def _flag(where: str, cells: Mapping[str, str], otherwise: bool) -> bool:
    text = cells.get("sequence_parallel", "").lower()
    if text and text not in FLAGS:
        raise ValueError(f"{where}: sequence_parallel must be true or false, got {text[:40]!r}")
    return FLAGS.get(text, otherwise)


def _zero(where: str, cells: Mapping[str, str], otherwise: int) -> int:
    text = cells.get("zero", "")
    if text and text not in LEVELS:
        raise ValueError(f"{where}: zero must be one of {', '.join(LEVELS)}, got {text[:40]!r}")
    return int(text) if text else otherwise


def _require_chunks(where: str, model: Transformer, at: Deployment, chunks: int) -> None:
    if chunks > 1 and at.pipeline == 1:
        raise ValueError(f"{where}: chunks must be 1 where pipeline is 1, got {chunks}")
    if model.layers % (at.pipeline * chunks):
        raise ValueError(
            f"{where}: pipeline x chunks must divide layers {model.layers}, got "
            f"{at.pipeline} x {chunks}"
        )


def _gpt(where: str, cells: Mapping[str, str], counts: Mapping[str, int]) -> Transformer:
    hidden, heads = (_whole(where, name, cells.get(name, "")) for name in ("hidden", "heads"))
    vocabulary = _whole(where, "vocabulary", cells.get("vocabulary") or str(GPT_VOCABULARY))
    return transformer(
        "gpt",
        name=f"gpt-{hidden}",
        layers=counts["layers"],
        hidden=hidden,
        heads=heads,
        vocabulary=vocabulary,
        positions=counts["sequence"],
    )


def _require_batch(where: str, row: JobRow) -> None:
    if row.at.devices != row.gpus:
        names = (*SIZES, "context") if row.at.context > 1 else SIZES
        sizes = " x ".join(f"{name} {getattr(row.at, name)}" for name in names)
        raise ValueError(
            f"{where}: {sizes} are {row.at.devices} cards, gpus says {row.gpus}; "
            f"use gpus = {row.at.devices}"
        )
    once = row.at.data * row.at.micro_batch
    if row.global_batch % once:
        raise ValueError(
            f"{where}: global_batch must be a multiple of data x micro_batch {once}, "
            f"got {row.global_batch}; use {max(1, row.global_batch // once) * once}"
        )


def _whole(where: str, name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 12 and int(text)):
        raise ValueError(f"{where}: {name} must be a whole number above 0, got {text[:40]!r}")
    return int(text)


def _milliseconds(where: str, text: str) -> float:
    """A decimal number above 0, of a day at most."""
    value = float(text) if DECIMAL.fullmatch(text) else 0.0
    if not 0 < value <= LONGEST:
        raise ValueError(
            f"{where}: {MEASURED} must be a number above 0 and at most {LONGEST} (a day), "
            f"got {text[:40]!r}"
        )
    return value
