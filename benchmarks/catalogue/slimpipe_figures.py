"""The figures of SlimPipe's authors beside what is measured: a section of the family's page.

``slimpipe_rows.csv`` are rows of twelve tables of their artifact (Cuiym715/Megatron-LM at
8e42108b, ``examples/sc25slimpipe``), also those that are commented out there, without GiB where a
part is offloaded. Left out are ``system_exp_128_moe``, its tables of the interleaved order but one,
``256-1f1b-full-recompute`` and, of 1F1B, Mixtral-8x7B but with t = 8.
A row is a model, samples of so many ``tokens``, ``samples`` a step over d replicas, each of p ranks
of t c cards; n slices of a sample (1: not SlimPipe), v chunks, what is recomputed; GiB of
activations of the fullest card, and the bubble in per cent.

The fullest rank of an order holds a share of the activations of one sample, so that one number, the
bytes of a token, is to explain all GiB of a model under one kind of recompute.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from pathlib import Path

from benchmarks.markdown import markdown_table
from bubbleproof.costs.deployment import Deployment
from bubbleproof.costs.saved_bytes import layer_saved
from bubbleproof.costs.transformer import Transformer
from bubbleproof.theory.families import families
from bubbleproof.theory.model.measures import Measures, measure

ROWS = Path(__file__).parents[1] / "slimpipe_rows.csv"
GIB = 2**30
ROUNDED = Fraction(1, 200)  # figures have two places
TITLES = {"slimpipe": "SlimPipe", "interleaved": "interleaved 1F1B", "1f1b": "1F1B"}
ONE_RANK = "one rank"
SHOWN = (
    (2, 8, 2, 16), (4, 4, 4, 8), (4, 16, 4, 24), (8, 8, 16, 5), (8, 16, 8, 10), (8, 2, 16, 7),
    (16, 16, 16, 6), (16, 4, 32, 2), (32, 8, 64, 1), (32, 16, 64, 3), (8, 16, 1, 10),
    (16, 32, 1, 2), (32, 64, 1, 1),
)  # fmt: skip
HEAD_WIDTH, GROUPS = 128, 8
SCOPES = {"no": "none", "full": "full"}
MODELS = {
    "LLaMA-13B": (40, 5120, 13824, 0),
    "LLaMA-70B-GQA": (80, 8192, 28672, 0),
    "LLaMA-150B-GQA": (96, 12288, 32768, 0),
    "Mixtral-8x7B": (32, 4096, 14336, 8),
    "Mixtral-8x22B": (56, 6144, 16384, 8),
}  # layers, hidden, feed-forward, experts (the artifact's folder model)
Shape = tuple[int, int, int, int]  # p, m, slices, v
Kind = tuple[str, str]  # model, recompute


@dataclass(frozen=True, kw_only=True)
class PrintedRow:
    """A row of the authors' tables."""

    told: Mapping[str, str]

    def __getitem__(self, name: str) -> int:
        return int(self.told[name])

    @property
    def shape(self) -> Shape:
        """Ranks, microbatches of a replica, slices and chunks."""
        return self["p"], self["samples"] // self["d"], self["n"], self["v"]

    @property
    def kind(self) -> Kind:
        """The model, and what is recomputed."""
        return self.told["model"], self.told["recompute"]

    @property
    def tokens(self) -> Fraction:
        """Of a sample, on one card."""
        return Fraction(self["tokens"], self["t"] * self["c"])

    @property
    def activations(self) -> Fraction | None:
        """GiB, where the row has them."""
        return Fraction(self.told["activation_gib"]) if self.told["activation_gib"] else None

    def has_bubble(self, idle: Fraction) -> bool:
        """Whether the row's bubble is that one, rounded."""
        return abs(100 * idle - Fraction(self.told["bubble_percent"])) <= ROUNDED

    def bytes_of_token(self, share: Fraction) -> tuple[Fraction, Fraction]:
        """The least and the most by which a card with that share of a sample holds its GiB."""
        assert self.activations is not None, self.told
        low, high = (self.activations + off for off in (-ROUNDED, ROUNDED))
        return low * GIB / self.tokens / share, high * GIB / self.tokens / share


def printed_rows() -> list[PrintedRow]:
    """All rows."""
    with ROWS.open(encoding="utf-8") as stream:
        return [PrintedRow(told=row) for row in csv.DictReader(stream)]


def family_of(shape: Shape) -> str:
    """The family whose order a row has."""
    _, _, slices, chunks = shape
    return "slimpipe" if slices > 1 else "interleaved" if chunks > 1 else "1f1b"


@lru_cache(maxsize=256)
def measured(shape: Shape, name: str = "") -> Measures:
    """The order of that shape, of its family or the one that is told; F and B take a tick each."""
    size = dict(zip("pmsv", shape, strict=True))
    told = {key: size[key] for key in size if key in "pm" or size[key] > 1}
    made = families()[name or family_of(shape)](**told, tF=1, tB=1)
    return measure(made.problem, made.schedule)


def share(shape: Shape, name: str = "") -> Fraction:
    """What the fullest rank holds, over the activations of one sample on all ranks."""
    p, _, slices, chunks = shape
    return Fraction(max(measured(shape, name).peak_activations), p * slices * chunks)


def filled(shape: Shape) -> Shape:
    """The shape with microbatches enough that more of them hold no more."""
    p, m, slices, chunks = shape
    enough = {"slimpipe": 2, "interleaved": 2 * p, "1f1b": p}[family_of(shape)]
    return p, max(m, enough), slices, chunks


def bytes_of_token(rows: Sequence[PrintedRow], shares: Sequence[Fraction]) -> Fraction:
    """Bytes of a token in all layers by which the most of the rows hold what they print."""
    spans = [row.bytes_of_token(held) for row, held in zip(rows, shares, strict=True)]
    best = max((low for low, _ in spans), key=lambda at: sum(a <= at <= b for a, b in spans))
    return (best + min(high for low, high in spans if low <= best <= high)) / 2


def tokens_of_kinds(rows: Sequence[PrintedRow]) -> dict[Kind, Fraction]:
    """Of each model and recompute the bytes of a token, from what filled pipelines hold."""
    kinds: dict[Kind, list[PrintedRow]] = defaultdict(list)
    for row in rows:
        if row.activations is not None:
            kinds[row.kind].append(row)
    return {
        kind: bytes_of_token(each, [share(filled(row.shape)) for row in each])
        for kind, each in sorted(kinds.items())
    }


def holds(row: PrintedRow, token: Fraction, held: Fraction) -> bool:
    """Whether the row's GiB are those of a rank that holds such a share, rounded."""
    low, high = row.bytes_of_token(held)
    return low <= token <= high


def section() -> str:
    """The section as Markdown."""
    rows = printed_rows()
    with_gib = [row for row in rows if row.activations is not None]
    tokens = tokens_of_kinds(rows)
    wrong = [row for row in rows if not row.has_bubble(measured(row.shape).idle_ratio)]
    held = [row for row in with_gib if holds(row, tokens[row.kind], share(filled(row.shape)))]
    short = [row for row in held if not holds(row, tokens[row.kind], share(row.shape))]
    return TEXT.format(
        rows=len(rows),
        files=len({row.told["file"] for row in rows}),
        shapes=len({row.shape for row in rows}),
        bubbles=len(rows) - len(wrong),
        with_gib=len(with_gib),
        held=len(held),
        short=len(short),
        counts=_counts(rows, wrong, with_gib, held, short),
        wrong=_wrong(wrong),
        unheld=" ".join(f"`{row.told['file']}`, {_at(row)}" for row in with_gib if row not in held),
        too_short=_too_short(short, tokens),
        shown=_shown(with_gib, tokens),
        tokens=_tokens(with_gib, tokens),
    )


def _order(row: PrintedRow) -> str:
    return ONE_RANK if row["p"] == 1 else TITLES[family_of(row.shape)]


def _at(row: PrintedRow) -> str:
    """The model and the shape, of slices and chunks what is not 1."""
    return f"{row.told['model']}, {_size(row.shape)}"


def _size(shape: Shape) -> str:
    told = zip("pmsv", shape, strict=True)
    return " ".join(f"{key}={value}" for key, value in told if key in "pm" or value > 1)


def _percent(value: Fraction) -> str:
    return f"{100 * float(value):.2f} %"


def _gib(row: PrintedRow, token: Fraction, held: Fraction) -> str:
    return f"{float(token * row.tokens * held / GIB):.2f}"


def _counts(rows: Sequence[PrintedRow], *parts: Sequence[PrintedRow]) -> str:
    """By order how many rows, and how many of each part."""
    wrong, with_gib, held, short = parts
    found = []
    for order in (*TITLES.values(), ONE_RANK):
        every, off, gib, right, few = (
            sum(_order(row) == order for row in part)
            for part in (rows, wrong, with_gib, held, short)
        )
        found.append((order, every, f"{every - off} of {every}", f"{right} of {gib}", few))
    header = ("order", "rows", "bubble agrees", "memory agrees", "of these with steps too short")
    return markdown_table(header, found)


def _wrong(rows: Sequence[PrintedRow]) -> str:
    found = []
    for row in rows:
        p, m, slices, chunks = row.shape
        others = {"m=4": (p, 4, slices, chunks), f"s={2 * slices}": (p, m, 2 * slices, chunks)}
        is_of = [name for name in others if row.has_bubble(measured(others[name]).idle_ratio)]
        told = f"{row.told['bubble_percent']} %"
        ours = _percent(measured(row.shape).idle_ratio)
        found.append((f"`{row.told['file']}`", _at(row), told, ours, ", ".join(is_of)))
    return markdown_table(("table", "at", "printed", "measured", "printed is that of"), found)


def _too_short(rows: Sequence[PrintedRow], tokens: Mapping[Kind, Fraction]) -> str:
    """Of each order the first of these rows."""
    found = []
    for order in TITLES.values():
        row = next(row for row in rows if _order(row) == order)
        held = (
            _gib(row, tokens[row.kind], share(shape)) for shape in (filled(row.shape), row.shape)
        )
        found.append((order, _at(row), row.told["activation_gib"], *held))
    return markdown_table(("order", "at", "GiB: printed", "with enough", "measured"), found)


def _shown(rows: Sequence[PrintedRow], tokens: Mapping[Kind, Fraction]) -> str:
    found = []
    for shape in SHOWN:
        row = next(row for row in rows if row.shape == shape)
        held = share(shape)
        bubble = f"{row.told['bubble_percent']} %", _percent(measured(shape).idle_ratio)
        gib = row.told["activation_gib"], _gib(row, tokens[row.kind], held)
        names = row.told["model"], row.told["recompute"]
        found.append((_size(shape), _order(row), *bubble, _percent(held), *names, *gib))
    header = ("at", "order", "bubble: printed", "measured", "peak of a sample")
    return markdown_table((*header, "model", "recompute", "GiB: printed", "measured"), found)


def kept_bytes(model: str, scope: str, context: int) -> Fraction:
    """Bytes of a token in a layer as ``plan`` counts them under Megatron-LM."""
    layers, hidden, width, experts = MODELS[model]
    heads = hidden // HEAD_WIDTH
    kind = Transformer(
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=heads if model == "LLaMA-13B" else GROUPS,
        feed_forward=width,
        vocabulary=32000,
        gated=True,
        norm="rms",
        experts=experts,
        experts_per_token=experts // 4,
    )
    at = Deployment(
        tensor=8, context=context, sequence=8192 * context, scope=scope, accounting="engine"
    )
    return Fraction(layer_saved(kind, at)) * at.tensor * context / at.sequence


def _tokens(rows: Sequence[PrintedRow], tokens: Mapping[Kind, Fraction]) -> str:
    found = []
    for (model, recompute), token in tokens.items():
        theirs = token / MODELS[model][0]
        scope, ours = SCOPES.get(recompute), ["", ""]
        if scope is not None:
            kept = [kept_bytes(model, scope, context) for context in (1, 2)]
            more = [round(100 * float(each / theirs - 1), 1) + 0.0 for each in kept]  # no -0.0
            ours = [f"{float(k / 1024):.1f} ({m:+.1f} %)" for k, m in zip(kept, more, strict=True)]
        number = sum(row.kind == (model, recompute) for row in rows)
        found.append((model, recompute, number, f"{float(theirs / 1024):.1f}", *ours))
    header = ("model", "recompute", "rows", "KiB: theirs", "`plan`", "`plan`, context parallel")
    return markdown_table(header, found)


TEXT = """\
## Measured against the paper's figures

The artifact of the authors (Cuiym715/Megatron-LM, `examples/sc25slimpipe`; the paper's DOI is
10.1145/3712285.3759855) lists configurations, with the bubble and the memory that they expect of
each. `benchmarks/slimpipe_rows.csv` has {rows} rows of {files} of its tables, of {shapes} sizes:
most of SlimPipe's, and some of the orders that it is compared with. m is a step's samples over its
replicas. Each size is built and measured: its `idle_ratio` is to be the printed bubble, and the
peak of its fullest rank the printed activations, both as rounded there. A peak is a share of what
one sample holds on all ranks; the tables do not say how many bytes that is, and one number must do
for all rows of a model and its kind of recompute.

{counts}
The bubble is the printed one in {bubbles} of {rows} rows. In the others it is that of another step:

{wrong}
`extended_configs.bak`, a copy of the first table, has steps of 4 samples with the same bubbles.

The activations are the printed ones in {held} of {with_gib} rows (in the others a part is
offloaded). The row where they are not, {unheld},
repeats bubble and activations of the row with twice the slices.

The printed memory does not depend on m: it is that of a pipeline with microbatches enough. In 1F1B
with fewer than p of them, in the interleaved order with p, in SlimPipe with one (which its code
refuses) all forwards of the first rank run before its first backward, and it holds less: that is
so in {short} of these rows. The first of each order, with so many microbatches and with enough:

{too_short}
Some of the sizes:

{shown}
What a token holds in a layer, over all its cards, in KiB: by the rows, and as `plan` counts under
Megatron-LM. `plan` also counts the statistics of norms and attention, the attention's output twice
under context parallelism, and of a mixture the copies of a token that its experts read. It has no
scope for the artifact's partial recompute.

{tokens}"""
