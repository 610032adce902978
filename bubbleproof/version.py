"""The version of the package, as it is installed."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def package_version() -> str:
    """The version, such as ``1.2.0``; ``0`` in a checkout that nobody installed."""
    try:
        return version("bubbleproof")
    except PackageNotFoundError:
        return "0"
