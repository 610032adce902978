"""The machine and the versions behind a measurement, to stand beside its numbers."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version

PACKAGES = ("bubbleproof", "numpy", "torch")
GIBIBYTE = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What ran: processor family, ``cores`` this process may use, ``memory_bytes`` installed."""

    processor: str
    cores: int
    memory_bytes: int
    versions: dict[str, str]

    def __str__(self) -> str:
        versions = ", ".join(f"{name} {number}" for name, number in self.versions.items())
        return f"{self.cores} cores ({self.processor}), {self.memory_text}; {versions}"

    @property
    def memory_text(self) -> str:
        return f"{self.memory_bytes / GIBIBYTE:.1f} GiB memory"

    def to_json(self) -> dict[str, object]:
        """The fields by name."""
        return asdict(self)


def this_machine(packages: Sequence[str] = PACKAGES) -> Machine:
    """The machine of this process; packages that are not installed are left out."""
    versions = {"python": platform.python_version()}
    for name in packages:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return Machine(
        processor=platform.machine(),
        cores=len(os.sched_getaffinity(0)),
        memory_bytes=os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
        versions=versions,
    )
