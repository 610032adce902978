"""A small model on a small cluster, for tests."""

from __future__ import annotations

from bubbleproof.costs import Deployment, transformer
from bubbleproof.costs.cluster import Cluster
from bubbleproof.costs.combinations import Counted, Lists, Training, combinations, counted

MODEL = transformer("llama", layers=4, hidden=256, heads=4, feed_forward=512, vocabulary=1000)
CARDS = Cluster(
    cards=4,
    per_node=2,
    flops=1e12,
    memory=64 << 20,
    memory_bandwidth=1e11,
    node_link=1e10,
    network=1e9,
    reserve=0,
)
TRAINING = Training(
    model=MODEL,
    cluster=CARDS,
    samples=8,
    deployment=Deployment(sequence=256, accounting="fused"),
)


def all_counted(training: Training, lists: Lists) -> list[Counted]:
    """Every combination, with its numbers."""
    return [counted(training, each) for each in combinations(training, lists)]
