"""What runs where: the frameworks that train pipelines, each with its version and its rules.

Who asks: ``plan`` and a cluster's ``framework`` (what may be chosen, what a step costs),
``hand-over --to`` (what is written), ``verify --runtime`` (what SEND and RECV wait for). ``waits``
are names of semantics (``verify.communication.semantics``), each of which a program for the
framework must hold under. Sources:

torch
    ``torch/distributed/pipelining/schedules.py``: any order of whole samples, from a table. FSDP
    shares gradients (weights kept through the step) or weights too; without it nothing is shared.
    ``_batch_p2p``: SENDs alone and RECVs alone are posted one by one, so each pair of ranks has a
    stream (``pair-stream``); with a ``device_id`` they share the group's communicator
    (``rank-stream``). Gradients of weights that two stages share are not added.
torchtitan
    torch's runtime, stages in a loop or, two a rank, in a V. ``torchtitan/distributed/
    parallel_dims.py``: the mesh of experts is cut from shards, context and tensor ranks, not from
    whole replicas; weights lie over context ranks too. Recomputes a layer or nothing. It captures
    the step (pull request 4493). Before 0.3 its configuration was a file.
automodel
    torch's runtime, stages in a loop; ``nemo_automodel/recipes/llm/train_ft.py``: a replica has as
    many microbatches as ranks, or more. FSDP alone runs pipelines, and it shards what replicas
    hold. Recomputes a layer or nothing.
megatron-core
    ``megatron/training/arguments.py``: the distributed optimizer shares optimizer state alone
    (ZeRO 1); ``megatron/core/pipeline_parallel/schedules.py``: 1F1B of one chunk, and interleaved
    1F1B of several with groups of any legal size (``theory.families.interleaved``); layers are cut
    by the layout string. Layers with experts and without stand in any order, by a list; all of
    either sort are alike (``--moe-layer-freq``).
    ``p2p_communication.py``: ``batch_isend_irecv``, or without ``batch_p2p_comm`` one after
    another in an order and on groups by the parity of ranks.
deepspeed
    ``deepspeed/runtime/pipe/engine.py``: 1F1B of one chunk, with ZeRO 0 and 1. ``p2p.py``:
    ``dist.send`` and ``dist.recv``, which block. ``module.py``: layers are cut by a method, none
    stage by stage; by the layers' class the first stages have those that are left over.

They stand in ``frameworks.toml``. What each answers to drawn configurations is recorded
(``benchmarks/frameworks``), and the list is compared with it.

>>> framework_named("torchtitan", "--to").name
'torchtitan-0.3'
>>> framework_choices("megatron-core").zero
(0, 1)
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any

from bubbleproof.theory.near_names import did_you_mean
from bubbleproof.theory.pipelines.programs.pytorch_runtime import Version

ANY = "any"


@dataclass(frozen=True, slots=True, kw_only=True)
class Framework:
    """A framework of one version, and what it runs of what a plan may choose.

    ``family`` has one way of being handed schedules; ``also`` are names that mean this one;
    ``torch`` is the version whose tables it reads; ``costs`` names its constants. By ``orders`` the
    schedules' families where it builds its own. ``zero`` are the levels without a pipeline,
    ``staged_zero`` those with one. ``groups``: several chunks take microbatches in groups of as
    many as ranks, or more. ``expert_within``: the degrees of whose product the expert degree is a
    divisor, where it has such a rule beside that of our costs (experts lie over ``data``).
    ``precisions`` are those of ``costs.accounting`` that it has, where not all; of ``lacks`` each
    names fields of a model, the values that it runs, and what others would be, of every kind of its
    layers; these differ in ``kinds`` alone, where any are told. Of ``extras``, the operations of a
    layer beside those of all models, it has these alone, each with weights of one head, where any
    are told. ``waves`` are the
    chunks of a wave, where not any; ``cuts`` the kinds of cuts, where not all; ``sharded_zero``
    the levels of context ranks. ``ties``: a head may read the weights of an embedding on another
    rank. ``fills``: there are as many microbatches as ranks, or more. ``lone_chunks``: one rank may
    have several, else it has no pipeline. ``only_named``: it has the models of ``NAMED_MODELS``.
    """

    product: str
    version: str
    family: str
    waits: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    torch: Version | None = None
    costs: str = ""
    zero: tuple[int, ...] = (0, 1, 2, 3)
    staged_zero: tuple[int, ...] = (0, 1, 2, 3)
    placements: tuple[str, ...] = ("loop", "wave")
    backward: tuple[str, ...] = ("whole", "split")
    slices: tuple[int, ...] = (1, 2, 4)
    chunks: bool = True
    context: bool = True
    expert: bool = True
    groups: bool = False
    expert_within: tuple[str, ...] = ()
    orders: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ("none", "attention", "full")
    waves: tuple[int, ...] = ()
    cuts: tuple[str, ...] = ()
    sharded_zero: tuple[int, ...] = (0, 1, 2, 3)
    ties: bool = True
    fills: bool = False
    lone_chunks: bool = False
    precisions: tuple[str, ...] = ()
    lacks: tuple[tuple[tuple[str, ...], tuple[tuple[object, ...], ...], str], ...] = ()
    extras: tuple[str, ...] | None = None
    kinds: tuple[str, ...] = ()
    only_named: bool = False

    @property
    def name(self) -> str:
        """The product with its version."""
        return f"{self.product}-{self.version}" if self.version else self.product

    @property
    def names(self) -> tuple[str, ...]:
        """All that mean this one."""
        return (self.name, *self.also)

    def model_refused(self, model: object) -> str:
        """Why it has no such model (``costs.transformer``); empty where it has."""
        if self.kinds and getattr(model, "runs", ()):
            return self._kinds_refused(model)
        for names, runs, what in self.lacks:
            if tuple(_field(model, name) for name in names) not in runs:
                return f"{self.name} has no model with {what}; use torch"
        known_extras = self.extras
        for each in () if known_extras is None else getattr(model, "extras", ()):
            is_of_heads = each.vectors == getattr(model, "head_width", 0)
            if each.name not in (known_extras or ()) or not is_of_heads:
                return f"{self.name} has no model with {each.name} of that kind; use torch"
        if self.only_named and sizes_of(model) not in NAMED_MODELS:
            known = ", ".join(f"{module} {flavor}" for module, _, flavor in NAMED_MODELS.values())
            return f"{self.name} has models by name alone, such as {known}; use torchtitan-0.3"
        return ""

    def _kinds_refused(self, model: Any) -> str:
        """Why it has no model of several kinds of layers: by the kind that it lacks."""
        for run, (kind, _) in zip(model.runs, model.layer_runs, strict=True):
            if why := self.model_refused(kind):
                return f"{why} (its layers {run.kind!r})"
            other = next((name for name, _ in run.changes if name not in self.kinds), "")
            if other:
                return (
                    f"{self.name} has no layers that differ in {other}, as {run.kind!r}; use torch"
                )
        kinds = {kind for kind, _ in model.layer_runs}
        if len(kinds) > len({bool(kind.experts) for kind in kinds}):
            return f"{self.name} has no layers of several mixtures or several widths; use torch"
        return self.model_refused(model.with_changes(runs=()))

    def precision_refused(self, precision: str) -> str:
        """Why it has no such precision; empty where it has."""
        if self.precisions and precision not in self.precisions:
            known = ", ".join(self.precisions)
            return f"{self.name} has no precision {precision}; plan with one of {known}"
        return ""

    def experts_refused(
        self, *, expert: int, data: int, context: int, tensor: int, zero: int
    ) -> str:
        """Why experts cannot lie over such degrees; empty where they can.

        Replicas are shards under ZeRO 2 and 3, else whole (``replicate``).
        """
        shard = data if zero > 1 else 1
        degrees = {"data": data, "shard": shard, "context": context, "tensor": tensor}
        product = prod(degrees[name] for name in self.expert_within)
        if not self.expert_within or product % expert == 0:
            return ""
        told = " x ".join(f"{name} {degrees[name]}" for name in self.expert_within)
        repair = "" if zero > 1 else "; use zero = [2, 3]"
        return (
            f"{self.name} cuts experts from {told} = {product}, which expert {expert} does not "
            f"divide{repair}"
        )


def _frozen(value: Any) -> Any:
    """Lists as tuples, those in a row too."""
    if isinstance(value, dict):
        return {key: _frozen(each) for key, each in value.items()}
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def _listed() -> tuple[Framework, ...]:
    """Those of the file, in its order."""
    found: dict[str, Framework] = {}
    for name, row in _TOLD["framework"].items():
        product, _, version = name.rpartition("-")
        own: dict[str, Any] = {"product": product, "version": version}
        own |= _frozen(row)
        if "lacks" in own:
            own["lacks"] = tuple(each for of in own["lacks"] for each in _frozen(_LACKS[of]))
        like = found.get(own.pop("like", ""))
        found[name] = replace(like, **own) if like else Framework(**own)
    return tuple(found.values())


_TOLD = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_LACKS = _TOLD["lacks"]
FRAMEWORKS = _listed()
# The models that torchtitan has, by ``sizes_of``: module, configuration in 0.3, flavor in 0.2.
NAMED_MODELS: dict[tuple[int, ...], tuple[str, str, str]] = {
    tuple(sizes): (module, name, flavor)
    for name, (module, flavor, sizes) in _TOLD["named_models"].items()
}
_SIZES = (
    "layers", "hidden", "heads", "kv_heads", "head_width", "feed_forward", "vocabulary", "experts",
    "experts_per_token",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchClass:
    """A schedule class of torch by the name that it is asked for, and what it takes.

    ``chunks`` of a rank, where not any; ``least`` microbatches for each rank; by ``rounds``
    microbatches are a multiple of max(1, m div p). A table has none of these limits.
    """

    name: str
    chunks: tuple[int, ...] = ()
    least: int = 0
    rounds: bool = False

    def refusal(self, *, ranks: int, chunks: int, microbatches: int) -> str:
        """Why the class does not take such sizes; empty where it does."""
        if self.chunks and chunks not in self.chunks:
            return f"{self.name} runs {self.chunks[0]} chunks per rank, not {chunks}"
        if microbatches < self.least * ranks:
            return f"{self.name} runs {self.least * ranks} microbatches or more"
        rounds = max(1, microbatches // ranks)
        if self.rounds and microbatches % rounds:
            return f"{self.name} runs a multiple of {rounds} microbatches, not {microbatches}"
        return ""


TORCH_CLASSES = tuple(
    TorchClass(name=name, **_frozen(row)) for name, row in _TOLD["torch_classes"].items()
)
_ANY = Framework(product=ANY, version="", family=ANY, lone_chunks=True)


def _field(model: object, name: str) -> object:
    """What a model has there; of operations their names, "" where there are none to tell."""
    value = getattr(model, name)
    if value is None:
        return ""
    return tuple(each.name for each in value) if name in ("extras", "mixer") else value


def sizes_of(model: object) -> tuple[int, ...]:
    """The sizes by which a model (``costs.transformer``) is known."""
    return tuple(getattr(model, name) for name in _SIZES)


def framework_named(name: str, asker: str) -> Framework:
    """The framework of a name. Raises ``ValueError``, about ``asker``, naming those that there are.

    Parameters
    ----------
    name
        Product and version, or one of its other names.
    asker
        What the message is about, such as an option's name.
    """
    by_name = {known: each for each in FRAMEWORKS for known in each.names}
    if name not in by_name:
        hint = did_you_mean(name, by_name)
        raise ValueError(f"{asker} must be one of {', '.join(by_name)}, got {name[:60]!r}{hint}")
    return by_name[name]


def framework_choices(name: str) -> Framework:
    """What the framework of a name runs, ``any``: all that a schedule of ours may be.

    Raises ``ValueError`` naming those that there are.
    """
    return _ANY if name == ANY else framework_named(name, "plan framework")


def framework_of_costs(software: str) -> str:
    """The framework whose times the software's are; ``any`` where it is none of the list."""
    plain = software.removesuffix("-overlapped")
    return next((each.product for each in FRAMEWORKS if each.costs == plain), ANY)
