"""``python -m bubbleproof`` and the console script: the command ``bubbleproof``.

Loading the command takes a second, in which there is nothing to undo or to tell: a Ctrl-C ends the
process then and there with one line and the status of an interruption, and so it does after the
command, while Python ends. In between ``commands.last_resort`` answers it.
"""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType


def main() -> None:
    """Load the command and run it; exits with its status."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)
    if sys.argv[1:] == ["--version"]:  # in a tenth of a second, with no command loaded
        from bubbleproof.version import package_version

        sys.stdout.write(f"bubbleproof {package_version()}\n")
        return
    from bubbleproof.cli import main as command

    is_ours = signal.getsignal(signal.SIGINT) is _end
    try:
        if is_ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        command()
    except KeyboardInterrupt:  # beside the command's own guard
        _end(signal.SIGINT, None)
    finally:
        if is_ours:
            signal.signal(signal.SIGINT, _end)


def _end(_signal: int, _frame: FrameType | None) -> None:
    os.write(2, b"bubbleproof: interrupted\n")
    os._exit(130)


if __name__ == "__main__":
    main()
