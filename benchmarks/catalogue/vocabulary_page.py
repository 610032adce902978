"""The page of vocabulary parallelism, which is no family: no pipeline has its passes.

Its paper's figures are in ``vocabulary_rows.csv``: Yeung et al., arXiv 2411.05288 v1, Table 1
(models) and Table 5 (1F1B on A100 of 80 GB, microbatches of one sample, 128 a step). Each row is
measured twice: by FLOPs alone, as its Table 4 counts them, and by the times and bytes that ``plan``
has of the model on those cards.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from benchmarks.catalogue.family_page import formula_section
from benchmarks.markdown import markdown_table
from bubbleproof.costs.combinations import CombinationCosts, combinations, legal
from bubbleproof.formats.clusters.cluster_toml import ClusterFile, cluster_file_of_text
from bubbleproof.formats.clusters.deployed_space import deployed_space
from bubbleproof.papers.field.vocabulary import vocabulary_order, with_output_layer
from bubbleproof.papers.field.vocabulary_deployed import with_shared_ends
from bubbleproof.report.picture import Picture
from bubbleproof.theory.families import families
from bubbleproof.theory.model.measures import Measures, measure
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.shapes.shaping import shaped
from bubbleproof.theory.pipelines.timing import left_shift

NAME = "vocabulary"
ROWS = Path(__file__).parents[1] / "vocabulary_rows.csv"
MICROBATCHES = 128
STAGE, OUTPUT = 120, 144  # ticks: two layers, and an output layer of 2.4 (the paper's Figure 3)
GRID = tuple((p, m) for p in (4, 8, 16) for m in (2 * p, 8 * p))
BARRIERS = (2, 1)  # of the paper's Vocab-1 and Vocab-2
MEMORY = ("baseline_gib", "vocab_1_gib", "vocab_2_gib")
Numbers = Sequence[tuple[float, ...]]
JOB = """\
[model]
family = "gpt"
layers = {layers}
hidden = {hidden}
heads = {heads}
vocabulary = {vocabulary}
sequence = {sequence}
[cluster]
card = "a100-80gb"
cards = {cards}
framework = "megatron-core"
[batch]
samples = {microbatches}
sequence = {sequence}
[plan]
tensor = [1]
data = [1]
pipeline = [{cards}]
micro_batch = [1]
scope = ["none"]
chunks = [1]
"""


def drawn(barriers: int) -> Picture:
    """The order at the size of the paper's Figure 10."""
    pipeline = Pipeline(num_ranks=4, num_microbatches=8, forward=4, backward=8)
    problem, schedule = _shared(pipeline, output=12, barriers=barriers)
    title = f"vocabulary parallelism, {barriers} barrier{'s' * (barriers - 1)}, p=4 m=8"
    return Picture(problem=problem, schedule=schedule, title=title)


def _shared(pipeline: Pipeline, *, output: int, barriers: int) -> tuple[Problem, Schedule]:
    """An output layer of so many ticks, a third of them forward, on all ranks."""
    third, rest = divmod(output, 3 * pipeline.num_ranks)
    assert not rest, output
    score = third * (3 - barriers)
    problem = with_output_layer(pipeline, score=score, weight=3 * third - score, barriers=barriers)
    return problem, left_shift(problem, vocabulary_order(pipeline, barriers))


def _ended(p: int, m: int, stage: int, output: int) -> Measures:
    """1F1B with the output layer on its last stage; a third of all ticks is forward."""
    forward = (*[stage // 3] * (p - 1), (stage + output) // 3)
    pipeline = Pipeline(
        num_ranks=p, num_microbatches=m, forward=forward, backward=tuple(2 * f for f in forward)
    )
    problem = pipeline.problem()
    return measure(problem, families()["1f1b"].schedule(pipeline, problem))


def _spread(p: int, m: int, stage: int, output: int, barriers: int) -> Measures:
    pipeline = Pipeline(
        num_ranks=p, num_microbatches=m, forward=stage // 3, backward=2 * stage // 3
    )
    return measure(*_shared(pipeline, output=output, barriers=barriers))


def _beside() -> str:
    rows: list[list[object]] = []
    for p, m in GRID:
        found = [_ended(p, m, STAGE, OUTPUT)]
        found += [_spread(p, m, STAGE, OUTPUT, barriers) for barriers in BARRIERS]
        rows.append([f"{p} {m}"])
        for each in found:
            share = f"{100 * float(each.idle_ratio):.1f} %"
            rows[-1] += [each.makespan, share, max(each.peak_activations)]
    names = ("1F1B", "2 barriers", "1 barrier")
    header = [f"{name}: {what}" for name in names for what in ("makespan", "idle", "peak")]
    return markdown_table(["p m", *header], rows)


@dataclass(frozen=True, kw_only=True)
class PrintedRow:
    """A row of the paper's Table 5, and what is measured at its numbers."""

    told: Mapping[str, float]

    def __getitem__(self, name: str) -> int:
        return int(self.told[name])

    @property
    def setup(self) -> tuple[str, str]:
        """As the page's tables begin."""
        return f"{self['cards']}, {self['sequence']}", f"{self['vocabulary'] // 1000}k"

    @cached_property
    def file(self) -> ClusterFile:
        """The job as a file of a plan."""
        told = {name: int(value) for name, value in self.told.items()}
        return cluster_file_of_text(JOB.format(**told, microbatches=MICROBATCHES), name=NAME)

    @cached_property
    def counted(self) -> CombinationCosts:
        """The plan's numbers of its one deployment."""
        (found,) = legal(map(self.file.counted, combinations(self.file.training, self.file.lists)))
        return found

    @cached_property
    def baseline(self) -> Measures:
        """1F1B by those numbers, as many layers on each stage."""
        space = deployed_space(self.file, self.counted)
        (even,) = {c for c in space.candidates() if len(set(c.layers or ())) == 1}
        pipeline = shaped(space, even).pipeline
        problem = pipeline.problem()
        return measure(problem, families()["1f1b"].schedule(pipeline, problem))

    @cached_property
    def shared(self) -> list[Measures]:
        """Of Vocab-1 and Vocab-2."""
        return [measure(*with_shared_ends(self.counted, barriers)) for barriers in BARRIERS]

    def gains(self) -> list[tuple[float, float, float]]:
        """Of each the throughput over the baseline's: printed, by FLOPs in units of b s h (Table
        4), and by the plan's times to the end of the step."""
        h, s, p = self["hidden"], self["sequence"], self["cards"]
        size = p, MICROBATCHES, self["layers"] // p * (72 * h + 12 * s), 6 * self["vocabulary"]
        by_flops, after = _ended(*size).makespan, self.counted.numbers.step_end
        return [
            (
                self.told[f"vocab_{name}_mfu"] / self.told["baseline_mfu"],
                by_flops / _spread(*size, barriers).makespan,
                (self.baseline.makespan + after) / (found.makespan + after),
            )
            for name, (barriers, found) in enumerate(zip(BARRIERS, self.shared, strict=True), 1)
        ]

    def memory(self) -> list[tuple[float, float]]:
        """Of the baseline and of each GiB of the fullest card, printed and by the plan: without the
        reserve of driver and libraries, as PyTorch counts."""
        beside = self.counted.numbers.beside - self.file.training.cluster.reserve
        every = zip(MEMORY, (self.baseline, *self.shared), strict=True)
        return [
            (self.told[name], (max(found.peak_memory) + beside) / 2**30) for name, found in every
        ]


def printed_rows() -> list[PrintedRow]:
    """Those of the paper's Table 5 for 1F1B."""
    with ROWS.open(encoding="utf-8") as stream:
        every = [{k: float(v) for k, v in row.items()} for row in csv.DictReader(stream)]
    return [PrintedRow(told=row) for row in every]


def _table(
    rows: Sequence[PrintedRow], columns: Sequence[str], found: Sequence[Numbers], form: str
) -> str:
    told = [[format(number, form) for each in pairs for number in each] for pairs in found]
    cells = ([*row.setup, *numbers] for row, numbers in zip(rows, told, strict=True))
    return markdown_table(["cards, tokens", "words", *columns], cells)


def _error(found: Sequence[Numbers], column: int) -> str:
    """The mean and the extremes of a measured number over the printed one less one."""
    every = [100 * (each[column] / each[0] - 1) for pairs in found for each in pairs]
    mean = sum(map(abs, every)) / len(every)
    return f"{mean:.1f} % off ({min(every):+.1f} to {max(every):+.1f} %)"


def page() -> str:
    """The page as Markdown."""
    rows = printed_rows()
    gained, held = [row.gains() for row in rows], [row.memory() for row in rows]
    gains = [f"Vocab-{n}: {by}" for n in (1, 2) for by in ("printed", "by FLOPs", "by `plan`")]
    names = ("baseline", "Vocab-1", "Vocab-2")
    memory = [f"{name}: {by}" for name in names for by in ("printed", "by `plan`")]
    return TEXT.format(
        stage=STAGE,
        output=OUTPUT,
        beside=_beside(),
        formulas=formula_section(NAME),
        gains=_table(rows, gains, gained, ".2f"),
        memory=_table(rows, memory, held, ".1f"),
        of_flops=_error(gained, 1),
        of_plan=_error(gained, 2),
        of_memory=_error(held, 1),
    )


TEXT = """\
# Vocabulary parallelism: 1F1B with the output layer on all ranks

With a large vocabulary the embedding and the output layer take as long, and hold as much, as
several layers, and the last stage has one of them. Here each rank has a share of the words. Beside
F and B of its stage it runs S, the scores of its words, and T, the gradient of their weights; what
the shares find is joined by all-reduces, the *barriers*, on a stream of their own. Source: Yeung,
Qi, Lin and Wan, Balancing Pipeline Parallelism with Vocabulary Parallelism (MLSys 2025, arXiv
2411.05288), Figure 10, and its code.

It is no family: a stage of a pipeline has one stage before it and one behind, so that files and
replays have no such layer. [Papers](../guide/papers.md#an-output-layer-on-all-ranks) has it in
Python, and `bubbleproof plan FILE --paper vocabulary` tells what it would take of a model on a
cluster, beside the plan and checked. Its authors' code runs it. megatron-core 0.19.2, torchtitan
0.3.0, Automodel 0.7.0 and DeepSpeed 0.19.8 give a stage of the pipeline the whole output layer or
none of it (`benchmarks/frameworks` asks them), and no file of theirs has its arXiv number.

![one barrier](pictures/vocabulary-1.svg)
![two barriers](pictures/vocabulary-2.svg)

S is drawn as a light F, T as a light W, the barriers as F and B of a row of their own. Two
barriers are the paper's Algorithm 1 (Vocab-1), one is Algorithm 2 (Vocab-2), its code's default.
Shares of the embedding have no passes here, since there is time for them whenever a rank waits;
`plan` counts their ticks with F and B, their weights with each rank.

## Beside 1F1B

A stage takes {stage} ticks, a third of them forward, the output layer {output}: two layers, and 2.4
as in the paper's Figure 3. 1F1B has it on its last stage. Peaks are in activations of a stage, of
the fullest rank.

{beside}
## Peak and bubble as formulas

{formulas}
## Measured against the paper's figures

Its Table 5 (read in a transcription of the first version): GPT of
about 4, 10 and 21 billion parameters on 8, 16 and 32 A100, a stage on each,
1F1B and 128 microbatches of a sample. *By FLOPs* are these orders where a pass takes as long as its
FLOPs (Table 4: b s h (72 h + 12 s) a layer, 6 b s h V the output layer) and a message no time; *by
`plan`* at the times and bytes that `plan` has of the model on those cards under Megatron-LM.

Throughput over that of the baseline: by FLOPs {of_flops},
by `plan` {of_plan}.
FLOPs know nothing of messages, nor that passes slow down beside all-reduces (with 8 cards, 2048
tokens and 256k words the artifact's profile has forwards of 11.3 ms, the baseline's of 10.5).
`plan` counts each message in full, for which a baseline has time but on its last stage.

{gains}
Memory of the fullest card, GiB, as PyTorch reserves it: by `plan` {of_memory}.
With the smallest vocabulary shared ends save less than one or two microbatches more need.

{memory}
Not measured here: V-Half with these passes (Table 6; no order of it is among ours), layers moved
from the last stage (`plan` tries those cuts itself), and the interlaced pipeline.
"""


def draw(folder: Path) -> None:
    """Write both pictures to ``folder/pictures``."""
    (folder / "pictures").mkdir(parents=True, exist_ok=True)
    for barriers in BARRIERS:
        drawn(barriers).save(folder / "pictures" / f"{NAME}-{barriers}.svg")
