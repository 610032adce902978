"""Each semantics as a rule: which stream an end stands in, and for what else it waits.

Beside the five of ``semantics``, in the same words, an end may start

``directed-edge``
    when the end before it of its *ordered* pair of ranks has ended (one FIFO communicator for each
    directed edge between ranks: PyTorch's pull requests 195760 and 196666).
``per-direction``
    when the end before it on its rank that has the same flow, F or B, whatever the pair, has ended
    (two communicators, one for activations and one for gradients: PyTorch's pull request 186173).
    Only messages of one flow meet by order here; those of two never cross.
``rank-parity``
    when the end before it on its rank that is also sent by an even rank, or also by an odd one, has
    ended (Megatron-LM's ``_p2p_ops``: even ranks send on one communicator, odd ranks on the other).
    PyTorch's rank-parity *order* (pull request 178815) is a program, judged under any semantics.
``bounded``
    as under ``pair-stream``, but a SEND ends alone where the one before it of its ordered pair has
    been received: a channel holds one message (a SEND of NCCL ends early while its message fits the
    internal buffers: nccl issue 544; measured with buffers of several sizes in torchrec PR 4472).
``lazy-pairs``
    as under ``pair-stream``, and the first end of each unordered pair of ranks makes its
    communicator: a rank goes on only when the other has come to its first end with it too
    (``ProcessGroupNCCL`` without ``device_id``: a blocking ``ncclCommInitRank`` at first use).
``batched``
    when all ends of the *batch* before its own have ended. A batch is what a rank posts without a
    computation or a wait between; its ends start together, progress independently, and what waits
    for one waits for the whole batch (``batch_isend_irecv``: one ``ncclGroup``, one kernel; NCCL's
    user guide, "Point-to-point communication").
``whole-batches``
    likewise, and batches that have a message in common start and end as one. A batch that meets two
    of another rank waits for itself: groups that are split differently on two ranks (undefined,
    says nccl issue 1279; they hang in PyTorch's issue 174288).
``one-queue``
    when all before it on its rank has ended, computations too; no computation runs before what
    stands before it (``CUDA_DEVICE_MAX_CONNECTIONS=1``: all streams in one hardware queue). It
    refuses what ``rank-stream`` refuses: others hear of a computation by a later end of its rank
    alone, and that waits for all earlier ends anyway.
``captured``
    when the end before it on its rank has ended: a CUDA graph fixes the order of a rank's kernels
    on the shared communicator (torchtitan's pull requests 4493 and 4591). With a communicator for
    each directed edge, as 4591 has them, it is ``directed-edge``. Graphs of one step follow each
    other, which adds nothing (``matching``).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from bubbleproof.verify.communication.semantics import Semantics


class Stream(StrEnum):
    """What the ends of one in-order stream of a rank have in common."""

    ORDERED_PAIR = "ordered pair of ranks"
    PAIR = "pair of ranks"
    FLOW = "forward or backward"
    PARITY = "sender's parity"
    RANK = "rank"


class Blocking(StrEnum):
    """After what a rank goes on only when it has ended."""

    COMPUTATIONS = "computations"
    MESSAGES = "computations and messages"
    ALL = "all"


class Batching(StrEnum):
    """What is started and ended at once."""

    SINGLE_END = "an end"
    OWN_BATCH = "a batch"
    MET_BATCHES = "batches that meet"


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingRule:
    """What ends wait for; ``held`` messages of a channel may be sent and not received, None any."""

    stream: Stream
    held: int | None = 0
    blocking: Blocking = Blocking.COMPUTATIONS
    batching: Batching = Batching.SINGLE_END
    starts_in_order: bool = False
    makes_communicators: bool = False


RULES: dict[Semantics, WaitingRule] = {
    Semantics.BUFFERED: WaitingRule(stream=Stream.ORDERED_PAIR, held=None),
    Semantics.RENDEZVOUS: WaitingRule(stream=Stream.ORDERED_PAIR, blocking=Blocking.MESSAGES),
    Semantics.PAIR_STREAM: WaitingRule(stream=Stream.PAIR),
    Semantics.LAUNCH_ORDER: WaitingRule(stream=Stream.PAIR, starts_in_order=True),
    Semantics.RANK_STREAM: WaitingRule(stream=Stream.RANK),
    Semantics.DIRECTED_EDGE: WaitingRule(stream=Stream.ORDERED_PAIR),
    Semantics.PER_DIRECTION: WaitingRule(stream=Stream.FLOW),
    Semantics.RANK_PARITY: WaitingRule(stream=Stream.PARITY),
    Semantics.BOUNDED: WaitingRule(stream=Stream.PAIR, held=1),
    Semantics.LAZY_PAIRS: WaitingRule(stream=Stream.PAIR, makes_communicators=True),
    Semantics.BATCHED: WaitingRule(stream=Stream.RANK, batching=Batching.OWN_BATCH),
    Semantics.WHOLE_BATCHES: WaitingRule(stream=Stream.RANK, batching=Batching.MET_BATCHES),
    Semantics.ONE_QUEUE: WaitingRule(stream=Stream.RANK, blocking=Blocking.ALL),
    Semantics.CAPTURED: WaitingRule(stream=Stream.RANK),
}
