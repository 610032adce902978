"""What torch asks of this machine before it can be used: its package, and memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

MISSING = 'replay needs PyTorch: pip install "bubbleproof[exec]"'
_NO_ROOM = ("can't allocate memory", "out of memory")  # on the cpu, on a GPU


def require_torch(asker: str) -> None:
    """Raise ``ValueError`` with what to install where torch is missing."""
    if find_spec("torch") is None:
        raise ValueError(MISSING.replace("replay", asker))


@contextmanager
def torch_needed() -> Iterator[None]:
    """Say what to install where torch is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ValueError(MISSING) from None


@contextmanager
def room_needed() -> Iterator[None]:
    """Say of a model that is too large for the memory here how much it asked for.

    What a rank in a process of its own says of its memory is a failure of that rank, and stays so.
    """
    try:
        yield
    except RuntimeError as error:
        text = str(error).partition("\n")[0]
        sign = next((sign for sign in _NO_ROOM if sign in text), None)
        if sign is None or type(error).__name__ == "RankFailed":
            raise
        asked = text[text.index(sign) :]
        raise ValueError(f"the model does not fit into the memory here: {asked}") from None
