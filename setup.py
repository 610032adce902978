"""Where the packages stand: rooms at the top of the repository are of bubbleproof too.

Links make them one for tools: ``src/bubbleproof`` with ``theory`` and the others in it. A checkout
whose links are text files (a zip archive, git on Windows) is told the same folder by folder.
"""

from __future__ import annotations

from pathlib import Path

from setuptools import find_packages, setup

CORE, WINGS = ("theory", "verify", "solvers", "reference_exec"), ("papers",)
ROOMS = (*CORE, *(room for room in WINGS if Path(room).is_dir()))  # a wing may be left out

if all((Path("src/bubbleproof") / room).is_dir() for room in ROOMS):
    setup(package_dir={"": "src"}, packages=find_packages("src"))
else:
    INSIDE = find_packages(include=["bubbleproof", "bubbleproof.*"])
    BESIDE = find_packages(include=[*ROOMS, *(f"{room}.*" for room in ROOMS)])
    setup(
        package_dir={f"bubbleproof.{room}": room for room in ROOMS},
        packages=[*{*INSIDE, *(f"bubbleproof.{name}" for name in BESIDE)}],
    )
