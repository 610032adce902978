"""The lowest versions that ``pyproject.toml`` declares, as constraints for pip, torch apart.

``python proofs_tests/lowest.py > lowest.txt``: the standard library alone, since nothing is
installed yet where that runs.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"
DECLARED = re.compile(r"([a-z0-9-]+)>=([\w.]+)")


def constraints(project: str) -> list[str]:
    """A line ``name==version`` for each requirement of the project and of its extras.

    >>> constraints('[project]\\ndependencies = ["numpy>=2.0"]\\n[project.optional-dependencies]')
    ['numpy==2.0']
    """
    data = tomllib.loads(project)["project"]
    extras = data["optional-dependencies"].values()
    found = [
        DECLARED.fullmatch(word) for words in (data["dependencies"], *extras) for word in words
    ]
    return sorted({f"{each[1]}=={each[2]}" for each in found if each and each[1] != "torch"})


if __name__ == "__main__":
    sys.stdout.write("".join(f"{line}\n" for line in constraints(PROJECT.read_text("utf-8"))))
