"""What order NCCL keeps here, by what is installed and set; programs are verified under it.

Each pair of ranks has a communicator of its own (``group_transport``), so all depends on what
orders the communicators of one device:

- NCCL 2.26 and newer start them in the order of the host's launches where
  ``NCCL_LAUNCH_ORDER_IMPLICIT=1``; with CUDA 12.3 or newer, library and driver, they may then
  overlap (``launch-order``), with older ones each runs after the other (``rank-stream``);
- without that NCCL asks for one order that all devices share, which a program that passes
  ``rank-stream`` has;
- streams that share a hardware queue wait for each other; CUDA has as many queues as
  ``CUDA_DEVICE_MAX_CONNECTIONS`` says, 32 at most. Whatever shares one, ``rank-stream`` covers it.

Ranks share a GPU from NCCL 2.30 on, where ``NCCL_MULTI_RANK_GPU_ENABLE=1`` (experimental there);
older ones end with "Duplicate GPU detected". What is kept is asked of each rank alone, so it is the
same where ranks share.

In a collective of replicas every member sends before it receives, which needs communicators that
overlap; elsewhere replicas are refused. It stands among the messages of its rank: a program that
passes ``rank-stream`` has one order for both. Sources: NCCL's user guide, "Using multiple NCCL
communicators concurrently" and "Environment Variables"; the CUDA programming guide, "CUDA
Environment Variables".
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping
from dataclasses import dataclass

import torch

from bubbleproof.reference_exec.drivers.agreement import IdentityPart, Parts
from bubbleproof.reference_exec.runtime.device import DeviceLane
from bubbleproof.verify.communication.semantics import Semantics

CONNECTIONS, IMPLICIT = "CUDA_DEVICE_MAX_CONNECTIONS", "NCCL_LAUNCH_ORDER_IMPLICIT"
SHARED = "NCCL_MULTI_RANK_GPU_ENABLE"
VARIABLES = (CONNECTIONS, IMPLICIT, SHARED)
ORDERED_FROM, OVERLAPPED_FROM, SHARED_FROM = (2, 26), (12, 3), (2, 30)
MOST_CONNECTIONS, DEFAULT_CONNECTIONS = 32, 8
HOLDING = {  # what a program may be verified under where that on the left holds
    Semantics.LAUNCH_ORDER: (Semantics.LAUNCH_ORDER, Semantics.RANK_STREAM),
    Semantics.RANK_STREAM: (Semantics.RANK_STREAM,),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NcclHere:
    """Versions of NCCL and of CUDA (the older of library and driver), and variables as set."""

    nccl: tuple[int, ...]
    cuda: tuple[int, ...]
    variables: Mapping[str, str]

    def parts(self) -> Parts:
        """What processes compare before they run."""
        versions = {"NCCL": _dotted(self.nccl), "CUDA": _dotted(self.cuda)}
        told = {name: self.variables.get(name, "not set") for name in VARIABLES}
        return {name: IdentityPart.of(value) for name, value in {**versions, **told}.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptOrder:
    """The semantics that hold, and why those."""

    semantics: Semantics
    why: str


def nccl_here() -> NcclHere:
    """What this process has. Precondition: torch sees a GPU and was built with NCCL."""
    library = tuple(int(part) for part in str(torch.version.cuda).split("."))
    driver = _driver_version()
    version = torch.cuda.nccl.version()  # type: ignore[no-untyped-call]  # torch leaves it untyped
    return NcclHere(
        nccl=tuple(version)[:3],
        cuda=library if driver is None else min(library, driver),
        variables={name: os.environ[name] for name in VARIABLES if name in os.environ},
    )


def _driver_version() -> tuple[int, int] | None:
    """The newest CUDA that the driver knows (``cuDriverGetVersion``), where it can be asked."""
    number = ctypes.c_int()
    try:
        if ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(number)):
            return None
    except OSError:
        return None
    return number.value // 1000, number.value % 1000 // 10


def kept_order(here: NcclHere, *, ranks: int, replicas: int = 1) -> KeptOrder:
    """What holds for a pipeline of so many ranks, in so many replicas.

    Raises ``ValueError`` for a variable that is no number, and for replicas where communicators do
    not overlap.
    """
    why = _why_serial(here, ranks)
    if why is None and replicas == 1:
        return KeptOrder(
            semantics=Semantics.LAUNCH_ORDER,
            why=f"NCCL {_dotted(here.nccl)} starts communicators in the order of their launches "
            f"({IMPLICIT}=1), CUDA {_dotted(here.cuda)} lets them overlap",
        )
    if why is None:
        why = "the collectives of replicas stand in one order of launches with the messages"
    elif replicas > 1:
        raise ValueError(
            f"replicas over NCCL need communicators that overlap: {why}; take NCCL 2.26 and CUDA "
            f"12.3 or newer, {IMPLICIT}=1 and {CONNECTIONS}={MOST_CONNECTIONS}, or --backend gloo"
        )
    return KeptOrder(semantics=Semantics.RANK_STREAM, why=why)


def require_sharing(here: NcclHere) -> None:
    """Raise ``ValueError`` where NCCL lets no two ranks use one GPU."""
    if here.nccl < SHARED_FROM:
        raise ValueError(
            f"--share-gpu needs NCCL {_dotted(SHARED_FROM)} or newer, got {_dotted(here.nccl)}: "
            "give each rank a GPU, or replay all ranks in one process (--device cuda)"
        )
    if _number(here.variables, SHARED, 0) != 1:
        raise ValueError(
            f"--share-gpu needs {SHARED}=1, it is {here.variables.get(SHARED, 'not set')}; unset it"
        )


def _why_serial(here: NcclHere, ranks: int) -> str | None:
    """Why no more than one order of all can be relied on; None where starts are in order."""
    connections = _number(here.variables, CONNECTIONS, DEFAULT_CONNECTIONS)
    streams = len(DeviceLane) + 2 * (
        ranks - 1
    )  # at most one for messages and for evictions by pair
    if here.nccl < ORDERED_FROM:
        return f"NCCL {_dotted(here.nccl)} orders no communicators, from 2.26 on it does"
    if _number(here.variables, IMPLICIT, 0) != 1:
        return f"{IMPLICIT} is {here.variables.get(IMPLICIT, 'not set')}, not 1"
    if here.cuda < OVERLAPPED_FROM:
        return f"CUDA {_dotted(here.cuda)} runs them one after the other, from 12.3 on they overlap"
    if min(connections, MOST_CONNECTIONS) < streams:
        return f"{CONNECTIONS} is {connections}, for up to {streams} streams of a rank"
    return None


def _number(variables: Mapping[str, str], name: str, default: int) -> int:
    text = variables.get(name, str(default))
    if not text.isascii() or not text.isdecimal() or len(text) > 9:
        raise ValueError(f"{name} must be a whole number, got {text[:60]!r}; unset it, or set 32")
    return int(text)


def agreed_semantics(kept: KeptOrder, asked: Semantics | str | None) -> KeptOrder:
    """What a program is verified under: what holds, or what was asked for and is stricter.

    Raises ``ValueError`` for anything that would let programs pass which may hang here.
    """
    if asked is None or asked == kept.semantics:
        return kept
    allowed = HOLDING[kept.semantics]
    if asked not in allowed:
        raise ValueError(
            f"--comm {asked} lets programs pass that may hang here: NCCL keeps {kept.semantics} "
            f"({kept.why}); leave --comm away"
            + "".join(f", or say --comm {name}" for name in allowed[1:])
        )
    return KeptOrder(semantics=Semantics(asked), why=f"asked for; {kept.semantics} would hold")


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
