"""The memory of PipeMesh's Table IV, from shapes, schedules and section IV-A's formulas.

A layer keeps what ``costs`` counts by Tables I and II, less what section VI-A says that PipeMesh
recomputes; on the A100 cluster it does not say, and the planner's own choice stands in.
"""

from __future__ import annotations

from fractions import Fraction

from benchmarks.paper_numbers import Number
from benchmarks.pipemesh_files import Configuration, deployment, operations
from benchmarks.pipemesh_tables import GIB
from bubbleproof.costs.known_models import known_model
from bubbleproof.costs.saved_bytes import layer_saved
from bubbleproof.papers.claims.measured_pipelines import measures
from bubbleproof.papers.pipemesh.pipemesh_formulas import gradient_bytes, parameter_bytes
from bubbleproof.papers.planning.paper_choice import PaperChoice
from bubbleproof.theory.families import member
from bubbleproof.theory.model.measures import measure

Row = dict[str, Fraction]
QUEUE = {0: 6, 4: 12, 8: 8, 12: 12}
SHARES = {4: Fraction("0.844"), 8: Fraction("0.909"), 12: Fraction("0.869")}  # section VI-A
HOST = {3: "73.5", 7: "216.9", 11: "213.4", 15: "240.0"}
# What section VI-A says of a layer: the operations recomputed, and in how many layers of a chunk.
AGAIN: dict[int, dict[str, Fraction]] = {
    4: {
        **dict.fromkeys(("norm 1", "norm 2", "gelu", "dropout"), Fraction(1)),
        "query": Fraction(1, 3),
    },
    8: {
        **dict.fromkeys(("norm 1", "norm 2", "silu", "product"), Fraction(1)),
        "key": Fraction(3, 4),
        "value": Fraction(3, 4),
    },
    12: dict.fromkeys(("norm", "norm 1", "norm 2", "gelu"), Fraction(1)),
}
PLANNED = ", as the planner recomputes; the paper does not say what it does here"


def memory_numbers(
    given: Configuration, row: Row, system: str, chosen: PaperChoice
) -> list[Number]:
    """M_CPU of Fold3D, M_GPU, M_a, M_g and M_p."""
    parts = [
        _activations(given, row, system, chosen),
        _gradients(row, system),
        _parameters(row, system, chosen),
    ]
    found = [_whole(row, system, parts), *parts]
    if system == "Fold3D":
        why = "what of it is off-loaded when, and what else the host keeps"
        found.insert(
            0, Number(name="M_CPU extra", printed=HOST[int(row["row"])], ours=None, why=why)
        )
    return found


def _text(value: Fraction) -> str:
    return f"{float(value):.1f}"


def _whole(row: Row, system: str, parts: list[Number]) -> Number:
    printed = _text(row["gpu"])
    if system == "Fold3D":
        why = "how much of the activations waits on the host is not printed"
        return Number(name="M_GPU", printed=printed, ours=None, why=why)
    states = 12 * row["psi"] / row["D"]
    held = sum((Fraction(one.ours) for one in parts if one.ours is not None), states)
    why = "12 psi / D and the three below; what a GPU holds beside is not printed"
    return Number(name="M_GPU", printed=printed, ours=held, why=why)


def _activations(given: Configuration, row: Row, system: str, chosen: PaperChoice) -> Number:
    units, layer = peak_units(given, row, system), layer_kept(given, system, chosen)
    layers = known_model(given.model).model.layers / (row["P"] * row["M"])
    return Number(
        name="M_a",
        printed=_text(row["activations"]),
        ours=units * layers * layer / GIB,
        why=f"{units} chunks at the schedule's peak, {float(layer / 2**20):.1f} MiB a layer"
        + (PLANNED if system == "PipeMesh" and given.row not in AGAIN else ""),
    )


def peak_units(given: Configuration, row: Row, system: str) -> int:
    """Activations of a chunk at the peak of the system's schedule."""
    p, chunks = int(row["P"]), int(row["M"])
    shape = {"p": p, "v": chunks, "m": int(row["passes"] / row["M"])}
    if system == "PipeMesh":
        q = QUEUE[given.row]
        made = member("pipemesh", **shape, e=(q, shape["m"] - q), d=(q, shape["m"] - q))
        return max(measure(made.problem, made.schedule).peak_activations)
    name = "bfs" if system == "Fold3D" else "interleaved" if chunks > 1 else "1f1b"
    return max(measures(name, shape).peak_activations)


def layer_kept(given: Configuration, system: str, chosen: PaperChoice) -> Fraction:
    """Bytes of one layer and microbatch on a GPU."""
    if system == "PipeMesh" and given.row not in AGAIN:
        assert chosen.run is not None
        pipeline = chosen.run.pipeline
        layers = Fraction(known_model(given.model).model.layers, pipeline.num_stages)
        return int(pipeline.per_stage.activation[0]) / layers
    model, at = known_model(given.model).model, deployment(given)
    whole = Fraction(layer_saved(model, at, "none"))
    if system != "PipeMesh":
        return whole
    sizes = {name: size for name, size, _ in operations(given, 1)}
    dropped = (share * sizes.get(name, 0) for name, share in AGAIN[given.row].items())
    return whole - sum(dropped, Fraction(0))


def _gradients(row: Row, system: str) -> Number:
    is_sharded = system in ("PipeMesh", "Fold3D")
    each = gradient_bytes(int(row["M"]), int(row["D"]), Fraction(int(is_sharded)))
    why = "(2/D + 4/M) psi, all gradients sharded" if is_sharded else "2 psi"
    return Number(name="M_g", printed=_text(row["gradients"]), ours=each * row["psi"], why=why)


def _parameters(row: Row, system: str, chosen: PaperChoice) -> Number:
    chunks, replicas, psi = int(row["M"]), int(row["D"]), row["psi"]
    if system == "PipeMesh":
        told = SHARES.get(int(row["row"]))
        share = told if told is not None else Fraction(str(chosen.choice["psi_p"]))
        where = "section VI-A's" if told is not None else "the planner's, none being printed:"
        why = (
            f"2 (psi - psi_p) + (2/D + 8/M (1 - 1/D)) psi_p with {where} {float(100 * share):.1f} %"
        )
        ours = parameter_bytes(chunks, replicas, share, own_shard=False) * psi
    elif system == "Fold3D":
        ours, why = (Fraction(2, replicas) + Fraction(4, chunks)) * psi, "(2/D + 4/M) psi (II-B)"
    else:
        ours, why = 2 * psi, "2 psi"
    return Number(name="M_p", printed=_text(row["parameters"]), ours=ours, why=why)
