"""BPipe's pair-adjacent assignment: which pairs of stages share a node.

Symbols: p stages, t tensor and d data parallelism, g GPUs of a node, s a stage; t p d GPUs. Tensor
ranks of a stage are neighbours; the replicas follow one another. Within a replica the standard
assignment has the stages in order, the pair-adjacent one 0, p-1, 1, p-2, ... (Figures 5 and 6).
For an odd number of stages and several replicas no figure shows where the middle stages
go: a replica after the other is one way, the pairs of all replicas first another. Which stages
transfer to which is asked of BPipe's schedule (its evictions at m = 2p), and which
stages follow one another of 1F1B's problem.

Source: Kim et al., "BPipe" (ICML 2023) section 3.5, Figures 5 and 6.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from bubbleproof.papers.bpipe.bpipe_bytes import MODELS, SEQUENCE, inventory
from bubbleproof.papers.bpipe.bpipe_schedules import made
from bubbleproof.papers.bpipe.node_places import pair_adjacent, standard
from bubbleproof.papers.claims.claim import PaperClaim, read_as, reading, stated
from bubbleproof.papers.claims.domain import CaseValues, Domain, Params, domain

Assignment = Callable[[int], list[int]]  # the stages of a replica in the order of its GPUs
PlacesOf = Callable[
    [Params, int, int], int
]  # the place of a stage of a replica, in groups of t GPUs
Pairs = set[tuple[int, int]]
NODE = 8
# Figure 6: the stage of each of 16 GPUs with t = 2, d = 2, p = 4.
FIGURE_6 = (0, 0, 3, 3, 1, 1, 2, 2) * 2


def in_order(assignment: Assignment) -> PlacesOf:
    """The replicas one after the other, each assigned alike."""
    return lambda at, replica, stage: replica * at["p"] + assignment(at["p"]).index(stage)


def pairs_first(at: Params, replica: int, stage: int) -> int:
    """The pairs of all replicas, then the middle stages that an odd number leaves."""
    p, both = at["p"], at["p"] // 2 * 2
    if p % 2 and stage == p // 2:
        return at["d"] * both + replica
    return replica * both + pair_adjacent(p).index(stage)


def nodes(at: Params, places: PlacesOf, stage: int) -> list[int]:
    """The node of each tensor rank of a stage, replica by replica."""
    t = at["t"]
    groups = (places(at, replica, stage) for replica in range(at["d"]))
    return [(group * t + rank) // at["g"] for group in groups for rank in range(t)]


def transferring(at: Params) -> Pairs:
    """(evictor, acceptor) of every eviction of BPipe's schedule."""
    pipeline = made("bpipe", at["p"], 2 * at["p"]).pipeline
    return {(moved.source, moved.target) for moved in pipeline.choices.evictions}


def following(at: Params) -> Pairs:
    """The stages that exchange messages in 1F1B, the earlier first."""
    problem = made("1f1b", at["p"], at["p"]).problem
    rank, edges = problem.rank_of_task, problem.edges
    both = zip(rank[edges.before].tolist(), rank[edges.after].tolist(), strict=True)
    return {(min(pair), max(pair)) for pair in both if pair[0] != pair[1]}


def crossing(at: Params, places: PlacesOf, pairs: Pairs) -> int:
    """How many links between GPUs of the pairs, all replicas counted, join two nodes."""
    ends = ((nodes(at, places, one), nodes(at, places, other)) for one, other in pairs)
    return sum(here != there for both in ends for here, there in zip(*both, strict=True))


def share_crossing(at: Params, places: PlacesOf) -> Fraction:
    """The share of the links over which BPipe transfers that join two nodes."""
    pairs = transferring(at)
    return Fraction(crossing(at, places, pairs), len(pairs) * at["t"] * at["d"])


def _placed(text: str, where: str, *, tensor: CaseValues = (1, 2, 4)) -> Domain:
    told = f"4 <= p <= 16, d <= 3, g in 4 8; {text}"
    return domain(told, where=where, p=range(4, 17), t=tensor, d=(1, 2, 3), g=(4, NODE))


WITHIN = _placed("t in 1 2 4, t < g", "t < g")
WHOLE = _placed("t = g", "t == g", tensor=(4, 8))
TWO_NODES = domain(
    "p t = 16 on two nodes of 8 GPUs, t in 1 2 4",
    p_t_d_g=((16 // t, t, 1, NODE) for t in (4, 2, 1)),
)
GPUS = domain(
    "p = 4, t = 2, d = 2 on two nodes of 8: the 16 GPUs of Figure 6",
    gpu=range(16),
    p=(4,),
    t=(2,),
    d=(2,),
    g=(NODE,),
)


def stage_of(at: Params) -> int:
    """The stage on a GPU, by the pair-adjacent assignment."""
    return pair_adjacent(at["p"])[at["gpu"] // at["t"] % at["p"]]


def pair_bytes_over_boundary(at: Params) -> Fraction:
    """Bytes a pair transfers of a microbatch over what a stage passes on (its sharded output)."""
    boundary = Fraction(2 * SEQUENCE * at["b"] * at["h"], at["t"])
    return inventory("attention")(at) / boundary


_SHARE = "share of the links that BPipe transfers over that join two nodes"
CLAIMS: tuple[PaperClaim, ...] = (
    stated("bpipe.fig5.standard", "§3.5, Figure 5(a)",
           "On two nodes the standard assignment puts every pair on different nodes.", _SHARE,
           lambda at: share_crossing(at, in_order(standard)), "==", 1, TWO_NODES),
    stated("bpipe.fig6.stages", "§3.5, Figure 6",
           "The 16 GPUs hold stages 0 0 3 3 1 1 2 2 on either node.", "stage of the GPU", stage_of,
           "==", lambda at: FIGURE_6[at["gpu"]], GPUS),
    read_as("bpipe.sec3.5.one-node", "§3.5",
            "The pair-adjacent assignment puts each pair on one node where tensor parallelism "
            "leaves room for two stages, t < g.", _SHARE, (
                reading("the pairs of all replicas first",
                        "§3.5: each evictor-acceptor pair is located in one node",
                        lambda at: share_crossing(at, pairs_first), "==", 0, WITHIN),
                reading("one replica after the other",
                        "Figure 6, of an even number of stages, drawn on for an odd one",
                        lambda at: share_crossing(at, in_order(pair_adjacent)), "==", 0, WITHIN),
            )),
    stated("bpipe.sec3.5.whole-node", "§3.5",
           "With t = g every transfer crosses the node boundary.", _SHARE,
           lambda at: share_crossing(at, in_order(pair_adjacent)), "==", 1, WHOLE),
    stated("bpipe.sec3.5.consecutive", "§3.5, Figure 5(b)",
           "The price is more traffic between nodes for consecutive stages: on two nodes two "
           "boundaries in place of one.", "links between nodes for consecutive stages",
           lambda at: crossing(at, in_order(pair_adjacent), following(at)), "==",
           lambda at: 2 * crossing(at, in_order(standard), following(at)), TWO_NODES),
    stated("bpipe.sec3.5.bytes", "§3.5, by Eq. 5",
           "The bytes between pairs are much more than those between consecutive stages: 17 L/p "
           "times as many at the attention scope (85, 170 and 119 times).", "bytes over bytes",
           pair_bytes_over_boundary, "==", "17*L/p", MODELS),
)  # fmt: skip
