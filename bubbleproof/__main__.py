"""``python -m bubbleproof`` and the console script: the command ``bubbleproof``.

Loading the command takes a second, in which there is nothing to undo or to tell: a Ctrl-C ends the
process then and there with one line and the status of an interruption, and so it does after the
command, while Python ends. In between ``commands.last_resort`` answers it.

Python's looks for garbage among what is loaded, which stays, took more than a tenth of a small
command: they are rarer, and at the end there is none.

A standard output that is closed from the start is unusable: the command says so and does nothing,
or the first file that it opens would become its standard output.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import time
from types import FrameType

MADE_BETWEEN_LOOKS = 10_000  # objects, for 700


def main() -> None:
    """Load the command and run it; exits with its status."""
    began = time.perf_counter()
    _require_streams()
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)
    if sys.argv[1:] == ["--version"]:  # in a tenth of a second, with no command loaded
        _tell_version()
        return
    gc.set_threshold(MADE_BETWEEN_LOOKS)
    from bubbleproof.cli import main as command

    is_ours = signal.getsignal(signal.SIGINT) is _end
    try:
        if is_ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        command(began)
    except KeyboardInterrupt:  # beside the command's own guard
        _end(signal.SIGINT, None)
    finally:
        if is_ours:
            signal.signal(signal.SIGINT, _end)
        gc.freeze()


def _tell_version() -> None:
    from bubbleproof.version import package_version

    try:
        os.write(sys.stdout.fileno(), f"bubbleproof {package_version()}\n".encode())
    except BrokenPipeError:
        sys.exit(1)
    except OSError as error:
        sys.stderr.write(f"bubbleproof: {error}\n")
        sys.exit(2)


def _require_streams() -> None:
    """End with one line where there is no standard output; errors may go nowhere."""
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - kept to the end
    if sys.stdout is None:
        why = "standard output is closed, and the answer goes there"
        sys.stderr.write(f"bubbleproof: {why}; send it to a file, or to {os.devnull}\n")
        sys.exit(2)


def _end(_signal: int, _frame: FrameType | None) -> None:
    os.write(2, b"bubbleproof: interrupted\n")
    os._exit(130)


if __name__ == "__main__":
    main()
