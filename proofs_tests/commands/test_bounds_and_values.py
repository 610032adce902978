"""Every bound that a plan prints, against every value that anyone finds in the set that it names.

Values come by five ways: the plan, its other deployments, each configuration of one's own, the same
deployment forced by lists, and the same job planned for another framework that takes the same time.
None is below a bound of a set that it is in; and no plan is longer than what the user runs, where
that is legal.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from random import Random

import pytest

from bubbleproof.costs import combinations
from bubbleproof.costs.times.software import Software
from bubbleproof.facts import rows
from bubbleproof.formats.clusters.cluster_toml import ClusterFile, cluster_file_of_text
from bubbleproof.formats.clusters.deployed_space import all_counted, deployed_space
from bubbleproof.formats.clusters.own_configuration import own_configuration
from bubbleproof.planners import PlanOptions
from bubbleproof.planners.cluster_planned import ClusterPlan
from bubbleproof.planners.cluster_results import restriction_facts
from bubbleproof.planners.own_run import NotLegalRun, OwnRun, own_run
from bubbleproof.planners.planning import plan_cluster
from bubbleproof.planners.restriction import Restriction, UnknownRestriction, restriction_of
from bubbleproof.theory.pipelines.shapes.cut_bounds import NEVER
from proofs_tests.commands.conftest import Run
from proofs_tests.commands.small_cluster import SMALL
from proofs_tests.patience import PATIENCE
from proofs_tests.sized import sized

FRAMEWORKS = ("megatron-core", "torchtitan", "deepspeed", "torch", "any")
OWN_FRAMEWORKS = ("megatron-core", "megatron-core", "deepspeed", "any")
OPTIONS = PlanOptions(time_limit=1.0)  # whatever is found then, no bound is above it
JOBS, OWNS = sized(3, full=12), sized(6, full=20)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A plan with what was asked, and what its framework costs."""

    file: ClusterFile
    plan: ClusterPlan
    restriction: Restriction | None

    @property
    def values(self) -> list[int]:
        return [self.plan.value, *(row.value for row in self.plan.solved)]

    @property
    def software(self) -> Software:
        """By which the times are; those of two frameworks say nothing of each other."""
        return self.file.training.cluster.runs


def drawn(random: Random) -> str:
    """A small model on a few cards, sometimes with a batch that is no whole rounds."""
    text = SMALL.replace("layers = 4", f"layers = {random.choice((4, 6, 7, 8))}")
    text = text.replace("samples = 8", f"samples = {random.choice((4, 6, 8, 10, 12))}")
    text = text.replace("128 MiB", random.choice(("128 MiB", "512 MiB", "2 GiB")))
    return text.replace("cards = 4", f"cards = {random.choice((2, 4, 4, 8))}")


def planned(text: str, plan: str, own: str = "") -> tuple[Found | None, OwnRun | None]:
    """What the command does, without what it prints; None where nothing fits."""
    file = cluster_file_of_text(f"{text}\n[plan]\n{plan}\n", name="drawn")
    run = None
    if own:
        try:
            run = own_run(file, own_configuration(own, file.training.cluster.cards))
        except NotLegalRun:
            return None, None
        file = run.beside(file)
    found = plan_cluster(
        all_counted(file),
        lambda one: deployed_space(file, one),
        replace(OPTIONS, orders=file.orders),
        is_lazy=file.is_open,
        known=None if run is None else run.begins,
        bounded=file.bounded,
    )
    if not isinstance(found, ClusterPlan):
        assert run is None or run.reason
        return None, run
    cost = restriction_of(file, found, run, OPTIONS, PATIENCE)
    assert not isinstance(cost, UnknownRestriction)
    return Found(file=file, plan=found, restriction=cost), run


def hold(found: Found) -> None:
    """An answer's own bounds against its own values."""
    assert found.plan.lower_bound <= min(found.values)
    for row in found.plan.solved:
        assert row.bound <= row.value, row.combination
    if (cost := found.restriction) is not None:
        assert cost.bound <= min(found.values)
        assert cost.value is None or cost.bound <= cost.value


def configurations(random: Random, text: str) -> list[str]:
    """Such as a user may run, in a random order; many of them legal."""
    cards = cluster_file_of_text(text, name="").training.cluster.cards
    sizes = [n for n in range(1, cards + 1) if cards % n == 0]
    every = [
        f"tensor={t} pipeline={p} context={c} chunks={v} micro_batch={b} zero={zero}"
        for t, p, c in product(sizes, repeat=3)
        for v, b, zero in product((1, 2, 3, 5), (1, 2, 3), (0, 1, 3))
        if cards % (t * p * c) == 0 and (v == 1 or p > 1)
    ]
    return random.sample(every, min(OWNS, len(every)))


@pytest.mark.sweep
def test_no_value_is_below_a_bound_of_its_set() -> None:
    seen = Counter[str]()
    for seed in range(JOBS):
        random = Random(seed)
        text = drawn(random)
        plain = {name: planned(text, f'framework = "{name}"')[0] for name in FRAMEWORKS}
        every = [found for found in plain.values() if found is not None]
        for found in every:
            hold(found)
        everywhere = defaultdict[Software, list[int]](list)  # as one software takes its time
        for found in every:
            everywhere[found.software].extend(found.values)
        for found in every:
            if found.restriction is not None:  # any framework's orders of these deployments
                assert "any framework" in found.restriction.bounded
                assert found.restriction.bound <= min(everywhere[found.software])
                seen["frameworks"] += 1
        for own in configurations(random, text):
            seen[hold_own(text, random.choice(OWN_FRAMEWORKS), own)] += 1
    assert min(seen[what] for what in ("frameworks", "candidate", "outside")) > 0, seen


def hold_own(text: str, name: str, own: str) -> str:
    """What became of one's own configuration; and the bounds of the answer beside it."""
    found, run = planned(text, f'framework = "{name}"', own)
    if run is None or found is None:
        return "none"
    hold(found)
    if found.restriction is not None and run.fits:
        assert found.restriction.bound <= run.iteration, own
    if run.reason:
        return "outside"
    assert found.plan.lower_bound <= found.plan.value <= run.iteration, own
    assert "yours among them" in found.plan.bounded
    return "candidate"


@pytest.mark.sweep
def test_a_deployment_that_is_forced_is_not_below_its_bound() -> None:
    """One deployment alone, by lists: nothing else is planned for, and its bound held before."""
    forced = 0
    for seed in range(JOBS):
        random = Random(f"forced {seed}")
        text, name = drawn(random), random.choice(FRAMEWORKS)
        found, _ = planned(text, f'framework = "{name}"')
        rows = [] if found is None else [row for row in found.plan.rows if 0 < row.bound < NEVER]
        for row in random.sample(rows, min(OWNS, len(rows))):
            keys = row.combination.to_json().items()
            lists = "\n".join(f"{key} = {json.dumps([value])}" for key, value in keys)
            alone, _ = planned(text, f'framework = "{name}"\n{lists}')
            if alone is not None and found is not None:
                hold(alone)
                assert alone.plan.value >= max(row.bound, found.plan.lower_bound)
                forced += 1
    assert forced > 0


# Of 8 layers on 4 ranks and 6 microbatches, by hand with a layer's tF = 1 and tB = 2: 1F1B takes
# (6 + 3) x 6 = 54, and in two chunks the warm-up and the end are of chunks: (6 + 3 / 2) x 6 = 45 at
# best. But 6 microbatches are no whole rounds of 4 ranks. The cards share a node; products are long
# beside messages.
NO_ROUNDS = SMALL.replace("layers = 4", "layers = 8").replace("samples = 8", "samples = 6")
NO_ROUNDS = NO_ROUNDS.replace("per_node = 2", "per_node = 4").replace(
    "hidden = 256", "hidden = 1024"
)
NO_ROUNDS = NO_ROUNDS.replace("128 MiB", "16 GiB")
YOURS = "pipeline=4 chunks=2 zero=0"


@pytest.fixture
def problem(tmp_path: Path) -> Path:
    path = tmp_path / "own.toml"
    path.write_text(NO_ROUNDS + "[plan]\npipeline = [4]\nmicro_batch = [1]\nscope = ['none']\n")
    return path


def test_a_shorter_own_run_is_the_plan(command: Run, problem: Path, tmp_path: Path) -> None:
    """The file lists one chunk; what is run has two."""
    text, folder, proofs = problem.read_text(), tmp_path / "out", tmp_path / "proofs.json"
    problem.write_text(f"{text}backward = ['whole']\nlayers = 'even'\n")
    alone = json.loads(command("plan", problem, "--work", 1, "--json").out)
    words = ("plan", problem, "--work", 1, "--yours", YOURS, "-o", folder, "--certificate", proofs)
    found = json.loads(command(*words, "--json").out)
    assert found["value"] < alone["value"]
    assert alone["lower_bound"] <= alone["value"]
    assert found["lower_bound"] <= found["value"] <= found["yours"]["value"]
    assert found["yours"]["reason"] == ""
    assert found["winner"]["chunks"] == 2
    assert "any order of these deployments" in found["lower_bound_of"]
    assert "yours among them" in found["lower_bound_of"]
    judged = command("verify", folder, "--certificate", proofs)
    assert judged.status in (0, 3)
    assert "fails" not in judged.out
    again = command("verify", folder, "--certificate", proofs, "--problem", problem)
    assert again.status == judged.status
    # The file alone does not list what was run, so that the proofs are of other candidates.
    without = command("verify", problem, "--certificate", proofs)
    assert (without.status, without.out, without.err.count("\n")) == (2, "", 1)
    assert f"{proofs}: numbers: expected those of this model" in without.err
    assert "found those of others, or of a plan with --yours" in without.err


def test_what_the_framework_does_not_run_is_outside(command: Run, problem: Path) -> None:
    """Megatron interleaves as many microbatches as ranks, or more."""
    text = problem.read_text().replace("samples = 6", "samples = 3")
    problem.write_text(f'{text}framework = "megatron-core"\n')
    found = json.loads(command("plan", problem, "--work", 1, "--json", "--yours", YOURS).out)
    assert "of 4 microbatches or more, which 3 microbatches do not make" in found["yours"]["reason"]
    assert found["yours"]["value"] < found["value"]
    assert found["yours"]["change"] == []
    assert "the orders that megatron-core runs, as modelled here" in found["lower_bound_of"]
    assert found["framework"]["lower_bound"] <= found["yours"]["value"]
    assert found["framework"]["unrestricted"] <= found["yours"]["value"]
    told = command("plan", problem, "--work", 1, "--yours", YOURS).out
    assert "outside of what was planned" in told
    assert "; change" not in told


def test_a_plan_does_not_carry_what_its_framework_does_not_run(
    command: Run, problem: Path, tmp_path: Path
) -> None:
    """A written plan whose ``yours`` was changed by hand is refused in one line."""
    text, folder = problem.read_text().replace("samples = 6", "samples = 3"), tmp_path / "out"
    problem.write_text(f'{text}framework = "megatron-core"\n')
    assert command("plan", problem, "--work", 1, "-o", folder).status == 0
    plan = json.loads((folder / "plan.json").read_text())
    (folder / "plan.json").write_text(json.dumps({**plan, "yours": YOURS}))
    answer = command("verify", folder)
    assert answer.status == 2
    assert answer.err.count("\n") == 1
    assert "yours" in answer.err


def test_what_is_no_configuration_is_a_line_and_the_plan_goes_on(
    command: Run, problem: Path
) -> None:
    for words in ("pipeline=4 micro_batch=4", "pipeline=4 chunks=3"):
        answer = command("plan", problem, "--work", 1, "--yours", words)
        assert answer.status == 0
        (yours,) = [line for line in answer.out.splitlines() if line.startswith("yours")]
        assert yours.startswith("yours    invalid: ")
        assert "MFU" not in yours


def test_what_takes_too_long_to_count_is_said_and_nothing_is_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The cost of a framework is looked at beside the plan: it may be left out, for its reason."""
    found, _ = planned(SMALL, 'framework = "megatron-core"')
    assert found is not None
    file = found.file
    slow = restriction_of(file, found.plan, None, PlanOptions(), 1.0, pace=1.0)
    assert isinstance(slow, UnknownRestriction)
    assert slow.why.endswith("s more")
    monkeypatch.setattr(combinations, "MOST_COMBINATIONS", 1)
    many = restriction_of(file, found.plan, None, OPTIONS, 1.0)
    assert isinstance(many, UnknownRestriction)
    assert "a plan goes through at most 1 combinations" in many.why
    told = rows(restriction_facts(many, found.plan.value))
    assert told[1][2].startswith("not known: ")
