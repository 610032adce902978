"""All generators that can be had: ours, torch's, Megatron's and, of archives, DeepSpeed's."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from benchmarks.verdicts.archives import named
from benchmarks.verdicts.deepspeed_generators import PACKAGE, deepspeed_generators
from benchmarks.verdicts.generated import Generator
from benchmarks.verdicts.megatron_generators import megatron_generators
from benchmarks.verdicts.our_generators import our_generators


@cache
def generators(archives: tuple[Path, ...]) -> dict[tuple[str, str], Generator]:
    """By source and name; torch's where it is installed.

    Raises ``ValueError`` for an archive of a package from which nothing is made.
    """
    found = [*_of_torch(), *megatron_generators()]
    for archive in archives:
        package, _ = named(archive)
        if package != PACKAGE:
            raise ValueError(f"schedules are made from archives of {PACKAGE}, not of {package}")
        found += deepspeed_generators(archive)
    found += our_generators()
    return {(each.source, each.name): each for each in found}


def _of_torch() -> list[Generator]:
    try:
        from benchmarks.verdicts.torch_generators import torch_generators
    except ImportError:
        return []
    return torch_generators()
