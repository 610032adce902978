"""Generators as papers print them, where what ships differs: for comparison, never to be run.

``measure`` takes them by name, so that a claim about one can be measured by hand; ``families()``
does not list them, for they need not be as good as their papers say, and some never end.

    svpp-printed      MEPipe section 4.3, with the rescheduling of its last step
    svpp-filled       the same without that step, as Figure 5
    svpp-of-samples   svpp-filled with bubbles between the backwards of one sample alone
    pipemesh-printed  PipeMesh Algorithm 1; a program that waits for itself is an error

Beside them stands ``interleaved-spread``, Megatron's order with a remainder of m by p spread over
the groups: ours as well, but of a closed form at all durations.
"""

from __future__ import annotations

from bubbleproof.theory.families.parameters import FamilyParameters
from bubbleproof.theory.families.pipemesh import PipeMesh
from bubbleproof.theory.families.pipemesh_order import literal_orders
from bubbleproof.theory.families.svpp import SVPP
from bubbleproof.theory.families.svpp_literal import svpp_literal
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline


class PrintedSVPP(SVPP):
    """Section 4.3's generator; f as for ``svpp``."""

    name = "svpp-printed"
    title = "SVPP as printed"
    source = "MEPipe (EuroSys 2025) section 4.3"
    is_rescheduled = True
    is_of_samples = False

    def program(self, pipeline: Pipeline) -> Program:
        return svpp_literal(
            pipeline,
            self.limit(pipeline),
            rescheduled=self.is_rescheduled,
            of_samples=self.is_of_samples,
        )


class FilledSVPP(PrintedSVPP):
    """Section 4.3's generator before it reschedules the backwards."""

    name = "svpp-filled"
    title = "SVPP as printed, not rescheduled"
    is_rescheduled = False


class SampledSVPP(FilledSVPP):
    """The same with bubbles between the backwards of one sample, none between two samples'."""

    name = "svpp-of-samples"
    title = "SVPP as printed, bubbles within samples"
    is_of_samples = True


class PrintedPipeMesh(PipeMesh):
    """Algorithm 1 to the letter."""

    name = "pipemesh-printed"
    title = "PipeMesh as printed"
    source = "PipeMesh (TPDS 2025) Algorithm 1"

    def refusal(self, pipeline: Pipeline) -> str | None:
        if (why := super().refusal(pipeline)) is not None:
            return why
        first, _ = self.sequences(pipeline)
        forwards = pipeline.num_chunks * pipeline.num_microbatches
        warm_up = (pipeline.num_chunks - 1) * first[0] + 2 * (pipeline.num_ranks - 1)
        if warm_up > forwards:
            return f"Algorithm 1 warms up with {warm_up} forwards of {forwards} on rank 0"
        return None

    def program(self, pipeline: Pipeline) -> Program:
        enqueue, dequeue = self.sequences(pipeline)
        return Program.from_orders(
            literal_orders(pipeline.num_ranks, pipeline.num_chunks, enqueue, dequeue)
        )

    def variant(self, params: FamilyParameters) -> PipeMesh:
        return type(self)(params.e, params.d)
