"""A small model on a small cluster, for tests."""

from __future__ import annotations

from dataclasses import replace

from bubbleproof.costs import Deployment, Transformer, transformer
from bubbleproof.costs.cluster import Cluster
from bubbleproof.costs.cluster_layers import ClusterLayers, JobLayers
from bubbleproof.costs.combinations import AnyCount, Lists, TrainingJob, combinations, counted
from bubbleproof.costs.times.cards import Card
from bubbleproof.costs.times.constants import starts
from bubbleproof.costs.times.profiles import software
from bubbleproof.theory.pipelines.shapes.cut_lists import NamedCuts
from bubbleproof.theory.pipelines.shapes.layer_cuts import CutRule

MODEL = transformer("llama", layers=4, hidden=256, heads=4, feed_forward=512, vocabulary=1000)
CARD = Card(
    name="small",
    title="small",
    memory_gib=1 / 8,  # half of it for the framework's workspace
    memory_gbs=100,
    link_gbs=10,
    network_gbs=2,
    cards_per_node=2,
    reached=0.5,
    tflops={"bf16": 1.0},
)
# The host is never waited for, so that times are those of the card.
QUICK = {**starts(CARD), "launch": 1e-6}
CARDS = Cluster(card=CARD, cards=4, constants=QUICK, reserve=0, runs=software("megatron-core"))
TRAINING = TrainingJob(
    rule=NamedCuts(),
    model=MODEL,
    cluster=CARDS,
    samples=8,
    deployment=Deployment(sequence=256, accounting="fused"),
)


def with_memory(memory: int) -> TrainingJob:
    """The same on cards of so many bytes."""
    card = replace(CARD, memory_gib=memory / 2**30)
    return replace(TRAINING, cluster=CARDS.with_changes(card=card))


def all_counted(training: TrainingJob, lists: Lists) -> list[AnyCount]:
    """Every combination, with its numbers."""
    return [counted(training, each) for each in combinations(training, lists)]


def cluster_layers(
    model: Transformer,
    at: Deployment,
    cluster: Cluster,
    rule: CutRule,
    shares: int = 1,
    microbatches: int = 1,
) -> ClusterLayers:
    """The numbers of one deployment, as a job's are made."""
    return JobLayers(model, cluster, shares).of(at, rule, microbatches)
