"""PipeMesh's headlines: its gain over Megatron in four configurations.

An iteration is the sum of a row of Table IV, whose times are milliseconds. *Schedules* sums ours:
Megatron's printed computation (and what the planner recomputes in PipeMesh's), the bubble, and what
gathers and messages add to built schedules where each link has its nominal bandwidth: a GPU has an
eighth of its host's network; a collective moves (D-1)/D of 2 bytes a parameter, a message one
boundary's activations. A second row lets collectives reach the one share of it that PipeMesh's and
Fold3D's printed times ask for. *Paper* sums the printed times.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from statistics import median

from benchmarks.headlines import Headline
from benchmarks.paper_files import path_of
from benchmarks.pipemesh_files import CONFIGURATIONS, PAPER, Configuration, deployment
from benchmarks.pipemesh_tables import GIB, SYSTEMS, TABLE
from bubbleproof.costs.known_models import known_model
from bubbleproof.costs.saved_bytes import message_bytes
from bubbleproof.formats.problem_toml import read_problem
from bubbleproof.papers.pipemesh.mesh_numbers import MeshTable, meshes_of
from bubbleproof.papers.pipemesh.optimizer_sharding import with_optimizer_sharding
from bubbleproof.papers.pipemesh.pipemesh_planner import printed_plan
from bubbleproof.theory.families import member
from bubbleproof.theory.families.base import FamilyMember
from bubbleproof.theory.pipelines.programs.step_time import step_ticks
from bubbleproof.theory.pipelines.timing import left_shift

NETWORK = {0: 400, 4: 100, 8: 100, 12: 100}  # Gbit/s of a host of 8 GPUs, by PipeMesh's row
PRINTED = {
    "gpt3-58b-a100": "20.1 %",
    "gpt3-58b-v100": "23.8 %",
    "llama2-55b-v100": "33.5 %",
    "falcon-66b-v100": "23.4 %",
}
MEGATRON, PIPEMESH, FOLD3D = (SYSTEMS.index(name) for name in ("Megatron", "PipeMesh", "Fold3D"))
WHY = (
    "direction and order are the schedules'; the size is not: contention, which nothing printed "
    "tells, makes the measured collectives longer"
)
REACHED = "links reach {share:.2f} of nominal in collectives (an inference: see below)"
Row = dict[str, Fraction]


@dataclass(frozen=True, slots=True, kw_only=True)
class Iteration:
    """Milliseconds: computation and bubble, and what gathers and messages add to the schedule."""

    computed: Fraction
    gathers: Fraction
    messages: Fraction

    def total(self, share: Fraction = Fraction(1)) -> Fraction:
        """The whole, where collectives reach so much of the links' bandwidth."""
        return self.computed + self.gathers / share + self.messages


def headlines() -> list[Headline]:
    """The gains."""
    every = {
        given.name: {system: iteration(given, system) for system in (MEGATRON, PIPEMESH, FOLD3D)}
        for given in CONFIGURATIONS
    }
    share = reached(every)
    found = []
    for given in CONFIGURATIONS:
        ours, other = every[given.name][PIPEMESH], every[given.name][MEGATRON]
        printed = [TABLE[given.row + system]["total"] for system in (MEGATRON, PIPEMESH)]
        found += [
            Headline(
                name=f"throughput over Megatron, {given.name}",
                printed=PRINTED[given.name],
                schedules=100 * (other.total() / ours.total() - 1),
                paper=100 * (printed[0] / printed[1] - 1),
                why=WHY,
            ),
            Headline(
                name=f"the same, {given.name}, with slower collectives",
                printed=PRINTED[given.name],
                schedules=100 * (other.total(share) / ours.total(share) - 1),
                why=REACHED.format(share=float(share)),
            ),
        ]
    return found


def reached(every: dict[str, dict[int, Iteration]]) -> Fraction:
    """The median of ours over printed T_DP, in rows of PipeMesh and Fold3D."""
    return median(
        every[given.name][system].gathers / TABLE[given.row + system]["dp"]
        for given in CONFIGURATIONS
        for system in (PIPEMESH, FOLD3D)
    )


def iteration(given: Configuration, system: int) -> Iteration:
    """A system's, from schedules of its row's computation."""
    row, megatron = TABLE[given.row + system], TABLE[given.row + MEGATRON]
    made = schedule(row, SYSTEMS[system])
    again = _recomputed(given) * row["passes"] if system == PIPEMESH else 0
    bubble = row["compute"] * (row["P"] - 1) / row["passes"]  # (P-1) C_comp
    each = Fraction(NETWORK[given.row] * 10**3, 8 * 8)  # bytes of a microsecond
    moved = 2 * row["psi"] * GIB * (row["D"] - 1) / row["D"]
    gathered = with_optimizer_sharding(made.pipeline, made.schedule, ceil(moved / each))
    assert gathered is not None
    sent = Fraction(message_bytes(known_model(given.model).model, deployment(given)))
    problem = made.pipeline.with_changes(latency=ceil(sent / each)).problem()
    late = step_ticks(problem, left_shift(problem, made.schedule.program))
    alone = step_ticks(made.problem, made.schedule)
    return Iteration(
        computed=megatron["compute"] + again + bubble,
        gathers=Fraction(gathered - alone, 1000),
        messages=Fraction(late - alone, 1000),
    )


def _recomputed(given: Configuration) -> Fraction:
    """Milliseconds of a pass that the paper's planner recomputes at the printed chunks."""
    file, row = read_problem(path_of(PAPER, given.name)), TABLE[given.row]
    assert file.plan is not None
    table = MeshTable(**file.paper["pipemesh"])  # type: ignore[arg-type]  # as the planner does
    meshed = next(m for m in meshes_of(file.plan, table) if m.mesh.num_chunks == row["M"])
    plan = printed_plan(meshed)
    assert plan is not None
    return Fraction(plan.recomputed_ticks, 1000)


def schedule(row: Row, system: str) -> FamilyMember:
    """The system's schedule; ticks are microseconds of the row's computation."""
    passes = row["passes"]
    given = {
        "p": int(row["P"]),
        "m": int(passes / row["M"]),
        "tF": ceil(row["forward"] * 1000 / passes),
        "tB": ceil(row["backward"] * 1000 / passes),
    }
    chunks = int(row["M"])
    if system in ("PipeMesh", "Fold3D"):
        return member("pipemesh" if system == "PipeMesh" else "bfs", v=chunks, **given)
    return member("interleaved", v=chunks, **given) if chunks > 1 else member("1f1b", **given)
