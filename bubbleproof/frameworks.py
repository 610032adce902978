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
    torch's runtime; ``torchtitan/distributed/parallel_dims.py``: the mesh of experts is cut from
    shards, context and tensor ranks, not from whole replicas. It captures the step (pull request
    4493).
automodel
    torch's runtime, stages in a loop; ``nemo_automodel/recipes/llm/train_ft.py``: a replica has as
    many microbatches as ranks, or more.
megatron-core
    ``megatron/training/arguments.py``: the distributed optimizer shares optimizer state alone
    (ZeRO 1); ``megatron/core/pipeline_parallel/schedules.py``: 1F1B of one chunk, and interleaved
    1F1B of several with groups of any legal size (``theory.families.interleaved``); layers are cut
    by the layout string.
    ``p2p_communication.py``: ``batch_isend_irecv``, or without ``batch_p2p_comm`` one after
    another in an order and on groups by the parity of ranks.
deepspeed
    ``deepspeed/runtime/pipe/engine.py``: 1F1B of one chunk, with ZeRO 0 and 1. ``p2p.py``:
    ``dist.send`` and ``dist.recv``, which block.

>>> framework_named("torchtitan", "--to").name
'torchtitan-0.3'
>>> framework_choices("megatron-core").zero
(0, 1)
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

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
    names a field of a model, the one value that it runs, and what another would be. ``one_bias``:
    all linears of a layer have one or none has, but those of query, key and value.
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
    precisions: tuple[str, ...] = ()
    lacks: tuple[tuple[str, object, str], ...] = ()
    one_bias: bool = False

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
        for name, only, what in self.lacks:
            if getattr(model, name) != only:
                return f"{self.name} has no model with {what}; use torch"
        if self.one_bias and _biases_differ(model):
            return f"{self.name} has no model with biases of some linears; use torch"
        return ""

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
        degrees = {"shard": shard, "context": context, "tensor": tensor}
        product = prod(degrees[name] for name in self.expert_within)
        if not self.expert_within or product % expert == 0:
            return ""
        told = " x ".join(f"{name} {degrees[name]}" for name in self.expert_within)
        repair = "" if zero > 1 else "; use zero = [2, 3]"
        return (
            f"{self.name} cuts experts from {told} = {product}, which expert {expert} does not "
            f"divide{repair}"
        )


def _biases_differ(model: object) -> bool:
    """Whether a bias is on the output of one block of a layer and not of the other."""
    told = [getattr(model, name) for name in ("attention_biases", "feed_forward_bias")]
    return bool((told[0] == "all") != told[1])


_STREAMS = ("pair-stream", "rank-stream")
FRAMEWORKS = (
    Framework(
        product="torch",
        version="2.13",
        family="torch",
        waits=_STREAMS,
        also=("torch",),
        torch=(2, 13),
        zero=(0, 2, 3),
        staged_zero=(0, 2, 3),
        slices=(1,),
    ),
    Framework(
        product="torch",
        version="2.15",
        family="torch",
        waits=_STREAMS,
        torch=(2, 15),
        zero=(0, 2, 3),
        staged_zero=(0, 2, 3),
        slices=(1,),
    ),
    Framework(
        product="torchtitan",
        version="0.3",
        family="torchtitan",
        waits=(*_STREAMS, "captured"),
        also=("torchtitan",),
        zero=(0, 2, 3),
        staged_zero=(0, 2, 3),
        slices=(1,),
        expert_within=("shard", "context", "tensor"),
    ),
    Framework(
        product="automodel",
        version="0.7",
        family="automodel",
        waits=_STREAMS,
        also=("automodel",),
        zero=(0, 2, 3),
        staged_zero=(0, 2, 3),
        placements=("loop",),
        slices=(1,),
    ),
    Framework(
        product="megatron-core",
        version="0.19",
        family="megatron",
        waits=("batched", "rank-parity"),
        also=("megatron-core", "megatron"),
        costs="megatron-core",
        zero=(0, 1),
        staged_zero=(0, 1),
        placements=("loop",),
        backward=("whole",),
        slices=(1,),
        groups=True,
        orders=("1f1b", "interleaved G"),
        precisions=("bf16", "bf16-gradients", "fp32"),
        lacks=(
            ("parallel", False, "attention and feed-forward block side by side"),
            ("embedding_norm", False, "a norm after the embedding"),
            ("head_bias", False, "a bias of the head"),
            ("norms", 2, "another number of norms in a layer than 2"),
        ),
        one_bias=True,
    ),
    Framework(
        product="deepspeed",
        version="0.19",
        family="deepspeed",
        waits=("rendezvous",),
        also=("deepspeed",),
        costs="megatron-deepspeed",
        staged_zero=(0, 1),
        placements=("loop",),
        backward=("whole",),
        slices=(1,),
        chunks=False,
        context=False,
        orders=("1f1b",),
    ),
)
_ANY = Framework(product=ANY, version="", family=ANY)


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
