"""Rows of iterations, measured or to be estimated: a CSV file, one iteration a row.

Columns: ``gpus``, ``global_batch`` and ``micro_batch`` in samples; ``model``, the name of a
published one, or ``hidden`` and ``heads`` of a GPT; ``layers``; ``sequence`` in tokens; ``tensor``,
``data`` and ``pipeline``. May be there, in any row empty:

- ``vocabulary``, ``kv_heads``, ``feed_forward`` and ``dense_layers``, where the model ran with
  others than are published (a GPT's vocabulary is 50257 where none is told; of fewer layers than
  are published the same part is dense, at least one);
- ``context`` and ``expert`` (1), ``expert_tensor`` (what each expert is cut over), ``shard`` (the
  replicas of a group under HSDP; else all), ``chunks`` of layers on each rank (1; more are
  interleaved 1F1B), ``cut`` (layers of each stage, as 3+4+4+3; else as many on each, or with the
  embedding and the head counted as a layer each), ``zero`` (0 to 3), ``sequence_parallel`` and
  ``scope``, where they are not the software's;
- ``hides_experts``: whether what experts are sent runs beside another microbatch (false);
- ``products``: "bf16" (without), or "fp8": what a layer's linears are computed in;
- ``software``: without, that on whose rows the card was fitted (``profiles.USUAL``), else
  megatron-core for a named model and megatron-2021 for a GPT;
- ``card``, the name of one, and numbers of it that are others than its data sheet's: ``CARD``.

Short names of columns (``ALIASES``: gbs, mbs, seq, tp, pp, ...) serve too. ``data`` may be left out
where the cards tell it.

``iteration_ms`` is read where rows are to be fitted or judged, and nowhere else; where it is empty
or not there, ``seconds`` or ``tokens_per_second`` of a card. Rows that tell more than one, or
``tflops`` of a card as well (by the model's products, and those of a pass that recomputes), must
agree within 20 %. Any other column is passed over.

The rows of one (gpus, global_batch, model, layers) are alternatives for the same *job*.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from bubbleproof.costs.configurations.config_file import is_configuration, read_configuration
from bubbleproof.costs.deployment import HIGHEST_ZERO, Deployment
from bubbleproof.costs.flops import operation_flops
from bubbleproof.costs.known_models import known_model, transformer
from bubbleproof.costs.model_costs import head_flops
from bubbleproof.costs.operations import layer_operations
from bubbleproof.costs.times.allocated import usual_cut
from bubbleproof.costs.times.card_files import card
from bubbleproof.costs.times.cards import Card
from bubbleproof.costs.times.profiles import software, usual
from bubbleproof.costs.times.software import Software
from bubbleproof.costs.transformer import Transformer
from bubbleproof.theory.pipelines.shapes.layer_cuts import Cut

SIZES = ("tensor", "data", "pipeline")
MORE_SIZES = ("context", "expert", "expert_tensor", "shard")
SHAPES = ("vocabulary", "kv_heads", "feed_forward", "dense_layers")
LEVELS = tuple(str(level) for level in range(HIGHEST_ZERO + 1))
FLAGS = {"true": True, "false": False}
COUNTS = ("gpus", "global_batch", "micro_batch", "layers", "sequence", *SIZES)
ALIASES = {
    "cards": "gpus", "gbs": "global_batch", "mbs": "micro_batch", "seq": "sequence",
    "tp": "tensor", "dp": "data", "pp": "pipeline", "cp": "context", "ep": "expert",
    "etp": "expert_tensor", "vp": "chunks", "precision": "products", "s": "seconds",
    "tok": "tokens_per_second", "tf": "tflops",
}  # fmt: skip
CARD = ("memory_gib", "memory_gbs", "link_gbs", "network_gbs", "cards_per_node", "reached")
RATES = {"bf16_tflops": "bf16", "fp8_tflops": "fp8"}
MEASURED = "iteration_ms"
INSTEAD = ("seconds", "tokens_per_second")
AGREE = 1.2
TYPES = {"fp16": "bf16", "": "bf16"}
GPT_VOCABULARY = 50257
DECIMAL = re.compile(r"[0-9]{1,20}(\.[0-9]{0,20})?([eE][+-]?[0-9]{1,2})?")
LONGEST = 24 * 3600 * 1000  # milliseconds of an iteration
Job = tuple[int, int, str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRow:
    """One iteration: a model cut over cards. ``at.scope`` is "none" where ``tells_scope`` is not.

    ``measured`` are milliseconds; None where nobody asked for them. ``chunks`` of layers are on
    each rank, ``cut`` tells those of each stage. ``card``: None where the row tells none.
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
    cut: Cut = ()
    card: Card | None = None

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


def rows_of(
    text: str, *, measured: bool, on: str = "", refused: list[str] | None = None
) -> list[JobRow]:
    """The rows of a CSV text. Raises ``ValueError`` naming the row, or the column that is missing.

    Without ``measured`` no measured column is looked at.

    Parameters
    ----------
    text
        A CSV with the names of the columns in its first row.
    measured
        Whether columns of measured times are wanted and read.
    on
        The name of the card that rows ran on that tell none.
    refused
        Takes what is wrong with rows that cannot be read, one line each; without it the first such
        row ends the reading.
    """
    columns, contents = _table(text)
    columns = [ALIASES.get(name, name) for name in columns]
    _require_columns(columns, measured=measured)
    rows = []
    for number, content in enumerate(contents, start=1):
        try:
            cells = _cells(number, columns, content)
            rows.append(_row(number, f"row {number}", cells, measured=measured, on=on))
        except ValueError as error:
            if refused is None:
                raise
            refused.append(str(error))
    if not rows:
        raise ValueError(refused[0] if refused else "no rows below the names of the columns")
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
    told = {MEASURED, *INSTEAD} & set(columns)
    needed = [name for name in COUNTS if name != "data"]
    needed += [MEASURED] if measured and not told else []
    needed += [] if "model" in columns else ["hidden", "heads"]
    missing = [name for name in needed if name not in columns]
    if missing:
        has = ", ".join(columns)[:120] or "none"
        one = "a column" if len(missing) == 1 else "columns"
        raise ValueError(f"{one} {', '.join(missing)} missing; there are {has}")


def _row(number: int, where: str, cells: Mapping[str, str], *, measured: bool, on: str) -> JobRow:
    counts = {name: _whole(where, name, cells[name]) for name in COUNTS if name != "data"}
    name, scope = cells.get("model", ""), cells.get("scope", "")
    name = "" if name.lower() == "gpt" else name
    try:
        kind = _card(where, cells)
        runs = software(cells.get("software") or usual(kind.name if kind else on, bool(name)))
        told = cells.get("products", "")
        runs = runs.computing_in(TYPES.get(told, told))
        runs = replace(runs, hides_experts=_flag(where, cells, "hides_experts", False))
        more = _told(where, cells, MORE_SIZES)
        counts["data"] = _data(where, cells, {**counts, **more})
        at = Deployment(
            **{size: counts[size] for size in (*SIZES, "micro_batch", "sequence")},
            **more,
            sequence_parallel=_flag(where, cells, "sequence_parallel", runs.sequence_parallel),
            zero=_zero(where, cells, runs.zero),
            accounting=runs.accounting,
            precision=runs.precision,
            scope=scope or "none",
        )
        model = _named(where, name, cells, counts) if name else _gpt(where, cells, counts)
        at.with_changes(pipeline=1).require(model)
        chunks = _told(where, cells, ("chunks",)).get("chunks", 1)
        cut = _cut_of(where, cells, model, at, chunks)
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
        measured=_measured(where, cells, counts) if measured else None,
        chunks=chunks,
        cut=cut,
        card=kind,
    )
    _require_batch(where, row)
    if row.measured is not None and cells.get("tflops"):
        _require_tflops(where, row, _decimal(where, "tflops", cells["tflops"]))
    return row


def _card(where: str, cells: Mapping[str, str]) -> Card | None:
    """The card that a row names, with what it tells of it; None where it tells none."""
    if not cells.get("card"):
        return None
    found = card(cells["card"])
    own = {name: _decimal(where, name, cells[name]) for name in CARD if cells.get(name)}
    rates = {
        kind: _decimal(where, name, cells[name]) for name, kind in RATES.items() if cells.get(name)
    }
    changes: dict[str, Any] = {**own, "tflops": {**found.tflops, **rates}}
    if "cards_per_node" in own:
        changes["cards_per_node"] = int(own["cards_per_node"])
    return replace(found, **changes)


def _data(where: str, cells: Mapping[str, str], counts: Mapping[str, int]) -> int:
    """The replicas; where the row does not tell them, those that the cards leave."""
    if cells.get("data"):
        return _whole(where, "data", cells["data"])
    once = counts["tensor"] * counts["pipeline"] * counts.get("context", 1)
    if counts["gpus"] % once:
        raise ValueError(
            f"{where}: gpus must be a multiple of tensor x pipeline x context {once}, got "
            f"{counts['gpus']}; use gpus = {max(1, counts['gpus'] // once) * once}"
        )
    return counts["gpus"] // once


def _cut_of(
    where: str, cells: Mapping[str, str], model: Transformer, at: Deployment, chunks: int
) -> Cut:
    """Layers of each stage."""
    if chunks > 1 and at.pipeline == 1:
        raise ValueError(f"{where}: chunks must be 1 where pipeline is 1, got {chunks}")
    stages = at.pipeline * chunks
    if not (told := cells.get("cut")):
        return usual_cut(model.layers, stages)
    cut = tuple(_whole(where, "cut", each) if each != "0" else 0 for each in told.split("+"))
    if len(cut) != stages or sum(cut) != model.layers:
        raise ValueError(
            f"{where}: cut must be {stages} numbers of layers that are {model.layers} together, "
            f"got {told[:60]}"
        )
    return cut


def model_tflops(row: JobRow, milliseconds: float, *, whole: bool) -> float:
    """TFLOP/s of a card by the model's FLOPs, three passes of each product.

    Parameters
    ----------
    milliseconds
        What the iteration takes.
    whole
        Whether the attention's square counts whole, or the half below the diagonal.
    """
    one = Deployment(sequence=row.at.sequence)
    flops = float(head_flops(row.model, one).forward)
    for kind, count in row.model.layer_runs:
        for operation in layer_operations(kind):
            part = 1.0 if whole or not operation.scores else 0.5
            flops += count * part * float(operation_flops(operation, kind, one).forward)
    return 3 * row.global_batch * flops / milliseconds / 1e9 / row.gpus


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


def _flag(where: str, cells: Mapping[str, str], name: str, otherwise: bool) -> bool:
    text = cells.get(name, "").lower()
    if text and text not in FLAGS:
        raise ValueError(f"{where}: {name} must be true or false, got {text[:40]!r}")
    return FLAGS.get(text, otherwise)


def _zero(where: str, cells: Mapping[str, str], otherwise: int) -> int:
    text = cells.get("zero", "")
    if text and text not in LEVELS:
        raise ValueError(f"{where}: zero must be one of {', '.join(LEVELS)}, got {text[:40]!r}")
    return int(text) if text else otherwise


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
        **_told(where, cells, ("kv_heads", "feed_forward")),
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


def _require_tflops(where: str, row: JobRow, told: float) -> None:
    """Whatever counts: half of the attention's square or all of it, and the pass that recomputes,
    where one may."""
    scopes = (row.at.scope,) if row.tells_scope else row.runs.scopes
    passes = 1 if set(scopes) == {"none"} else 4 / 3
    least = model_tflops(row, row.measured_ms, whole=False) / AGREE
    most = passes * model_tflops(row, row.measured_ms, whole=True) * AGREE
    if not least <= told <= most:
        raise ValueError(
            f"{where}: tflops must agree with the measured time within 20 %, which are "
            f"{least * AGREE:,.0f} to {most / AGREE:,.0f}, got {told:,.0f}"
        )


def _whole(where: str, name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 12 and int(text)):
        raise ValueError(f"{where}: {name} must be a whole number above 0, got {text[:40]!r}")
    return int(text)


def _measured(where: str, cells: Mapping[str, str], counts: Mapping[str, int]) -> float:
    """Milliseconds of the iteration, as they are told first. Raises ``ValueError`` where the row
    tells them otherwise as well."""
    tokens = counts["global_batch"] * counts["sequence"]
    told: dict[str, float] = {}
    if cells.get(MEASURED) or not any(cells.get(name) for name in INSTEAD):
        told[MEASURED] = _milliseconds(where, cells.get(MEASURED, ""))
    if cells.get("seconds"):
        told["seconds"] = 1e3 * _decimal(where, "seconds", cells["seconds"])
    if cells.get("tokens_per_second"):
        rate = _decimal(where, "tokens_per_second", cells["tokens_per_second"])
        told["tokens_per_second"] = 1e3 * tokens / counts["gpus"] / rate
    first, *others = told
    for other in others:
        if max(told[first], told[other]) > AGREE * min(told[first], told[other]):
            raise ValueError(
                f"{where}: {other} must agree with {first} within 20 %, they are "
                f"{told[other]:,.1f} and {told[first]:,.1f} ms"
            )
    return told[first]


def _decimal(where: str, name: str, text: str) -> float:
    value = float(text) if DECIMAL.fullmatch(text) else 0.0
    if not 0 < value < float("inf"):
        raise ValueError(f"{where}: {name} must be a number above 0, got {text[:40]!r}")
    return value


def _milliseconds(where: str, text: str) -> float:
    """A decimal number above 0, of a day at most."""
    value = float(text) if DECIMAL.fullmatch(text) else 0.0
    if not 0 < value <= LONGEST:
        raise ValueError(
            f"{where}: {MEASURED} must be a number above 0 and at most {LONGEST} (a day), "
            f"got {text[:40]!r}"
        )
    return value
