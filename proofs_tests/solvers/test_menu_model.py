"""The model of a menu, family by family: without one of them the checker refuses its schedule."""

from __future__ import annotations

import pytest

from bubbleproof.solvers.engines.cpsat_menu import MenuModel, run_model
from bubbleproof.solvers.engines.engine import Budget
from bubbleproof.solvers.engines.menu_frame import Frame, is_anchored
from bubbleproof.solvers.menu import Menu, Option
from bubbleproof.solvers.menu_order import Symmetry
from bubbleproof.solvers.pipeline_menu import PipelineMenu
from bubbleproof.solvers.starts import schedule_of_starts
from bubbleproof.theory.model.actions import NONE
from bubbleproof.theory.pipelines.allowed import Allowed, AllowedEvictions
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify import Rule, check
from proofs_tests.patience import in_time
from proofs_tests.solvers.small import prefetch

# Slow messages want three forwards ahead on rank 0, which has room for two and may park on rank 1.
PIPELINE = Pipeline(num_ranks=2, num_microbatches=4, latency=3, capacity=2)
EVICT = Allowed(evict=AllowedEvictions(pairs=((0, 1),), duration=1))


def broken(monkeypatch: pytest.MonkeyPatch, *methods: str) -> tuple[Rule, ...]:
    """The rules that the model's schedule breaks when some families are left out."""
    for method in methods:
        monkeypatch.setattr(MenuModel, method, lambda _: None)
    menu = PipelineMenu(PIPELINE, EVICT).menu
    model = MenuModel(Frame(menu=menu, limit=40, order=Symmetry.NONE))
    model.build()
    found = run_model(model, Budget(deadline=in_time(), threads=1))
    assert found.start is not None
    assert found.taken is not None
    problem = menu.taken(found.taken)
    start = found.start[menu.whole.locate(problem.actions)]
    return check(problem, schedule_of_starts(problem, start)).broken


def test_with_all_families_the_schedule_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    assert broken(monkeypatch) == ()


@pytest.mark.parametrize(
    ("methods", "rule"),
    [
        (("add_dependencies",), Rule.DEPENDENCIES),
        (("add_exclusion",), Rule.EXCLUSIVE),
        (("add_memory",), Rule.MEMORY),
        (("add_memory", "add_pools"), Rule.MEMORY),
    ],
)
def test_each_family_is_needed(
    methods: tuple[str, ...], rule: Rule, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert rule in broken(monkeypatch, *methods)


def test_a_menu_is_anchored_where_transfers_lie_between_computations() -> None:
    assert is_anchored(PipelineMenu(PIPELINE, EVICT).menu)
    # 0LOAD0 of ``prefetch`` waits for nothing, so it may run before the first computation.
    whole = prefetch()
    option = whole.actions.kind * 0 + NONE
    option[whole.task("0LOAD0")] = 0
    free = Menu(
        whole=whole,
        options=(Option(what="load", stage=0, microbatch=0),),
        task_option=option,
        edge_option=whole.edges.lag * 0,
        event_option=option[:0],
    )
    assert not is_anchored(free)
