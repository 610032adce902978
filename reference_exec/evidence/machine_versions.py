"""The machine and the versions behind a measurement, to stand beside its numbers."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version

from bubbleproof.platforms import installed_bytes, num_cores

PACKAGES = ("bubbleproof", "numpy", "torch")
GIBIBYTE = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayMachine:
    """What ran: processor family, ``cores`` this process may use, ``memory_bytes`` installed.

    There are 0 bytes where the system does not tell.
    """

    processor: str
    cores: int
    memory_bytes: int
    versions: dict[str, str]

    def __str__(self) -> str:
        versions = ", ".join(f"{name} {number}" for name, number in self.versions.items())
        return f"{self.cores} cores ({self.processor}), {self.memory_text}; {versions}"

    @property
    def memory_text(self) -> str:
        known = f"{self.memory_bytes / GIBIBYTE:.1f} GiB"
        return f"{known if self.memory_bytes else 'unknown'} memory"

    def to_json(self) -> dict[str, object]:
        """The fields by name."""
        return asdict(self)


def this_machine(packages: Sequence[str] = PACKAGES) -> ReplayMachine:
    """The machine of this process; packages that are not installed are left out."""
    versions = {"python": platform.python_version()}
    for name in packages:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return ReplayMachine(
        processor=platform.machine(),
        cores=num_cores(),
        memory_bytes=installed_bytes(),
        versions=versions,
    )
