"""Rows of iterations, measured or to be estimated: a CSV file, one iteration a row.

Columns: ``gpus``, ``global_batch`` and ``micro_batch`` in samples; ``model``, the name of a
published one, or ``hidden`` and ``heads`` of a GPT; ``layers``; ``sequence`` in tokens; ``tensor``,
``data`` and ``pipeline``. May be there: ``vocabulary`` (50257 for a GPT), ``scope``, ``software``.
A row of a named model without ``software`` ran on megatron-core, one of a GPT on
megatron-deepspeed. ``iteration_ms`` is read where rows are to be fitted or judged, and nowhere
else; any other column is passed over.

The rows of one (gpus, global_batch, model, layers) are alternatives for the same *job*.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from bubbleproof.costs.deployment import Deployment
from bubbleproof.costs.known_models import known_model
from bubbleproof.costs.times.software import Software, software
from bubbleproof.costs.transformer import Transformer, transformer

SIZES = ("tensor", "data", "pipeline")
COUNTS = ("gpus", "global_batch", "micro_batch", "layers", "sequence", *SIZES)
MEASURED = "iteration_ms"
OF_GPT, OF_NAMED = "megatron-deepspeed", "megatron-core"
GPT_VOCABULARY = 50257
Job = tuple[int, int, str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One iteration: a model cut over cards. ``at.scope`` is "none" where ``tells_scope`` is not.

    ``measured`` are milliseconds; None where nobody asked for them.
    """

    number: int
    gpus: int
    global_batch: int
    model: Transformer
    at: Deployment
    runs: Software
    tells_scope: bool
    measured: float | None

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

    def recomputing(self, scope: str) -> Row:
        """The row under a recompute scope, unless it tells its own."""
        return self if self.tells_scope else replace(self, at=self.at.with_changes(scope=scope))


def rows_of(text: str, *, measured: bool) -> list[Row]:
    """The rows of a CSV text. Raises ``ValueError`` naming the row, or the column that is missing.

    Without ``measured`` no measured column is looked at.
    """
    reader = csv.DictReader(io.StringIO(text, newline=""))
    columns = [name.strip() for name in reader.fieldnames or ()]
    _require_columns(columns, measured=measured)
    reader.fieldnames = columns
    rows = [
        _row(number, f"row {number}", content, measured=measured)
        for number, content in enumerate(reader, start=1)
    ]
    if not rows:
        raise ValueError("no rows below the names of the columns")
    return rows


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


def _row(number: int, where: str, content: Mapping[str, str | None], *, measured: bool) -> Row:
    cells = {name: (value or "").strip() for name, value in content.items() if name}
    counts = {name: _whole(where, name, cells[name]) for name in COUNTS}
    name = cells.get("model", "")
    scope = cells.get("scope", "")
    try:
        runs = software(cells.get("software") or (OF_NAMED if name else OF_GPT))
        at = Deployment(
            **{size: counts[size] for size in (*SIZES, "micro_batch", "sequence")},
            sequence_parallel=runs.sequence_parallel,
            zero=runs.zero,
            accounting=runs.accounting,
            precision=runs.precision,
            scope=scope or "none",
        )
        model = _named(name, counts["layers"]) if name else _gpt(where, cells, counts)
        at.require(model)
    except ValueError as error:
        text = str(error)
        raise ValueError(text if text.startswith(where) else f"{where}: {text}") from None
    row = Row(
        number=number,
        gpus=counts["gpus"],
        global_batch=counts["global_batch"],
        model=model,
        at=at,
        runs=runs,
        tells_scope=bool(scope),
        measured=_positive(where, cells[MEASURED]) if measured else None,
    )
    _require_batch(where, row)
    return row


@lru_cache(maxsize=256)
def _named(name: str, layers: int) -> Transformer:
    return known_model(name).model.with_changes(layers=layers)


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


def _require_batch(where: str, row: Row) -> None:
    if row.at.devices != row.gpus:
        sizes = " x ".join(f"{name} {getattr(row.at, name)}" for name in SIZES)
        raise ValueError(f"{where}: {sizes} are {row.at.devices} cards, gpus says {row.gpus}")
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


def _positive(where: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise ValueError(f"{where}: {MEASURED} must be a number above 0, got {text[:40]!r}")
    return value
