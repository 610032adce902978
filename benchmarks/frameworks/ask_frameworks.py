"""Ask torchtitan, Automodel, DeepSpeed and torch what they run, and compare it with ours.

``python -m benchmarks.frameworks.ask_frameworks FOLDER`` makes an environment in the folder
(``wheels``), asks each framework's own code for configurations that are drawn here, prints how many
of our answers agree and what does not, and writes the answers beside this file, a file a framework.
The test suite compares those with ours and needs no wheel. Torch is the one that is installed.

Of an order a digest is recorded, by which it is compared cell by cell.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from benchmarks.frameworks.ask_megatron import digest
from benchmarks.frameworks.wheels import answers, environment, unpacked
from bubbleproof.frameworks import TORCH_CLASSES, framework_named
from bubbleproof.hand_over.automodel_target import NAMES, OF_EVERY_STAGE
from bubbleproof.theory.families import Family, family
from bubbleproof.theory.families.interleaved import InterleavedOneForwardOneBackward
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.shapes.cut_lists import even_cut

SEED, TITAN_LAYERS = 35, 6
SMALL = ("--module", "llama3", "--config", "llama3_debugmodel")
DEGREE = "--parallelism.pipeline_parallel_degree"
EACH = "--parallelism.pipeline_parallel_microbatch_size"
LOCAL, NO_GRAPHS = "--training.local_batch_size", "--training.disable_cuda_graphs"
Row = list[Any]
ILLEGAL = None  # our answer for what is refused; UNTOLD where we say nothing
UNTOLD = "untold"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """So many rows of a ``kind`` that a framework of these wheels is asked, and what we say."""

    kind: str
    wheels: tuple[str, ...]
    count: int
    draw: Callable[[random.Random], Row]
    ours: Callable[..., Any]

    @property
    def rows(self) -> list[Row]:
        """Those that are drawn, each once."""
        draw, found = random.Random(f"{SEED} {self.kind}"), dict[str, None]()
        while len(found) < self.count:
            found[json.dumps(self.draw(draw))] = None
        return [json.loads(row) for row in found]


def _mesh(draw: random.Random) -> Row:
    replicate, cp, tp = draw.choice((1, 1, 1, 2, 4)), draw.choice((1, 1, 2)), draw.choice((1, 2, 4))
    shard, pp, ep = draw.choice((1, 2, 4, 8)), draw.choice((1, 2, 4)), draw.choice((1, 2, 3, 4, 8))
    cards = replicate * shard * cp * tp * pp
    return [replicate, shard, cp, tp, pp, ep, draw.choice((cards, cards, cards, cards, 2 * cards))]


def our_mesh(replicate: int, shard: int, cp: int, tp: int, pp: int, ep: int, cards: int) -> Any:
    """torchtitan's: degrees are the cards, experts divide shards, context and tensor ranks."""
    runs = framework_named("torchtitan", "test")
    refused = runs.experts_refused(expert=ep, data=shard, context=cp, tensor=tp, zero=2)
    is_whole = replicate * shard * cp * tp * pp == cards
    return shard * cp * tp // ep if is_whole and not refused else ILLEGAL


def _words(draw: random.Random) -> Row:
    pp, each = draw.choice((1, 2, 4)), draw.choice((1, 2, 3))
    local = draw.choice((each * draw.randint(1, 16), draw.randint(1, 20)))
    told = [*SMALL, DEGREE, str(pp), EACH, str(each), LOCAL, str(local)]
    return told + draw.choice(([NO_GRAPHS], [NO_GRAPHS], [NO_GRAPHS], []))


def our_words(*words: str) -> Any:
    """A pipeline has whole microbatches, and no captured step."""
    told = dict(zip(words[4::2], words[5::2], strict=False))
    pp, each, local = int(told[DEGREE]), int(told[EACH]), int(told[LOCAL])
    if pp > 1 and (local % each or NO_GRAPHS not in words):
        return ILLEGAL
    return local // each


def _titan_stages(draw: random.Random) -> Row:
    """A cut of six layers, of which a name is dropped, changed or told twice now and then."""
    stages = draw.choice((1, 2, 3, 4))
    marks = sorted(draw.randint(0, TITAN_LAYERS) for _ in range(stages - 1))
    found = [
        [f"layers.{each}" for each in range(first, last)]
        for first, last in zip([0, *marks], [*marks, TITAN_LAYERS], strict=True)
    ]
    found[0].insert(0, "tok_embeddings")
    found[-1] += ["norm", "lm_head"]
    spoil, part = draw.choice(("", "", "drop", "other")), draw.choice(found)
    if spoil and part:
        at = draw.randrange(len(part))
        part[at : at + 1] = [] if spoil == "drop" else [draw.choice(("output", "layers.9", "head"))]
    return found


def our_titan_stages(*stages: list[str]) -> Any:
    """What is named is left, in the model's order."""
    known = ["tok_embeddings", *(f"layers.{n}" for n in range(TITAN_LAYERS)), "norm", "lm_head"]
    return [[name for name in known if name in stage] for stage in stages]


def _automodel_stages(draw: random.Random) -> Row:
    ranks, chunks = draw.choice((1, 2, 3)), draw.choice((1, 2))
    marks = sorted(draw.randint(0, TITAN_LAYERS) for _ in range(ranks * chunks - 1))
    found = [
        [f"layers.{each}" for each in range(first, last)]
        for first, last in zip([0, *marks], [*marks, TITAN_LAYERS], strict=True)
    ]
    found[0].insert(0, "tok_embeddings")
    found[-1] += ["norm", "output"]
    if draw.random() < 0.4:
        found.append([])  # a stage too many for the ranks, but for one
    named = [[NAMES.get(each, f"model.{each}") for each in part] for part in found]
    schedule = draw.choice(("1f1b", "interleaved1f1b", "gpipe"))
    return [schedule, ranks, *([*part, OF_EVERY_STAGE] for part in named)]


def our_automodel_stages(_: str, ranks: int, *stages: list[str]) -> Any:
    """A loop of stages, of which each keeps what is named."""
    if len(stages) % ranks:
        return ILLEGAL
    order = [NAMES["tok_embeddings"], *(f"model.layers.{n}" for n in range(TITAN_LAYERS))]
    order += [NAMES["norm"], OF_EVERY_STAGE, NAMES["output"]]
    kept = [[name for name in order if name in stage] for stage in stages]
    return [[[at, kept[at]] for at in range(rank, len(stages), ranks)] for rank in range(ranks)]


def _section(draw: random.Random) -> Row:
    sizes = {f"{name}_size": draw.choice((1, 1, 2, 4)) for name in ("tp", "cp", "pp")}
    sizes["dp_size"], sizes["ep_size"] = draw.choice((1, 2, 4, 8)), draw.choice((1, 1, 2, 3, 8))
    told: dict[str, object] = {"strategy": draw.choice(("fsdp2",) * 6 + ("ddp",)), **sizes}
    pipeline: dict[str, object] = {"pp_schedule": "1f1b", "pp_microbatch_size": 1}
    if draw.random() < 0.1:
        pipeline["_target_"] = "nemo_automodel.AutoPipeline"
    if sizes["pp_size"] > 1 and draw.random() < 0.9:
        told["pipeline"] = pipeline
    cards = prod(sizes[f"{name}_size"] for name in ("tp", "cp", "pp", "dp"))
    return [told, draw.choice((cards, cards, cards, cards, cards + 1, max(1, cards - 1)))]


def our_section(told: Mapping[str, Any], cards: int) -> Any:
    """Automodel's: degrees are of the cards, of which some may be left over; a pipeline has its
    section, with plain fields, and FSDP; experts divide data, context and tensor ranks."""
    tp, cp, pp, data = (told[f"{name}_size"] for name in ("tp", "cp", "pp", "dp"))
    runs, expert = framework_named("automodel", "test"), told["ep_size"]
    pipeline = told.get("pipeline", {} if pp == 1 else {"_target_": "none"})
    if told["strategy"] == "ddp":
        return [1, 1] if tp == cp == pp == expert == 1 else ILLEGAL
    refused = runs.experts_refused(expert=expert, data=data, context=cp, tensor=tp, zero=2)
    if refused or tp * cp * pp * data > cards or "_target_" in pipeline:
        return ILLEGAL
    return [pp, expert]


def _batch(draw: random.Random) -> Row:
    local, data = draw.randint(1, 12), draw.choice((1, 2, 4, 8))
    return [draw.choice((local * data * draw.randint(1, 4), draw.randint(1, 96))), local, data]


def our_batch(samples: int, local: int, data: int) -> Any:
    """Samples are whole batches of all replicas."""
    return ILLEGAL if samples % (local * data) else samples // (local * data)


def _deepspeed_batch(draw: random.Random) -> Row:
    micro, count, data = draw.randint(1, 8), draw.randint(1, 16), draw.choice((1, 2, 4))
    return [micro * count * data + draw.choice((0, 0, 0, 1, -1)), micro, count, data]


def our_deepspeed_batch(samples: int, micro: int, microbatches: int, data: int) -> Any:
    """Samples are microbatches of all replicas."""
    return microbatches if samples == micro * microbatches * data else ILLEGAL


def _partition(draw: random.Random) -> Row:
    stages = draw.choice((1, 2, 3, 4, 6, 8, 16))
    layers = draw.choice((stages * draw.randint(1, 8), draw.randint(stages, 96)))
    return [draw.choice(("type", "type", "uniform")), layers, stages]


def our_partition(method: str, layers: int, stages: int) -> Any:
    """By the layers' class: an even cut; no other cut is planned for DeepSpeed."""
    return list(even_cut(layers=layers, stages=stages)) or UNTOLD if method == "type" else UNTOLD


def _steps(draw: random.Random) -> Row:
    return [draw.choice((1, 2, 3, 4, 5, 6, 8)), draw.randint(1, 24)]


def our_steps(stages: int, microbatches: int) -> Any:
    """1F1B: the passes of each rank."""
    made = Pipeline(num_ranks=stages, num_microbatches=microbatches)
    orders = family("1f1b").program(made).orders(stages)
    return ["".join(each.kind.name for each in order) for order in orders]


def _torch(draw: random.Random) -> Row:
    one = draw.choice(TORCH_CLASSES)
    p, v = draw.choice((2, 3, 4, 6)), draw.choice((1, 2, 2, 3))
    is_single = one.chunks == (1,)  # such a class is given a stage, no list of them
    return [one.name, p, 1 if is_single else v, draw.randint(1, 24)]


def our_torch(name: str, p: int, v: int, m: int) -> Any:
    """Whether the class takes it, and the digest of its order where a family of ours is it.

    Of 1F1B torch lays out a table with one microbatch too many on later ranks, and never runs it.
    One chunk of Interleaved1F1B is ours where ranks divide microbatches; else ours is shorter.
    """
    (told,) = (each for each in TORCH_CLASSES if each.name == name)
    if told.refusal(ranks=p, chunks=v, microbatches=m):
        return ILLEGAL
    own: Family | None = family("gpipe") if name == "GPipe" else None
    if name == "Interleaved1F1B" and (m >= p if v > 1 else m % p == 0):
        own = InterleavedOneForwardOneBackward(m // (m // p) if v > 1 else None)
    if own is None:
        return UNTOLD
    made = Pipeline(num_ranks=p, num_microbatches=m, num_chunks=v)
    orders = own.program(made).orders(p)
    return digest([[(a.kind.name, a.stage // p, a.microbatch) for a in order] for order in orders])


TITAN = ("torchtitan==0.3.0", "torchtitan==0.2.2")
MODEL, SPEED = ("nemo-automodel==0.7.0",), ("deepspeed==0.19.8",)
QUESTIONS = (
    Question(kind="torch", wheels=(), count=500, draw=_torch, ours=our_torch),
    Question(kind="mesh", wheels=TITAN, count=400, draw=_mesh, ours=our_mesh),
    Question(kind="words", wheels=TITAN[:1], count=90, draw=_words, ours=our_words),
    Question(
        kind="titan_stages", wheels=TITAN[:1], count=60, draw=_titan_stages, ours=our_titan_stages
    ),
    Question(kind="section", wheels=MODEL, count=400, draw=_section, ours=our_section),
    Question(kind="batch", wheels=MODEL, count=150, draw=_batch, ours=our_batch),
    Question(
        kind="automodel_stages",
        wheels=MODEL,
        count=40,
        draw=_automodel_stages,
        ours=our_automodel_stages,
    ),
    Question(kind="partition", wheels=SPEED, count=180, draw=_partition, ours=our_partition),
    Question(kind="steps", wheels=SPEED, count=80, draw=_steps, ours=our_steps),
    Question(
        kind="deepspeed_batch",
        wheels=SPEED,
        count=130,
        draw=_deepspeed_batch,
        ours=our_deepspeed_batch,
    ),
)


def record_of(kind: str) -> Path:
    """Where the answers to a question are recorded."""
    return Path(__file__).with_name("answers") / f"{kind}.json"


def differences(question: Question, told: Sequence[Any]) -> list[tuple[Row, Any, Any]]:
    """Where we say something else: the row, what the framework says, and what we do."""
    found = []
    for row, answer in zip(question.rows, told, strict=True):
        ours = question.ours(*row)
        if ours != answer and (ours != UNTOLD or answer is None):
            found.append((row, answer, ours))
    return found


def torch_answers(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The installed torch's classes: the digest of the order that each lays out."""
    from torch.distributed.pipelining import schedules

    from benchmarks.torch_tables import Refused, Size, torch_table

    found: list[dict[str, Any]] = []
    for name, p, v, m in rows:
        try:
            table = torch_table(
                schedules.get_schedule_class(name), Size(ranks=p, microbatches=m, chunks=v)
            )
            assert table is not None
            orders = [
                [(kind[0], int(stage) // p, int(batch)) for stage, kind, batch in cells]
                for cells in (_cells(table.compute[rank]) for rank in range(p))
            ]
            found.append({"told": digest(orders)})
        except Refused as refused:
            found.append({"refused": str(refused)})
    return found


def _cells(actions: Sequence[Any]) -> list[tuple[str, str, str]]:
    """Stage, kind and microbatch of each computation, pairs that overlap one after the other."""
    from benchmarks.torch_tables import parts

    found = []
    for text in (str(part) for action in actions for part in parts(action)):
        kind = next(letter for letter in text if letter.isalpha())
        stage, _, batch = text.partition(kind)
        found.append((stage, kind, batch))
    return found


def main() -> None:
    """Ask, compare the versions and ours, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    python = environment(folder)
    total = illegal = agreed = 0
    for question in QUESTIONS:
        rows, found = question.rows, []
        for wanted in question.wheels:
            packages = unpacked(python, folder, wanted)
            found.append(answers(python, packages, "framework_wheel", {question.kind: rows}))
        told = [each[question.kind] for each in found] or [torch_answers(rows)]
        values = [[each.get("told") for each in version] for version in told]
        differ = differences(question, values[0])
        total, agreed = total + len(rows), agreed + len(rows) - len(differ)
        illegal += sum(each is None for each in values[0])
        of, alike = " ".join(question.wheels) or _torch_version(), len(set(map(str, values))) == 1
        sys.stdout.write(
            f"{question.kind}: {len(rows)} rows, {values[0].count(None)} refused by {of}; versions "
            f"agree: {alike}; ours differ in {len(differ)} {differ[:3]}\n"
        )
        _write(question, told[0])
    sys.stdout.write(f"{total} asked, {illegal} of them illegal, {agreed} answered alike\n")


def _write(question: Question, told: Sequence[Mapping[str, Any]]) -> None:
    lines = [
        json.dumps(each["told"] if "told" in each else {"refused": each["refused"][:60]})
        for each in told
    ]
    head = json.dumps({"kind": question.kind, "of": question.wheels or [_torch_version()]})
    path = record_of(question.kind)
    path.parent.mkdir(exist_ok=True)
    text = ",\n".join(lines)
    path.write_text(f'{{"asked": {head},\n"told": [\n{text}\n]}}\n')


def _torch_version() -> str:
    from torch import __version__

    return f"torch=={__version__.partition('+')[0]}"


if __name__ == "__main__":
    main()
