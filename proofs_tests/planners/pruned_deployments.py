"""Deployments that a plan bounded away or found too large for a card, each forced: is one better?

    python -m proofs_tests.planners.pruned_deployments 20 [--write]

prints, for so many random clusters with a small model and no table ``[plan]`` (every second has
``framework = "any"``), the plan and the best of what it never timed; ``--write`` writes it to
``records/pruned-deployments.md``. A deployment is forced by a plan of it alone, so that no
other one's iteration can bound it away. The exit status is 1 where a forced one is shorter than the
plan, or one runs that was said to have no room.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import Random

from benchmarks.markdown import markdown_table
from bubbleproof.costs.combinations import AnyCount, Combination
from bubbleproof.formats.clusters.cluster_toml import ClusterFile, cluster_file_of_text
from bubbleproof.formats.clusters.deployed_space import all_counted, deployed_space
from bubbleproof.planners import PlanOptions
from bubbleproof.planners.cluster_planned import ClusterPlan, NoClusterPlan
from bubbleproof.planners.outcome import Outcome
from bubbleproof.planners.planning import plan_cluster
from proofs_tests.planners.small_models import TEXT

PAGE = Path(__file__).resolve().parents[2] / "records" / "pruned-deployments.md"
EVERY_NUMBER = 20
WORK, FORCED_WORK = 1.0, 0.05  # units; every published order is timed with either


@dataclass(frozen=True, slots=True, kw_only=True)
class PrunedRow:
    """A cluster: its plan's iteration, and what became of what the plan did not time."""

    number: int
    framework: str
    cards: int
    deployments: int
    value: int | None
    bounded: int
    best_bounded: int | None
    unfit: int
    fitting: tuple[Combination, ...]

    @property
    def has_fault(self) -> bool:
        """Whether a forced one is shorter, or one runs that has no room."""
        shorter = None not in (self.value, self.best_bounded) and (
            int(self.best_bounded or 0) < int(self.value or 0)
        )
        return shorter or bool(self.fitting)

    def cells(self) -> tuple[object, ...]:
        """As a row of the page."""
        told = "nothing fits" if self.value is None else f"{self.value:,}"
        best = "" if self.best_bounded is None else f"{self.best_bounded:,}"
        verdict = "BETTER" if self.has_fault else "none better"
        return (
            self.number,
            self.framework,
            self.cards,
            self.deployments,
            told,
            self.bounded,
            best,
            self.unfit,
            len(self.fitting),
            verdict,
        )


def random_cluster(number: int) -> ClusterFile:
    """A small model on a few slow cards, the same for the same number."""
    draw = Random(number)
    cards = draw.choice((4, 8))
    text = TEXT.format(
        layers=draw.choice((4, 6, 8)),
        cards=cards,
        per_node=draw.choice((2, 4)),
        memory=f"{draw.choice((24, 48, 96, 256))} MiB",
        link=f"{draw.choice((5, 20, 100))} GB/s",
        network=f"{draw.choice((0.5, 2, 10))} GB/s",
        samples=draw.choice((8, 16)),
        plan='[plan]\nframework = "any"\nslices = [1]\n' if number % 2 else "",
    )
    return cluster_file_of_text(text, name=f"cluster {number}")


def row_of(number: int) -> PrunedRow:
    """Plan a random cluster, then everything that the plan did not time."""
    file = random_cluster(number)
    counts = all_counted(file)
    found = _planned(file, counts, WORK)
    status = {row.combination: row.status for row in found.rows}
    bounded = [one for one in counts if status[one.combination] is Outcome.BOUNDED]
    unfit = [one for one in counts if status[one.combination] is Outcome.INFEASIBLE]
    values = [value for one in bounded if (value := _forced(file, one)) is not None]
    return PrunedRow(
        number=number,
        framework="any" if number % 2 else "megatron-core",
        cards=file.training.cluster.cards,
        deployments=len(counts),
        value=found.value if isinstance(found, ClusterPlan) else None,
        bounded=len(bounded),
        best_bounded=min(values, default=None),
        unfit=len(unfit),
        fitting=tuple(one.combination for one in unfit if _forced(file, one) is not None),
    )


def _planned(
    file: ClusterFile, counts: Sequence[AnyCount], work: float
) -> ClusterPlan | NoClusterPlan:
    options = PlanOptions(work=work, orders=file.orders)
    return plan_cluster(counts, lambda one: deployed_space(file, one), options, is_lazy=True)


def _forced(file: ClusterFile, one: AnyCount) -> int | None:
    """The iteration of the deployment by itself, None where it has no schedule."""
    found = _planned(file, [one], FORCED_WORK)
    return found.value if isinstance(found, ClusterPlan) else None


def page(rows: Sequence[PrunedRow], command: str) -> str:
    """The page as Markdown."""
    bounded, unfit = (sum(getattr(row, key) for row in rows) for key in ("bounded", "unfit"))
    faults = sum(row.has_fault for row in rows)
    header = (
        "cluster",
        "framework",
        "cards",
        "deployments",
        "plan (us)",
        "bounded away",
        "best of them (us)",
        "no room",
        "of them run",
        "verdict",
    )
    return (
        "# Pruned deployments, forced\n\n"
        f"Generated by `{command}`, {datetime.now(UTC).date()}; not edited.\n\n"
        "A small Llama on random clusters without a table `[plan]`. A plan times no deployment "
        "whose bound is not below the best\niteration, nor one that has no room for a microbatch. "
        "Each of these was then planned by itself.\n\n"
        f"Of {bounded:,} that were bounded away and {unfit:,} without room, forced on {len(rows)} "
        f"clusters: {faults} clusters with a better\none, or with one that runs.\n\n"
        f"{markdown_table(header, [row.cells() for row in rows])}"
    )


def main() -> int:
    """Print, or write the page; 1 where a plan is not the best."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("number", type=int, nargs="?", default=EVERY_NUMBER)
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    rows = []
    for number in range(asked.number):
        rows.append(row_of(number))
        sys.stderr.write(f"{' '.join(map(str, rows[-1].cells()))}\n")
    command = f"python -m proofs_tests.planners.pruned_deployments {asked.number} --write"
    if asked.write:
        PAGE.write_text(page(rows, command), encoding="utf-8")
    else:
        sys.stdout.write(page(rows, command))
    return int(any(row.has_fault for row in rows))


if __name__ == "__main__":
    sys.exit(main())
