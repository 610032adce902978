"""``bubbleproof families``, ``cards``, ``models`` and ``frameworks``: what there is by name.

A ``Listing`` says of one kind of thing which there are and what is said of each; the four commands
differ in nothing else. ``--json`` prints ``{"families": [...]}`` (or ``cards`` and so on), an
object for each, and with a name for that one alone. Bubbles and peaks of families are measured at
``p=4 m=8`` and F and B of 1 and 2 ticks (I and W of 1 each), null where the shape is refused; their
legal shapes are tried up to 16 micro-batches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, cast

from bubbleproof.commands.first_lines import print_answer
from bubbleproof.commands.options.option_groups import require_meaning
from bubbleproof.commands.options.shared_options import Detail
from bubbleproof.commands.output import HOLDS, print_json, print_table
from bubbleproof.costs import KnownModel, known_model, known_models, parameters
from bubbleproof.costs.times.card_files import card, cards
from bubbleproof.costs.times.cards import Card
from bubbleproof.frameworks import FRAMEWORKS as KNOWN_FRAMEWORKS
from bubbleproof.frameworks import framework_named
from bubbleproof.hand_over.targets_list import WRITERS
from bubbleproof.report.amounts import percent, short
from bubbleproof.theory.families import Family, families, family
from bubbleproof.theory.families.parameters import TICKS, FamilyParameters
from bubbleproof.theory.model.measures import measure

Said = Mapping[str, object]  # of one thing, by key
RANKS, MOST_MICROBATCHES = (2, 4, 8), 16  # for which legal shapes are told
DETAILS = {"source", "reached", "switch_reduces", "reads_torch"}  # shown with --verbose
SHAPE = FamilyParameters(p=4, m=8)
MEANINGS = {
    "p": "ranks",
    "m": "micro-batches",
    "v": "chunks per rank (VPP)",
    "s": "slices of a sample",
    "f": "forwards before the first backward",
    "R": "per cent of a rank's layers that are recomputed",
    "e": "how many micro-batches each enqueue takes",
    "d": "how many micro-batches each dequeue takes",
    "tF": "ticks of a forward",
    "tB": "ticks of a full backward",
    "tI": "ticks of a backward by input (split backward)",
    "tW": "ticks of a backward by weight (split backward)",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """One kind of thing: ``plural`` names the command, ``columns`` are keys of what is said.

    ``named`` finds one, of which it says everything, and raises ``ValueError`` with the nearest
    names; ``row`` says of it what a table of all has, where that is found sooner. ``shown`` is what
    people read under the keys where that differs.
    """

    plural: str
    every: Callable[[], Sequence[str]]
    named: Callable[[str], Said]
    columns: Mapping[str, str]  # heading by key
    shown: Callable[[Said], Mapping[str, str]]
    row: Callable[[str], Said] | None = None

    def run(self, detail: Detail, name: str | None, json: bool) -> int:
        """Print all of them, or one."""
        names = [name] if name else self.every()
        if json:
            print_json({self.plural: [self.named(each) for each in names]})
        elif name:
            whole, one = f"{name}, of which all is told", self.named(name)
            require_meaning("--verbose and --all", whole, is_given=detail.has_tables)
            self._print_one(one, detail)
        else:
            first = f"{len(names)} {self.plural}; bubbleproof {self.plural} NAME tells all of one"
            print_answer([first], detail)
            if not detail.quiet:
                keys = [key for key in self.columns if detail.has_tables or key not in DETAILS]
                found = map(self.row or self.named, names)
                rows = [[self._cell(each, key) for key in keys] for each in found]
                print_table("", [self.columns[key] for key in keys], rows)
        return HOLDS

    def _print_one(self, one: Said, detail: Detail) -> None:
        heads = (self._cell(one, key) for key in list(self.columns)[:2])
        lines = [f"{key.replace('_', ' '):16} {self._cell(one, key)}" for key in list(one)[1:]]
        whole = Detail(quiet=detail.quiet, all=not detail.quiet)
        print_answer([": ".join(heads), *lines], whole)

    def _cell(self, one: Said, key: str) -> str:
        return self.shown(one).get(key) or _text(one[key])


def _text(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{value:,}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_text(each)}" for key, each in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _family_row(name: str) -> Said:
    one = family(name)
    idle, peak = _measured(one)
    return {
        "name": one.name,
        "title": one.title,
        "backward": "split" if one.is_split else "full",
        "chunks": one.default_chunks,
        "placement": one.placement,
        "idle_ratio": idle,
        "peak_activations": peak,
        "source": one.source,
    }


def _family(name: str) -> Said:
    one, row = family(name), dict(_family_row(name))
    source = row.pop("source")
    legal = {p: [m for m in range(1, MOST_MICROBATCHES + 1) if _takes(one, p, m)] for p in RANKS}
    taken = [*"pm", *(each for each in MEANINGS if each in one.options)]
    ticks = [each for each in TICKS if (each == "tB") != one.is_split or each == "tF"]
    first = next(((p, m) for p in (4, *RANKS) for m in (8, *legal[p]) if m in legal[p]), None)
    return {
        **row,
        "parameters": [{"name": each, "meaning": MEANINGS[each]} for each in (*taken, *ticks)],
        "legal": [{"ranks": p, "microbatches": found} for p, found in legal.items()],
        "source": source,
        "example": first and f"bubbleproof measure {one.name} p={first[0]} m={first[1]}",
    }


def _measured(one: Family) -> tuple[Fraction | None, int | None]:
    """The idle ratio and the largest peak of activations at ``SHAPE``."""
    try:
        member = one.member(SHAPE)
    except ValueError:
        return None, None
    found = measure(member.problem, member.schedule)
    return found.idle_ratio, max(found.peak_activations, default=None)


def _takes(one: Family, ranks: int, microbatches: int) -> bool:
    params = FamilyParameters(p=ranks, m=microbatches)
    try:
        chosen = one.variant(params)
        return chosen.refusal(chosen.pipeline(params)) is None
    except ValueError:
        return False


def _family_shown(one: Said) -> dict[str, str]:
    idle = one["idle_ratio"]
    legal, taken = (cast("list[Any]", one.get(key, ())) for key in ("legal", "parameters"))
    ranges = [f"p={each['ranks']}: m = {_range(each['microbatches'])}" for each in legal]
    placement = {"loop": "looped", "wave": "V-shaped"}.get(str(one["placement"]), "its own")
    return {
        "idle_ratio": percent(idle) if isinstance(idle, Fraction) else "-",
        "parameters": ", ".join(f"{each['name']} {each['meaning']}" for each in taken),
        "legal": "; ".join(ranges),
        "placement": placement,
    }


def _range(found: Sequence[int]) -> str:
    """``4 or more``, as far as was tried; else each."""
    if found and list(found) == [*range(found[0], MOST_MICROBATCHES + 1)]:
        return f"{found[0]} or more (tried to {MOST_MICROBATCHES})"
    return " ".join(map(str, found)) or f"none to {MOST_MICROBATCHES}"


def _card(name: str) -> Said:
    one: Card = card(name)
    return {
        **asdict(one),
        "example": f"bubbleproof estimate ROWS.csv --hardware {one.name}",
    }


def _card_shown(one: Said) -> dict[str, str]:
    rates = cast("Mapping[str, float]", one["tflops"])
    return {"tflops": ", ".join(f"{kind} {short(rate)}" for kind, rate in rates.items())}


def _model(name: str) -> Said:
    one: KnownModel = known_model(name)
    shape = one.model
    return {
        "name": one.name,
        "parameters": int(parameters(shape).total),
        "layers": shape.layers,
        "hidden": shape.hidden,
        "heads": shape.heads,
        "kv_heads": shape.kv_heads or shape.heads,
        "experts": shape.experts,
        "experts_per_token": shape.experts_per_token,
        "vocabulary": shape.vocabulary,
        "sequence": one.sequence,
        "published": one.published,
        "source": one.source,
        "example": f"bubbleproof costs {one.name} tensor=2 pipeline=4",
    }


def _model_shown(one: Said) -> dict[str, str]:
    number = cast("int", one["parameters"])
    told = f"{short(number / 1e9)} B" if number >= 10**9 else f"{short(number / 1e6)} M"
    return {"parameters": told}


def _framework(name: str) -> Said:
    one = framework_named(name, "frameworks")
    is_target = one.family in WRITERS
    use = f"hand-over PLAN --to {one.name} -o DIR" if is_target else f"verify FILE --runtime {name}"
    return {
        "name": one.name,
        "also": list(one.also),
        "hand_over": is_target,
        "waits": list(one.waits),
        "reads_torch": None if one.torch is None else ".".join(map(str, one.torch)),
        "costs": one.costs or None,
        "example": f"bubbleproof {use}",
    }


FAMILIES = Listing(
    plural="families",
    every=lambda: [*families()],
    named=_family,
    columns={
        "name": "name",
        "title": "what it is",
        "backward": "backward",
        "chunks": "chunks",
        "idle_ratio": "idle at p=4 m=8",
        "peak_activations": "peak activations",
        "source": "source",
    },
    shown=_family_shown,
    row=_family_row,
)
CARDS = Listing(
    plural="cards",
    every=lambda: [*cards()],
    named=_card,
    columns={
        "name": "name",
        "title": "what it is",
        "memory_gib": "GiB",
        "tflops": "TFLOP/s",
        "memory_gbs": "GB/s of memory",
        "link_gbs": "GB/s in a node",
        "network_gbs": "GB/s of a node",
        "cards_per_node": "in a node",
        "reached": "part reached",
        "switch_reduces": "switch reduces",
    },
    shown=_card_shown,
)
MODELS = Listing(
    plural="models",
    every=lambda: [*known_models()],
    named=_model,
    columns={
        "name": "name",
        "parameters": "parameters",
        "layers": "layers",
        "hidden": "hidden",
        "heads": "heads",
        "experts": "experts",
        "sequence": "sequence",
        "source": "source",
    },
    shown=_model_shown,
)
FRAMEWORKS = Listing(
    plural="frameworks",
    every=lambda: [each.name for each in KNOWN_FRAMEWORKS],
    named=_framework,
    columns={
        "name": "name",
        "also": "also",
        "hand_over": "hand-over",
        "waits": "checked under (--comm)",
        "costs": "costs of",
        "reads_torch": "tables of torch",
    },
    shown=lambda _: {},
)
run_families, run_cards = FAMILIES.run, CARDS.run
run_models, run_frameworks = MODELS.run, FRAMEWORKS.run
