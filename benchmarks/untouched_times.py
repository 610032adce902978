"""Errors of rows that nothing was fitted to, by software, card and products."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from benchmarks.markdown import markdown_table
from benchmarks.published_rows import Published, size_of, source_of
from bubbleproof.costs.times.card_files import card
from bubbleproof.costs.times.estimate_errors import error_of
from bubbleproof.costs.times.work import Floats

NOT_LOOKED_AT = """\
`benchmarks/untouched_rows.csv`: all rows of the tables of llm-foundry, torchtitan, Megatron-Bridge
and of other releases of the DGX Cloud recipes that are neither among those above nor among those
that the constants below rest on. They were written down before they were estimated, and the
constants are the package's. *Terms* were found by looking at llm-foundry's: the attention's kernel
(errors grew with the sequence), what FSDP copies, the product that a recomputed layer leaves out,
the ring of shards. Before them its rows on H100 were 18 % too fast, in 8 bits 27 %, and
torchtitan's in 8 bits 14.6 %. Of mixtures in Megatron-Bridge's tables the dispatcher, CUDA graphs
and recomputed operations are not told. The band is that which rows of all other sources give.

"""


def untouched_table(rows: Sequence[Published], errors: Floats) -> str:
    """Each group's errors, and how many rows are outside the band that other sources give."""
    groups: dict[str, list[int]] = defaultdict(list)
    for number, each in enumerate(rows):
        told = "mixtures, settings told in part" if each.unknown else each.row.runs.products
        kind = "" if each.row.card is None else each.row.card.name
        groups[f"{each.row.runs.name}, {kind}, {told}"].append(number)
        groups[f"all {told}" if each.unknown else "all whose settings are told"].append(number)
        if each.row.runs.name.startswith("megatron") and not each.unknown:
            groups["all of Megatron whose settings are told"].append(number)
    outside = np.abs(errors) > np.array([_band(each) for each in rows])
    table = [
        (name, len(own), *size_of(errors[own]), int(outside[own].sum()))
        for name, own in sorted(groups.items())
    ]
    header = ("rows", "number", "mean", "bias", "90 % within", "outside their band")
    return markdown_table(header, table)


def _band(each: Published) -> float:
    row = each.row
    asked = row.model, row.card or card("h100"), row.runs, row.gpus
    return error_of(*asked, but=source_of(each)).band
