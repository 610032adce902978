"""BPipe's planner on the ranks of a problem file, as printed and as it should be.

Symbols of sections 3.1 to 3.3: W_0 memory of a stage's weights and optimizer state, A_0 of one
microbatch's activations on it, mu(s) = min(p - s, m) what 1F1B holds on stage s, mu_opt =
ceil((p+2)/2) what no stage exceeds with transfers, M = W_0 + A_0 mu (Eq. 1).

*As printed.* 1F1B (Megatron-LM) is tried without recomputation, then with; the first that fits,
W_0 + A_0 min(p, m) within a rank's memory, ends that. With transfers those are tried that 1F1B
cannot execute (section 4.2): W_0 + A_0 min(p, m, mu_opt) must fit, and a transfer must hide behind
computation: within a forward (Eq. 7 to 9) or, an evict and a load in turn, two of them within a
forward and a backward (Eq. 10 to 12). A step takes (m + p - 1) forwards and backwards,
recomputation included; the shortest is chosen. W_0 and A_0 are those of a stage with neither
embedding nor head (the least of the file), since the paper's stages are alike; ticks are the
largest.

*As it should be.* The same combinations as schedules: memory on every rank by the checker, with
what embedding and head take and with a transfer counted on both its ends, and the makespan with the
transfers in it. A choice that runs only on paper gives way to the shortest that runs.

The file's ``[choices.evict]`` gives the transfer, ``[choices.recompute]`` what a recomputed stage
keeps and takes. One activation is recomputed or moved, not both, so BPipe is tried without
recomputation alone. ``[paper.bpipe]`` may tell how stages are placed: ``tensor`` GPUs share a
stage, ``replicas`` the ``node``s of so many GPUs. A pair on two nodes (``pair_placement``) takes
``transfer_between_nodes`` ticks; without that key it moves nothing, and on paper BPipe is out.

Source: Kim et al., "BPipe" (ICML 2023) sections 3 and 4.2, Appendix B.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bubbleproof.papers.bpipe.balanced_runs import balanced_run, plain_run
from bubbleproof.papers.bpipe.node_places import DeviceMesh
from bubbleproof.papers.bpipe.pair_placement import PairPlacement, pair_placement
from bubbleproof.papers.planning.paper_choice import AcceptedSchedule, PaperChoice, PaperInput
from bubbleproof.papers.planning.unmet import lacking
from bubbleproof.theory.pipelines.allowed import AllowedEvictions, AllowedRecompute
from bubbleproof.theory.pipelines.shapes.plan_space import WHOLE, Candidate, PlanSpace

PAPER = "bpipe"


@dataclass(frozen=True, slots=True, kw_only=True)
class BPipeCluster:
    """The table ``[paper.bpipe]``."""

    tensor: int = 1
    replicas: int = 1
    node: int = 8
    transfer_between_nodes: int | None = None

    def placement(self, stages: int, microbatches: int) -> PairPlacement:
        """Where the stages stand."""
        mesh = DeviceMesh(stages=stages, tensor=self.tensor, replicas=self.replicas, node=self.node)
        return pair_placement(mesh, microbatches)


@dataclass(frozen=True, slots=True, kw_only=True)
class BPipeVariant:
    """1F1B, or BPipe where ``is_balanced``; with all stages recomputed or none."""

    is_balanced: bool
    is_recomputed: bool

    def __str__(self) -> str:
        return f"{self.schedule}{', recomputed' if self.is_recomputed else ''}"

    @property
    def schedule(self) -> str:
        return "bpipe" if self.is_balanced else "1f1b"


def bpipe_choice(given: PaperInput) -> PaperChoice:
    """What BPipe would run; the repair is the shortest of its combinations that runs.

    Raises ``ValueError`` for ranks that evict to another than their mirror, and for stages that
    fit on no node.
    """
    planner = _Planner(given)
    tried = planner.combinations()
    chosen = planner.chosen()
    runs = {one: planner.run(one) for one in tried}
    working = {one: run for one, run in runs.items() if isinstance(run, AcceptedSchedule)}
    best = min(working, key=lambda one: working[one].measured.makespan, default=None)
    own = None if chosen is None else working.get(chosen)
    run = own or (None if best is None else working[best])
    return PaperChoice(
        paper=PAPER,
        choice=planner.told(chosen),
        executable=own is not None,
        note="; ".join(planner.sentences(tried, chosen, best, runs)),
        value=None if run is None else run.measured.makespan,
        run=run,
    )


def predicted_ticks(given: PaperInput) -> int | None:
    """The paper's count of a step of its choice; None where nothing fits on paper."""
    planner = _Planner(given)
    chosen = planner.chosen()
    return None if chosen is None else planner.predicted(chosen)


def why_nothing_fits(grid: Sequence[PaperInput]) -> str:
    """What the deployment that lacks least would take, where nothing fits on paper."""
    planners = [_Planner(given) for given in grid]
    lacks = [
        (one.memory(way) - most, one.refusal(way), one.pipeline.num_ranks)
        for one in planners
        for way in one.combinations()
        if (most := one.pipeline.least_capacity) is not None and one.memory(way) > most
    ]
    _, why, ranks = min(lacks, default=(0, "no transfer hides behind computation", 0))
    return f"{why}, on {ranks} ranks, the nearest to fitting on paper"


class _Planner:
    """The numbers that the paper's rules go by."""

    def __init__(self, given: PaperInput) -> None:
        self.space = given.space
        self.pipeline = given.space.pipeline
        allowed = given.space.allowed
        again = None if allowed is None else allowed.recompute
        is_whole = again is not None and {*again.stages} == {*range(self.pipeline.num_ranks)}
        self.again: AllowedRecompute | None = again if is_whole else None
        self.evict: AllowedEvictions | None = None if allowed is None else allowed.evict
        cluster = BPipeCluster(**given.table)  # type: ignore[arg-type]  # the layout has checked them
        self.between = cluster.transfer_between_nodes
        p, m = self.pipeline.num_ranks, self.pipeline.num_microbatches
        self.placement = cluster.placement(p, m)
        self._require_mirrored()

    def _require_mirrored(self) -> None:
        last = self.pipeline.num_ranks - 1
        pairs = {} if self.evict is None else dict(self.evict.pairs)
        for source in self.placement.pairs if self.evict is not None else ():
            if pairs.get(source) != last - source:
                raise ValueError(
                    f"paper bpipe moves activations of rank {source} to rank {last - source}, the "
                    f"file's to {pairs.get(source)}; use choices.evict.pairs = 'mirrored'"
                )

    def combinations(self) -> tuple[BPipeVariant, ...]:
        """All that the file's choices allow, less recomputation first."""
        scopes = (False,) if self.again is None else (False, True)
        plain = tuple(BPipeVariant(is_balanced=False, is_recomputed=again) for again in scopes)
        if self.evict is None:
            return plain
        return (*plain, BPipeVariant(is_balanced=True, is_recomputed=False))

    def chosen(self) -> BPipeVariant | None:
        """What the paper runs."""
        printed = [one for one in self.combinations() if not self.refusal(one)]
        return min(printed, key=self.predicted, default=None)

    @property
    def forward(self) -> int:
        return int(self.pipeline.ticks.forward.max())

    @property
    def backward(self) -> int:
        return int(self.pipeline.ticks.backward.max())

    def saved(self, one: BPipeVariant) -> int:
        """min(p, m), with transfers no more than mu_opt."""
        p = self.pipeline.num_ranks
        most = min(p, self.pipeline.num_microbatches)
        return min(most, -(-(p + 2) // 2)) if one.is_balanced else most

    def memory(self, one: BPipeVariant) -> int:
        """W_0 + A_0 mu, in memory units."""
        per_stage = self.pipeline.per_stage
        activation = int(per_stage.activation.min())
        if one.is_recomputed and self.again is not None:
            activation = self.again.kept
        return int(per_stage.static.min()) + activation * self.saved(one)

    def predicted(self, one: BPipeVariant) -> int:
        """(m + p - 1) (F + B + R) in ticks."""
        each = self.forward + self.backward
        if one.is_recomputed and self.again is not None:
            each += self.forward if self.again.duration is None else self.again.duration
        return (self.pipeline.num_microbatches + self.pipeline.num_ranks - 1) * each

    def refusal(self, one: BPipeVariant) -> str:
        """Why the paper does not run it; empty where it does."""
        least = self.pipeline.least_capacity
        if least is not None and self.memory(one) > least:
            unit = self.pipeline.memory_unit
            mu = "mu_opt" if one.is_balanced else "mu"
            lacks = lacking(self.memory(one), least, unit)
            return f"section 3.{3 if one.is_balanced else 1}'s W_0 + A_0 {mu} is {lacks}"
        if one.is_balanced:
            return self._why_no_transfers()
        is_later = one.is_recomputed and not self.refusal(
            BPipeVariant(is_balanced=False, is_recomputed=False)
        )
        return "1F1B fits without recomputation" if is_later else ""

    def _why_no_transfers(self) -> str:
        if not self.refusal(BPipeVariant(is_balanced=False, is_recomputed=False)):
            return "1F1B fits without transfers"
        longest = max(self.transfers().values(), default=0)
        if 2 * longest > self.forward + self.backward:
            free = (self.forward + self.backward) // 2
            most = f"only {free} hide behind computation (Eq. 7 to 12)"
            return f"a transfer takes {longest} ticks, and {most}"
        if self.placement.crossing and self.between is None:
            return f"{self.placement.statement}, whose link the table does not tell"
        return ""

    def transfers(self) -> dict[int, int]:
        """Ticks of a transfer of each stage that moves activations."""
        crossing = {s for _, s in self.placement.crossing}
        each = (
            {} if self.evict is None else dict.fromkeys(self.placement.pairs, self.evict.duration)
        )
        for s in crossing & each.keys():
            if self.between is None:
                del each[s]
            else:
                each[s] = self.between
        return each

    def run(self, one: BPipeVariant) -> AcceptedSchedule | str:
        """Its schedule, accepted by the checker; or the rule that it breaks."""
        candidate = _candidate(self.space)
        if one.is_balanced:
            transfers = self.transfers()
            own = None if self.evict is None else self.evict.duration
            is_open = all(ticks == own for ticks in transfers.values())
            return balanced_run(self.pipeline, transfers, candidate if is_open else None)
        return plain_run(self.pipeline, self.again if one.is_recomputed else None, candidate)

    def told(self, chosen: BPipeVariant | None) -> dict[str, object]:
        """The choice for a report."""
        node = self.placement.node
        told: dict[str, object] = {
            "schedule": None if chosen is None else chosen.schedule,
            "recompute": None if chosen is None else chosen.is_recomputed,
            "saved": None if chosen is None else self.saved(chosen),
            "memory": None if chosen is None else self.memory(chosen),
            "predicted": None if chosen is None else self.predicted(chosen),
        }
        if chosen is not None and chosen.is_balanced:
            told["nodes"] = [node[0, s] for s in range(self.pipeline.num_ranks)]
        return told

    def sentences(
        self,
        tried: tuple[BPipeVariant, ...],
        chosen: BPipeVariant | None,
        best: BPipeVariant | None,
        runs: dict[BPipeVariant, AcceptedSchedule | str],
    ) -> Iterator[str]:
        """What the paper's rules said of each combination, and what the schedules say."""
        for one in tried:
            if (why := self.refusal(one)) and one != chosen:
                yield f"{one}: {why}"
        if chosen is None:
            yield "nothing fits on paper"
        elif isinstance(run := runs[chosen], str):
            yield f"{chosen} as printed does not run: {run}"
            if len({*self.pipeline.per_stage.static.tolist()}) > 1:
                yield "section 3.1 has one W_0 for all stages, without embedding and head"
        elif self.predicted(chosen) != run.measured.makespan:
            yield f"printed {self.predicted(chosen)} ticks, measured {run.measured.makespan}"
        if chosen is not None and chosen.is_balanced and self.placement.pairs:
            yield self.placement.statement
        if best is not None and best != chosen:
            yield f"shortest of these that runs: {best}"


def _candidate(space: PlanSpace) -> Candidate | None:
    """One chunk, one slice, in a loop, whole backwards, layers cut evenly: the paper's shape."""
    for one in space.candidates():
        shape = (one.chunks, one.slices, one.placement, one.backward)
        if shape == (1, 1, "loop", WHOLE) and len(set(one.layers or (1,))) == 1:
            return one
    return None
