"""Writing a file all at once, so that a reader never sees half of it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from bubbleproof.formats.errors import UnusableInput


def write_atomically(path: str | Path, content: bytes) -> Path:
    """Put ``content`` at ``path`` in one step.

    The bytes go to a temporary file beside the target, which then takes its name. Returns the path;
    raises ``UnusableInput`` where the folder is missing or takes no file, and leaves no temporary
    file behind.
    """
    target = Path(path)
    if not target.parent.is_dir():
        raise UnusableInput("", "a file in a folder", f"no folder {target.parent}", str(path))
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:40]}.")
    except OSError as error:
        why = (error.strerror or type(error).__name__).lower()
        raise UnusableInput("", "a file that can be written", why, str(path)) from None
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return target


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
