"""False statements about time, memory and where activations lie, as in ``coq_mutants.py``.

Each hypothesis of ``stages_bound``, ``frontier``, ``fastest_holds_everywhere``, ``bpipe_is_best``
and ``split_two`` is weakened once, and each bound is raised by one.
"""

from __future__ import annotations

STAGES = "+ head f dn r + tail b up r"
STEADY = "now < first + Z.of_nat m * P ->\n  Z.of_nat p - Z.of_nat i <= held"
TWICE = "on now r' i j = true /\\ on now s' i j = true }."
MANY = (
    "(2 * p <= m)%nat -> (2 <= p)%nat -> 1 <= P -> Z.of_nat p + 2 <= 2 * most.\n"
    "Proof.\n  intros most. exact"
)  # of the theorem alone: in the lemma before it the arithmetic takes half a minute to fail
SPLIT = (
    "(forall now, held_split p m rows 0 now <= 2) -> (Z.of_nat p + 1) * Z.of_nat m + 1 <= "
    "last - first."
)
FRONTIER_MUTANTS = {
    "stages: the bound raised by one": ("StagesBound.v", STAGES, f"{STAGES} + 1"),
    "stages: a rank before the capped one": ("StagesBound.v", "(c <= r)%nat", "(r <= c)%nat"),
    "stages: a rank that is not there": ("StagesBound.v", "(r < p)%nat", "(r <= p)%nat"),
    "stages: as many rounds as microbatches fill": (
        "StagesBound.v",
        "(q * K < m)%nat",
        "(q * K <= m)%nat",
    ),
    "stages: a cap that is kept at one moment": (
        "StagesBound.v",
        "forall now, held_in given m rows c now <=",
        "forall now, held_in given m rows c first <=",
    ),
    "stages: forwards of negative ticks": ("StagesBound.v", "0 <= f i", "-1 <= f i"),
    "stages: backwards of negative ticks": ("StagesBound.v", "0 <= b i", "-1 <= b i"),
    "stages: links of negative ticks": ("StagesBound.v", "0 <= dn i", "-1 <= dn i"),
    "stages: links back of negative ticks": ("StagesBound.v", "0 <= up i", "-1 <= up i"),
    "stages: links that are no waits": (
        "StageStarts.v",
        "(B (S i) j, B i j, up i)]",
        "(B (S i) j, B i j, 0)]",
    ),
    "weights: rounds that all microbatches fill": (
        "StagesBound.v",
        "Z.of_nat q * (C / w) < Z.of_nat m",
        "Z.of_nat q * (C / w) <= Z.of_nat m",
    ),
    "weights: of no units": ("StagesBound.v", "1 <= w ->", "0 <= w ->"),
    "weights: room at one moment": (
        "StagesBound.v",
        "(forall now, w * held_in given m rows c now <= C)",
        "(w * held_in given m rows c first <= C)",
    ),
    "frontier: the price raised by one": (
        "Frontier.v",
        "least (2 * l) <= last - first",
        "least (2 * l) < last - first",
    ),
    "frontier: a later rank as dear as the first": (
        "Frontier.v",
        "(Z.of_nat p - Z.of_nat c - Z.of_nat K) * P",
        "(Z.of_nat p - Z.of_nat K) * P",
    ),
    "frontier: any latency met": ("Frontier.v", "2 * l = c * P", "2 * l <= c * P"),
    "frontier: met with one activation less": (
        "Frontier.v",
        "held_in given m rows i now <= Z.of_nat p - Z.of_nat i",
        "held_in given m rows i now < Z.of_nat p - Z.of_nat i",
    ),
    "frontier: room for no activation": ("Frontier.v", "(1 <= K)%nat", "(0 <= K)%nat"),
    "frontier: links of negative ticks": ("Frontier.v", "0 <= l.", "-1 <= l."),
    "nearly: one round closer": (
        "Frontier.v",
        "(Z.of_nat q + 1) * (c * P - 2 * l).",
        "Z.of_nat q * (c * P - 2 * l).",
    ),
    "room: nothing lost without room": (
        "Frontier.v",
        "(m <= K)%nat \\/ trip (2 * l) <=",
        "(m < K)%nat \\/ trip (2 * l) <=",
    ),
    "moments: more held than work fills": ("Moments.v", "+ 1 - slack", "+ 2 - slack"),
    "moments: idle ticks left out": (
        "Moments.v",
        "m * (f r + b r) + tail b up r + slack ->",
        "m * (f r + b r) + tail b up r + slack + 1 ->",
    ),
    "moments: full a tick longer": ("Moments.v", STEADY, STEADY.replace("now <", "now <=")),
    "moments: full from the beginning": (
        "Moments.v",
        "first + (Z.of_nat p - 1) * P <= now < first",
        "first <= now < first",
    ),
    "moments: as fast within a tick": (
        "Moments.v",
        "last - first <= (Z.of_nat m + Z.of_nat p - 1) * P.",
        "last - first <= (Z.of_nat m + Z.of_nat p - 1) * P + 1.",
    ),
    "moments: attained with one less": (
        "Moments.v",
        "held p m tF tB rows i now <= Z.of_nat p - Z.of_nat i.",
        "held p m tF tB rows i now < Z.of_nat p - Z.of_nat i.",
    ),
    "plans: half of one rank more": ("BestPlan.v", "p + 1 <= 2 * load", "p + 2 <= 2 * load"),
    "plans: one more than BPipe": ("BestPlan.v", "p + 2 <= 2 * most", "p + 3 <= 2 * most"),
    "plans: a move that never counts twice": (
        "BestPlan.v",
        TWICE,
        TWICE.replace("on now s'", "on now r'"),
    ),
    "plans: an activation that lies nowhere": (
        "BestPlan.v",
        "exists r, (r < p)%nat /\\ on now r i j = true;",
        "exists r, (r <= p)%nat /\\ on now r i j = true;",
    ),
    "plans: back after its backward": ("BestPlan.v", "on (B i j) i i j", "on (B i j + tB) i i j"),
    "plans: as fast within a tick": (
        "BestPlan.v",
        "last - first <= (Z.of_nat m + Z.of_nat p - 1) * P.",
        "last - first <= (Z.of_nat m + Z.of_nat p - 1) * P + 1.",
    ),
    "plans: of few microbatches": ("BestPlan.v", MANY, MANY.replace("2 * p <= m", "p <= m")),
    "plans: of one rank": ("BestPlan.v", "(2 <= p)%nat", "(1 <= p)%nat"),
    "plans: of no time": ("BestPlan.v", "1 <= P", "0 <= P"),
    "split: the bound raised by one": (
        "SplitTwo.v",
        SPLIT,
        SPLIT.replace("m + 1 <=", "m + 2 <="),
    ),
    "split: room for three": ("SplitTwo.v", SPLIT, SPLIT.replace("now <= 2", "now <= 3")),
    "split: of one microbatch": (
        "SplitTwo.v",
        "(1 <= p)%nat -> (2 <= m)%nat -> forall rows",
        "(1 <= p)%nat -> (1 <= m)%nat -> forall rows",
    ),
    "split: met for odd m": (
        "SplitTwo.v",
        "(exists h, (m = 2 * h)%nat) -> exists rows",
        "(exists h, (m = h)%nat) -> exists rows",
    ),
    "split: met by one rank": (
        "SplitTwo.v",
        "(2 <= p)%nat -> (exists h, (m = 2 * h)%nat) -> exists rows",
        "(1 <= p)%nat -> (exists h, (m = 2 * h)%nat) -> exists rows",
    ),
}
