"""PipeMesh's planner: Eq. 6 to 9 by enumeration and as an integer program, and built schedules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import product
from random import Random

import pytest

from bubbleproof.planners import PlanOptions, plan
from bubbleproof.planners.papers import paper_choice
from bubbleproof.planners.papers.buffer_queue import Mesh, Queue, planned_queue
from bubbleproof.planners.papers.mesh_numbers import Meshed, static_of_rank
from bubbleproof.planners.papers.mesh_runs import built
from bubbleproof.planners.papers.paper_choice import (
    Given,
    PaperChoice,
    Run,
    joint,
    known_of,
    step_ticks,
)
from bubbleproof.planners.papers.pipemesh import plans, printed_plan
from bubbleproof.planners.papers.recomputed_operations import Operation
from bubbleproof.solvers.engines.cbc import CBC
from bubbleproof.solvers.engines.pulp_alone import pulp
from bubbleproof.theory.pipelines.allowed import Allowed, AllowedRecompute
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.plan_space import PlanSpace
from bubbleproof.verify import check_whole
from proofs_tests.sized import sized


def drawn(seed: int, operations: int) -> Meshed:
    """A random mesh with a budget under which some queues fit and others do not."""
    random = Random(seed)
    p, chunks = random.randint(2, 4), random.choice([1, 2, 3, 5, 6])
    m = random.randint(p, 4 * p)
    forward = random.randint(2, 9)
    mesh = Mesh(
        num_ranks=p, num_chunks=chunks, num_microbatches=m, replicas=random.randint(1, 4),
        parameters=random.randint(1, 30), forward=forward,
        backward=forward + random.randint(0, 9), communication=random.randint(0, 40),
    )  # fmt: skip
    listed = tuple(
        Operation(name=f"o{k}", size=random.randint(0, 6), ticks=random.randint(0, 3))
        for k in range(operations)
    )
    base = random.randint(0, 5)
    full = base + sum(o.size for o in listed)
    least, most = planned_queue(mesh, p), planned_queue(mesh, m)
    low, high = least.total_bytes(base), most.total_bytes(full)
    budget = int(low + (high - low) * Fraction(random.randint(-1, 11), 10))
    plain = Pipeline(
        num_ranks=p, num_microbatches=m, num_chunks=chunks, forward=mesh.forward,
        backward=mesh.backward, activation=full,
    )  # fmt: skip
    return Meshed(
        plain=plain, candidate=None, mesh=mesh, operations=listed, base=base, beside=0,
        budget=None if random.random() < 0.1 else budget,
    )  # fmt: skip


SEEDS = sized(range(60), full=range(600))


def subsets(given: Meshed) -> Iterator[tuple[int, int, tuple[bool, ...]]]:
    """(bytes stored, ticks recomputed, what is recomputed) of every set of operations."""
    for again in product((False, True), repeat=len(given.operations)):
        pairs = list(zip(given.operations, again, strict=True))
        yield (
            given.base + sum(o.size for o, flag in pairs if not flag),
            sum(o.ticks for o, flag in pairs if flag),
            again,
        )


def largest(given: Meshed, stored: int) -> Queue | None:
    """F(o) by its definition."""
    sizes = [
        q
        for q in given.mesh.queues
        if given.budget is None
        or planned_queue(given.mesh, q).total_bytes(stored) < given.budget
    ]  # fmt: skip
    return planned_queue(given.mesh, max(sizes)) if sizes else None


def enumerated(given: Meshed) -> int | None:
    """Eq. 6 with F(o): the least added ticks, over all sets of operations."""
    j = given.mesh.num_chunks * given.mesh.num_microbatches + given.mesh.num_ranks - 1
    costs = []
    for stored, ticks, _ in subsets(given):
        queue = largest(given, stored)
        if queue is not None:
            costs.append(j * ticks + queue.exposed_ticks)
    return min(costs, default=None)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_dynamic_program_is_exact_against_all_subsets(seed: int) -> None:
    given = drawn(seed, operations=1 + seed % 7)
    found, least = printed_plan(given), enumerated(given)
    assert (found is None) == (least is None)
    if found is None or least is None:
        return
    # The reconstructed set stores and recomputes what the table says, and q is F of what it stores.
    rows = {again: (stored, ticks) for stored, ticks, again in subsets(given)}
    stored, ticks = rows[found.selection.recomputed]
    assert stored == found.selection.stored
    queue = largest(given, stored)
    assert queue is not None
    assert queue.size == found.queue.size
    assert given.mesh.passes * ticks + queue.exposed_ticks == least
    # Eq. 7 begins with T(B) where the differences of Eq. 9 begin with T(F(0)).
    first = largest(given, given.base)
    assert first is not None
    start = planned_queue(given.mesh, given.mesh.num_microbatches).exposed_ticks
    assert found.selection.cost == least + start - first.exposed_ticks


def integer_program(given: Meshed, *, is_largest: bool) -> int | None:
    """The same choice as an integer program: x_k stores operation k, y_q is the queue.

    ``is_largest``: q must be F(o), as printed; otherwise any q that fits, which can be better.
    """
    model = pulp.LpProblem("pipemesh", pulp.LpMinimize)
    queues = {q: planned_queue(given.mesh, q) for q in given.mesh.queues}
    full = sum(o.size for o in given.operations)

    def flag(name: str) -> pulp.LpVariable:
        return model.add_variable(name, 0, 1, cat=pulp.LpInteger)

    x = [flag(f"x{k}") for k in range(len(given.operations))]
    y = {q: flag(f"y{q}") for q in queues}
    room = {}
    for q, queue in queues.items():
        # The largest stored s with states + n (base + s) < budget.
        room[q] = full
        if given.budget is not None:
            left = (given.budget - queue.state_bytes) / queue.stored_passes - given.base
            room[q] = min(full, -int(-left // 1) - 1)
    stored = pulp.lpSum(o.size * v for o, v in zip(given.operations, x, strict=True))
    recomputed = pulp.lpSum(o.ticks * (1 - v) for o, v in zip(given.operations, x, strict=True))
    late = pulp.lpSum(queues[q].exposed_ticks * y[q] for q in y)
    model += given.mesh.passes * recomputed + late
    model += pulp.lpSum(y.values()) == 1
    for q in y:
        model += stored <= room[q] + (2 * full + abs(room[q]) + 1) * (1 - y[q])
        for more in (r for r in y if r > q and is_largest):
            model += stored >= room[more] + 1 - (abs(room[more]) + full + 1) * (1 - y[q])
    model.solve(pulp.COIN_CMD(path=CBC, msg=False))
    if pulp.LpStatus[model.status] != "Optimal":
        return None
    least: int = round(pulp.value(model.objective))
    return least


@pytest.mark.parametrize("seed", sized(range(12), full=range(100)))
def test_the_dynamic_program_is_exact_against_an_integer_program(seed: int) -> None:
    given = drawn(seed, operations=9)
    found, least = printed_plan(given), integer_program(given, is_largest=True)
    assert (found is None) == (least is None)
    if found is None or least is None:
        return
    more = given.mesh.passes * found.recomputed_ticks + found.queue.exposed_ticks
    assert more == least
    # What fits exactly is left out by the strict inequality of Eq. 6, and q need not be F(o).
    ours = [given.mesh.passes * one.recomputed_ticks + one.queue.exposed_ticks
            for one in plans(given)]  # fmt: skip
    any_queue = integer_program(given, is_largest=False)
    assert any_queue is not None
    assert min(ours) <= any_queue <= least


@pytest.mark.parametrize("seed", SEEDS[:30])
def test_for_each_queue_as_little_is_recomputed_as_fits(seed: int) -> None:
    given = drawn(seed, operations=1 + seed % 7)
    wanted = {}
    for q in given.mesh.queues:
        queue = planned_queue(given.mesh, q)
        fitting = [
            ticks
            for stored, ticks, _ in subsets(given)
            if given.budget is None or queue.total_bytes(stored) <= given.budget
        ]
        if fitting:
            wanted[q] = min(fitting)
    assert {one.queue.size: one.recomputed_ticks for one in plans(given)} == wanted


@pytest.mark.parametrize("seed", SEEDS)
def test_sequences_and_shares_are_those_of_section_4b(seed: int) -> None:
    mesh = drawn(seed, operations=1).mesh
    m, late, back = mesh.num_microbatches, mesh.communication, mesh.backward
    for size in mesh.queues:
        queue = planned_queue(mesh, size)
        e, d = queue.enqueue, queue.dequeue
        assert (e[0], sum(e), sum(d), len(d)) == (size, m, m, len(e))
        assert len(e) == 1 + -(-(m - size) // size)
        reducing, front, gathering = queue.buckets
        # Eq. 3 to 5 vanish, each collective hidden by its own passes ...
        assert len(d) == 1 or late * queue.gradients <= reducing * back
        assert late * queue.sharded <= min(front * mesh.forward, gathering * back)
        # ... and no larger share of ZeRO-3 would be.
        if m * back >= len(d) * late:
            assert queue.gradients == 1
            if mesh.num_chunks > 4 and queue.sharded < 1:
                assert late * queue.sharded == gathering * back
        else:
            assert queue.sharded == 0
            if len(d) > 1 and d[-1] < m - len(d) + 1:
                assert (d[-1] - 1) * back < late <= d[-1] * back


def test_the_table_of_the_paper_has_the_sequences_of_its_text() -> None:
    """Section VI-A: two elements each, and the dequeue sequence is the enqueue sequence.

    Table IV's q and B / D microbatches; C_fwd : C_bwd are its totals, C_DP half of Eq. 2's first
    term, T_DP_crit, as all else is hidden ("overlapped except that of the first model chunk").
    """
    rows = (
        (3, 6, 12, 6, 15541, 25672, 2451), (4, 6, 24, 12, 50120, 92171, 7579),
        (4, 5, 16, 8, 48836, 88411, 8592), (4, 8, 24, 12, 60359, 108054, 6388),
    )  # fmt: skip
    for p, chunks, m, q, forward, backward, late in rows:
        each = chunks * m
        mesh = Mesh(
            num_ranks=p, num_chunks=chunks, num_microbatches=m, replicas=3, parameters=1,
            forward=forward // each, backward=backward // each, communication=late // 2,
        )  # fmt: skip
        queue = planned_queue(mesh, q)
        assert queue.enqueue == queue.dequeue == (q, m - q)
        assert queue.gradients == 1
        assert queue.exposed_ticks == 2 * (late // 2)


OPERATIONS = [
    {"name": "gelu", "activation": 2, "ticks": 1, "count": 6},
    {"name": "query", "activation": 1, "ticks": 2, "count": 6},
]


def space(capacity: int | None, *, p: int = 3, m: int = 12, chunks: tuple[int, ...]) -> PlanSpace:
    """A rank of 60 and 120 ticks, 24 units of activation and 200 of model state (8 each of 25)."""
    pipeline = Pipeline(
        num_ranks=p, num_microbatches=m, forward=60, backward=120, activation=24, static=200,
        capacity=capacity,
    )  # fmt: skip
    return PlanSpace(pipeline=pipeline, chunks=chunks)


def table(**changes: object) -> Mapping[str, object]:
    given = {
        "parameters": 25, "replicas": 3, "communication": 300, "operations": OPERATIONS, **changes
    }  # fmt: skip
    return {key: value for key, value in given.items() if value is not None}


def chosen(capacity: int | None, chunks: tuple[int, ...] = (1, 2, 3, 6)) -> PaperChoice:
    return paper_choice("pipemesh", Given(space=space(capacity, chunks=chunks), table=table()))


def test_choices_run_within_the_memory_that_the_paper_counts() -> None:
    for capacity in sized((500, 360, 300, 280, 262), full=range(250, 520, 5)):
        found = chosen(capacity)
        run = found.run
        assert run is not None
        assert isinstance(run, Run)
        verdict = check_whole(run.pipeline.problem(), run.schedule)
        assert verdict.ok
        assert max(run.measured.peak_memory) <= capacity
        assert found.choice["chunks"] == 6
        if found.executable:
            memory = found.choice["memory"]
            assert isinstance(memory, int)
            assert max(run.measured.peak_memory) <= memory <= capacity
        assert found.value == step_ticks(run.pipeline.problem(), run.schedule)


def test_the_joint_plan_is_never_worse_by_the_same_costs() -> None:
    for capacity in (500, 400, 280):
        found = chosen(capacity)
        assert found.improved is not None
        planned = plan(space(capacity, chunks=(1, 2, 3, 6)), PlanOptions(time_limit=0.5, threads=1))
        best = joint(planned, found)
        assert best is not None
        assert found.value is not None
        assert best.value <= found.value
    # At 400 the printed q = 9 leaves an enqueue of 3 that hides too little of ZeRO-3's gathers.
    assert "ticks more than the paper counts" in chosen(400).note


def test_a_choice_that_algorithm_1_cannot_run_is_named_and_replaced() -> None:
    """P = 3, M = 1, B = 3: rank 0 would begin with 4 forwards of 3 (pipemesh_order)."""
    few = PlanSpace(pipeline=space(None, m=3, chunks=(1,)).pipeline, chunks=(1,))
    found = paper_choice("pipemesh", Given(space=few, table=table()))
    assert not found.executable
    assert found.note.startswith("q = 3: Algorithm 1 takes a pass where none is left")
    assert "the best that runs, Algorithm 1 repaired, has q = 3" in found.note
    assert found.run is not None
    # 5 (60 + 120) ticks of compute behind and before 300 of communication.
    assert found.value == 5 * 180 + 600


def test_a_queue_that_adds_a_bubble_is_named_and_the_best_other_runs() -> None:
    """q = 3 leaves (3, 1): an enqueue below P = 3, and a backward of a chunk waits for none."""
    troubled = []
    for m, capacity in product((4, 5, 7, 8), range(240, 330, 10)):
        given = Given(
            space=PlanSpace(
                pipeline=space(capacity, m=m, chunks=(2,)).pipeline, chunks=(2,)
            ),
            table=table(operations=[]),
        )  # fmt: skip
        found = paper_choice("pipemesh", given)
        if found.choice["q"] is not None and not found.executable:
            troubled.append(found)
    assert troubled
    for found in troubled:
        assert found.note.startswith(f"q = {found.choice['q']}: ")


def test_what_a_plan_holds_is_what_is_sharded_and_what_is_not() -> None:
    given = drawn(3, operations=4)
    found = printed_plan(given)
    assert found is not None
    pipeline = built(found)
    sharding = pipeline.choices.sharding
    assert sharding is not None
    mesh, queue = found.queue.mesh, found.queue
    held = static_of_rank(pipeline)
    assert isinstance(sharding.parameter, int)
    assert isinstance(sharding.gradient, int)
    # Two buffers each of gathered parameters for forwards and backwards, two of gradients.
    total = held + 4 * sharding.parameter + 2 * sharding.gradient
    exact = queue.state_bytes
    assert exact <= total <= exact + 7
    assert mesh.num_chunks == pipeline.num_chunks


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"operations": [{"name": "o", "activation": 30, "ticks": 1, "count": 1}]}, "store 30"),
        ({"parameters": 26}, r"memory.static must hold the \(12/D \+ 4\) psi = 208 units"),
    ],
)
def test_a_table_that_does_not_fit_the_file_is_refused(
    changes: dict[str, object], told: str
) -> None:
    given = Given(space=space(500, chunks=(1,)), table=table(**changes))
    with pytest.raises(ValueError, match=told):
        paper_choice("pipemesh", given)


def test_without_a_table_there_is_no_data_parallelism_and_the_choice_enters_the_search() -> None:
    """Of the paper's costs T_DP is 0: the largest M, and the largest q that fits."""
    given = Given(space=space(330, chunks=(1, 2, 3)), table={})
    found = paper_choice("pipemesh", given)
    # Three chunks of 8 units: 2 q + 2 2 + 1 passes beside 200 of static memory: q = 5 makes 320.
    assert (found.choice["chunks"], found.choice["q"], found.choice["memory"]) == (3, 5, 320)
    # (3 12 + 2) (20 + 40) ticks; that order holds no more than the paper counts.
    assert (found.value, found.executable) == (2280, True)
    start = known_of(found)
    assert start is not None
    planned = plan(given.space, PlanOptions(time_limit=0.01, threads=1), known=(start,))
    assert planned.value is not None
    assert planned.value <= 2280


def test_without_a_table_the_files_recomputation_is_one_operation() -> None:
    plain = space(260, chunks=(1,)).pipeline
    again = AllowedRecompute(stages=(0, 1, 2), kept=4, duration=10)
    given = PlanSpace(pipeline=plain, allowed=Allowed(recompute=again), chunks=(1,))
    found = paper_choice("pipemesh", Given(space=given, table={}))
    # 2 2 + 1 passes of 24 beside 200 do not fit below 260, of the 4 that are kept they do, for any
    # q: one chunk. Each of (12 + 2) rounds takes 10 more: 14 (60 + 130).
    assert found.choice["recompute"] == ["chunk x1"]
    assert (found.choice["q"], found.value) == (12, 2660)


def test_operations_that_no_listed_number_of_chunks_divides_are_refused() -> None:
    given = Given(space=space(500, chunks=(5, 4)), table=table())
    with pytest.raises(ValueError, match=r"plan.chunks must list what divides .*, got 5, 4; use 6"):
        paper_choice("pipemesh", given)
