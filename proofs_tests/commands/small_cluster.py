"""The text of a small model on a small cluster, for files of tests; they add a table ``[plan]``."""

from __future__ import annotations

SMALL = """
[model]
family = "llama"
layers = 4
hidden = 256
heads = 4
feed_forward = 512
vocabulary = 1000
sequence = 256

[cluster]
cards = 4
per_node = 2
flops = 1e12
memory = "128 MiB"
reserve = 0
memory_bandwidth = "100 GB/s"
node_link = "10 GB/s"
network = "1 GB/s"

[batch]
samples = 8

"""
