"""The pages about things of one's own: what they write as files is what they run in Python."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import bubbleproof as bp
from bubbleproof.theory.families.registration import GROUP
from bubbleproof.theory.pipelines.links import Link

OWN = Path(__file__).parents[1] / "docs" / "own"


def toml_of(page: str) -> str:
    """The one TOML block of a page."""
    (found,) = re.findall(r"```toml\n(.*?)```", (OWN / page).read_text("utf-8"), re.DOTALL)
    return str(found)


def test_the_cluster_as_a_file_is_the_one_in_python(tmp_path: Path) -> None:
    path = tmp_path / "cluster.toml"
    path.write_text(toml_of("hardware.md"))
    in_python = bp.Pipeline(
        num_ranks=4,
        num_microbatches=8,
        unit="ms",
        forward=(4, 4, 6, 4),
        backward=(8, 8, 12, 8),
        capacity=(4, 4, 4, 2),
        message=1,
        links=(Link(ranks=(1, 2), latency=2, bandwidth=1),),
    )
    found = bp.read(path)
    assert getattr(found, "pipeline") == in_python  # noqa: B009 - a problem file, which read tells
    published = bp.family("1f1b").schedule(in_python)
    assert bp.measure(found, published).makespan == 180  # as the page has it


def test_the_entry_point_is_of_the_group_that_is_looked_for() -> None:
    told = tomllib.loads(toml_of("family.md"))
    (group,) = told["project"]["entry-points"]
    assert group == GROUP
