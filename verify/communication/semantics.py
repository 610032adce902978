"""What SEND and RECV wait for: the named semantics, each as what may happen when.

A rank goes through its program. A computation runs when the rank comes to it, its inputs on the
rank have run and the RECVs of the others have *ended*. An *end* of a message, its SEND or its RECV,
is *posted* when the rank comes to it, then *starts*, then ends:

- a message's two ends end together, as soon as both have started;
- an end may start once it is posted and those that its semantics names have started or ended.

Nothing else happens, and all that may happen does in the end. What may happen stays possible
whatever else happens first, so the order makes no difference: a program gets stuck under a
semantics always or never. EVICT and LOAD are ends too, with a stream of their own per pair of
ranks. An end may start

``buffered``
    when the earlier ones of its ordered pair of ranks have ended; here a SEND ends alone, as soon
    as it is posted (``isend`` and ``irecv`` with unbounded buffers).
``rendezvous``
    likewise, but a rank that comes to a SEND or RECV goes on only when that has ended
    (``MPI_Ssend`` and ``MPI_Recv``; ``dist.send`` and ``dist.recv`` on gloo or a single CUDA
    stream).
``pair-stream``
    when the end before it in the stream of its *unordered* pair of ranks has ended (un-batched
    ``isend`` and ``irecv`` of torch on NCCL: a communicator and a CUDA stream for each pair).
``launch-order``
    as under ``pair-stream``, and when the end before it on its rank, whatever the pair, has
    *started* (``NCCL_LAUNCH_ORDER_IMPLICIT=1`` from NCCL 2.26 on, with CUDA 12.3 or newer:
    communicators of a device start in the order in which the host launches them; NCCL's user guide,
    "Using multiple NCCL communicators concurrently" and "Environment Variables").
``rank-stream``
    when the end before it on its rank has ended (the same with older CUDA, where NCCL serialises
    what it orders; one eagerly initialised communicator for all).

Each of ``buffered``, ``pair-stream``, ``launch-order`` and ``rank-stream`` lets fewer programs
through than the one before it. These five are judged where none is named (``USUAL``); the others
are defined in ``waiting_rules``. ``docs/measured/semantics.md`` has which follows from which.
"""

from __future__ import annotations

from enum import StrEnum


class Semantics(StrEnum):
    """What SEND and RECV wait for; see the module's text."""

    BUFFERED = "buffered"
    RENDEZVOUS = "rendezvous"
    PAIR_STREAM = "pair-stream"
    LAUNCH_ORDER = "launch-order"
    RANK_STREAM = "rank-stream"
    DIRECTED_EDGE = "directed-edge"
    PER_DIRECTION = "per-direction"
    RANK_PARITY = "rank-parity"
    BOUNDED = "bounded"
    LAZY_PAIRS = "lazy-pairs"
    BATCHED = "batched"
    WHOLE_BATCHES = "whole-batches"
    ONE_QUEUE = "one-queue"
    CAPTURED = "captured"


USUAL = (
    Semantics.BUFFERED,
    Semantics.RENDEZVOUS,
    Semantics.PAIR_STREAM,
    Semantics.LAUNCH_ORDER,
    Semantics.RANK_STREAM,
)
