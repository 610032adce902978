"""SVPP: slices of samples pipelined over v chunks per rank, a forward and a backward in turn.

Symbols as in MEPipe (EuroSys 2025): p ranks, v chunks per rank, s slices per sample, n = m samples
(microbatches), f forwards on rank 0 before its first backward, A activations of one sample; one
action's activation is A/(vsp). f trades memory for bubbles (section 4.2) and is the peak of every
rank: no rank ever holds more than f.

    least f     v*s: the first backward needs all slices of the first sample through all chunks
    largest f   v*max(p,s) + min(p,s) - 1 (Table 3), at most the m*v*s forwards there are

Source: MEPipe sections 4.1 to 4.4. The orders are those of ``svpp_orders``; the generator of
section 4.3 as printed is in ``svpp_literal``, and differs: it places one sample after another, so
that at v > 1 the backwards of a sample wait for those of its predecessor, and its rescheduling by
the number of children prefers a late slice of a low chunk to the chunk the ring is waiting for.
Here the highest chunk goes first.
Legal range: any p, m, v, s and v*s <= f <= the largest f, which is the default. At tF = tB and the
largest f the makespan is Table 3's, (nsv + p-1 + (v-1)max(p-sn, 0))(tF + tB), for v = 1, s >= p,
s dividing p, and with q = max(1, p div s) for m <= q and q dividing m; elsewhere it can be a few
ticks longer: in 3 of the 864 shapes with p <= 6, m <= 12, v <= 4, s <= 3, and at tB = 2 tF in 116
(74 ticks for 69 at p = 4, m = 5, v = 4, s = 1, where an order within the same f takes 69), as
``python -m benchmarks.family_audit`` counts. What becomes of microbatches that fill no group of q
is left open by the paper; ours is ``svpp_orders.group_sizes``.

SVPP with weight gradients apart (MEPipe section 5), whole or cut into single GEMMs.

The backward of a slice is split into I and W. W waits in a queue of its rank and is taken out when
the rank would otherwise wait, or when it holds f units and a forward could go on: a unit is held
from F to the end of W, so a rank without room does W at once and one with room delays it
(section 5, Figure 7).

Here f bounds what a rank holds, and may exceed SVPP's largest f up to all m*v*s units: Figure 7(b)
spends memory above 7(a)'s that way. With one slice, one chunk and f = 2p-1 it idles no more than
ZB-H2. The default is SVPP's largest f, as in Figure 7(a).

Where the pipeline cuts W into parts (``weight_parts``) or its slices differ in cost (rows of
ticks), the order of F and I stays and that of W is found at those ticks, see ``svpp_gemms``: the
shortest of a few runs. Otherwise the order is that of equal ticks. Not covered: a
choice at run time, and another order of F and I than that of equal ticks.
Source: MEPipe (EuroSys 2025) section 5. Legal range: any p, m, v, s and v*s <= f <= m*v*s.
"""

from __future__ import annotations

from dataclasses import dataclass

from bubbleproof.theory.families.base import Family
from bubbleproof.theory.families.parameters import FamilyParameters
from bubbleproof.theory.families.sliced.svpp_gemms import shortest_filling
from bubbleproof.theory.families.sliced.svpp_orders import slice_orders
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline


def least_forwards(pipeline: Pipeline) -> int:
    """v*s, the forwards of one sample on one rank (MEPipe section 4.2)."""
    return pipeline.num_chunks * pipeline.num_slices


def most_forwards(pipeline: Pipeline) -> int:
    """min(v*max(p,s) + min(p,s) - 1, m*v*s), the f of the shortest SVPP (MEPipe Table 3)."""
    p, v, s = pipeline.num_ranks, pipeline.num_chunks, pipeline.num_slices
    return min(v * max(p, s) + min(p, s) - 1, pipeline.num_microbatches * v * s)


@dataclass(frozen=True, kw_only=True)
class SVPP(Family):
    """Sequence virtual pipeline parallelism; ``forwards`` is f, or None for the largest."""

    forwards: int | None = None

    name = "svpp"
    title = "SVPP"
    source = "MEPipe (EuroSys 2025) sections 4.1 to 4.4"
    least = frozenset({"bubble", "memory"})
    options = frozenset({"v", "s", "f"})

    def limit(self, pipeline: Pipeline) -> int:
        """The f of this pipeline."""
        return most_forwards(pipeline) if self.forwards is None else self.forwards

    def largest(self, pipeline: Pipeline) -> int:
        """The largest f this family takes."""
        return most_forwards(pipeline)

    def refusal(self, pipeline: Pipeline) -> str | None:
        least, most = least_forwards(pipeline), self.largest(pipeline)
        if not least <= self.limit(pipeline) <= most:
            p, v, s = pipeline.num_ranks, pipeline.num_chunks, pipeline.num_slices
            nearest = least if self.limit(pipeline) < least else most
            return (
                f"{self.name} runs f = {least} (v*s) to {most} forwards before the first backward "
                f"at p={p} m={pipeline.num_microbatches} v={v} s={s}, got f={self.forwards}; "
                f"use f={nearest}"
            )
        return super().refusal(pipeline)

    def program(self, pipeline: Pipeline) -> Program:
        return slice_orders(pipeline, self.limit(pipeline))

    def ours(self, pipeline: Pipeline) -> str | None:
        del pipeline
        return (
            "f is the paper's; the order is bubbleproof's and can take longer than Table 3. The "
            "paper's generator is svpp-printed."
        )

    def variant(self, params: FamilyParameters) -> Family:
        return type(self)(forwards=params.f)

    def full_params(
        self, params: FamilyParameters, pipeline: Pipeline
    ) -> dict[str, int | tuple[int, ...]]:
        return super().full_params(params, pipeline) | {"f": self.limit(pipeline)}


@dataclass(frozen=True, kw_only=True)
class SVPPWeights(SVPP):
    """SVPP with I and W, W filling the waits; ``forwards`` bounds what a rank holds."""

    name = "svpp-w"
    title = "SVPP, weight gradients apart"
    source = "MEPipe (EuroSys 2025) section 5"
    least = frozenset()
    is_split = True
    cuts_weights = True

    def largest(self, pipeline: Pipeline) -> int:
        return pipeline.num_microbatches * least_forwards(pipeline)

    def program(self, pipeline: Pipeline) -> Program:
        whole = super().program(pipeline)
        ticks = (
            pipeline.ticks.forward,
            pipeline.ticks.input_backward,
            pipeline.ticks.weight_backward,
        )
        is_even = all((table == table[:, :1]).all() for table in ticks)
        if is_even and not pipeline.part_ticks:
            return whole
        return shortest_filling(pipeline, whole, self.limit(pipeline))
