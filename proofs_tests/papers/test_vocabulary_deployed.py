"""Vocabulary parallelism of a model on a cluster: what a rank has of the ends, and what is told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bubbleproof.costs.combinations import CombinationCosts, legal
from bubbleproof.formats.clusters.cluster_toml import ClusterFile, cluster_file_of_text
from bubbleproof.formats.clusters.deployed_space import all_counted
from bubbleproof.papers.field.vocabulary_deployed import vocabulary_choice, with_shared_ends
from bubbleproof.theory.model.measures import measure
from bubbleproof.verify import check

JOB = """
[model]
family = "gpt"
layers = 8
hidden = 2048
heads = 16
vocabulary = {words}
[cluster]
card = "a100-80gb"
cards = 4
memory = "{memory} GiB"
[batch]
samples = 16
sequence = 2048
[plan]
tensor = [1, 2]
pipeline = [1, 2, 4]
scope = ["none"]
micro_batch = [1]
chunks = [1]
"""


def job(words: int = 128000, memory: int = 80) -> ClusterFile:
    return cluster_file_of_text(JOB.format(words=words, memory=memory), name="job")


def of_stages(file: ClusterFile, stages: int) -> CombinationCosts:
    every = legal(all_counted(file))
    return next(one for one in every if one.combination.pipeline == stages)


@pytest.mark.parametrize("barriers", [1, 2])
def test_the_ranks_together_do_and_hold_what_the_stages_did(barriers: int) -> None:
    one = of_stages(job(), 4)
    problem, _ = with_shared_ends(one, barriers)
    m, layers = one.microbatches, one.numbers.layers
    done = problem.duration[problem.rank_of_task >= 0].sum()
    # F and B of a rank have a share of the embedding each, S and T of the head: the next whole tick
    assert 0 <= done - m * layers.sums["ticks"][-1] < 4 * 4 * m * 2
    held = sum(store.base for store in problem.stores[:4])
    own = layers.sums["static"][-1]
    shares = layers.head.activation + 4 * one.numbers.message  # of one microbatch, between S and T
    assert 0 <= held - own - shares < 4 * 3


@pytest.mark.parametrize(("barriers", "ahead"), [(1, 1), (2, 2)])
def test_the_order_takes_what_the_claims_say(barriers: int, ahead: int) -> None:
    one = of_stages(job(), 4)
    one = replace(one, numbers=replace(one.numbers, latency=0))
    problem, schedule = with_shared_ends(one, barriers)
    verdict = check(problem, schedule)
    assert verdict.ok
    name = {problem.label(task): int(problem.duration[task]) for task in range(problem.num_tasks)}
    stage, passes = name["0F0"] + name["0B0"], name["5F0"] + name["5W0"]
    # m (tF + tB + tS + tT) + (p-1)(tF + tB), but for the last T of one barrier
    last = name["5W0"] if barriers == 1 else 0
    found = measure(problem, schedule)
    assert found.makespan == 16 * (stage + passes) + 3 * stage - last
    layers = one.numbers.layers
    kept = 2 * layers.runs[0][0].activation - -layers.embedding.activation // 4  # of a microbatch
    assert found.peak_activations[0] == (4 + ahead) * kept


def iterations(file: ClusterFile) -> dict[str, int]:
    """Of every deployment of several stages whose order fits, the iteration."""
    found = {}
    for one in legal(all_counted(file)):
        if one.combination.pipeline > 1:
            verdict = check(*with_shared_ends(one))
            if verdict.ok and verdict.measured is not None:
                taken = verdict.measured.makespan + one.numbers.step_end
                found[str(one.combination)] = taken
    return found


@pytest.mark.parametrize("memory", [80, 12])
def test_the_choice_is_the_shortest_that_fits(memory: int) -> None:
    file = job(memory=memory)
    every = iterations(file)
    chosen, value = vocabulary_choice(all_counted(file))
    assert value == min(every.values()) == every[str(chosen.choice["deployment"])]
    assert chosen.run is None  # nothing of it is written, or handed to a framework


def test_what_fits_nowhere_is_told() -> None:
    assert iterations(job(memory=4)) == {}
    chosen, value = vocabulary_choice(all_counted(job(memory=4)))
    assert (value, chosen.executable) == (None, False)
    assert chosen.note == "no deployment of several stages fits"
