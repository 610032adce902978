"""Megatron's arguments as what one runs today: of a script that starts it, or of a file.

Read are words that begin with ``--`` and the values behind them, as a shell gives them: quotes and
backslashes aside, comments dropped, and variables that the script itself sets put in. Rules of
Megatron (``validate_args``, called in ``benchmarks/frameworks``) that no configuration may break
are asked where it is estimated.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches

from bubbleproof.formats.clusters.own_told import OwnTold, counted_from
from bubbleproof.formats.errors import UnusableInput
from bubbleproof.formats.layout_string import layers_of
from bubbleproof.theory.pipelines.shapes.layer_cuts import Cut

TENSOR, PIPELINE = "--tensor-model-parallel-size", "--pipeline-model-parallel-size"
LAYOUT = "--pipeline-model-parallel-layout"
PER_STAGE = "--num-layers-per-virtual-pipeline-stage"
STAGES = "--num-virtual-stages-per-pipeline-rank"
GROUP = "--microbatch-group-size-per-virtual-pipeline-stage"
FIRST, LAST = "--decoder-first-pipeline-num-layers", "--decoder-last-pipeline-num-layers"
COUNTED = {
    "--account-for-embedding-in-pipeline-split": 0,
    "--account-for-loss-in-pipeline-split": -1,
}
SIZES = {
    TENSOR: "tensor",
    PIPELINE: "pipeline",
    "--context-parallel-size": "context",
    "--expert-model-parallel-size": "expert",
    "--micro-batch-size": "micro_batch",
}
MODEL = {
    "--num-layers": "layers",
    "--hidden-size": "hidden",
    "--num-attention-heads": "heads",
    "--seq-length": "sequence",
    "--global-batch-size": "samples",
}
SHARDED = {"no_shard": 0, "optim": 1, "optim_grads": 2, "optim_grads_params": 3}
STRATEGY, OPTIMIZER = "--data-parallel-sharding-strategy", "--use-distributed-optimizer"
TENSOR_OVERLAP, SEQUENCE = "--tp-comm-overlap", "--sequence-parallel"
REDUCE, GATHER = "--overlap-grad-reduce", "--overlap-param-gather"
GRANULARITY, MODULES = "--recompute-granularity", "--recompute-modules"
FORMAT = "--fp8-format"
EXPERT_TENSOR = "--expert-tensor-parallel-size"
KNOWN = (
    *SIZES, *MODEL, *COUNTED, LAYOUT, PER_STAGE, STAGES, GROUP, FIRST, LAST, STRATEGY, OPTIMIZER,
    TENSOR_OVERLAP, SEQUENCE, REDUCE, GATHER, GRANULARITY, MODULES, FORMAT, EXPERT_TENSOR,
)  # fmt: skip
LONGEST, MOST = 100, 1 << 20  # letters of a variable that is put in, and of all of it then
MISSPELT = 0.93  # so alike are a word that is read and one that is meant

Arguments = Mapping[str, str]


def megatron_told(text: str, layers: int) -> OwnTold:
    """What the arguments say of a model of so many layers.

    Raises ``UnusableInput``, at the argument, for what contradicts another.
    """
    given = arguments_of(text)
    told = {
        name: (key, counted_from(key, given[key])) for key, name in MODEL.items() if key in given
    }
    layers = told["layers"][1] if "layers" in told else layers
    sizes = {name: counted_from(key, given[key]) for key, name in SIZES.items() if key in given}
    ranks = sizes.get("pipeline", 1)
    chunks, cut = _stages(given, ranks, layers)
    group = counted_from(GROUP, given[GROUP]) if GROUP in given else ranks
    _require_together(given, sizes.get("tensor", 1))
    zero = SHARDED.get(given.get(STRATEGY, ""), 1 if OPTIMIZER in given else 0)
    scope, remarks = _recomputed(given)
    return OwnTold(
        sizes={**sizes, "zero": zero, "chunks": chunks},
        scope=scope,
        group=group if chunks > 1 else 0,
        layers=cut,
        waits=(
            *["exposed_tensor"] * (TENSOR_OVERLAP not in given),
            *["exposed_gradient"] * (REDUCE not in given),
        ),
        products="fp8" if FORMAT in given else "bf16",
        model=told,
        remarks=(*remarks, *_estimated(given, sizes)),
    )


def arguments_of(text: str) -> Arguments:
    """The first word behind each argument; empty behind a switch.

    Raises ``UnusableInput`` for one that is told twice and otherwise, and for a misspelt one.
    """
    found: dict[str, str] = {}
    words = _words(text)
    for word, after in zip(words, [*words[1:], ""], strict=True):
        key, sign, own = word.partition("=")
        if not re.fullmatch(r"--[a-z][a-z0-9-]+", key):
            continue
        value = own if sign else ("" if after.startswith("--") else after)
        is_switch = key not in (*SIZES, *MODEL, LAYOUT, PER_STAGE, STAGES, GROUP, FIRST, LAST)
        if key in KNOWN and key in found and found[key] != value and not is_switch:
            raise UnusableInput(key, "one value", f"{found[key]} and {value}; leave one out")
        is_new = key not in KNOWN and key not in found
        meant = get_close_matches(key, KNOWN, n=1, cutoff=MISSPELT) if is_new else []
        if meant and not key.startswith(meant[0]):
            raise UnusableInput(key, f"an argument of Megatron, such as {meant[0]}", "none")
        found[key] = value
    return found


def _words(text: str) -> list[str]:
    """The words of a script, with its own variables put in."""
    plain = re.sub(r"\\\n", " ", text)
    plain = re.sub(r"(^|\s)#[^\n]*", r"\1", plain)
    assigned = r"^\s*(?:export\s+)?([A-Za-z_]\w*)=(\"[^\"\n]*\"|'[^'\n]*'|[^\s()]+)"
    told = [(name, value.strip("\"'")) for name, value in re.findall(assigned, plain, re.MULTILINE)]
    known: dict[str, str] = {name: value for name, value in told if len(value) <= LONGEST}

    def put_in(found: re.Match[str]) -> str:
        otherwise = str(found[0] if found[2] is None else found[2])
        return known.get(found[1] or found[3], otherwise)

    variable = r"\$\{(\w+)(?::?-([^}]*))?\}|\$(\w+)"
    for _ in range(3):  # a variable may be told by another
        if len(plain) > MOST:
            raise UnusableInput("", f"at most {MOST} letters with its variables put in", "more")
        plain = re.sub(variable, put_in, plain)
    words = re.findall(r"\"[^\"]*\"|'[^']*'|[^\s\"']+", plain)
    return [_bare(part) for word in words for part in _parts(word)]


def _parts(word: str) -> list[str]:
    """A quoted word may have arguments in it."""
    inner = word.strip("\"'")
    return inner.split() if inner.lstrip().startswith("-") else [inner]


def _bare(word: str) -> str:
    """A word without the bracket that ends an array."""
    return word[:-1] if word.endswith(")") and word.count(")") > word.count("(") else word


def _stages(given: Arguments, ranks: int, layers: int) -> tuple[int, Cut | None]:
    """Chunks of a rank, and the layers of each stage."""
    ways = [key for key in (LAYOUT, PER_STAGE, STAGES) if key in given]
    uneven = [key for key in (FIRST, LAST, *COUNTED) if key in given]
    if len(ways) > 1 or (LAYOUT in given and uneven):
        both = (*ways, *uneven)
        raise UnusableInput(both[0], f"no {both[1]} beside it", "both; leave one out")
    if LAYOUT in given:
        return _of_layout(given[LAYOUT], ranks, layers)
    total = layers + sum(key in given for key in COUNTED)
    chunks = 1
    if STAGES in given:
        chunks = counted_from(STAGES, given[STAGES])
    if PER_STAGE in given:
        each = counted_from(PER_STAGE, given[PER_STAGE])
        if total % (ranks * each):
            expected = f"layers of which {ranks} ranks have whole stages of {total}"
            raise UnusableInput(PER_STAGE, expected, f"{each}")
        chunks = total // (ranks * each)
    return chunks, _even(given, ranks * chunks, ranks, total)


def _of_layout(text: str, ranks: int, layers: int) -> tuple[int, Cut]:
    try:
        cut = tuple(stage.count("t") for stage in layers_of(text))
    except ValueError as error:
        raise UnusableInput(LAYOUT, "a Megatron layout", str(error)) from None
    if len(cut) % ranks or sum(cut) != layers:
        expected = f"{layers} layers t in stages that divide by {ranks} ranks"
        raise UnusableInput(LAYOUT, expected, f"{sum(cut)} in {len(cut)} stages")
    return len(cut) // ranks, cut


def _even(given: Arguments, stages: int, ranks: int, total: int) -> Cut:
    """As many layers in each stage, embedding and loss among them where they count as one."""
    ends = {0: FIRST, ranks - 1: LAST}
    told = {rank: counted_from(key, given[key]) for rank, key in ends.items() if key in given}
    of_rank, chunks = dict(told), stages // ranks
    open_ranks = [rank for rank in range(ranks) if rank not in told]
    left = total - sum(told.values())
    if left < 0 or left % max(1, len(open_ranks)) or (left and not open_ranks):
        expected = f"layers that divide by {len(open_ranks)} ranks"
        raise UnusableInput("--num-layers", expected, f"{left}; use {LAYOUT}")
    of_rank |= dict.fromkeys(open_ranks, left // max(1, len(open_ranks)))
    if uneven := [number for number in of_rank.values() if number % chunks]:
        expected = f"layers of a rank that divide by {chunks} chunks"
        raise UnusableInput("--num-layers", expected, f"{uneven[0]}; use {LAYOUT}")
    cut = [of_rank[stage % ranks] // chunks for stage in range(stages)]
    for key, stage in COUNTED.items():
        cut[stage] -= key in given
    return tuple(cut)


def _require_together(given: Arguments, tensor: int) -> None:
    """Raise ``UnusableInput`` where ``validate_args`` asks for another argument beside one."""
    sharded = OPTIMIZER in given or STRATEGY in given
    for key, needs, is_there in (
        (GATHER, REDUCE, REDUCE in given),
        (GATHER, OPTIMIZER, sharded),
        (TENSOR_OVERLAP, SEQUENCE, SEQUENCE in given or tensor == 1),
    ):
        if key in given and not is_there:
            raise UnusableInput(key, f"{needs} beside it", "none; Megatron refuses it alone")
    if STRATEGY in given and given[STRATEGY] not in SHARDED:
        raise UnusableInput(STRATEGY, f"one of {', '.join(SHARDED)}", repr(given[STRATEGY]))


def _estimated(given: Arguments, sizes: Mapping[str, int]) -> Iterator[str]:
    """What is estimated otherwise than it runs, in words."""
    if "--bf16" not in given:
        yield "it is estimated in bfloat16"
    if sizes.get("tensor", 1) > 1 and SEQUENCE not in given:
        yield f"its activations are estimated with {SEQUENCE}"
    if "--no-overlap-p2p-communication" in given:
        yield "messages are estimated beside computation"
    both = min(sizes.get("expert", 1), sizes.get("tensor", 1)) > 1
    if both and given.get(EXPERT_TENSOR) == "1":
        yield "experts over replicas are estimated as cut by tensor groups"


def _recomputed(given: Arguments) -> tuple[str, tuple[str, ...]]:
    """The scope, and what of it is estimated otherwise."""
    granularity = given.get(GRANULARITY, "")
    if "--recompute-activations" in given:
        granularity = "selective"
    if granularity not in ("", "full", "selective"):
        raise UnusableInput(GRANULARITY, "full or selective", repr(granularity))
    if granularity == "full":
        block = given.get("--recompute-method") == "block"
        return "full", ("recomputation of some layers is estimated as of all",) * block
    if granularity == "selective":
        module = given.get(MODULES, "core_attn")
        other = (f"recomputation of {module} is estimated as of core_attn",)
        return "attention", () if module == "core_attn" else other
    return "none", ()
