"""What is planned for a framework is handed over to it: no plan is made that hand-over refuses."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from bubbleproof import plan, write
from bubbleproof.formats.plans.plan_json import read_plan
from bubbleproof.frameworks import FRAMEWORKS
from bubbleproof.hand_over.handed_over import handed_schedule
from bubbleproof.hand_over.targets_list import WRITERS, handed_to
from bubbleproof.planners.cluster_planned import ClusterPlan
from proofs_tests.commands.small_cluster import SMALL
from proofs_tests.sized import sized

TARGETS = [each.name for each in FRAMEWORKS if each.family in WRITERS and not each.only_named]
MODELS = (
    'family = "llama"\nlayers = 4\nhidden = 256\nheads = 4\nfeed_forward = 512',
    'family = "llama"\nlayers = 5\nhidden = 256\nheads = 4\nfeed_forward = 512\ntied = true',
    'family = "gpt"\nlayers = 4\nhidden = 256\nheads = 4',
    'family = "mixture"\nlayers = 4\nhidden = 256\nheads = 4\nfeed_forward = 128\nexperts = 8\n'
    "experts_per_token = 2",
)


def drawn(number: int, target: str) -> str:
    """A small cluster of this framework; of some keys a value or two, of others none."""
    draw = random.Random(f"{number} {target}")
    rest = SMALL.split("[cluster]")[1]
    rest = rest.replace("samples = 8", f"samples = {draw.choice((4, 8, 12))}")
    listed = {
        "pipeline": ([1], [2], [4], [2, 4]),
        "zero": ([0], [2, 3], [0, 2]),
        "chunks": ([1], [2], [1, 2, 3]),
        "placements": (["wave"], ["loop", "wave"]),
        "scope": (["full"], ["attention", "none"]),
        "context": ([1, 2],),
        "expert": ([2], [1, 4]),
        "backward": (["split"], ["whole"]),
    }
    told = [
        f"{key} = {draw.choice(values)}" for key, values in listed.items() if draw.random() < 0.4
    ]
    model = f"[model]\n{draw.choice(MODELS)}\nvocabulary = 1000\nsequence = 256\n"
    return f'{model}[cluster]{rest}[plan]\nframework = "{target}"\n' + "\n".join(told) + "\n"


@pytest.mark.sweep
@pytest.mark.parametrize("target", TARGETS)
def test_no_plan_is_made_that_hand_over_refuses(target: str, tmp_path: Path) -> None:
    made = 0
    for number in range(sized(6, full=60)):
        file = tmp_path / f"{number}.toml"
        file.write_text(drawn(number, target))
        try:
            found = plan(file, work=1)
        except ValueError:
            continue  # what the framework does not run is refused where it is planned
        if isinstance(found, ClusterPlan):
            write(tmp_path / f"{number}", found)
            handed = handed_schedule(read_plan(tmp_path / f"{number}" / "plan.json"))
            assert handed_to(target, handed).files
            made += 1
    assert made
