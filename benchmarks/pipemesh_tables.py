"""PipeMesh's Table IV as printed: a row of columns for each of 16 runs.

Times are in the table's unit, memory in GiB (which the table writes GB: only so do its model states
come out), throughput in TFLOPS and MFU in per cent.

B means two things. Section IV counts B microbatches per pipeline, Table IV prints the batch size
per iteration under the same letter. With microbatches of 1 (section VI) and D replicas a pipeline
runs B/D of Table IV's B.

Source: Li et al., "PipeMesh" (TPDS 2025) section VI, Table IV; layers by Tables I to III.
"""

from __future__ import annotations

from fractions import Fraction

GIB = 1 << 30
HIDDEN = 8192
# Of four rows each: layers, and FLOPs of a layer's linear operations per s b h^2 (Tables I and II).
_GPT3, _LLAMA2, _FALCON = (72, Fraction(24)), (80, Fraction(41, 2)), (96, Fraction(41, 2))
MODELS = (_GPT3, _GPT3, _LLAMA2, _FALCON)
# Batch and parallel sizes (T is 8 throughout), a GPU's TFLOPS.
_GROUP = ("B", "P", "D", "gpus", "peak")
_GROUPS = ((36, 3, 3, 72, 312), (72, 4, 3, 96, 125), (48, 4, 3, 96, 125), (72, 4, 3, 96, 125))
SYSTEMS = ("PipeMesh", "Megatron", "MegaScale", "Fold3D")
_TEXT = """
6 1554.1 2567.2 114.5 245.1 140.3 29.9 11.5 3.0 3.9 120.6 38.7
2 1492.2 2485.4 331.5 993.6 262.8 30.1 9.6 4.5 4.5 100.4 32.2
2 1501.3 2497.0 333.2 986.4 254.0 30.1 9.6 4.5 4.5 100.3 32.2
6 2312.1 3431.6 159.5 247.7 134.9 37.0 28.7 3.0 3.0 89.3 28.6
6 5012.0 9217.1 296.4 757.9 505.9 25.3 11.4 2.3 2.7 52.1 41.7
2 4914.5 9109.6 876.5 3923.1 922.7 25.6 9.9 3.4 3.4 42.1 33.7
2 4917.9 9104.5 876.4 3863.8 919.0 25.6 9.9 3.4 3.4 42.3 33.8
6 7997.2 12225.0 421.3 760.4 509.7 29.0 43.0 2.3 2.3 38.1 30.5
5 4883.6 8841.1 514.7 859.2 635.6 25.6 11.8 2.4 2.8 46.2 37.0
1 4789.0 8664.1 2522.5 4263.8 1155.1 25.7 10.6 3.2 3.2 34.8 27.7
1 4769.7 8651.5 2516.5 4223.1 1167.5 25.7 10.6 3.2 3.2 34.5 27.6
5 7842.8 11725.7 733.8 854.7 617.6 29.2 42.5 2.4 2.4 34.0 27.2
8 6035.9 10805.4 263.1 638.8 548.7 26.5 11.6 2.2 2.7 52.2 41.8
3 5911.3 10676.7 691.1 4595.8 967.5 26.9 9.3 3.8 3.8 42.3 33.8
3 5917.4 10687.9 691.9 4566.4 955.1 26.9 9.3 3.8 3.8 42.3 33.8
8 9117.8 13900.9 359.7 632.1 536.4 29.1 44.7 2.2 2.2 39.4 31.6
"""
_COLUMNS = (
    *("M", "forward", "backward", "bubble", "dp", "pp", "gpu"),
    *("activations", "gradients", "parameters", "throughput", "mfu"),
)


def _row(number: int, line: str) -> dict[str, Fraction]:
    """A row's columns, and what follows from them.

    ``passes`` are the M B of a rank, since D replicas share the batch; ``psi`` are its billions
    (2^30) of parameters, half of its linear FLOPs per token, in h^2.
    """
    layers, flops = MODELS[number // 4]
    found = dict(zip(_COLUMNS, map(Fraction, line.split()), strict=True))
    found |= dict(zip(_GROUP, map(Fraction, _GROUPS[number // 4]), strict=True))
    found["passes"] = found["M"] * found["B"] / found["D"]
    found["compute"] = found["forward"] + found["backward"]
    found["total"] = found["compute"] + found["bubble"] + found["dp"] + found["pp"]  # Eq. 1
    found["psi"] = layers * flops / 2 * HIDDEN**2 / (8 * found["P"]) / GIB
    return {**found, "row": Fraction(number)}


TABLE = tuple(_row(number, line) for number, line in enumerate(_TEXT.split("\n")[1:-1]))
