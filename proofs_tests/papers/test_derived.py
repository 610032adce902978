"""A paper's pipelines derived anew: what its planner runs, by the name under which it stands."""

from __future__ import annotations

import pytest

from bubbleproof.formats.problem_toml import problem_file_of_text
from bubbleproof.papers.planning.paper_choice import BETTER, PaperInput
from bubbleproof.papers.planning.plan_paper import of_problem
from bubbleproof.papers.planning.planner_list import paper_choice, planners

TEXT = """
ranks = 4
microbatches = 8
[durations]
forward = 4
backward = 8
input = 4
weight = 4
[memory]
activation = 4
capacity = 40
static = 12
[plan]
chunks = [1, 2]
[choices.recompute]
kept = 2
[paper.pipemesh]
parameters = 2
replicas = 6
communication = 3
[paper.tpipe]
state = 4
offload = 2
step = 2
upload = 2
"""
FILE = problem_file_of_text(TEXT, name="file")


@pytest.mark.parametrize("paper", planners())
def test_what_runs_of_a_paper_is_derived_by_its_name(paper: str) -> None:
    assert FILE.plan is not None
    chosen = paper_choice(paper, PaperInput(space=FILE.plan, table=FILE.paper.get(paper, {})))
    for name, run in ((paper, chosen.run), (paper + BETTER, chosen.improved)):
        if run is None:
            with pytest.raises(ValueError, match=f"nothing runs of {name}"):
                of_problem(name, FILE.plan, FILE.paper)
        else:
            assert of_problem(name, FILE.plan, FILE.paper) == run.pipeline
    assert chosen.run is not None


@pytest.mark.parametrize("name", ["", "pipemash", "tpipe, as it should", "tpipe, as it should be "])
def test_the_name_of_no_paper_is_refused(name: str) -> None:
    assert FILE.plan is not None
    with pytest.raises(ValueError, match="paper must be one of bpipe"):
        of_problem(name, FILE.plan, FILE.paper)


def test_the_table_counts() -> None:
    assert FILE.plan is not None
    less = problem_file_of_text(TEXT.replace("communication = 3", "communication = 2"), name="less")
    assert less.plan == FILE.plan
    one, other = (of_problem("pipemesh", FILE.plan, each.paper) for each in (FILE, less))
    assert one != other
    assert one.choices.sharding is not None
