"""Plans of files without a table ``[plan]``, beside what is run in practice.

    python -m benchmarks.practice_plans --write docs/measured/practice.md

Practice's own deployment is estimated by the same model (``own_run``), and what was measured of it
stands beside, where it is published.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.markdown import CLOCK, markdown_table, put_out
from bubbleproof.costs.time_parts import TimeParts, time_parts
from bubbleproof.costs.utilisation import teraflops
from bubbleproof.formats.clusters.cluster_toml import ClusterFile, cluster_file_of_text
from bubbleproof.formats.clusters.deployed_space import all_counted, deployed_space
from bubbleproof.formats.clusters.own_configuration import own_configuration
from bubbleproof.formats.plans.plan_folder import winner_schedule
from bubbleproof.hand_over.handed import HandedSchedule, PlannedModel
from bubbleproof.hand_over.megatron_target import megatron_files
from bubbleproof.planners import PlanOptions
from bubbleproof.planners.cluster_planned import ClusterPlan
from bubbleproof.planners.cluster_results import restriction_cost
from bubbleproof.planners.own_run import OwnRun, changed, own_run
from bubbleproof.planners.planning import plan_cluster
from bubbleproof.planners.restriction import Restriction, restriction_of

LIMIT = 60.0  # seconds
DGXC = "NVIDIA/dgxc-benchmarking"


@dataclass(frozen=True, slots=True, kw_only=True)
class PracticeCase:
    """A job, what is run of it in practice by whom, and what that took, where it is published."""

    name: str
    model: str
    card: str
    cards: int
    samples: int
    sequence: int
    own: str
    who: str
    measured: str = ""
    cluster: str = ""
    plan: str = ""

    @property
    def file(self) -> ClusterFile:
        """The problem file."""
        text = (
            f'[model]\nname = "{self.model}"\n[cluster]\ncard = "{self.card}"\n'
            f"cards = {self.cards}\n{self.cluster}\n[batch]\nsamples = {self.samples}\n"
            f"sequence = {self.sequence}\n{self.plan}"
        )
        return cluster_file_of_text(text, name=self.name)


CASES = (
    PracticeCase(
        name="Llama 3 70B, 64 H100", model="llama-3-70b", card="h100", cards=64, samples=128,
        sequence=8192, own="tensor=4 pipeline=4 context=2 chunks=5", who=DGXC, measured="14.72 s",
    ),
    PracticeCase(
        name="Llama 3 70B, 64 H100, FP8", model="llama-3-70b", card="h100", cards=64, samples=128,
        sequence=8192, own="tensor=4 pipeline=8 chunks=5", who="Megatron-Bridge's recipe",
        cluster='products = "fp8"',
    ),
    PracticeCase(
        name="Llama 3 405B, 512 H100", model="llama-3-405b", card="h100", cards=512, samples=512,
        sequence=8192, own="tensor=8 pipeline=8 context=2 chunks=8",
        who="NeMo's recipe (its gradients are of 16 bits)",
    ),
    PracticeCase(
        name="Llama 3 405B, 16,384 H100", model="llama-3-405b", card="h100", cards=16384,
        samples=2048, sequence=8192, own="tensor=8 pipeline=16 chunks=4",
        who="Llama 3 (2407.21783), Table 4; chunks are not printed", measured="400 TFLOPS, 41 %",
    ),
    PracticeCase(
        name="GPT-3 175B, 1,024 A100", model="gpt3-175b", card="a100-80gb", cards=1024,
        samples=1024, sequence=2048, own="tensor=8 pipeline=8 chunks=3 scope=attention",
        who="Korthikanti et al. (2205.05198), Table 5, 16 of their jobs side by side",
        measured="13.75 s on 64, 51.4 %",
    ),
    PracticeCase(
        name="Mixtral 8x7B, 64 H100", model="mixtral-8x7b", card="h100", cards=64, samples=256,
        sequence=4096, own="tensor=1 pipeline=4 chunks=8 expert=8", who="NeMo's recipe",
    ),
    PracticeCase(
        name="Qwen2.5-32B at 131,072 tokens, 64 H100", model="qwen2.5-32b", card="h100", cards=64,
        samples=32, sequence=131072, own="tensor=8 context=8 scope=full",
        who="tensor parallelism in a node, context over nodes",
    ),
    PracticeCase(
        name="Llama 2 13B, 64 RTX 4090", model="llama-2-13b", card="rtx-4090", cards=64,
        samples=128, sequence=4096, own="pipeline=8 chunks=1 scope=full",
        who="MEPipe's cluster; its own s = 4, which is none of Megatron's: 5,852 ms",
        plan='[plan]\nframework = "any"\n',
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCase:
    """A case with its plan, where one was found, and practice's own run."""

    case: PracticeCase
    file: ClusterFile
    plan: ClusterPlan | None
    own: OwnRun
    seconds: float
    cost: str
    accepted: str  # by the framework's grammar, or why it has none

    def mfu(self, iteration: int) -> str:
        """By both conventions, in percent."""
        cluster = self.file.training.cluster
        rate = (
            cluster.card.tflops["fp8"]
            if cluster.runs.products == "fp8"
            else cluster.card.half_tflops
        )
        both = (
            teraflops(self.file.training, iteration, half=half) / rate for half in (False, True)
        )
        return " / ".join(f"{100 * each:.1f}" for each in both) + " %"

    @property
    def parts(self) -> TimeParts | None:
        """Of the plan."""
        if self.plan is None:
            return None
        winner = self.plan.plan.winner
        cut = winner.candidate.layers or ()
        return time_parts(self.file.training, self.plan.winner, winner.pipeline, cut, winner.value)


def planned_case(case: PracticeCase, limit: float = LIMIT) -> PlannedCase:
    """The case, planned in so many seconds."""
    began = time.perf_counter()
    own = own_run(case.file, own_configuration(case.own, case.cards))
    file = own.beside(case.file)
    options = PlanOptions(time_limit=limit, orders=file.orders)
    counts = all_counted(file)
    options = options.after(time.perf_counter() - began)
    found = plan_cluster(
        counts,
        lambda one: deployed_space(file, one),
        options,
        is_lazy=True,
        known=own.begins,
        bounded=file.bounded,
    )
    seconds = time.perf_counter() - began
    plan, cost = (found if isinstance(found, ClusterPlan) else None), ""
    if plan is not None:
        lost = restriction_of(file, plan, own, replace(options, time_limit=limit), 0.15 * limit)
        cost = restriction_cost(lost, plan.value) if isinstance(lost, Restriction) else ""
    return PlannedCase(
        case=case,
        file=file,
        plan=plan,
        own=own,
        seconds=seconds,
        cost=cost,
        accepted="" if plan is None else _accepted(file, plan),
    )


def _accepted(file: ClusterFile, plan: ClusterPlan) -> str:
    """What Megatron's arguments, written and their layout read back, say of the winner."""
    winner, space = plan.plan.winner, plan.plan.space
    job, at = file.training, plan.winner.combination
    handed = HandedSchedule(
        name=file.name,
        given=winner_schedule(file.name, space, winner),
        pipeline=winner.pipeline,
        planned=PlannedModel(
            model=job.model,
            deployment=job.deployment.with_changes(**at.to_json()),
            layers=winner.candidate.layers or (),
            samples=job.samples,
        ),
    )
    try:
        made = megatron_files(handed)
    except ValueError as error:
        return f"no arguments of Megatron: {error}"
    return f"Megatron's arguments are written: {'; '.join(made.checked)}"


HEADER = """\
# Plans beside practice

Generated by `python -m benchmarks.practice_plans --write docs/measured/practice.md`; not edited.
{CLOCK}

Each file names a model, a card, a number of cards and a batch, and has no table `[plan]` (RTX 4090:
`framework = "any"`). So the plan is the best order that Megatron-core has, 1F1B or interleaved
1F1B, of every deployment that is open. *Practice* is the deployment that others run, estimated by
the same model, on a larger card where it has no room on this one; where it is legal it is among the
candidates. *Below* is the bound: no order that the framework runs, as modelled here, has a shorter
iteration in any of these deployments, layers cut even or balanced. MFU counts the attention's
square whole / the half below the diagonal.

"""


def page(found: list[PlannedCase]) -> str:
    """The page."""
    text = HEADER.replace("{CLOCK}", CLOCK)
    for one in found:
        text += f"## {one.case.name}\n\n"
        text += f"{one.case.samples} samples of {one.case.sequence:,} tokens; practice: "
        text += f"{one.case.who}"
        text += f"; published: {one.case.measured}.\n\n" if one.case.measured else ".\n\n"
        text += markdown_table(
            ("", "deployment", "iteration", "MFU", "on a card", *PARTS), _rows(one)
        )
        text += "\n" + "".join(f"- {line}\n" for line in _lines(one)) + "\n"
    return text + FOOTER


PARTS = ("compute", "tensor", "exchange", "bubble", "gradients", "optimizer")
FOOTER = """\
## What is not here

- Iterations are estimates. On rows of H100 that were left out the model is 4.2 % off, of nine in
  ten at most 10 % ([times.md](times.md)); a difference between plan and practice below that says
  little. What it knows of RTX 4090 is the data sheet's.
- Failures and congestion are no terms of the model, stragglers are 0.5 % for a doubling of nodes:
  of 16,384 cards practice has 41 % where the same deployment is estimated at more.
- *on a card* has 2 GiB for the driver, libraries and communicators. Fragmentation is not counted:
  plans fill what practice leaves free.
"""


def _rows(one: PlannedCase) -> list[tuple[str, ...]]:
    rows = []
    if one.plan is not None and one.parts is not None:
        winner = one.plan.plan.winner
        held = winner.peak_memory + one.plan.winner.numbers.beside
        name = f"{one.plan.winner.combination} v={winner.candidate.chunks}"
        if winner.candidate.slices > 1:
            name += f" s={winner.candidate.slices}"
        rows.append(_row("plan", name, one, one.plan.value, held, one.parts))
    own = one.own
    name = f"{own.combination} v={own.candidate.chunks}"
    rows.append(_row("practice", name, one, own.iteration, own.on_card, own.parts))
    return rows


def _row(
    what: str, name: str, one: PlannedCase, iteration: int, held: int, parts: TimeParts
) -> tuple[str, ...]:
    shares = (f"{100 * took / iteration:.1f} %" for took in parts.named.values())
    return (
        what,
        name,
        f"{iteration / 1e6:.2f} s",
        one.mfu(iteration),
        f"{held / 2**30:.1f} GiB",
        *shares,
    )


def _lines(one: PlannedCase) -> list[str]:
    if one.plan is None:
        return [f"no plan was found in {one.seconds:.0f} s"]
    plan, own = one.plan, one.own
    less = 100 * (1 - plan.value / own.iteration)
    changes = changed(own, plan.winner.combination, plan.plan.winner.candidate)
    gap = 100 * (plan.value / plan.lower_bound - 1)
    room = "" if own.fits else "; practice has no room by our count"
    lines = [
        f"planned in {one.seconds:.0f} s: {len(plan.rows):,} deployments, "
        f"{'each order that may be better was timed' if plan.orders else 'others are open'}; "
        f"below: {plan.lower_bound / 1e6:.2f} s, {gap:.1f} % less",
        f"the plan takes {abs(less):.1f} % {'less' if less >= 0 else 'more'} than practice{room}",
        f"to change: {', '.join(changes)}",
    ]
    lines.append(one.accepted)
    return [*lines, f"for Megatron-core, which costs {one.cost}"] if one.cost else lines


def main() -> None:
    """Plan all of them and write the page."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--write", type=Path)
    parser.add_argument("--limit", type=float, default=LIMIT)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    cases = [case for case in CASES if given.only in case.name]
    put_out(page([planned_case(case, given.limit) for case in cases]), given.write)


if __name__ == "__main__":
    main()
