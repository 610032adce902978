"""Where processes meet that others started: torch's store, and in it the address of the hub.

With torchrun the store is its own, on the first node; otherwise the first process keeps one. All
waiting here is by looking again, so that an interrupt or the end of the agent is answered.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from datetime import timedelta

from torch.distributed import (  # type: ignore[attr-defined]  # public, not exported
    PrefixStore,
    TCPStore,
)
from torch.distributed.distributed_c10d import Store

from bubbleproof.reference_exec.drivers.place import ProcessPlace

LOOK_SECONDS = 0.05
KEY = "bubbleproof/hub"


def open_store(place: ProcessPlace, seconds: float) -> Store:
    """The store of all processes, for this attempt of theirs.

    Raises ``ValueError`` where nobody keeps it within ``seconds``, and where another program has
    the port.
    """
    is_master = place.is_first and not place.has_store
    where = f"{place.address}:{place.port}"
    if not is_master:
        text = f"the first process is not at {where} (MASTER_ADDR and MASTER_PORT)"
        _await(lambda: _is_open(place.address, place.port), place, seconds, text)
    try:
        store = TCPStore(
            place.address,
            place.port,
            is_master=is_master,
            timeout=timedelta(seconds=seconds),
            wait_for_workers=False,
        )
    except RuntimeError as error:
        line = str(error).partition("\n")[0]
        raise ValueError(f"no store at {where} (MASTER_ADDR and MASTER_PORT): {line}") from None
    return PrefixStore(f"bubbleproof/{place.attempt}", store)


def hub_address(
    store: Store, own: tuple[int, str] | None, place: ProcessPlace, seconds: float
) -> tuple[int, str]:
    """The hub's port and token: ``own`` are the first process's, for all others to find.

    Raises ``ValueError`` where the first process does not come within ``seconds``, or there are
    two of them.
    """
    if own is not None:
        said = f"{own[0]} {own[1]}"
        if store.compare_set(KEY, "", said).decode() != said:
            raise ValueError("two processes were given rank 0; ranks must differ")
        return own
    text = f"rank 0 did not come to {place.address}:{place.port} within {seconds:g} s"
    try:
        _await(lambda: store.check([KEY]), place, seconds, text)
        port, _, token = store.get(KEY).decode().partition(" ")
    except RuntimeError:  # torch's, of a connection that ended
        raise ValueError(f"rank 0 or its torchrun ended before rank {place.rank} met it") from None
    return int(port), token


def _is_open(address: str, port: int) -> bool:
    try:
        socket.create_connection((address, port), timeout=5.0).close()
    except OSError:
        return False
    return True


def _await(is_there: Callable[[], bool], place: ProcessPlace, seconds: float, text: str) -> None:
    """Look until it is there. Raises ``ValueError`` after ``seconds``, or when the agent ends."""
    deadline = time.monotonic() + seconds
    while not is_there():
        if time.monotonic() > deadline:
            raise ValueError(text)
        if place.is_orphan:
            raise ValueError(f"rank {place.rank} lost torchrun, which has ended")
        time.sleep(LOOK_SECONDS)
