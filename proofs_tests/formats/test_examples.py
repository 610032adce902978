"""The example problems say what their comments say, by arithmetic done again here."""

from __future__ import annotations

from pathlib import Path

import pytest

from bubbleproof.formats import (
    ProblemFile,
    UnusableInput,
    comparison_pipeline,
    read_problem,
)
from bubbleproof.formats.clusters.cluster_toml import is_cluster_file, read_cluster_file
from bubbleproof.theory.families import family
from bubbleproof.theory.model.measures import Measures, measure

EXAMPLES = Path(__file__).parents[2] / "examples"
GIB = 2**30

LAYERS, TOKENS, HIDDEN, HEADS, WORDS, RANKS = 40, 2048, 5120, 40, 51200, 8
PER_STAGE = 20 * 12 * LAYERS * HIDDEN**2 // RANKS
STATIC = [PER_STAGE] * RANKS
STATIC[0] += 20 * (WORDS + TOKENS) * HIDDEN
STATIC[7] += 20 * WORDS * HIDDEN
# BPipe Eq. 4 with the fraction 5 H l / h written out.
ACTIVATION = LAYERS * TOKENS * (34 * HIDDEN + 5 * HEADS * TOKENS) // RANKS


def example(name: str) -> ProblemFile:
    (path,) = EXAMPLES.glob(f"*/{name}.toml")
    return read_problem(path)


def measured(file: ProblemFile, name: str) -> Measures:
    pipeline = comparison_pipeline(file.pipeline, family(name))
    problem = pipeline.problem()
    return measure(problem, family(name).schedule(pipeline, problem))


FILES = sorted(EXAMPLES.glob("*/*.toml"))
OF_MODELS = [path for path in FILES if is_cluster_file(path)]


@pytest.mark.parametrize("path", OF_MODELS, ids=lambda path: path.stem)
def test_a_model_on_a_cluster_reads_and_is_no_pipeline(path: Path) -> None:
    assert read_cluster_file(path).name == path.stem
    with pytest.raises(UnusableInput, match="which bubbleproof plan -o DIR writes"):
        read_problem(path)


@pytest.mark.parametrize(
    "path", [path for path in FILES if path not in OF_MODELS], ids=lambda path: path.stem
)
def test_every_example_reads_and_compares(path: Path) -> None:
    file = read_problem(path)
    assert file.name == path.stem
    for comparison in file.compare:
        chosen = family(comparison.family)
        pipeline = comparison_pipeline(file.pipeline, chosen, num_chunks=comparison.num_chunks)
        assert chosen.refusal(pipeline) is None


def test_gpt3_fits_1f1b_as_the_paper_says() -> None:
    file = example("gpt3-13b-8xA100")
    assert file.pipeline.static == tuple(STATIC)
    assert file.pipeline.activation == (ACTIVATION,) * RANKS
    assert file.pipeline.capacity == 80 * GIB
    found = measured(file, "1f1b")
    # 1F1B on equal stages: (m + p - 1) (tF + tB).
    assert found.makespan == (32 + 8 - 1) * (36320 + 74120)
    peaks = [static + (RANKS - r) * ACTIVATION for r, static in enumerate(STATIC)]
    assert list(found.peak_memory) == peaks
    assert max(peaks) == 84724940800 <= 80 * GIB
    # BPipe section 2: the last stage uses up to half of its memory, 37 GiB less than the first.
    assert peaks[7] < 40 * GIB
    assert 36 * GIB < peaks[0] - peaks[7] < 40 * GIB


def test_capped_gpt3_does_not_fit_1f1b() -> None:
    file = example("gpt3-13b-capped")
    assert file.pipeline.capacity == 72 * GIB
    assert file.pipeline.static == tuple(STATIC)
    assert max(measured(file, "1f1b").peak_memory) > 72 * GIB
    # One microbatch at a time holds one activation per rank, so some schedule fits.
    assert max(STATIC) + ACTIVATION <= 72 * GIB
    assert [(72 * GIB - static) // ACTIVATION for static in STATIC] == [6, 7, 7, 7, 7, 7, 7, 6]


def test_uneven_gpt3_adds_the_head() -> None:
    file = example("gpt3-13b-uneven")
    layer = 24 * TOKENS * HIDDEN**2 + 4 * TOKENS**2 * HIDDEN
    head = 2 * TOKENS * HIDDEN * WORDS
    assert file.pipeline.forward == (36320,) * 7 + (36320 + 36320 // 5 * head // layer,)
    assert file.pipeline.backward == (74120,) * 7 + (74120 + 74120 // 5 * head // layer,)
    logits = 4 * TOKENS * HIDDEN + 4 * TOKENS * WORDS
    assert file.pipeline.activation == (ACTIVATION,) * 7 + (ACTIVATION + logits,)
    message = 2 * TOKENS * HIDDEN
    # Bytes over GB/s, in microseconds, rounded.
    assert file.pipeline.latency == round(message / 300e9 * 1e6)
    assert file.pipeline.links[0].ranks == (3, 4)
    assert file.pipeline.links[0].latency == round(message / 25e9 * 1e6)


def test_split_backward_leaves_room_for_zb_h1() -> None:
    file = example("split-backward")
    assert file.pipeline.split_backward is True
    found = measured(file, "zb-h1")
    assert found.peak_memory == (4, 4, 4, 4)
    # No schedule can beat one rank's work plus the first forwards on the way: 8 * 29.
    assert found.makespan >= 8 * (10 + 11 + 8)
