"""One reader under Atheris, a coverage-guided fuzzer, in a process of its own.

    python -m benchmarks.fuzz_one READER FOLDER [options of libFuzzer]

``FOLDER/corpus`` has the inputs to begin from and gets those that reach new lines. Each finding is
written into ``FOLDER/findings`` once, under its name. libFuzzer ends the process where an input
takes too long or too much memory, and leaves that input beside them.
"""

from __future__ import annotations

import hashlib
import sys
from importlib import import_module
from pathlib import Path
from typing import Any


def main(reader: str, folder: Path, options: list[str]) -> None:
    """Fuzz a reader until the options end it."""
    atheris: Any = import_module("atheris")
    with atheris.instrument_imports(include=["bubbleproof"]):
        from benchmarks.fuzz_targets import TARGETS, finding

    target = TARGETS[reader]
    path, found = str(folder / target.file), folder / "findings"

    def run(content: bytes) -> None:
        with open(path, "wb") as file:
            file.write(content)
        if told := finding(target.read, path):
            name = hashlib.sha256(told.encode()).hexdigest()[:12]
            if not (found / name).exists():
                (found / name).write_bytes(content)
                (found / f"{name}.txt").write_text(told, encoding="utf-8")

    atheris.Setup([sys.argv[0], *options, str(folder / "corpus")], run)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
