"""The deployments that papers' planners take, against counts of every deployment by hand."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from pathlib import Path

import pytest

from bubbleproof.costs.combinations import (
    Combination,
    CombinationCosts,
    combinations,
    counted,
    legal,
)
from bubbleproof.formats.clusters.cluster_toml import ClusterFile
from bubbleproof.formats.clusters.deployed_space import deployed_space
from bubbleproof.papers.planning.paper_deployments import (
    PaperDeployment,
    chooses_deployments,
    in_order,
)
from bubbleproof.papers.planning.planner_list import paper_choice
from proofs_tests.planners.small_models import small_file
from proofs_tests.sized import sized

PLAN = """
pipeline = [4]
micro_batch = [1, 2]
zero = [0, 1]
scope = ["none", "full"]
"""
GRID = """
tensor = [1]
micro_batch = [1]
context = [1, 2, 4]
zero = [1]
scope = ["none"]
accounting = "mepipe"
chunks = [1, 2]
slices = [1, 2, 4]
"""


def file_of(tmp_path: Path, memory: int) -> ClusterFile:
    return small_file(tmp_path, PLAN, layers=4, cards=8, memory=f"{memory} KiB", samples=32)


def counts_of(file: ClusterFile) -> list[CombinationCosts]:
    listed = combinations(file.training, file.lists)
    return legal(counted(file.training, one) for one in listed)


def chosen(paper: str, file: ClusterFile) -> PaperDeployment | None:
    cluster = file.training.cluster
    found = in_order(paper, counts_of(file), lambda one: deployed_space(file, one), cluster)
    return next(iter(found), None)


def by_hand(one: CombinationCosts) -> tuple[int, bool] | None:
    """BPipe's count of an iteration, and whether with transfers; None where nothing fits.

    Four stages of a layer each, the first with the embedding and the last with the head; mu is
    min(4, m), with transfers 3; two transfers of A_0 within a forward and a backward.
    """
    numbers = one.numbers
    if one.reason or one.combination.zero != 1:
        return None
    parts = numbers.layers.stages((1, 1, 1, 1))
    forward, backward = max(p.forward for p in parts), max(p.backward for p in parts)
    static, kept = min(p.static for p in parts), min(p.activation for p in parts)
    total = (one.microbatches + 3) * (forward + backward) + numbers.step_end
    if static + kept * min(4, one.microbatches) <= numbers.capacity:
        return total, False
    # t groups of a node of 4 cards: 4/t stages share a node; only stages 0 and 3 move.
    link = 10_000 if one.combination.tensor <= 2 else 250  # bytes a microsecond
    is_hidden = 2 * -(-kept // link) <= forward + backward
    if static + kept * min(3, one.microbatches) <= numbers.capacity and is_hidden:
        return total, True
    return None


def test_bpipe_takes_the_least_count_of_its_grid(tmp_path: Path) -> None:
    seen = set()
    for memory in range(74_000, 90_000, sized(1500, full=250)):
        file = file_of(tmp_path, memory)
        found = chosen("bpipe", file)
        hand = {one.combination: told for one in counts_of(file) if (told := by_hand(one))}
        if found is None:
            assert not hand
            continue
        assert found.predicted == min(total for total, _ in hand.values()), memory
        total, is_balanced = hand[found.counted.combination]
        assert total == found.predicted
        choice = paper_choice("bpipe", found.given)
        assert choice.choice["schedule"] == ("bpipe" if is_balanced else "1f1b")
        seen.add(is_balanced)
        assert found.counted.combination.zero == 1
    assert seen == {False, True}


def test_transfers_take_the_link_of_their_pair(tmp_path: Path) -> None:
    file = file_of(tmp_path, 200_000)
    found = chosen("bpipe", file)
    assert found is not None
    allowed = found.given.space.allowed
    assert allowed is not None
    assert allowed.evict is not None
    kept = int(found.given.space.pipeline.per_stage.activation.min())
    # 10 GB/s within a node are 10,000 bytes a microsecond, 1 GB/s of a node's four cards 250 each.
    assert allowed.evict.duration == -(-kept // 10_000)
    assert found.given.table["transfer_between_nodes"] == -(-kept // 250)


def test_mepipe_takes_the_least_of_table_3(tmp_path: Path) -> None:
    file = file_of(tmp_path, 200_000)
    found = chosen("mepipe", file)
    assert found is not None
    hand = []
    for one in counts_of(file):
        if one.reason or one.combination.zero != 1:
            continue
        parts = one.numbers.layers.stages((1, 1, 1, 1))
        slots = one.microbatches + 3  # v = s = 1
        each = max(p.forward + p.backward for p in parts)
        hand.append(slots * each + one.numbers.step_end)
    assert found.predicted == min(hand)


def enumerated_grid(file: ClusterFile) -> dict[tuple[int, ...], int]:
    """(PP, SPP, VP, DP, CP) to Table 3's count of an iteration, by loops over all five.

    SVPP keeps v s to v max(p, s) + min(p, s) - 1 pieces; where the most fits, Table 3 tells its
    slots. Grids of a smaller f are left out: the tests' memory has room for all or for none.
    """
    training = file.training
    found: dict[tuple[int, ...], int] = {}
    sizes = (1, 2, 4, 8)
    for p, s, v, d, c in product(sizes, (1, 2, 4), (1, 2), (1, 2, 4, 8, 16), (1, 2, 4)):
        if p * d * c != 16 or 8 % (p * v) or 16 % d:
            continue
        one = Combination(
            tensor=1, data=d, pipeline=p, micro_batch=1, zero=1, scope="none", context=c
        )
        costs = counted(training, one)
        if not isinstance(costs, CombinationCosts):
            continue
        numbers = costs.numbers
        cut = (8 // (p * v),) * (p * v)
        parts = numbers.layers.stages(cut)
        if any(
            (part.forward % s, part.backward % s, part.activation % s) != (0, 0, 0)
            for part in parts
        ):
            continue
        n = 16 // d
        slots = n * v * s + p - 1 + (v - 1) * max(p - s * n, 0)
        each = max((part.forward + part.backward) // s for part in parts)
        found[p, s, v, d, c] = slots * each + numbers.step_end
    return found


@pytest.mark.parametrize(("link", "network"), [(100_000, 100_000), (10, 1), (1000, 10)])
def test_mepipes_grid_against_enumeration(tmp_path: Path, link: int, network: int) -> None:
    file = small_file(tmp_path, GRID, link=f"{link} MB/s", network=f"{network} MB/s")
    found, hand = chosen("mepipe", file), enumerated_grid(file)
    assert found is not None
    # Of one deployment the planner takes the least bubble, as the paper does: not the least ticks.
    at = found.counted.combination
    sizes = at.pipeline, at.data, at.context
    mine = paper_choice("mepipe", found.given).choice
    point = at.pipeline, mine["slices"], mine["chunks"], at.data, at.context
    assert found.predicted == hand[point]  # type: ignore[index]  # the choice has whole numbers
    least: dict[tuple[int, ...], tuple[Fraction, int, int]] = {}
    for (p, s, v, d, c), ticks in hand.items():
        n = 16 // d
        bubble = Fraction(p - 1 + (v - 1) * max(p - s * n, 0))
        bubble /= n * v * s + bubble
        best = least.get((p, d, c))
        if best is None or (bubble, v * s) < best[:2]:
            least[p, d, c] = (bubble, v * s, ticks)
    assert found.predicted == min(ticks for _, _, ticks in least.values())
    assert least[sizes][2] == found.predicted


def test_context_parallelism_divides_a_samples_memory_and_sends_its_keys_around(
    tmp_path: Path,
) -> None:
    training = small_file(tmp_path, GRID, link="10 MB/s", network="1 MB/s").training
    kept, forward, states = {}, {}, {}
    for c, d in ((1, 4), (2, 2), (4, 1)):
        one = Combination(
            tensor=1, data=d, pipeline=4, micro_batch=1, zero=1, scope="none", context=c
        )
        (numbers,) = (each.numbers for each in legal([counted(training, one)]))
        kept[c] = numbers.layers.runs[0][0].activation
        forward[c] = numbers.layers.runs[0][0].forward
        states[c] = numbers.layers.runs[0][0].static
    # A layer keeps its part of the tokens; weights are shared by d c replicas however they are cut.
    assert (kept[2], kept[4]) == (kept[1] // 2, kept[1] // 4)
    assert len({*states.values()}) == 1
    # The keys and values of 128 tokens, 2 * 256 numbers of two bytes each, go once to the other
    # card at no more than 10 MB/s: 13.1 ms. Each of four sends those of 64 tokens three times.
    sent = Fraction(128 * 2 * 256 * 2) / 10  # bytes over bytes of a microsecond
    assert forward[1] < sent < forward[2]
    assert sent * 3 / 2 < forward[4]


def test_where_nothing_fits_nothing_is_taken(tmp_path: Path) -> None:
    file = file_of(tmp_path, 100)
    assert chosen("bpipe", file) is None
    assert chosen("mepipe", file) is None


@pytest.mark.parametrize(("paper", "has"), [("bpipe", True), ("mepipe", True), ("tpipe", False)])
def test_papers_with_a_grid_choose_deployments(paper: str, has: bool) -> None:
    assert chooses_deployments(paper) is has
