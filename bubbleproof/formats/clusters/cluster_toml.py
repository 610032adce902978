"""Problem files that start from a model and a cluster.

``read_cluster_file`` reads the tables of ``formats.layouts.cluster_layout``; the problem of one of
their deployments is told by ``formats.clusters.deployed_content``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import lcm
from pathlib import Path
from typing import Any

from bubbleproof.costs import Deployment, Transformer, known_model
from bubbleproof.costs.cluster import Cluster
from bubbleproof.costs.combinations import (
    AnyCount,
    Combination,
    CombinationCosts,
    ForbiddenCombination,
    Lists,
    TrainingJob,
    counted,
)
from bubbleproof.costs.configurations.config_file import (
    ConfiguredModel,
    is_configuration,
    read_configuration,
)
from bubbleproof.costs.times.calibration import Calibration
from bubbleproof.costs.times.card_files import cards
from bubbleproof.costs.times.cards import Card
from bubbleproof.costs.times.constants import starts
from bubbleproof.costs.times.profiles import ALSO, SOFTWARE, usual
from bubbleproof.costs.times.profiles import software as known_software
from bubbleproof.costs.times.software import Software
from bubbleproof.formats.clusters.hardware_toml import known_hardware, read_hardware
from bubbleproof.formats.clusters.model_toml import model_of, read_model
from bubbleproof.formats.clusters.open_choices import (
    OpenChoices,
    open_choices,
    open_lists,
    shapes_told,
)
from bubbleproof.formats.clusters.own_configuration import OwnConfiguration
from bubbleproof.formats.errors import UnusableInput, about, quoted, values_at
from bubbleproof.formats.files import MEBIBYTE, FilePath, read_text
from bubbleproof.formats.layouts.cluster_layout import (
    ClusterFileLayout,
    ClusterLayout,
    ClusterPlanLayout,
)
from bubbleproof.formats.toml_text import parse_toml
from bubbleproof.formats.validation import described
from bubbleproof.formats.values import MeasuredUnits, validate_measured
from bubbleproof.frameworks import ANY, FRAMEWORKS, framework_choices, framework_of_costs
from bubbleproof.theory.near_names import did_you_mean
from bubbleproof.theory.pipelines.shapes.cut_lists import BALANCED, EVEN, NamedCuts
from bubbleproof.theory.pipelines.shapes.plan_space import require_listed

CARD = {
    "flops": ("tflops", 1e12),
    "memory": ("memory_gib", 2**30),
    "memory_bandwidth": ("memory_gbs", 1e9),
    "node_link": ("link_gbs", 1e9),
    "network": ("network_gbs", 1e9),
}
REACHED = 0.6  # of the dense rate, by a card of which nothing else is known
SIZES = ("tensor", "data", "pipeline", "micro_batch", "zero", "scope", "context", "expert")
OF_COSTS = (
    "layers",
    "accounting",
    "precision",
    "framework",
)  # keys of [plan] that no problem file has there
OPEN_SOFTWARE = "megatron-core-overlapped"  # of a cluster that tells none, where all is open
MOST_SHARES = 64  # so many microseconds are little of what a layer takes


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFile:
    """What such a file says; ``time_limit`` in seconds, ``memory`` of an engine in bytes.

    ``plan`` has them as they are told, ``shapes`` as they are read; ``text`` is all of the file.
    ``opened`` is what a file leaves open that lists nothing, or names a framework, and what that
    runs of what is listed; None where all is as it is listed. ``own`` is a configuration to try
    beside all that. ``notes`` say what a configuration of transformers means that no cost counts.
    """

    name: str
    description: str
    training: TrainingJob
    lists: Lists
    plan: Mapping[str, object]
    shapes: ClusterPlanLayout
    time_limit: int | None
    memory: int | None = None
    text: str = ""
    opened: OpenChoices | None = None
    own: OwnConfiguration | None = None
    notes: tuple[str, ...] = ()

    @property
    def is_open(self) -> bool:
        """Whether it lists nothing, or names a framework."""
        return self.opened is not None

    @property
    def cluster_keys(self) -> Mapping[str, object]:
        """What its table ``[cluster]`` tells."""
        told = parse_toml(self.text)["cluster"]
        return told if isinstance(told, Mapping) else {}

    @property
    def orders(self) -> tuple[str, ...]:
        """The families whose orders may be run, by name; none: any order."""
        return () if self.opened is None else self.opened.runs.orders

    @property
    def bounded(self) -> str:
        """The orders that a bound of all its deployments is of, in words."""
        asked = "" if self.own is None else ", yours among them"
        if self.opened is None or self.opened.framework == ANY:
            return f"any order of these deployments and choices{asked}"
        which = "the orders" if self.orders else "any order"
        runs = f"{self.opened.framework} runs, as modelled here,"
        return f"{which} that {runs} of these deployments{asked}"

    def runs(self, one: Combination) -> bool:
        """Whether the deployment is asked for."""
        return self.opened is None or self.opened.takes(one)

    def counted(self, one: Combination) -> AnyCount:
        """A deployment with its numbers, or why it has none, or is not run."""
        found = counted(self.training, one)
        if self.opened is None or isinstance(found, ForbiddenCombination):
            return found
        why = self.opened.too_few(found)
        return ForbiddenCombination(combination=one, reason=why) if why else found

    def shapes_of(self, one: CombinationCosts) -> ClusterPlanLayout:
        """The shapes of a deployment's pipeline."""
        found = self.shapes if self.opened is None else self.opened.shapes_of(self.shapes, one)
        is_own = self.own is not None and self.own.combination == one.combination
        return self.own.among(found) if self.own is not None and is_own else found

    def plan_of(self, one: CombinationCosts) -> Mapping[str, object]:
        """The same as the table of a problem file."""
        told, shapes = self.plan, self.shapes_of(one)
        return told if shapes is self.shapes else {**told, **shapes_told(shapes)}

    def with_own(self, own: OwnConfiguration) -> ClusterFile:
        """With a configuration to try beside what the file lists.

        Raises ``ValueError`` for one that a number forbids, or that the framework does not run.
        """
        one = counted(self.training, own.combination)
        why = one.reason if isinstance(one, ForbiddenCombination) else ""
        if isinstance(one, CombinationCosts) and self.opened is not None:
            why = self.opened.refusal(one, own.chunks)
        if why:
            raise ValueError(f"{own}: {why}")
        return replace(self, own=own)


def is_cluster_file(path: FilePath) -> bool:
    """Whether a problem file starts from a model. Raises ``UnusableInput`` for what is no TOML."""
    with about(path):
        return "model" in parse_toml(read_text(path, limit=MEBIBYTE))


def has_cluster(path: FilePath) -> bool:
    """Whether a file with a table ``[model]`` has a cluster as well."""
    with about(path):
        return "cluster" in parse_toml(read_text(path, limit=MEBIBYTE))


def named_model(text: str) -> tuple[Transformer, Deployment]:
    """A published model or that of a file or configuration, and what of a deployment follows.

    The tokens of a sample; with a cluster, what its framework keeps and how it counts.
    """
    if is_configuration(text):
        found = read_configuration(text)
        return found.model, Deployment(sequence=found.sequence)
    if not text.endswith(".toml"):
        known = known_model(text)
        return known.model, Deployment(sequence=known.sequence)
    if has_cluster(text):
        training = read_cluster_file(text).training
        return training.model, training.deployment
    model, sequence = read_model(text)
    return model, Deployment(sequence=sequence)


def configuration_of(text: str) -> ConfiguredModel | None:
    """What was understood of a model's configuration; None for one that has none."""
    if is_configuration(text):
        return read_configuration(text)
    if not text.endswith(".toml"):
        return None
    with about(text):
        table = parse_toml(read_text(text, limit=MEBIBYTE)).get("model")
    config = table.get("config") if isinstance(table, dict) else None
    return read_configuration(config) if isinstance(config, str) else None


def read_cluster_file(path: FilePath) -> ClusterFile:
    """Read a file of at most 1 MiB.

    Raises ``UnusableInput`` naming the key, what was expected and what was found.
    """
    with about(path):
        return cluster_file_of_text(read_text(path, limit=MEBIBYTE), name=Path(path).stem)


def cluster_file_of_text(text: str, *, name: str, framework: str | None = None) -> ClusterFile:
    """What such a file of this text says; ``name`` is for one that states none.

    A ``framework`` takes the place of the one that an open file plans for.

    Raises ``UnusableInput`` as ``read_cluster_file`` does.
    """
    units = MeasuredUnits("s", "bytes")
    layout = validate_measured(ClusterFileLayout, parse_toml(text), units)
    model, sequence = model_of(layout.model)
    is_open = "plan" not in layout.model_fields_set or layout.plan.framework is not None
    is_named = layout.cluster.framework in {name for each in FRAMEWORKS for name in each.names}
    is_fitted = layout.cluster.hardware is not None
    with values_at("plan.framework"):
        software = _open_software(layout.plan) if is_open and not is_fitted else None
    cluster = cluster_of(layout.cluster, software)
    if layout.solve.objective != "makespan":
        expected = "'makespan', which a plan is made for"
        raise UnusableInput("solve.objective", expected, quoted(layout.solve.objective))
    with values_at("plan"):
        for key in ("chunks", "placements", "slices", "backward", *SIZES):
            if (values := getattr(layout.plan, key)) is not None:
                require_listed(key, values)
        precisions = _precisions(layout.plan) or (cluster.runs.precision,)
        require_listed("precision", precisions)
        shared = Deployment(
            sequence=layout.batch.sequence or sequence,
            sequence_parallel=cluster.runs.sequence_parallel,
            accounting=layout.plan.accounting or cluster.runs.accounting,
            precision=precisions[0],
        )
        for each in precisions:
            shared.with_changes(precision=each)  # refuses a name that is none
    described(layout.plan.jitter, "plan.jitter")  # refuses numbers that say no spread
    lists, opened = _lists(layout.plan), None
    if is_open or is_named:
        with values_at("plan.framework"):
            told = layout.plan.framework or layout.cluster.framework
            if not is_named and layout.plan.framework is None:
                told = framework_of_costs(layout.cluster.framework or OPEN_SOFTWARE)
            opened = open_choices(layout.plan, framework or str(told), model, is_open=is_open)
            if framework is None and (is_named or layout.plan.framework is not None):
                runs = opened.runs
                refused = [runs.model_refused(model), *map(runs.precision_refused, precisions)]
                if why := next(filter(None, refused), ""):
                    raise ValueError(why)
        lists = open_lists(lists, opened, model, cluster.cards, shared.sequence)
    return ClusterFile(
        name=layout.name or name,
        description=layout.description,
        training=TrainingJob(
            model=model,
            cluster=cluster,
            samples=layout.batch.samples,
            deployment=shared,
            rule=_rule(layout.plan, opened),
            shares=_shares(layout.plan, opened),
        ),
        lists=lists,
        plan=_shapes(layout.plan),
        shapes=layout.plan,
        time_limit=layout.solve.time_limit,
        memory=layout.solve.memory,
        text=text,
        opened=opened,
        notes=_notes(layout.model.config),
    )


def _notes(config: str | None) -> tuple[str, ...]:
    return () if config is None else read_configuration(config).notes


def _open_software(layout: ClusterPlanLayout) -> str:
    """That of the framework which the plan is for; of Megatron with all that its line switches on.

    Raises ``ValueError`` for a framework that is none.
    """
    found = "" if layout.framework is None else framework_choices(layout.framework).costs
    is_other = found and framework_of_costs(found) != framework_of_costs(OPEN_SOFTWARE)
    return found if is_other else OPEN_SOFTWARE


def cluster_of(layout: ClusterLayout, software: str | None) -> Cluster:
    """The cluster of a table, with this software where the table tells none.

    Raises ``UnusableInput`` for numbers that are none.
    """
    with values_at("cluster"):
        runs = known_software(_software(layout.framework or software or _usual(layout)))
        kind, constants = _card(layout, runs)
        if layout.products == "fp8" and "fp8" not in kind.tflops:
            has = f"bf16 (a {kind.name} multiplies no numbers of eight bits)"
            raise UnusableInput("cluster.products", has, "'fp8'")
        found = Cluster(
            card=kind,
            cards=layout.cards,
            constants=constants,
            runs=runs.computing_in(layout.products or "bf16"),
            **_told(layout, "reserve", "hidden"),
        )
        efficiency = layout.efficiency
        return found if efficiency is None else with_efficiency(found, float(efficiency))


def hardware_of(file: ClusterFile) -> Calibration | None:
    """The card and the constants that a file takes; None where it tells a card by numbers alone."""
    told = file.cluster_keys
    if "hardware" in told:
        return read_hardware(str(told["hardware"]), "cluster.hardware")
    return known_hardware(str(told["card"]), "cluster.card") if "card" in told else None


def _usual(layout: ClusterLayout) -> str:
    """The software of a cluster that tells none: that on whose rows its own file was fitted, or
    that of the card's published rows."""
    if layout.hardware is None:
        return usual((layout.card or "").lower(), is_named=True)
    known = read_hardware(layout.hardware, "cluster.hardware")
    return next(iter(known.software), usual(known.card.name, is_named=True))


def _software(told: str) -> str:
    """The software of a name, which may be a framework's too.

    Raises ``UnusableInput`` for a name that is none.
    """
    counted = {name: each.costs for each in FRAMEWORKS for name in each.names}
    if told in {*SOFTWARE, *ALSO}:
        return told
    if told not in counted:
        known = list(dict.fromkeys([*SOFTWARE, *counted]))
        expected = f"one of {', '.join(known)}{did_you_mean(told, known)}"
        raise UnusableInput("cluster.framework", expected, quoted(told))
    return counted[told]


def with_efficiency(cluster: Cluster, efficiency: float) -> Cluster:
    """The cluster with large matrix products at this share of the card's dense 16-bit rate,
    and its attention faster or slower by as much."""
    if not 0 < efficiency <= 1:
        raise ValueError(
            f"cluster efficiency must be above 0 and at most 1, got {efficiency}; use such as 0.5"
        )
    reached = efficiency * cluster.card.half_tflops
    told = dict(cluster.constants)
    more = reached / told["matmul"]
    told |= {"matmul": reached, "attention": more * told["attention"]}
    return cluster.with_changes(constants=told)


def _card(layout: ClusterLayout, runs: Software) -> tuple[Card, dict[str, float]]:
    """The card and its constants: a known one, with what is told of it, or one told whole.

    Constants that follow from what is told begin anew; the others stay as they were fitted.
    """
    own: dict[str, Any] = {}
    for name, (field, unit) in CARD.items():
        if (value := getattr(layout, name)) is not None:
            own[field] = float(value) / unit
    if layout.per_node is not None:
        own["cards_per_node"] = layout.per_node
    if "tflops" in own:
        own["tflops"] = {"bf16": own["tflops"]}
    if layout.card is None and layout.hardware is None:
        found = Card(
            name="own", title="own", **{"cards_per_node": 8, "reached": REACHED, **_all(own)}
        )
        return found, starts(found, runs)
    if layout.card is not None and layout.hardware is not None:
        raise UnusableInput("cluster.card", "nothing beside hardware", repr(layout.card))
    if layout.card is not None:
        known = known_hardware(layout.card, "cluster.card")
    else:
        known = read_hardware(layout.hardware or "", "cluster.hardware")
    found = replace(known.card, **own)
    begun, before = starts(found, runs), starts(known.card, runs)
    anew = {name: value for name, value in begun.items() if value != before[name]}
    return found, {**known.constants_of(known.card, runs), **anew}


def _all(own: Mapping[str, Any]) -> Mapping[str, Any]:
    """What is told of a card. Raises ``UnusableInput`` for what is missing."""
    for name, (field, _) in CARD.items():
        if field not in own:
            expected = f"this key, or card = one of {', '.join(cards())}"
            raise UnusableInput(f"cluster.{name}", expected, "nothing")
    return own


def _told(layout: ClusterLayout, *names: str) -> dict[str, Any]:
    return {name: value for name in names if (value := getattr(layout, name)) is not None}


def _lists(layout: ClusterPlanLayout) -> Lists:
    given = {name: getattr(layout, name) for name in SIZES}
    if len(several := _precisions(layout)) > 1:
        given["precision"] = several
    return Lists(**{name: tuple(value) for name, value in given.items() if value is not None})


def _precisions(layout: ClusterPlanLayout) -> tuple[str, ...]:
    """Those that are listed; none where the framework's is taken."""
    told = layout.precision or []
    return (told,) if isinstance(told, str) else tuple(told)


def _shapes(layout: ClusterPlanLayout) -> dict[str, object]:
    """The keys of ``[plan]`` that any problem file may have, as the file tells them."""
    told = layout.model_dump(exclude_unset=True, exclude={*SIZES, *OF_COSTS})
    return {"chunks": layout.chunks, **told}


def _rule(layout: ClusterPlanLayout, opened: OpenChoices | None) -> NamedCuts:
    """The ways to cut the layers. Raises ``UnusableInput`` for one that the framework lacks."""
    cuts = () if opened is None else opened.runs.cuts
    listed = (EVEN, BALANCED) if layout.layers is None else (layout.layers,)
    found = tuple(each for each in listed if not cuts or each in cuts)
    if opened is not None and not found:
        expected = f"a cut that {opened.framework} makes, such as {cuts[0]!r}"
        raise UnusableInput("plan.layers", expected, quoted(layout.layers))
    return NamedCuts(kinds=found)


def _shares(layout: ClusterPlanLayout, opened: OpenChoices | None) -> int:
    """What all numbers of slices divide. Raises ``UnusableInput`` where that is too coarse."""
    if opened is not None and "slices" not in opened.listed:
        return lcm(*opened.runs.slices)
    found = lcm(*layout.slices)
    if found > MOST_SHARES:
        expected = f"numbers of slices that all divide one of {MOST_SHARES} or less"
        raise UnusableInput("plan.slices", expected, f"{layout.slices}, which divide {found}")
    return found
