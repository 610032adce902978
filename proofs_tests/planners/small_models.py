"""A small Llama on a few slow cards, as a problem file."""

from __future__ import annotations

from pathlib import Path

from bubbleproof.formats.clusters.cluster_toml import ClusterFile, read_cluster_file

TEXT = """
[model]
family = "llama"
layers = {layers}
hidden = 256
heads = 4
feed_forward = 512
vocabulary = 1000
sequence = 256
[cluster]
cards = {cards}
per_node = {per_node}
flops = 1e12
memory = "{memory}"
reserve = 0
memory_bandwidth = "100 GB/s"
node_link = "{link}"
network = "{network}"
[batch]
samples = {samples}
{plan}
"""


def small_file(
    folder: Path,
    plan: str,
    *,
    layers: int = 8,
    cards: int = 16,
    memory: str = "1 GiB",
    link: str = "10 GB/s",
    network: str = "1 GB/s",
    samples: int = 16,
) -> ClusterFile:
    """The file, ``plan`` being the lines of its table ``[plan]``."""
    path = folder / "small.toml"
    path.write_text(
        TEXT.format(
            layers=layers,
            cards=cards,
            per_node=4,
            memory=memory,
            link=link,
            network=network,
            samples=samples,
            plan=f"[plan]\n{plan}",
        )
    )
    return read_cluster_file(path)
