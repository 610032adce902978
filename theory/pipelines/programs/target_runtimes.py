"""The frameworks that run pipelines, by name and version: the one list of them.

Who asks: ``hand-over --to`` (what is written), ``verify --runtime`` (what SEND and RECV wait for
there), a cluster's ``framework`` (what a step costs). ``waits`` are names of semantics
(``verify.communication.semantics``), each of which a program for the runtime must hold under, from:

torch
    ``torch/distributed/pipelining/schedules.py``, ``_batch_p2p``: SENDs alone and RECVs alone are
    posted one by one, so each pair of ranks has a stream (``pair-stream``); with a ``device_id``
    they share the group's communicator (``rank-stream``).
torchtitan, automodel
    torch's runtime; torchtitan also captures the step (pull request 4493).
megatron-core
    ``megatron/core/pipeline_parallel/p2p_communication.py``: ``batch_isend_irecv``, or without
    ``batch_p2p_comm`` one after another in an order and on groups by the parity of ranks.
deepspeed
    ``deepspeed/runtime/pipe/p2p.py``: ``dist.send`` and ``dist.recv``, which block.
"""

from __future__ import annotations

from dataclasses import dataclass

from bubbleproof.theory.near_names import did_you_mean
from bubbleproof.theory.pipelines.programs.pytorch_runtime import Version


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetRuntime:
    """A framework as its users name it.

    ``family`` has one way of being handed schedules for all its versions; ``also`` are names that
    mean this one; ``torch`` is the version whose tables it reads; ``costs`` names its constants.
    """

    name: str
    family: str
    waits: tuple[str, ...]
    also: tuple[str, ...] = ()
    torch: Version | None = None
    costs: str = ""


_TORCH = ("pair-stream", "rank-stream")
RUNTIMES = (
    TargetRuntime(name="torch-2.13", family="torch", waits=_TORCH, also=("torch",), torch=(2, 13)),
    TargetRuntime(name="torch-2.15", family="torch", waits=_TORCH, torch=(2, 15)),
    TargetRuntime(name="torchtitan", family="torchtitan", waits=(*_TORCH, "captured")),
    TargetRuntime(name="automodel", family="automodel", waits=_TORCH),
    TargetRuntime(
        name="megatron-core",
        family="megatron",
        waits=("batched", "rank-parity"),
        also=("megatron",),
        costs="megatron-core",
    ),
    TargetRuntime(
        name="deepspeed", family="deepspeed", waits=("rendezvous",), costs="megatron-deepspeed"
    ),
)


def runtime_named(name: str, asker: str) -> TargetRuntime:
    """The runtime of a name. Raises ``ValueError``, about ``asker``, naming those that there are.

    Parameters
    ----------
    name
        The name of a runtime, or one of its other names.
    asker
        What the message is about, such as an option's name.

    Examples
    --------
    >>> runtime_named("torch", "--to").name
    'torch-2.13'
    """
    by_name = {known: each for each in RUNTIMES for known in (each.name, *each.also)}
    if name not in by_name:
        hint = did_you_mean(name, by_name)
        raise ValueError(f"{asker} must be one of {', '.join(by_name)}, got {name[:60]!r}{hint}")
    return by_name[name]
