"""MEPipe's model of static memory, and what section 7.4 computes with it.

Symbols of a case: ``params`` parameters of the model (in any unit), p stages, ``d`` replicas.

Source: Sun et al., "MEPipe" (EuroSys 2025) sections 4.5 and 7.4.
"""

from __future__ import annotations

from fractions import Fraction

from bubbleproof.papers.claims.claim import Claim, Domain, Params, Relation, grid
from bubbleproof.papers.claims.field_schedules import constant, stated


def static_bytes(at: Params, *, master: int = 0) -> Fraction:
    """Bytes of a device: weights and gradients of its stage, Adam's moments (and master weights).

    ``params`` of the model are cut over p stages; the optimizer is also cut over d replicas.
    """
    stage = Fraction(at["params"], at["p"])
    return stage * (2 + 2) + stage / at["d"] * (4 + 4 + master)


def optimizer_bytes(at: Params, *, master: int) -> Fraction:
    """The optimizer's part of ``static_bytes``."""
    return static_bytes(at, master=master) - Fraction(at["params"], at["p"]) * 4


MEMORY = grid(
    "7, 13 and 34 units of parameters, 2 <= p <= 16, d <= 8",
    params=(7, 13, 34),
    p=range(2, 17),
    d=range(1, 9),
)
ON_64 = Domain(text="34 G parameters, p d = 64", points=({"params": 34, "p": 16, "d": 4},))
ON_8 = Domain(text="34 G parameters, p = 8, d = 8", points=({"params": 34, "p": 8, "d": 8},))
CLAIMS: tuple[Claim, ...] = (
    stated(
        "mepipe.section-4.5.static",
        "MEPipe section 4.5",
        "Static memory is 4m/p + 8m/(dp): weights and gradients in 16 bits, two moments in 32.",
        "bytes per device, in units of parameters",
        MEMORY,
        lambda at: (
            Fraction(4 * at["params"], at["p"]) + Fraction(8 * at["params"], at["d"] * at["p"])
        ),
        static_bytes,
    ),
    stated(
        "mepipe.section-7.4.optimizer",
        "MEPipe sections 4.5 and 7.4",
        "The optimizer of Llama 34B takes 6.375 GB of each of 64 devices, by section 4.5's model.",
        "GB",
        ON_64,
        constant(Fraction(6375, 1000)),
        lambda at: optimizer_bytes(at, master=0),
        corrected="mepipe.section-7.4.optimizer-master",
    ),
    stated(
        "mepipe.section-7.4.optimizer-master",
        "ours, for MEPipe section 7.4",
        "6.375 GB are 12 bytes per parameter: the moments and a 32-bit copy of the weights, which "
        "section 4.5's 8m/(dp) leaves out.",
        "GB",
        ON_64,
        constant(Fraction(6375, 1000)),
        lambda at: optimizer_bytes(at, master=4),
    ),
    stated(
        "mepipe.section-7.4.exceeds",
        "MEPipe section 7.4",
        "With 8 stages the static memory of Llama 34B exceeds 24 GB.",
        "GB",
        ON_8,
        constant(Fraction(24)),
        lambda at: static_bytes(at, master=4),
        relation=Relation.AT_LEAST,
        corrected="mepipe.section-7.4.exceeds-corrected",
    ),
    stated(
        "mepipe.section-7.4.exceeds-corrected",
        "ours, for MEPipe section 7.4",
        "By the section's own terms, 34*4/8 + 6.375, it takes 23.375 GB and leaves 0.625.",
        "GB",
        ON_8,
        constant(Fraction(34 * 4, 8) + Fraction(6375, 1000)),
        lambda at: static_bytes(at, master=4),
    ),
)
