"""The packages of the wheel: the four rooms at the top of the repository are of bubbleproof too.

Everything else stands in ``pyproject.toml``, the folder of each room under ``package-dir``.
"""

from __future__ import annotations

from setuptools import find_packages, setup

ROOMS = ("theory", "verify", "solvers", "reference_exec")
INSIDE = find_packages(include=["bubbleproof", "bubbleproof.*"])
BESIDE = find_packages(include=[*ROOMS, *(f"{room}.*" for room in ROOMS)])

setup(packages=[*INSIDE, *(f"bubbleproof.{name}" for name in BESIDE)])
