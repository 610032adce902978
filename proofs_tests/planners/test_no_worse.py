"""A plan is no worse on better cards, links and limits, or with one choice more.

Jobs are drawn: small models on 4 to 16 cards, of which some hold only part of the deployments. A
plan's orders are timed anew on what is improved, and each is as fast there or faster; so a plan
that is worse was made of fewer deployments, cuts or orders. Two kinds of that were found in 100
jobs with nine improvements each: which groups interleaved orders were tried in went by how long
messages took, and a balanced cut, which goes by the numbers, had another last stage on an H200.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf
from random import Random

import pytest

from bubbleproof.formats.clusters.cluster_toml import ClusterFile, cluster_file_of_text
from bubbleproof.formats.clusters.deployed_space import all_counted, deployed_space
from bubbleproof.planners import PlanOptions
from bubbleproof.planners.cluster_planned import ClusterPlan
from bubbleproof.planners.planning import plan_cluster
from proofs_tests.sized import sized

WORSE = 1.001
WORK = 3.0
Job = dict[str, object]
MORE = {"[1]": "[1, 2]", "[2]": "[1, 2]", "[1, 2]": "[1, 2, 3]"}


def drawn(number: int) -> Job:
    """The words of a job's file, by key; rates in GB/s and TFLOP/s, memory in GiB."""
    draw = Random(number)
    heads = draw.choice((8, 16, 32))
    cards = draw.choice((4, 8, 16))
    return {
        "family": draw.choice(("llama", "gpt")),
        "layers": draw.choice((6, 8, 10, 12)),
        "heads": heads,
        "hidden": heads * draw.choice((64, 128)),
        "vocabulary": draw.choice((32000, 50304)),
        "sequence": draw.choice((1024, 2048, 4096)),
        "card": draw.choice(("h100", "a100-80gb")),
        "cards": cards,
        "per_node": min(cards, draw.choice((4, 8))),
        "memory": draw.choice((3.0, 4.0, 6.0, 8.0, 12.0)),
        "network": draw.choice((25.0, 50.0, 100.0, 200.0)),
        "link": draw.choice((100.0, 200.0, 300.0)),
        "bandwidth": draw.choice((1000.0, 1500.0, 2000.0)),
        "flops": draw.choice((100.0, 200.0, 300.0)),
        "samples": draw.choice((8, 16, 32)),
        "tensor": draw.choice(("[1]", "[1, 2]")),
        "pipeline": draw.choice(("[2]", "[4]", "[2, 4]")),
        "micro_batch": draw.choice(("[1]", "[1, 2]")),
        "scope": draw.choice(('["none"]', '["full"]')),
        "chunks": draw.choice(("[1]", "[2]", "[1, 2]")),
    }


def file_of(job: Job) -> ClusterFile:
    """The job as its problem file; a card without numbers of its own has those of its sheet."""
    feed = f"feed_forward = {4 * int(str(job['hidden']))}\n" if job["family"] == "llama" else ""
    numbers = (
        ("network", "network", " GB/s"),
        ("node_link", "link", " GB/s"),
        ("memory_bandwidth", "bandwidth", " GB/s"),
        ("flops", "flops", " TFLOP/s"),
    )
    told = "".join(f'{key} = "{job[name]:g}{unit}"\n' for key, name, unit in numbers if name in job)
    return cluster_file_of_text(
        f'[model]\nfamily = "{job["family"]}"\n{feed}'
        + "".join(f"{n} = {job[n]}\n" for n in ("layers", "heads", "hidden", "vocabulary"))
        + f'sequence = {job["sequence"]}\n[cluster]\ncard = "{job["card"]}"\nreserve = 0\n'
        f'cards = {job["cards"]}\nper_node = {job["per_node"]}\nmemory = "{job["memory"]} GiB"\n'
        f'{told}[batch]\nsamples = {job["samples"]}\n[plan]\nframework = "megatron"\nzero = [1]\n'
        + "".join(
            f"{n} = {job[n]}\n" for n in ("tensor", "pipeline", "micro_batch", "scope", "chunks")
        ),
        name="job",
    )


def planned(file: ClusterFile, work: float = WORK) -> int | None:
    """The microseconds of the plan's iteration, None where nothing fits."""
    found = plan_cluster(
        all_counted(file),
        lambda one: deployed_space(file, one),
        PlanOptions(time_limit=inf, work=work, orders=file.orders),
        is_lazy=file.is_open,
        bounded=file.bounded,
    )
    return found.value if isinstance(found, ClusterPlan) else None


def times(name: str, factor: float) -> Callable[[Job], ClusterFile]:
    """The job with so many times a number."""
    return lambda job: file_of({**job, name: factor * float(str(job[name]))})


def on_sheet(job: Job, card: str) -> ClusterFile:
    """The job on a card with the numbers of its data sheet, but for the memory."""
    own = {k: v for k, v in job.items() if k not in ("network", "link", "bandwidth", "flops")}
    return file_of({**own, "card": card})


def with_lower_latency(job: Job) -> ClusterFile:
    """Each collective starts in half the time."""
    file = file_of(job)
    cluster = file.training.cluster
    constants = {**cluster.constants, "collective": cluster.constants["collective"] / 2}
    cluster = replace(cluster, constants=constants)
    return replace(file, training=replace(file.training, cluster=cluster))


IMPROVEMENTS: dict[str, Callable[[Job], ClusterFile]] = {
    "memory": times("memory", 1.3),
    "network": times("network", 2),
    "links of a node": times("link", 1.5),
    "flops": times("flops", 1.3),
    "memory bandwidth": times("bandwidth", 1.4),
    "latency": with_lower_latency,
    "a choice more": lambda job: file_of({**job, "chunks": MORE[str(job["chunks"])]}),
}


@pytest.mark.parametrize("number", sized((32, 71), full=range(100)))
def test_a_plan_is_no_worse_where_something_is_better(number: int) -> None:
    job = drawn(number)
    before = planned(file_of(job))
    pairs = {name: (before, planned(better(job))) for name, better in IMPROVEMENTS.items()}
    pairs["time"] = before, planned(file_of(job), 2 * WORK)
    pairs["H200"] = planned(on_sheet(job, "h100")), planned(on_sheet(job, "h200"))
    for name, (was, found) in pairs.items():
        if was is not None:
            assert found is not None, name
            assert found <= WORSE * was, name
